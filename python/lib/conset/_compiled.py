"""What compiled programs have in common, of phases or of steps: sets, connections, parts, files."""

from __future__ import annotations

import json
import os
import tempfile
from functools import cached_property
from typing import Any, Callable, Dict, Generic, NamedTuple, Optional, Tuple, Type, TypeVar, Union

import numpy as np
import numpy.typing as npt

from . import _conset
from ._errors import InputError

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


class Alternative(NamedTuple):
    """The way of exchanging that ``by="best"`` did not choose."""

    by: str
    """``"phases"`` or ``"steps"``."""
    clocks: int
    """Its predicted clocks, of all sets together."""


def _array(data: bytes) -> Array:
    """The array of bytes from the native part; it is read-only."""
    return np.frombuffer(data, dtype=np.int64)


def _optional(data: Optional[bytes]) -> Optional[Array]:
    return None if data is None else _array(data)


class CompiledSet:
    """A compiled connection set. All arrays are read-only."""

    def __init__(self, native: _conset.Program, row: int, summary: Dict[str, Any]) -> None:
        self._native = native
        self._row = row
        self.summary: Dict[str, Any] = summary
        """All numbers, with the keys of ``sets`` in ``conset compile --json``."""

    @property
    def name(self) -> str:
        """The name of the set."""
        return str(self.summary["set"])

    @property
    def connections(self) -> Connections:
        """Source, target and words of each connection."""
        arrays = self._arrays
        return Connections(arrays["source"], arrays["target"], arrays["words"])

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


AnySet = TypeVar("AnySet", bound=CompiledSet)


class CompiledProgram(Generic[AnySet]):
    """A compiled and verified program.

    Most inputs make one set. Its attributes (``connections``, ``node_lists``, ...) are also those of
    the program; with several sets, use :attr:`sets`.
    """

    #: The class of its sets.
    _set_class: Type[AnySet]

    def __init__(self, native: _conset.Program) -> None:
        self._native = native

    @cached_property
    def summary(self) -> Dict[str, Any]:
        """All numbers, with the keys of ``conset compile --json``."""
        summary: Dict[str, Any] = json.loads(self._native.summary())
        return summary

    @property
    def by(self) -> str:
        """``"phases"`` or ``"steps"``."""
        return str(self.summary["by"])

    @property
    def compared(self) -> Optional[Alternative]:
        """What ``by="best"`` did not choose, and its clocks; ``None`` if nothing was compared."""
        other = self.summary.get("compared")
        return None if other is None else Alternative(other["by"], other["predicted_clocks"])

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
    def sets(self) -> Tuple[AnySet, ...]:
        """The sets, in the order of execution."""
        rows = enumerate(self.summary["sets"])
        return tuple(self._set_class(self._native, row, summary) for row, summary in rows)

    @property
    def _set(self) -> AnySet:
        if len(self.sets) != 1:
            names = ", ".join(each.name for each in self.sets)
            raise InputError(f"the schedule has {len(self.sets)} sets ({names}); use `sets`")
        return self.sets[0]

    @property
    def connections(self) -> Connections:
        """Source, target and words of each connection of the set."""
        return self._set.connections

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

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes a file: a schedule (``.json``, ``.cset``, ``.csb``) or an image (``.csi``).

        An existing file is replaced as a whole.
        """
        _save(path, self._native.write)


def _save(path: Union[str, "os.PathLike[str]"], write: Callable[[str], bytes]) -> None:
    """Writes the form that the extension selects."""
    name = os.fspath(path)
    form = _FORMS.get(os.path.splitext(name)[1])
    if form is None:
        raise InputError(
            f"{name}: the extension does not select an output format\n"
            "  help: use .json, .cset (text), .csb (binary) or .csi (image)"
        )
    write_file(name, write(form))


def write_file(name: str, data: bytes) -> None:
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
