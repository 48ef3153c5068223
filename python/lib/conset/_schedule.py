"""Schedules of phases, and their arrays."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, List, NamedTuple, Union

from . import _inputs, _page
from ._compiled import Array, CompiledProgram, CompiledSet, write_file
from ._progress import ProgressArgument, Reporter


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


class SetSchedule(CompiledSet):
    """The schedule of one connection set. All arrays are read-only."""

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

    def __repr__(self) -> str:
        return (
            f"<conset.SetSchedule {self.name!r}: {len(self.connections.source)} connections, "
            f"{self.phases} phases, {self.clocks} clocks, bound {self.bound.clocks}>"
        )


class Schedule(CompiledProgram[SetSchedule]):
    """A compiled and verified program: the schedules of its sets on a machine.

    Most inputs make one set. Its attributes (:attr:`clocks`, :attr:`routes`, ...) are also those of
    the schedule; with several sets, use :attr:`sets`.
    """

    _set_class = SetSchedule

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
                report["measured_clocks"],
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

    def to_html(self, path: Union[str, "os.PathLike[str]", None] = None) -> str:
        """A page about the schedule that needs no other file; also written to ``path`` if given."""
        page = _page.page(self)
        if path is not None:
            write_file(os.fspath(path), page.encode())
        return page

    def __repr__(self) -> str:
        sets = ", ".join(each.name for each in self.sets)
        return (
            f"<conset.Schedule on {self.machine['name']} {self.machine['topology']}: {sets}, "
            f"{self.phases} phases, {self.clocks} clocks>"
        )
