"""Schedules of steps: an exchange by messages, for machines without tables."""

from __future__ import annotations

import json
from typing import Any, Dict, List, NamedTuple, Optional

from . import _inputs
from ._compiled import Array, CompiledProgram, CompiledSet
from ._progress import ProgressArgument, Reporter


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


class SetSteps(CompiledSet):
    """The step plan of one connection set. All arrays are read-only."""

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

    def __repr__(self) -> str:
        return (
            f"<conset.SetSteps {self.name!r}: {len(self.connections.source)} connections, "
            f"{len(self.messages.step)} messages in {self.steps} steps, {self.clocks} clocks, "
            f"bound {self.bound.clocks}>"
        )


class StepSchedule(CompiledProgram[SetSteps]):
    """A program that is compiled to messages in steps, and verified (``by="steps"``).

    Most inputs make one set. Its attributes (:attr:`messages`, :attr:`bound`, ...) are also those of
    the schedule; with several sets, use :attr:`sets`.
    """

    _set_class = SetSteps

    @property
    def clocks(self) -> int:
        """Clocks of all sets that state a prediction."""
        return sum(each.clocks or 0 for each in self.sets)

    @property
    def steps(self) -> int:
        """The number of steps of all sets."""
        return sum(each.steps for each in self.sets)

    @property
    def bound(self) -> StepBound:
        """Lower bounds of the set."""
        return self._set.bound

    @property
    def messages(self) -> Messages:
        """Step, ends and pieces of each message of the set."""
        return self._set.messages

    def run(self, *, seed: int = 1, progress: ProgressArgument = None) -> List[StepRun]:
        """Executes every set on the emulated machine and checks every word."""
        number = _inputs.whole("--seed", seed, 0, _inputs.U64_MAX)
        with Reporter(progress) as reporter:
            text = self._native.run(number, False, reporter.callback)
        keys = ("set", "measured_clocks", "steps", "messages", "words", "payload_ok")
        return [StepRun(*(report[key] for key in keys), report) for report in json.loads(text)]

    def verify(self, *, progress: ProgressArgument = None) -> StepVerification:
        """Lets the independent checker verify schedule and image again.

        Raises :class:`conset.VerifyError` if it refuses them.
        """
        with Reporter(progress) as reporter:
            return StepVerification(**self._native.verify(reporter.callback))

    def __repr__(self) -> str:
        sets = ", ".join(each.name for each in self.sets)
        return (
            f"<conset.StepSchedule on {self.machine['name']} {self.machine['topology']}: {sets}, "
            f"{self.steps} steps, {self.clocks} clocks>"
        )
