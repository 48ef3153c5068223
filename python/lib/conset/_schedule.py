"""Compiling, and the result: a schedule and its arrays."""

from __future__ import annotations

import json
import os
import tempfile
from functools import cached_property
from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
    Union,
)

import numpy as np
import numpy.typing as npt

from . import _conset, _inputs, _page, _steps
from ._errors import InputError
from ._progress import ProgressArgument, Reporter

Array = npt.NDArray[np.int64]

#: The forms of files, by extension.
_FORMS = {".json": "json", ".cset": "cset", ".csb": "csb", ".csi": "csi"}


class Connections(NamedTuple):
    """The connections of a set, one row each; the id of a connection is its row."""

    source: Array
    """The cell that sends."""
    target: Array
    """The cell that receives."""
    words: Array
    """The number of words."""


class NodeLists(NamedTuple):
    """The nodes of each connection, in the order of its words.

    Connection ``x`` carries the values of ``nodes[offsets[x]:offsets[x + 1]]``. Both of its ends
    pack and unpack in this order.
    """

    offsets: Array
    """Where each list begins; one entry more than connections."""
    nodes: Array
    """Nodes or elements of the mesh, vertices of the graph or rows of the matrix, from 0."""
    numbers: Optional[Array]
    """The input's own numbers of :attr:`nodes`.

    Those of a ``meshio.Mesh`` and of a matrix count from 0 as :attr:`nodes` do. ``None`` if the
    sets come from a file of connections.
    """


class Routes(NamedTuple):
    """The routes of all phases, one row each, in the order of the phases.

    A connection has several routes if its words are split. Route ``r`` passes through
    ``cells[offsets[r]:offsets[r + 1]]``.
    """

    connection: Array
    """The connection."""
    phase: Array
    """The phase."""
    words: Array
    """The words of this route."""
    start: Array
    """The clock at which its slot starts, from the start of the phase."""
    duration: Array
    """The length of its slot in clocks."""
    offsets: Array
    """Where the cells of each route begin; one entry more than routes."""
    cells: Array
    """The cells of all routes."""
    channels: Array
    """The channel on each of these cells."""


class Bound(NamedTuple):
    """Lower bounds: no schedule of the set is below them."""

    clocks: int
    """Clocks, context switches included."""
    phases: int
    """Phases."""
    clocks_by: str
    """The bound on clocks that is the greatest."""
    phases_by: str
    """The bound on phases that is the greatest."""


class Run(NamedTuple):
    """The measurement of one set on the emulated machine."""

    set: str
    """The set."""
    clocks: int
    """Clocks measured, context switches included."""
    phases: int
    """Phases executed."""
    words: int
    """Words delivered."""
    payload_ok: bool
    """Whether every word arrived exactly once, in order, at the right cell."""
    report: Dict[str, Any]
    """All numbers, with the keys of ``conset run --json``."""


class Verification(NamedTuple):
    """What the independent checker counted in a schedule that it accepted."""

    sets: int
    phases: int
    connections: int
    words: int
    routes: int
    hops: int
    max_channels: int
    """The greatest number of channels in use on a cell in a phase."""
    max_sharing: int
    """The greatest number of routes on a link in a phase."""
    proved_phases: int
    """Phases whose length is proved, on machines with timed starts."""
    proved_clocks: int
    """The sum of the proved lengths, without context switches."""


def _array(data: bytes) -> Array:
    """The array of bytes from the native part; it is read-only."""
    return np.frombuffer(data, dtype=np.int64)


def _optional(data: Optional[bytes]) -> Optional[Array]:
    return None if data is None else _array(data)


class SetSchedule:
    """The schedule of one connection set. All arrays are read-only."""

    def __init__(self, native: _conset.Schedule, row: int, summary: Dict[str, Any]) -> None:
        self._native = native
        self._row = row
        self.summary: Dict[str, Any] = summary
        """All numbers, with the keys of ``sets`` in ``conset compile --json``."""

    @property
    def name(self) -> str:
        """The name of the set."""
        return str(self.summary["set"])

    @property
    def clocks(self) -> int:
        """Clocks predicted by the cost model, context switches included."""
        return int(self.summary["predicted_clocks"])

    @property
    def phases(self) -> int:
        """The number of phases."""
        return int(self.summary["phases"])

    @property
    def bound(self) -> Bound:
        """Lower bounds on clocks and phases."""
        summary = self.summary
        return Bound(
            int(summary["bound_clocks"]),
            int(summary["bound_phases"]),
            str(summary["bound_clocks_by"]),
            str(summary["bound_phases_by"]),
        )

    @property
    def connections(self) -> Connections:
        """Source, target and words of each connection."""
        arrays = self._arrays
        return Connections(arrays["source"], arrays["target"], arrays["words"])

    @property
    def routes(self) -> Routes:
        """Phase, start, cells and channels of each route."""
        arrays = self._arrays
        return Routes(
            arrays["connection"],
            arrays["phase"],
            arrays["route_words"],
            arrays["start"],
            arrays["duration"],
            arrays["route_offsets"],
            arrays["cells"],
            arrays["channels"],
        )

    @property
    def starts(self) -> Array:
        """The start of each route, as in :attr:`routes`."""
        return self._arrays["start"]

    @property
    def makespans(self) -> Array:
        """Clocks of each phase, to the end of its last slot, without the context switch."""
        return self._arrays["makespan"]

    @property
    def node_lists(self) -> Optional[NodeLists]:
        """The nodes of each connection; ``None`` if the input has none."""
        arrays = self._arrays
        if "nodes" not in arrays:
            return None
        return NodeLists(arrays["node_offsets"], arrays["nodes"], arrays.get("node_numbers"))

    @cached_property
    def _arrays(self) -> Dict[str, Array]:
        arrays = self._native.arrays(self._row)
        return {name: _array(data) for name, data in arrays.items()}

    def __repr__(self) -> str:
        return (
            f"<conset.SetSchedule {self.name!r}: {len(self.connections.source)} connections, "
            f"{self.phases} phases, {self.clocks} clocks, bound {self.bound.clocks}>"
        )


class Schedule:
    """A compiled and verified program: the schedules of its sets on a machine.

    Most inputs make one set. Its attributes (:attr:`clocks`, :attr:`routes`, ...) are also those of
    the schedule; with several sets, use :attr:`sets`.
    """

    def __init__(self, native: _conset.Schedule) -> None:
        self._native = native

    @cached_property
    def summary(self) -> Dict[str, Any]:
        """All numbers, with the keys of ``conset compile --json``."""
        summary: Dict[str, Any] = json.loads(self._native.summary())
        return summary

    @cached_property
    def machine(self) -> Dict[str, Any]:
        """Name, topology and some parameters of the machine."""
        machine: Dict[str, Any] = json.loads(self._native.machine())
        return machine

    @cached_property
    def inventory(self) -> Optional[Dict[str, Any]]:
        """What a mesh contains, and what of it is not used and why; ``None`` for other inputs."""
        text = self._native.inventory()
        return None if text is None else dict(json.loads(text))

    @cached_property
    def sets(self) -> Tuple[SetSchedule, ...]:
        """The sets, in the order of execution."""
        rows = enumerate(self.summary["sets"])
        return tuple(SetSchedule(self._native, row, summary) for row, summary in rows)

    @property
    def _set(self) -> SetSchedule:
        if len(self.sets) != 1:
            names = ", ".join(each.name for each in self.sets)
            raise InputError(f"the schedule has {len(self.sets)} sets ({names}); use `sets`")
        return self.sets[0]

    @property
    def clocks(self) -> int:
        """Clocks of all sets, predicted by the cost model, context switches included."""
        return sum(each.clocks for each in self.sets)

    @property
    def phases(self) -> int:
        """The number of phases of all sets."""
        return sum(each.phases for each in self.sets)

    @property
    def bound(self) -> Bound:
        """Lower bounds of the set."""
        return self._set.bound

    @property
    def connections(self) -> Connections:
        """Source, target and words of each connection of the set."""
        return self._set.connections

    @property
    def routes(self) -> Routes:
        """Phase, start, cells and channels of each route of the set."""
        return self._set.routes

    @property
    def starts(self) -> Array:
        """The start of each route of the set."""
        return self._set.starts

    @property
    def makespans(self) -> Array:
        """Clocks of each phase of the set, without context switches."""
        return self._set.makespans

    @property
    def node_lists(self) -> Optional[NodeLists]:
        """The nodes of each connection of the set; ``None`` if the input has none."""
        return self._set.node_lists

    @cached_property
    def _parts(self) -> Tuple[Optional[Array], Optional[Array]]:
        items, cells = self._native.parts()
        return _optional(items), _optional(cells)

    @property
    def item_parts(self) -> Optional[Array]:
        """The part of each element, vertex or row, in the order of the input.

        Boundary elements are in the part of the element that they belong to. ``None`` if the input
        was not divided into parts, and for schedules that were loaded: no file has it. Save this
        array beside the schedule, or compile the input again with the same arguments.
        """
        return self._parts[0]

    @property
    def part_cells(self) -> Optional[Array]:
        """The cell of each part; ``None`` if nothing was placed."""
        return self._parts[1]

    @property
    def item_cells(self) -> Optional[Array]:
        """The cell of each element, vertex or row."""
        parts, cells = self.item_parts, self.part_cells
        if parts is None or cells is None:
            return None
        return cells[parts]

    def run(
        self, *, seed: int = 1, messages: bool = False, progress: ProgressArgument = None
    ) -> List[Run]:
        """Executes every set on the emulated machine and checks every word.

        ``seed`` determines the words that are sent. With ``messages``, every set is also executed
        by message passing in several orders of sending, and the fastest one is reported
        (``report["messages"]``).
        """
        number = _inputs.whole("--seed", seed, 0, _inputs.U64_MAX)
        with Reporter(progress) as reporter:
            text = self._native.run(number, bool(messages), reporter.callback)
        return [
            Run(
                report["set"],
                report["clocks"],
                report["phases"],
                report["words"],
                report["payload_ok"],
                report,
            )
            for report in json.loads(text)
        ]

    def verify(self, *, progress: ProgressArgument = None) -> Verification:
        """Lets the independent checker verify schedule and image again.

        Raises :class:`conset.VerifyError` if it refuses them.
        """
        with Reporter(progress) as reporter:
            return Verification(**self._native.verify(reporter.callback))

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes a file: a schedule (``.json``, ``.cset``, ``.csb``) or an image (``.csi``).

        An existing file is replaced as a whole.
        """
        _save(path, self._native.write)

    def to_html(self, path: Union[str, "os.PathLike[str]", None] = None) -> str:
        """A page about the schedule that needs no other file; also written to ``path`` if given."""
        page = _page.page(self)
        if path is not None:
            _write(os.fspath(path), page.encode())
        return page

    def __repr__(self) -> str:
        sets = ", ".join(each.name for each in self.sets)
        return (
            f"<conset.Schedule on {self.machine['name']} {self.machine['topology']}: {sets}, "
            f"{self.phases} phases, {self.clocks} clocks>"
        )


def _save(path: Union[str, "os.PathLike[str]"], write: Callable[[str], bytes]) -> None:
    """Writes the form that the extension selects."""
    name = os.fspath(path)
    form = _FORMS.get(os.path.splitext(name)[1])
    if form is None:
        raise InputError(
            f"{name}: the extension does not select an output format\n"
            "  help: use .json, .cset (text), .csb (binary) or .csi (image)"
        )
    _write(name, write(form))


def _write(name: str, data: bytes) -> None:
    """Replaces a file, so that it has either the old contents or the new ones."""
    target = os.path.realpath(name)
    temporary: Optional[str] = None
    try:
        if os.path.exists(target) and not os.path.isfile(target):
            # A device or a pipe cannot be replaced, only written to.
            with open(target, "wb") as file:
                file.write(data)
            return
        mode = os.stat(target).st_mode & 0o7777 if os.path.exists(target) else None
        folder = os.path.dirname(target)
        handle, temporary = tempfile.mkstemp(prefix=".conset-", suffix=".tmp", dir=folder)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if mode is None:
            # The permissions of a new file; the mask can only be read by setting it.
            mask = os.umask(0)
            os.umask(mask)
            mode = 0o666 & ~mask
        os.chmod(temporary, mode)
        os.replace(temporary, target)
        temporary = None
    except OSError as error:
        raise InputError(f"{name}: cannot be written: {error.strerror}") from error
    finally:
        if temporary is not None:
            os.unlink(temporary)


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
    """Compiles an input to a verified schedule: a :class:`Schedule`, or with ``by="steps"`` a
    :class:`StepSchedule`.

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
        in steps, for machines without tables.
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
    by = _inputs.choice("--by", by, ["phases", "steps"])
    fuse = tuple(fuse)
    if by == "steps":
        _steps.refuse_phases(
            {
                "--reuse": reuse,
                "--fuse": fuse,
                "--objective": objective,
                "--max-phases": max_phases,
                "--time-limit": time_limit,
                "--rip-up-iterations": rip_up_iterations,
            }
        )
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
        if by == "steps":
            steps = _conset.compile_steps(native, options, reporter.callback)
            return _steps.StepSchedule(steps)
        return Schedule(_conset.compile(native, options, earlier, reporter.callback))


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
        native = _conset.load(path, reporter.callback)
    if isinstance(native, _conset.StepSchedule):
        return _steps.StepSchedule(native)
    return Schedule(native)
