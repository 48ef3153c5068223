"""conset: a communication compiler.

A mesh, a matrix, a list of connections or a pattern becomes a schedule: phases, routes and a
timetable for a machine, verified by an independent checker and compared with lower bounds.

>>> import conset
>>> schedule = conset.compile("pattern:all-to-all", "iwarp:4x4", words=64)
>>> schedule.clocks >= schedule.bound.clocks
True
"""

from . import _conset
from ._compile import compile, load
from ._compiled import Alternative, Connections, NodeLists
from ._errors import CompileError, Error, InputError, InternalError, VerifyError
from ._inputs import Pattern
from ._progress import Progress
from ._schedule import Bound, Routes, Run, Schedule, SetSchedule, Verification
from ._steps import Messages, SetSteps, StepBound, StepRun, StepSchedule, StepVerification

__version__: str = _conset.__version__

__all__ = [
    "Alternative",
    "Bound",
    "CompileError",
    "Connections",
    "Error",
    "InputError",
    "InternalError",
    "Messages",
    "NodeLists",
    "Pattern",
    "Progress",
    "Routes",
    "Run",
    "Schedule",
    "SetSchedule",
    "SetSteps",
    "StepBound",
    "StepRun",
    "StepSchedule",
    "StepVerification",
    "Verification",
    "VerifyError",
    "compile",
    "load",
]
