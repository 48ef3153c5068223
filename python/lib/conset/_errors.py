"""The exceptions of the package.

Their texts are those of the command ``conset``: where the error is, what was expected, and what to
do. An option that a text names, such as ``--parts``, is the argument of the same name.
"""


class Error(Exception):
    """An error of conset."""


class InputError(Error, ValueError):
    """A file or an argument is wrong."""


class CompileError(Error):
    """The connections do not fit on the machine. The text has a witness and possible changes."""


class VerifyError(Error):
    """The independent checker refused a schedule."""


class InternalError(Error, RuntimeError):
    """A bug in conset."""


# Users see these names.
for _error in (Error, InputError, CompileError, VerifyError, InternalError):
    _error.__module__ = "conset"
