"""Inputs and arguments: checking them, and converting them for the native part."""

from __future__ import annotations

import operator
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence, Tuple, Union

import numpy as np
import numpy.typing as npt

from . import _conset
from ._errors import InputError

if TYPE_CHECKING:
    import meshio  # type: ignore[import-untyped, unused-ignore]
    import scipy.sparse  # type: ignore[import-untyped, unused-ignore]

#: Words of each connection of a pattern, and of an edge list without words, as in the command.
DEFAULT_WORDS = 32

#: What can be compiled.
SourceArgument = Union[
    str,
    "os.PathLike[str]",
    "Pattern",
    "meshio.Mesh",
    "scipy.sparse.spmatrix",
    "scipy.sparse.sparray",
    npt.ArrayLike,
]

U32_MAX = 2**32 - 1
U64_MAX = 2**64 - 1
#: The greatest time limit in seconds: a year.
TIME_LIMIT_MAX = 365.0 * 86400.0


@dataclass(frozen=True)
class Pattern:
    """A communication pattern; ``conset patterns`` lists their names.

    >>> Pattern("ring-shift:3", words=256)
    Pattern(name='ring-shift:3', words=256)
    """

    name: str
    """Its name and parameters: ``all-to-all``, ``ring-shift:3``."""
    words: int = DEFAULT_WORDS
    """Words of each connection."""


# Shapes of meshio's cell types, by the name without its number of nodes.
_SHAPES = {
    "vertex": "point",
    "line": "line",
    "triangle": "triangle",
    "quad": "quadrilateral",
    "polygon": "polygon",
    "tetra": "tetrahedron",
    "pyramid": "pyramid",
    "wedge": "prism",
    "hexahedron": "hexahedron",
    "penta_prism": "polyhedron",
    "hexa_prism": "polyhedron",
    "VTK_LAGRANGE_CURVE": "line",
    "VTK_LAGRANGE_TRIANGLE": "triangle",
    "VTK_LAGRANGE_QUADRILATERAL": "quadrilateral",
    "VTK_LAGRANGE_TETRAHEDRON": "tetrahedron",
    "VTK_LAGRANGE_HEXAHEDRON": "hexahedron",
    "VTK_LAGRANGE_WEDGE": "prism",
    "VTK_LAGRANGE_PYRAMID": "pyramid",
}


def native_source(source: SourceArgument, words: Optional[int]) -> _conset.Source:
    """The source for the native part."""
    if isinstance(source, str) and source.startswith("pattern:"):
        source = Pattern(source[len("pattern:") :], DEFAULT_WORDS if words is None else words)
        words = None
    if isinstance(source, Pattern):
        _refuse_words(words, "the pattern", "give them to the pattern")
        return _conset.Source.pattern(
            source.name, whole("--words", source.words, 1, _conset.WORDS_MAX)
        )
    if isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        _refuse_words(words, path, "leave it out; the file contains the words of each connection")
        return _conset.Source.path(path)
    if hasattr(source, "points") and hasattr(source, "cells"):
        _refuse_words(words, "a mesh", "leave it out; the mesh determines the words")
        return _mesh(source)
    if hasattr(source, "tocsr") and hasattr(source, "shape"):
        _refuse_words(words, "a matrix", "leave it out; the matrix determines the words")
        return _matrix(source)
    return _edges(source, words)


def _refuse_words(words: Optional[int], what: str, help: str) -> None:
    if words is not None:
        raise InputError(f"--words: --words is for patterns, and this is {what}\n  help: {help}")


def _mesh(mesh: Any) -> _conset.Source:
    blocks: List[Tuple[str, int, bytes]] = []
    for number, block in enumerate(mesh.cells):
        name = block.type
        if name.startswith("polyhedron"):
            blocks.extend(_polyhedra(block.data))
            continue
        shape = _SHAPES.get(re.sub(r"\d+$", "", name))
        if shape is None:
            raise InputError(f"<mesh>: cells[{number}]: `{name}` is not a cell type of meshio")
        data = _integers(block.data, f"cells[{number}]")
        if data.ndim != 2 or data.shape[1] == 0:
            raise InputError(
                f"<mesh>: cells[{number}]: an array of shape {data.shape}; "
                "expected a row of nodes for each element"
            )
        if len(data):
            blocks.append((shape, int(data.shape[1]), data.tobytes()))
    return _conset.Source.mesh(len(mesh.points), blocks)


def _polyhedra(cells: Sequence[Any]) -> List[Tuple[str, int, bytes]]:
    """Polyhedra as lists of their nodes: meshio has a list of faces for each."""
    blocks: List[Tuple[str, int, bytes]] = []
    for faces in cells:
        flat = [_integers(face, "polyhedron").ravel() for face in faces]
        nodes = np.unique(np.concatenate(flat)) if flat else np.empty(0, np.int64)
        blocks.append(("polyhedron", len(nodes), nodes.tobytes()))
    return blocks


def _matrix(matrix: Any) -> _conset.Source:
    csr = matrix.tocsr()
    if not csr.has_canonical_format:
        # A copy, because the matrix belongs to the caller.
        csr = csr.copy()
        csr.sum_duplicates()
    return _conset.Source.matrix(
        int(csr.shape[1]),
        _integers(csr.indptr, "indptr").tobytes(),
        _integers(csr.indices, "indices").tobytes(),
    )


def _edges(source: Any, words: Optional[int]) -> _conset.Source:
    expected = (
        "expected a path, a pattern, a meshio.Mesh, a sparse matrix, "
        "or an array of connections (source, target) or (source, target, words)"
    )
    try:
        array = np.asarray(source)
    except Exception as error:
        raise TypeError(f"{type(source).__name__} cannot be compiled; {expected}") from error
    if array.size == 0 and array.ndim == 2:
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        kind = type(source).__name__
        raise TypeError(f"{kind} of {array.dtype} cannot be compiled; {expected}")
    if array.ndim != 2 or array.shape[1] not in (2, 3):
        raise InputError(
            f"<connections>: an array of shape {array.shape}; expected two columns "
            "(source, target) or three (source, target, words)"
        )
    array = _integers(array, "connections")
    if array.shape[1] == 3:
        if words is not None:
            raise InputError(
                "--words: the connections have words already\n  help: leave it out"
            )
        column = array[:, 2]
    else:
        count = DEFAULT_WORDS if words is None else words
        count = whole("--words", count, 1, _conset.WORDS_MAX)
        column = np.full(len(array), count, np.int64)
    return _conset.Source.connections(
        array[:, 0].tobytes(), array[:, 1].tobytes(), column.tobytes()
    )


def _integers(values: Any, what: str) -> npt.NDArray[np.int64]:
    array = np.asarray(values)
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"{what}: an array of {array.dtype}, expected integers")
    if array.dtype.kind == "u" and array.size and array.max() > np.iinfo(np.int64).max:
        raise InputError(f"{what}: {array.max()} is too large")
    return np.ascontiguousarray(array, dtype=np.int64)


def whole(option: str, value: Any, least: int, most: int) -> int:
    """A whole number from ``least`` to ``most``."""
    try:
        number = operator.index(value)
    except TypeError:
        kind = type(value).__name__
        raise TypeError(f"{option}: expected a whole number, not {kind}") from None
    if not least <= number <= most:
        raise InputError(
            f"invalid value '{number}' for '{option}': "
            f"expected a whole number from {least} to {most}"
        )
    return number


def maybe_whole(option: str, value: Any, least: int, most: int) -> Optional[int]:
    """The same, or ``None``."""
    return None if value is None else whole(option, value, least, most)


def choice(option: str, value: Any, choices: Sequence[str]) -> Optional[str]:
    """One of some words, or ``None``."""
    if value is not None and value not in choices:
        known = ", ".join(choices)
        raise InputError(f"invalid value '{value}' for '{option}' [possible values: {known}]")
    return None if value is None else str(value)


def seconds(option: str, value: Any) -> Optional[float]:
    """A time in seconds, or ``None``."""
    if value is None:
        return None
    number = float(value)
    if not 0.0 <= number <= TIME_LIMIT_MAX:
        raise InputError(f"{option}: {number}: expected seconds, at most a year")
    return number


def thousandths(option: str, value: Any) -> Optional[int]:
    """A percentage as a number of thousandths, or ``None``."""
    if value is None:
        return None
    percent, most = float(value), _conset.IMBALANCE_MAX / 10
    if not 0.0 <= percent <= most:
        raise InputError(
            f"invalid value '{value}' for '{option}': expected a percentage from 0 to {most:g}"
        )
    return round(percent * 10)


def parameters(params: Any) -> List[Tuple[str, str]]:
    """Machine parameters: a mapping, or sequence of pairs."""
    if params is None:
        return []
    if not hasattr(params, "items"):
        raise TypeError("params is a dict, such as {'channels_per_cell': 20}")
    return [(str(key), str(value)) for key, value in params.items()]


def dead(parts: Any) -> Tuple[List[int], List[Tuple[int, int]]]:
    """Dead cells, and dead links as pairs of cells."""
    cells: List[int] = []
    links: List[Tuple[int, int]] = []
    for part in parts:
        if isinstance(part, (tuple, list)) and len(part) == 2:
            ends = [whole("--dead", cell, 0, U32_MAX) for cell in part]
            links.append((ends[0], ends[1]))
        elif isinstance(part, (str, tuple, list)):
            raise TypeError(
                "dead has numbers of cells, and pairs (from, to) of cells for the link between them"
            )
        else:
            cells.append(whole("--dead", part, 0, U32_MAX))
    return cells, links


def numbers(what: str, value: Any) -> Tuple[Optional[str], Optional[bytes]]:
    """The path of a file with a number for each item, or the lines of one."""
    if value is None:
        return None, None
    if isinstance(value, (str, os.PathLike)):
        return os.fspath(value), None
    array = _integers(value, what)
    if array.ndim != 1:
        raise InputError(
            f"<{what}>: an array of shape {array.shape}; expected a number for each item"
        )
    return None, "".join(f"{number}\n" for number in array.tolist()).encode()


def native_options(
    *,
    machine: Any,
    params: Any,
    dead_parts: Any,
    parts: Any,
    partition_argument: Any,
    fuse: Any,
    **rest: Any,
) -> Dict[str, Any]:
    """The options for the native part, checked."""
    if machine is not None and not isinstance(machine, (str, os.PathLike)):
        raise TypeError(f"machine is a str or a path, not {type(machine).__name__}")
    cells, links = dead(dead_parts)
    path, lines = numbers("partition", partition_argument)
    words_per_node = rest["words_per_node"]
    words_each = words_file = words_lines = None
    if hasattr(words_per_node, "__index__") and np.ndim(words_per_node) == 0:
        words_each = whole("--words-per-node", words_per_node, 1, _conset.WORDS_MAX)
    else:
        words_file, words_lines = numbers("words_per_node", words_per_node)
    algorithm = rest["algorithm"]
    if rest["by"] == "phases":
        algorithm = choice("--algorithm", algorithm, ["paper", "auto", "best"])
    elif algorithm is not None:
        algorithm = str(algorithm)
    time_limit = seconds("--time-limit", rest["time_limit"])
    max_plans = maybe_whole("--max-plans", rest["max_plans"], 1, U32_MAX)
    objective = choice("--objective", rest["objective"], ["time", "phases"])
    search = {"--objective": objective, "--time-limit": time_limit, "--max-plans": max_plans}
    for option, value in search.items():
        if algorithm == "paper" and value is not None:
            raise InputError(
                f"{option}: --algorithm paper does not search\n"
                "  help: leave out this option, or --algorithm paper"
            )
    _refuse_both("--time-limit", time_limit, "--max-plans", max_plans)
    imbalance = thousandths("--imbalance", rest["imbalance"])
    max_partitions = maybe_whole("--max-partitions", rest["max_partitions"], 1, U32_MAX)
    _refuse_both("--partition", path or lines, "--repartition", rest["repartition"] or None)
    _refuse_both("--partition", path or lines, "--imbalance", imbalance)
    _refuse_both("--partition", path or lines, "--max-partitions", max_partitions)
    return {
        "by": rest["by"],
        "machine": None if machine is None else os.fspath(machine),
        "params": parameters(params),
        "dead_cells": cells,
        "dead_links": links,
        "format": rest["format"],
        "parts": maybe_whole("--parts", parts, 1, _conset.PARTS_MAX),
        "partition": path,
        "partition_lines": lines,
        "repartition": bool(rest["repartition"]),
        "ignore_periodic": bool(rest["ignore_periodic"]),
        "elements": choice("--elements", rest["elements"], ["as-read", "triangles"]),
        "halo": choice("--halo", rest["halo"], ["nodes", "faces", "edges", "rows"]),
        "layers": maybe_whole("--layers", rest["layers"], 1, U32_MAX),
        "words_each": words_each,
        "words_file": words_file,
        "words_lines": words_lines,
        "placement": choice(
            "--placement", rest["placement"], ["given", "curve", "bisect", "best"]
        ),
        "seed": whole("--seed", rest["seed"], 0, U64_MAX),
        "memory": maybe_whole("--memory", rest["memory"], 1, U64_MAX),
        "algorithm": algorithm,
        "objective": objective,
        "rip_up_iterations": maybe_whole(
            "--rip-up-iterations", rest["rip_up_iterations"], 0, U32_MAX
        ),
        "max_phases": maybe_whole("--max-phases", rest["max_phases"], 0, U32_MAX),
        "max_plans": max_plans,
        "imbalance": imbalance,
        "max_partitions": max_partitions,
        "time_limit": time_limit,
        "unlimited": bool(rest["unlimited"]),
        "fuse": [[str(name) for name in group] for group in fuse],
    }


def _refuse_both(a: str, first: Any, b: str, second: Any) -> None:
    if first is not None and second is not None:
        raise InputError(f"the argument '{a}' cannot be used with '{b}'")
