"""Compiling inputs, and loading what was compiled."""

from __future__ import annotations

import os
from typing import Any, Dict, Iterable, Mapping, Optional, Sequence, Tuple, Union

import numpy.typing as npt

from . import _conset, _inputs
from ._errors import InputError
from ._progress import ProgressArgument, Reporter
from ._schedule import Schedule
from ._steps import StepSchedule


def compile(
    source: _inputs.SourceArgument,
    machine: Union[str, "os.PathLike[str]", None] = None,
    *,
    params: Optional[Mapping[str, Union[int, str]]] = None,
    dead: Iterable[Union[int, Tuple[int, int]]] = (),
    format: Optional[str] = None,
    parts: Optional[int] = None,
    partition: Union[str, "os.PathLike[str]", npt.ArrayLike, None] = None,
    repartition: bool = False,
    imbalance: Optional[float] = None,
    max_partitions: Optional[int] = None,
    ignore_periodic: bool = False,
    elements: str = "as-read",
    halo: Optional[str] = None,
    layers: Optional[int] = None,
    words_per_node: Union[int, str, "os.PathLike[str]", npt.ArrayLike, None] = None,
    placement: Optional[str] = None,
    words: Optional[int] = None,
    seed: int = 1,
    by: str = "phases",
    algorithm: Optional[str] = None,
    objective: Optional[str] = None,
    rip_up_iterations: Optional[int] = None,
    max_phases: Optional[int] = None,
    max_plans: Optional[int] = None,
    time_limit: Optional[float] = None,
    unlimited: bool = False,
    fuse: Iterable[Sequence[str]] = (),
    reuse: Optional[Schedule] = None,
    memory: Optional[int] = None,
    progress: ProgressArgument = None,
) -> Any:
    """Compiles an input to a verified schedule: a :class:`Schedule` of phases, or a
    :class:`StepSchedule` of messages in steps (``by``).

    The arguments are the options of ``conset compile`` and have their names and defaults; the same
    arguments give the same bytes as the command.

    :param source: What to compile: the path of any file that ``conset`` reads, a ``meshio.Mesh``, a
        sparse matrix of ``scipy.sparse``, an array of connections between cells with the columns
        source, target and, optionally, words, a :class:`Pattern` or ``"pattern:all-to-all"``.
    :param machine: A preset with optional sizes (``"iwarp:16x16"``, ``"torus:4x4x4"``) or the path
        of a machine file (``.toml``); the default is the machine that the input names, or
        ``"iwarp"``.
    :param params: Machine parameters, such as ``{"channels_per_cell": 20}``.
    :param dead: Cells that are dead, and links as pairs ``(from, to)`` of cells.
    :param format: The format of a file, if its contents and name do not show it.
    :param parts: The number of parts; the default is the number of cells of the machine.
    :param partition: The part of each element, vertex or row: an array, or the path of a file.
    :param repartition: Replace the decomposition that the input states.
    :param imbalance: By how many percent the heaviest part may exceed the average weight; the
        default is 3.
    :param max_partitions: Look at no more than this many partitions.
    :param ignore_periodic: Keep nodes separate that the input joins across a periodic boundary.
    :param elements: ``"triangles"`` partitions the triangles of a nodal graph.
    :param halo: What parts exchange: ``"nodes"``, ``"faces"``, ``"edges"`` or ``"rows"``; the
        default is nodes for meshes, and rows for graphs and matrices.
    :param layers: Layers of neighbours that a part needs, with the halos of faces, edges and rows.
    :param words_per_node: Words of each exchanged node, element or row: a number, an array with one
        number for each, or the path of a file.
    :param placement: ``"given"``, ``"curve"``, ``"bisect"`` or ``"best"``.
    :param words: Words of each connection of a pattern, or of connections without words.
    :param seed: The seed of all random choices.
    :param by: ``"phases"``, whose routes are in the tables of the machine, or ``"steps"``: messages
        in steps, for machines without tables. ``"best"`` compiles to both and returns the one with
        fewer predicted clocks; its ``compared`` has those of the other.
    :param algorithm: ``"auto"`` or ``"paper"`` for phases; for steps ``"auto"`` or a planner, such as
        ``"loaded"`` or ``"levels:16x16/columns"``.
    :param objective: What ``"auto"`` minimises: ``"time"`` or ``"phases"``.
    :param rip_up_iterations: Iterations of rip-up and reroute with ``algorithm="paper"``.
    :param max_phases: Refuse sets that need more phases.
    :param max_plans: Try at most this many plans for each set.
    :param time_limit: The search time limit in seconds; the result depends on the computer.
    :param unlimited: Lift the limits on work and memory.
    :param fuse: Groups of names of sets that may be exchanged at the same time.
    :param reuse: An earlier schedule for the same machine, reused as far as it still fits.
    :param memory: Bytes that an input may take in memory.
    :param progress: ``True`` shows progress on standard error; a function is called with each
        :class:`Progress`, and an exception that it raises ends the call.
    :raises InputError: A file or an argument is wrong.
    :raises CompileError: The connections do not fit on the machine.
    :raises VerifyError: The checker refused ``reuse``.
    :raises KeyboardInterrupt: The call was interrupted.
    """
    if reuse is not None and not isinstance(reuse, Schedule):
        raise TypeError(f"reuse is a Schedule, not {type(reuse).__name__}")
    by = _inputs.choice("--by", by, ["phases", "steps", "best"]) or "phases"
    fuse = tuple(fuse)
    if by != "phases":
        only_phases: Dict[str, Any] = {
            "--reuse": reuse,
            "--fuse": fuse or None,
            "--objective": objective,
            "--max-phases": max_phases,
            "--time-limit": time_limit,
        }
        # With "best", both have planners of their own, and those of phases may rip up routes.
        if by == "best":
            only_one = {"--algorithm": algorithm}
        else:
            only_one = {"--rip-up-iterations": rip_up_iterations}
        _refuse(by, {**only_phases, **only_one})
    options = _inputs.native_options(
        by=by,
        machine=machine,
        params=params,
        dead_parts=dead,
        format=format,
        parts=parts,
        partition_argument=partition,
        repartition=repartition,
        imbalance=imbalance,
        max_partitions=max_partitions,
        ignore_periodic=ignore_periodic,
        elements=elements,
        halo=halo,
        layers=layers,
        words_per_node=words_per_node,
        placement=placement,
        seed=seed,
        algorithm=algorithm,
        objective=objective,
        rip_up_iterations=rip_up_iterations,
        max_phases=max_phases,
        max_plans=max_plans,
        time_limit=time_limit,
        unlimited=unlimited,
        fuse=fuse,
        memory=memory,
    )
    native = _inputs.native_source(source, words)
    earlier = None if reuse is None else reuse._native
    with Reporter(progress) as reporter:
        return _wrapped(_conset.compile(native, options, earlier, reporter.callback))


def load(
    path: Union[str, "os.PathLike[str]"], *, progress: ProgressArgument = None
) -> Any:
    """Loads a schedule or an image from a file; the checker verifies it.

    The result is a :class:`Schedule`, or a :class:`StepSchedule` if the file is one of steps.

    A schedule has :attr:`Schedule.part_cells` and the numbers of nodes that it was saved with, but
    not :attr:`Schedule.item_parts`, which no file has; an image has neither.

    :raises InputError: The file is wrong.
    :raises VerifyError: The checker refused the schedule.
    """
    with Reporter(progress) as reporter:
        return _wrapped(_conset.load(path, reporter.callback))


def _wrapped(native: _conset.Program) -> Union[Schedule, StepSchedule]:
    return StepSchedule(native) if native.by() == "steps" else Schedule(native)


def _refuse(by: str, options: Dict[str, Any]) -> None:
    """Refuses options that have no effect, as the command does."""
    for option, value in options.items():
        if value is not None:
            raise InputError(
                f"{option}: {option} has no effect with --by {by}\n"
                f"  help: leave out {option}, or --by {by}"
            )
