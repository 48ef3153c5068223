"""The result: arrays, files, runs, the checker, the page, and agreement with the command."""

import json
import os
import re
import stat
from html.parser import HTMLParser

import numpy as np
import pytest

import conset


@pytest.fixture(scope="module")
def schedule(meshes):
    return conset.compile(meshes / "plate.msh", "iwarp:4x4")


def test_arrays_fit_together(schedule):
    connections, routes = schedule.connections, schedule.routes
    # Every word of every connection is on a route.
    words = np.bincount(routes.connection, routes.words, minlength=len(connections.words))
    assert np.array_equal(words, connections.words)
    first, last = routes.offsets[:-1], routes.offsets[1:] - 1
    assert np.array_equal(routes.cells[first], connections.source[routes.connection])
    assert np.array_equal(routes.cells[last], connections.target[routes.connection])
    assert len(routes.channels) == len(routes.cells) == routes.offsets[-1]
    assert routes.phase.max() + 1 == schedule.phases == len(schedule.makespans)
    ends = routes.start + routes.duration
    for phase, makespan in enumerate(schedule.makespans):
        assert ends[routes.phase == phase].max() == makespan
    assert np.array_equal(schedule.starts, routes.start)
    for array in (*connections, *routes, *schedule.node_lists, schedule.item_parts):
        assert array.dtype == np.int64 and not array.flags.writeable
    # No cell has two routes on one channel in a phase.
    row = np.repeat(np.arange(len(routes.phase)), np.diff(routes.offsets))
    taken = np.stack([routes.phase[row], routes.cells, routes.channels])
    assert np.unique(taken, axis=1).shape[1] == taken.shape[1]


def test_numbers_of_the_run_and_of_the_checker(schedule):
    assert schedule.clocks >= schedule.bound.clocks > 0
    assert schedule.phases >= schedule.bound.phases > 0
    (run,) = schedule.run(seed=3, messages=True)
    assert run.payload_ok and run.words == schedule.connections.words.sum()
    assert run.clocks >= schedule.bound.clocks and run.phases == schedule.phases
    assert run.report["messages"]["payload_ok"]
    checked = schedule.verify()
    assert checked.sets == 1 and checked.words == run.words
    assert checked.routes == len(schedule.routes.phase)


def by_phase(routes):
    """The routes without their durations, by phase and connection."""
    rows = zip(routes.phase, routes.connection, routes.words, routes.start, routes.offsets)
    return sorted(
        (*map(int, row), routes.cells[at : routes.offsets[i + 1]].tolist())
        for i, (*row, at) in enumerate(rows)
    )


def test_saved_schedules_are_loaded(schedule, tmp_path):
    for extension in ("json", "cset", "csb", "csi"):
        path = tmp_path / f"schedule.{extension}"
        schedule.save(path)
        loaded = conset.load(path)
        for a, b in zip(loaded.connections, schedule.connections):
            assert np.array_equal(a, b), extension
        # An image has the routes in another order, and does not have the durations.
        assert by_phase(loaded.routes) == by_phase(schedule.routes), extension
        # Bounds and predictions are the same; only what the search did is not in a file.
        assert (loaded.clocks, loaded.bound) == (schedule.clocks, schedule.bound)
        if extension != "csi":
            loaded.save(tmp_path / f"again.{extension}")
            assert (tmp_path / f"again.{extension}").read_bytes() == path.read_bytes()
    with pytest.raises(conset.InputError, match="does not select an output format"):
        schedule.save(tmp_path / "schedule.txt")
    assert sorted(p.suffix for p in tmp_path.iterdir()).count(".tmp") == 0


def test_files_are_replaced_as_a_whole(schedule, tmp_path):
    path, link = tmp_path / "real.json", tmp_path / "link.json"
    path.write_text("old")
    path.chmod(0o640)
    link.symlink_to(path)
    schedule.save(link)
    assert link.is_symlink() and path.read_text().startswith("{")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o640
    with pytest.raises(conset.InputError, match="cannot be written"):
        schedule.save(tmp_path / "none" / "a.json")
    with pytest.raises(conset.InputError, match="cannot be written"):
        (tmp_path / "folder.json").mkdir()
        schedule.save(tmp_path / "folder.json")


def test_the_command_makes_and_shows_the_same(schedule, command, meshes, tmp_path):
    ours, theirs = tmp_path / "ours.json", tmp_path / "theirs.json"
    schedule.save(ours)
    done = command(
        "compile", meshes / "plate.msh", "--machine", "iwarp:4x4", "-o", theirs, "--json"
    )
    assert done.returncode == 0, done.stderr
    assert ours.read_bytes() == theirs.read_bytes()
    report = json.loads(done.stdout)
    assert report["sets"] == schedule.summary["sets"]
    assert report["parts"] == schedule.summary["parts"]
    assert report["placement"]["cells"] == schedule.part_cells.tolist()
    rows = json.loads(command("show", ours, "routes", "--json").stdout)["rows"]
    routes, connections = schedule.routes, schedule.connections
    assert len(rows) == len(routes.phase)
    for row, shown in enumerate(rows):
        stops = [
            f"c{cell}/ch{channel}"
            for cell, channel in zip(
                routes.cells[routes.offsets[row] : routes.offsets[row + 1]],
                routes.channels[routes.offsets[row] : routes.offsets[row + 1]],
            )
        ]
        assert shown["route"] == " -> ".join(stops)
        assert shown["connection"] == routes.connection[row]
        assert shown["phase"] == routes.phase[row]
        assert (shown["words"], shown["start"], shown["duration"]) == (
            routes.words[row],
            routes.start[row],
            routes.duration[row],
        )
    timetable = json.loads(command("show", ours, "timetable", "--json").stdout)["rows"]
    ends = sorted((row["source"], row["target"]) for row in timetable)
    of = routes.connection
    pairs = zip(connections.source[of], connections.target[of])
    assert ends == sorted(pairs)
    run = json.loads(command("run", ours, "--json").stdout)
    assert schedule.run()[0].report == run["sets"][0]


def test_programs_of_several_sets(tmp_path):
    path = tmp_path / "two.cset"
    path.write_text("conset set 1\nset a\n  c0 -> c1 words 3\nset b\n  c1 -> c0 words 4\n")
    schedule = conset.compile(path, "ring:4")
    assert [each.name for each in schedule.sets] == ["a", "b"]
    assert schedule.clocks == sum(each.clocks for each in schedule.sets)
    assert schedule.sets[1].connections.words.tolist() == [4]
    with pytest.raises(conset.InputError, match=r"2 sets \(a, b\); use `sets`"):
        schedule.routes
    assert [run.set for run in schedule.run()] == ["a", "b"]
    assert "Set b" in schedule.to_html()


def shown(value):
    """A number as pages show it."""
    return f"{int(value):,}".replace(",", "\u00a0")


class Page(HTMLParser):
    """Checks that elements are closed, counts them, and keeps the texts of tables and titles."""

    VOID = {"meta", "br"}

    def __init__(self, text):
        super().__init__()
        self.open, self.counts, self.references = [], {}, []
        self.tables, self.titles = [], []
        self.feed(text)
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        self.counts[tag] = self.counts.get(tag, 0) + 1
        self.references += [v for k, v in attrs if k in ("src", "href")]
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag == "title":
            self.titles.append("")

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.tables[-1][-1].append(data)
        elif self.open and self.open[-1] == "title":
            self.titles[-1] += data

    def handle_startendtag(self, tag, attrs):
        self.counts[tag] = self.counts.get(tag, 0) + 1

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_whole_and_needs_no_other_file(schedule, tmp_path):
    text = schedule.to_html(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == text
    page = Page(text)
    assert not page.references and "script" not in page.counts and "http" not in text
    slots = len(schedule.routes.phase)
    assert page.counts["rect"] == slots and page.counts["svg"] == schedule.phases
    summary, bound, count = schedule.sets[0].summary, schedule.bound, shown
    assert f"{count(summary['connections'])} connections, {count(summary['words'])} words" in text
    phases = "1 phase" if schedule.phases == 1 else f"{schedule.phases} phases"
    assert f"{phases}, bound {count(bound.phases)} by" in text
    assert f"{count(schedule.clocks)} clocks predicted" in text
    assert f"bound {count(bound.clocks)} by {bound.clocks_by}" in text
    optimal = "optimal for this partition"
    assert text.count(optimal) == summary["fewest_phases"] + summary["fewest_clocks"]
    # The first table has the facts, the second the phases.
    facts = dict(row for row in page.tables[0])
    parts, machine = schedule.summary["parts"], schedule.machine
    assert facts == {
        "topology": machine["topology"],
        "cells with an agent": count(machine["agents"]),
        "links": count(machine["links"]),
        "channels per cell": count(machine["channels_per_cell"]),
        "context switch": f"{count(machine['switch_clocks'])} clocks",
        "parts": "{} of {} to {} items".format(parts["parts"], *parts["items_per_part"]),
        "words that a part sends": "{} to {}".format(*parts["words_per_part"]),
        "neighbours of a part": f"at most {parts['max_degree']}",
        "imbalance": f"{parts['partition']['imbalance_percent']} %",
        "edges between parts": count(parts["partition"]["cut"]),
    }
    hops = np.diff(schedule.routes.offsets) - 1
    for phase, row in enumerate(page.tables[1][1:]):
        here = schedule.routes.phase == phase
        sums = [here.sum(), schedule.routes.words[here].sum(), hops[here].sum()]
        assert row == [f"p{phase}", *map(count, sums), count(schedule.makespans[phase])]
    assert len(page.tables[1]) == schedule.phases + 1
    # Every bar says the connection, its ends, and its clocks.
    said = {tuple(map(int, re.findall(r"\d+", title))) for title in page.titles[1:]}
    starts = schedule.routes.start
    ends = starts + schedule.routes.duration
    ids = schedule.routes.connection
    ends_of = [each[ids] for each in (schedule.connections.source, schedule.connections.target)]
    columns = (ids, *ends_of, schedule.routes.words, starts, ends)
    assert said == set(zip(*(column.tolist() for column in columns)))
    # The busiest link, counted here.
    load = {}
    routes = schedule.routes
    for row in range(slots):
        cells = routes.cells[routes.offsets[row] : routes.offsets[row + 1]].tolist()
        for hop in zip(cells, cells[1:]):
            key = (*hop, int(routes.phase[row]))
            load[key] = load.get(key, 0) + int(routes.words[row])
    first = re.search(r"<td>c(\d+) → c(\d+)</td><td>p(\d+)</td><td>\d+</td><td>(\d+)</td>", text)
    source, target, phase, words = map(int, first.groups())
    assert load[source, target, phase] == words == max(load.values())
    assert Page(conset.compile(np.empty((0, 2), int), "ring:4").to_html()).counts["h1"] == 1


def test_a_name_cannot_inject_markup(tmp_path):
    path = tmp_path / "machine.toml"
    path.write_text('name = "<b>bold"\ntopology = "ring:4"\n')
    try:
        schedule = conset.compile([[0, 1, 3]], path)
    except conset.InputError:
        return  # machines cannot have such a name
    assert "<b>" not in schedule.to_html()
