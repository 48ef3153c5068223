"""Progress of long work, for a function of the user or on the terminal."""

from __future__ import annotations

import sys
import time
from typing import Callable, NamedTuple, Optional, Union

#: Seconds that a call may take before progress is shown on the terminal.
PATIENCE = 0.3

#: Seconds between two changes of the line on the terminal.
PERIOD = 0.1


class Progress(NamedTuple):
    """How far a call is."""

    stage: str
    """The current stage, such as ``planning``."""
    done: int
    """Units of work of the stage that are completed."""
    total: int
    """Units of work of the stage; 0 if that is not known."""
    clocks: Optional[int]
    """Predicted clocks of the best plans so far, once all sets have a plan."""
    bound: Optional[int]
    """Lower bound on the clocks, likewise."""


ProgressArgument = Union[bool, None, Callable[[Progress], object]]


class Reporter:
    """Collects the reports of the native part and shows them.

    Used in a ``with`` statement, which clears the line on the terminal at its end.
    """

    def __init__(self, progress: ProgressArgument) -> None:
        if progress is not None and not isinstance(progress, bool) and not callable(progress):
            kind = type(progress).__name__
            raise TypeError(f"progress is a bool or a function, not {kind}")
        self._show = progress if callable(progress) else None
        self._terminal = progress is True
        self._state = Progress("", 0, 0, None, None)
        self._started = time.monotonic()
        self._written = 0.0
        self._width = 0

    @property
    def callback(self) -> Optional[Callable[[str, str, int, int], object]]:
        """The function for the native part; ``None`` if nobody wants progress."""
        return self._report if self._show or self._terminal else None

    def _report(self, kind: str, stage: str, a: int, b: int) -> None:
        if kind == "stage":
            self._state = self._state._replace(stage=stage, done=0, total=0)
        elif kind == "done":
            self._state = self._state._replace(done=a, total=b)
        else:
            self._state = self._state._replace(clocks=a, bound=b)
        if self._show:
            self._show(self._state)
        if self._terminal:
            self._write_line()

    def _write_line(self) -> None:
        now = time.monotonic()
        if now - self._started < PATIENCE or now - self._written < PERIOD:
            return
        self._written = now
        state = self._state
        line = f"conset: {state.stage}"
        if state.total:
            line += f" {state.done}/{state.total}"
        if state.clocks is not None and state.bound:
            line += f", {state.clocks / state.bound:.3f} over bound"
        line += f", {now - self._started:.1f} s"
        print("\r" + line.ljust(self._width), end="", file=sys.stderr, flush=True)
        self._width = len(line)

    def __enter__(self) -> Reporter:
        return self

    def __exit__(self, *_: object) -> None:
        if self._width:
            print("\r" + " " * self._width + "\r", end="", file=sys.stderr, flush=True)
