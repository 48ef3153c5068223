"""A page about a schedule: its machine, its phases, the loads of its links and its timetables.

The page is one HTML file without scripts and without references to other files. Large schedules are
shown in part, and the page says which part.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Optional, Sequence, Tuple

import numpy as np

if TYPE_CHECKING:
    from ._schedule import Schedule, SetSchedule

#: The greatest number of rows of a table.
ROWS_MAX = 200
#: The greatest number of timetables of a set.
TIMETABLES_MAX = 4
#: The greatest number of slots in a timetable.
SLOTS_MAX = 400

_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem;
  color: #1b1b1b; background: #fff; }
table { border-collapse: collapse; margin: 0.5rem 0 1.5rem; }
th, td { padding: 0.15rem 0.8rem 0.15rem 0; text-align: right; border-bottom: 1px solid #ddd; }
th:first-child, td:first-child { text-align: left; }
h2 { margin-top: 2.5rem; } .note { color: #555; }
svg { width: 100%; height: auto; font: 11px system-ui, sans-serif; }
"""

# Distinguishable for colour-blind readers.
_COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00"]


def page(schedule: Schedule) -> str:
    """The page."""
    machine = schedule.machine
    title = f"conset: {', '.join(each.name for each in schedule.sets)} on {machine['name']}"
    facts = [
        ("topology", machine["topology"]),
        ("cells with an agent", _number(machine["agents"])),
        ("links", _number(machine["links"])),
        ("channels per cell", _number(machine["channels_per_cell"])),
        ("context switch", f"{_number(machine['switch_clocks'])} clocks"),
    ]
    facts.extend(_parts(schedule.summary.get("parts")))
    body = [
        f"<h1>{escape(title)}</h1>",
        "<table>",
        *(f"<tr><td>{escape(a)}</td><td>{escape(str(b))}</td></tr>" for a, b in facts),
        "</table>",
    ]
    for each in schedule.sets:
        body.extend(_set(each, machine))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )


def _parts(parts: Optional[Dict[str, Any]]) -> Iterable[Tuple[str, str]]:
    """The parts and their exchange, if the schedule was compiled from a mesh, graph or matrix."""
    if not parts:
        return
    items = parts.get("items_per_part")
    of = f" of {_number(items[0])} to {_number(items[1])} items" if items else ""
    yield "parts", f"{_number(parts['parts'])}{of}"
    low, high = parts["words_per_part"]
    yield "words that a part sends", f"{_number(low)} to {_number(high)}"
    yield "neighbours of a part", f"at most {_number(parts['max_degree'])}"
    partition = parts.get("partition")
    if partition:
        yield "imbalance", f"{partition['imbalance_percent']} %"
        yield "edges between parts", _number(partition["cut"])


def _set(each: SetSchedule, machine: Dict[str, Any]) -> Iterable[str]:
    summary, bound, routes = each.summary, each.bound, each.routes
    of = " for this partition" if summary["bound_of"] == "partition" else ""
    phases = f"optimal{of}" if summary["fewest_phases"] else _over(summary["phases_over_bound"])
    clocks = f"optimal{of}" if summary["fewest_clocks"] else _over(summary["clocks_over_bound"])
    yield f"<h2>Set {escape(each.name)}</h2>"
    yield (
        f"<p>{_count(summary['connections'], 'connection')}, {_count(summary['words'], 'word')}. "
        f"{_count(each.phases, 'phase')}, bound {_number(bound.phases)} by "
        f"{escape(bound.phases_by)}: {phases}. {_number(each.clocks)} clocks predicted, with "
        f"context switches, bound {_number(bound.clocks)} by {escape(bound.clocks_by)}: {clocks}.</p>"
    )
    count = each.phases
    hops = np.diff(routes.offsets) - 1
    of_phase = [
        range(count),
        np.bincount(routes.phase, minlength=count),
        np.bincount(routes.phase, routes.words, minlength=count),
        np.bincount(routes.phase, hops, minlength=count),
        each.makespans,
    ]
    rows = [[f"p{row[0]}", *map(_number, row[1:])] for row in zip(*of_phase)]
    yield "<h3>Phases</h3>"
    yield '<p class="note">The clocks of a phase are without its context switch.</p>'
    yield from _table(["phase", "routes", "words", "hops", "clocks"], rows)
    yield "<h3>Link loads</h3>"
    yield from _loads(each, machine)
    yield "<h3>Timetables</h3>"
    yield '<p class="note">A line for each cell that sends, a bar for the slot of each route; bars to'
    yield "one cell have one colour. A bar says its connection when the pointer is on it.</p>"
    order = np.argsort(-each.makespans, kind="stable")[:TIMETABLES_MAX]
    if count > len(order):
        yield f'<p class="note">The {len(order)} longest of {_number(count)} phases.</p>'
    for phase in order.tolist():
        yield from _timetable(each, phase)


def _loads(each: SetSchedule, machine: Dict[str, Any]) -> Iterable[str]:
    """The busiest pairs of neighbouring cells of a phase."""
    routes = each.routes
    # Every cell of a route but the last one begins a hop.
    first = np.ones(len(routes.cells), bool)
    first[routes.offsets[1:] - 1] = False
    begin = np.flatnonzero(first)
    if not len(begin):
        yield "<p>No link is used.</p>"
        return
    row = np.repeat(np.arange(len(routes.phase)), np.diff(routes.offsets))[begin]
    hops = np.stack([routes.phase[row], routes.cells[begin], routes.cells[begin + 1]])
    keys, at = np.unique(hops, axis=1, return_inverse=True)
    at = at.ravel()
    words = np.bincount(at, routes.words[row]).astype(np.int64)
    count = np.bincount(at)
    order = np.argsort(-words, kind="stable")[:20]
    per_word = int(machine["link_clocks_per_word"])
    yield f'<p class="note">The {len(order)} busiest of {_number(len(words))} loads of a link in a phase.'
    yield "Parallel links between two cells are counted together.</p>"
    rows = [
        [
            f"c{keys[1, i]} → c{keys[2, i]}",
            f"p{keys[0, i]}",
            _number(count[i]),
            _number(words[i]),
            _number(words[i] * per_word),
        ]
        for i in order.tolist()
    ]
    yield from _table(["link", "phase", "routes", "words", "clocks"], rows)


def _timetable(each: SetSchedule, phase: int) -> Iterable[str]:
    """A row for each sending cell, with a bar for each slot."""
    routes, connections = each.routes, each.connections
    rows = np.flatnonzero(routes.phase == phase)
    total = len(rows)
    rows = rows[np.lexsort((routes.start[rows], connections.source[routes.connection[rows]]))]
    rows = rows[:SLOTS_MAX]
    sources = connections.source[routes.connection[rows]]
    cells = np.unique(sources)
    height, left, width = 14, 60, 900
    clocks = max(int(each.makespans[phase]), 1)
    scale = (width - left) / clocks
    tall = height * len(cells) + 24
    yield f"<h4>Phase p{phase}, {_number(clocks)} clocks</h4>"
    if total > len(rows):
        yield f'<p class="note">The first {len(rows)} of {_number(total)} slots, by cell.</p>'
    yield f'<svg viewBox="0 0 {width} {tall}" role="img" aria-label="timetable of phase p{phase}">'
    for line, cell in enumerate(cells.tolist()):
        yield f'<text x="0" y="{line * height + 11}">c{cell}</text>'
    lines = np.searchsorted(cells, sources)
    for route, line in zip(rows.tolist(), lines.tolist()):
        connection = int(routes.connection[route])
        start, duration = int(routes.start[route]), int(routes.duration[route])
        target = int(connections.target[connection])
        label = (
            f"x{connection}: c{int(connections.source[connection])} to c{target}, "
            f"{int(routes.words[route])} words, clocks {start} to {start + duration}"
        )
        yield (
            f'<rect x="{left + start * scale:.1f}" y="{line * height + 1}" '
            f'width="{max(duration * scale, 0.5):.1f}" height="{height - 2}" '
            f'fill="{_COLOURS[target % len(_COLOURS)]}" stroke="#fff" stroke-width="0.5">'
            f"<title>{label}</title></rect>"
        )
    base = height * len(cells)
    yield f'<line x1="{left}" x2="{width}" y1="{base + 2}" y2="{base + 2}" stroke="#555"/>'
    yield f'<text x="{left}" y="{base + 16}">0</text>'
    yield f'<text x="{width}" y="{base + 16}" text-anchor="end">{_number(clocks)} clocks</text>'
    yield "</svg>"


def _table(columns: Sequence[str], rows: List[List[str]]) -> Iterable[str]:
    yield "<table><tr>" + "".join(f"<th>{name}</th>" for name in columns) + "</tr>"
    for row in rows[:ROWS_MAX]:
        yield "<tr>" + "".join(f"<td>{escape(value)}</td>" for value in row) + "</tr>"
    yield "</table>"
    if len(rows) > ROWS_MAX:
        yield f'<p class="note">The first {ROWS_MAX} of {_number(len(rows))} rows.</p>'


def _over(ratio: float) -> str:
    return f"{ratio:.2f} over bound"


def _count(number: int, what: str) -> str:
    return f"{_number(number)} {what}{'' if number == 1 else 's'}"


def _number(value: object) -> str:
    # With spaces at which no line breaks.
    return f"{int(value):,}".replace(",", "\u00a0")  # type: ignore[call-overload]
