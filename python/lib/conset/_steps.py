"""Schedules of steps: an exchange by messages, for machines without tables."""

from __future__ import annotations

import json
import os
from functools import cached_property
from typing import TYPE_CHECKING, Any, Dict, List, NamedTuple, Optional, Tuple, Union

from . import _inputs
from ._errors import InputError
from ._progress import ProgressArgument, Reporter

if TYPE_CHECKING:
    from . import _conset
    from ._schedule import Array, Connections, NodeLists


class Messages(NamedTuple):
    """The messages of a set, one row each, in the order of the steps.

    Message ``m`` carries the pieces ``offsets[m]`` to ``offsets[m + 1]``.
    """

    step: Array
    """The step."""
    sender: Array
    """The cell that sends it."""
    receiver: Array
    """The cell that receives it."""
    offsets: Array
    """Where the pieces of each message begin; one entry more than messages."""
    connection: Array
    """The connection of each piece."""
    first_word: Array
    """The first word of each piece, among those of its connection."""
    words: Array
    """The number of words of each piece."""


class StepBound(NamedTuple):
    """Lower bounds on the clocks of a set."""

    clocks: int
    """No step plan takes fewer."""
    clocks_by: str
    """What determines this bound."""
    direct_clocks: int
    """No plan takes fewer that sends every connection in one message."""


class StepRun(NamedTuple):
    """The measurement of one set on the emulated machine."""

    set: str
    """The set."""
    clocks: int
    """Clocks measured."""
    steps: int
    """Steps."""
    messages: int
    """Messages received."""
    words: int
    """Words of the connections."""
    payload_ok: bool
    """Whether every word of every message arrived, in order, at the right cell."""
    report: Dict[str, Any]
    """All numbers, with the keys of ``conset run --by steps --json``."""


class StepVerification(NamedTuple):
    """What was counted in a schedule of steps that the independent checker accepted."""

    sets: int
    steps: int
    messages: int
    connections: int
    words: int


class SetSteps:
    """The step plan of one connection set. All arrays are read-only."""

    def __init__(self, native: _conset.StepSchedule, row: int, summary: Dict[str, Any]) -> None:
        self._native = native
        self._row = row
        self.summary: Dict[str, Any] = summary
        """All numbers, with the keys of ``sets`` in ``conset compile --by steps --json``."""

    @property
    def name(self) -> str:
        """The name of the set."""
        return str(self.summary["set"])

    @property
    def clocks(self) -> Optional[int]:
        """Clocks predicted by the cost model; ``None`` if messages have no route."""
        clocks = self.summary["predicted_clocks"]
        return None if clocks is None else int(clocks)

    @property
    def steps(self) -> int:
        """The number of steps."""
        return int(self.summary["steps"])

    @property
    def direct(self) -> bool:
        """Whether every connection goes from its source to its target in one message."""
        return bool(self.summary["direct"])

    @property
    def bound(self) -> StepBound:
        """Lower bounds on clocks."""
        summary = self.summary
        return StepBound(
            int(summary["bound_clocks"]),
            str(summary["bound_clocks_by"]),
            int(summary["direct_bound_clocks"]),
        )

    @property
    def connections(self) -> Connections:
        """Source, target and words of each connection."""
        from ._schedule import Connections

        arrays = self._arrays
        return Connections(arrays["source"], arrays["target"], arrays["words"])

    @property
    def messages(self) -> Messages:
        """Step, ends and pieces of each message."""
        arrays = self._arrays
        return Messages(
            arrays["step"],
            arrays["sender"],
            arrays["receiver"],
            arrays["piece_offsets"],
            arrays["connection"],
            arrays["first_word"],
            arrays["piece_words"],
        )

    @property
    def node_lists(self) -> Optional[NodeLists]:
        """The nodes of each connection; ``None`` if the input has none."""
        from ._schedule import NodeLists

        arrays = self._arrays
        if "nodes" not in arrays:
            return None
        return NodeLists(arrays["node_offsets"], arrays["nodes"], arrays.get("node_numbers"))

    @cached_property
    def _arrays(self) -> Dict[str, Array]:
        from ._schedule import _array

        return {name: _array(data) for name, data in self._native.arrays(self._row).items()}

    def __repr__(self) -> str:
        return (
            f"<conset.SetSteps {self.name!r}: {len(self.connections.source)} connections, "
            f"{len(self.messages.step)} messages in {self.steps} steps, {self.clocks} clocks, "
            f"bound {self.bound.clocks}>"
        )


class StepSchedule:
    """A program that is compiled to messages in steps, and verified (``by="steps"``)."""

    def __init__(self, native: _conset.StepSchedule) -> None:
        self._native = native

    @cached_property
    def summary(self) -> Dict[str, Any]:
        """All numbers of the sets, with the keys of ``conset compile --by steps --json``."""
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
    def sets(self) -> Tuple[SetSteps, ...]:
        """The sets, in the order of execution."""
        rows = enumerate(self.summary["sets"])
        return tuple(SetSteps(self._native, row, summary) for row, summary in rows)

    @property
    def clocks(self) -> int:
        """Clocks of all sets that state a prediction."""
        return sum(each.clocks or 0 for each in self.sets)

    @property
    def steps(self) -> int:
        """The number of steps of all sets."""
        return sum(each.steps for each in self.sets)

    @cached_property
    def _parts(self) -> Tuple[Optional[Array], Optional[Array]]:
        from ._schedule import _optional

        items, cells = self._native.parts()
        return _optional(items), _optional(cells)

    @property
    def item_parts(self) -> Optional[Array]:
        """The part of each element, vertex or row, as :attr:`Schedule.item_parts`."""
        return self._parts[0]

    @property
    def part_cells(self) -> Optional[Array]:
        """The cell of each part; ``None`` if nothing was placed."""
        return self._parts[1]

    def run(self, *, seed: int = 1, progress: ProgressArgument = None) -> List[StepRun]:
        """Executes every set on the emulated machine and checks every word."""
        number = _inputs.whole("--seed", seed, 0, _inputs.U64_MAX)
        with Reporter(progress) as reporter:
            text = self._native.run(number, reporter.callback)
        keys = ("set", "measured_clocks", "steps", "messages", "words", "payload_ok")
        return [StepRun(*(report[key] for key in keys), report) for report in json.loads(text)]

    def verify(self, *, progress: ProgressArgument = None) -> StepVerification:
        """Lets the independent checker verify schedule and image again.

        Raises :class:`conset.VerifyError` if it refuses them.
        """
        with Reporter(progress) as reporter:
            return StepVerification(**self._native.verify(reporter.callback))

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes a file: a schedule (``.json``, ``.cset``, ``.csb``) or an image (``.csi``)."""
        from ._schedule import _save

        _save(path, self._native.write)

    def __repr__(self) -> str:
        sets = ", ".join(each.name for each in self.sets)
        return (
            f"<conset.StepSchedule on {self.machine['name']} {self.machine['topology']}: {sets}, "
            f"{self.steps} steps, {self.clocks} clocks>"
        )


def refuse_phases(options: Dict[str, Any]) -> None:
    """Refuses options that only phases have, as the command does."""
    for option, value in options.items():
        if value is not None and value != ():
            raise InputError(
                f"{option}: {option} has no effect with --by steps\n"
                f"  help: leave out {option}, or --by steps"
            )
