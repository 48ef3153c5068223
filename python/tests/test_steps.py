"""Schedules of steps: arrays, runs, files, and what only phases have."""

import numpy as np
import pytest

import conset


@pytest.fixture(scope="module")
def steps(meshes):
    return conset.compile(meshes / "plate.msh", "cm5:8", by="steps")


def test_pieces_travel_from_source_to_target(meshes):
    for algorithm in [None, "pairwise", "recursive", "levels:4x2/ring", "halves:0.7"]:
        steps = conset.compile(meshes / "plate.msh", "cm5:8", by="steps", algorithm=algorithm)
        (plan,) = steps.sets
        connections, messages = plan.connections, plan.messages
        assert (np.diff(messages.step) >= 0).all()
        assert messages.step.max() + 1 == plan.steps == steps.steps
        at = connections.source.copy()
        for row, (sender, receiver) in enumerate(zip(messages.sender, messages.receiver)):
            carried = messages.connection[messages.offsets[row] : messages.offsets[row + 1]]
            assert (at[carried] == sender).all()
            at[carried] = receiver
        assert np.array_equal(at, connections.target)
        assert np.array_equal(messages.words, connections.words[messages.connection])
        assert not messages.first_word.any()
        assert plan.direct == (len(messages.connection) == len(connections.words))
        assert messages.step.dtype == np.int64 and not messages.step.flags.writeable


def test_runs_and_the_checker(steps):
    (run,) = steps.run(seed=3)
    (plan,) = steps.sets
    assert run.payload_ok and run.words == plan.connections.words.sum()
    assert run.clocks >= plan.bound.clocks and run.messages == len(plan.messages.step)
    assert steps.verify().messages == run.messages
    assert "StepSchedule" in repr(steps) and plan.name in repr(plan)
    assert len(steps.item_parts) and len(plan.node_lists.nodes)
    assert steps.machine["name"] == "cm5" and steps.inventory["nodes"] > 0
    assert len(steps.item_cells) == len(steps.item_parts) and steps.bound == plan.bound
    assert np.array_equal(steps.messages.sender, plan.messages.sender)
    assert steps.by == "steps" and steps.compared is None


@pytest.mark.parametrize("form", ["json", "cset", "csb", "csi"])
def test_files_are_loaded_again(steps, form, tmp_path):
    path = tmp_path / f"steps.{form}"
    steps.save(path)
    loaded = conset.load(path)
    assert isinstance(loaded, conset.StepSchedule)
    for mine, again in zip(steps.sets[0].messages, loaded.sets[0].messages):
        assert np.array_equal(mine, again)
    assert loaded.clocks == steps.clocks and loaded.sets[0].bound == steps.sets[0].bound


def test_best_keeps_the_cheaper_and_tells_of_the_other(command, tmp_path):
    chosen = set()
    # Loading tables takes 352 clocks, and then longer than any message.
    for t_phase in [352, 100_000]:
        how = {"machine": "cm5:16", "params": {"t_phase": t_phase}}
        ways = [conset.compile("pattern:transpose", **how, by=by) for by in ["phases", "steps"]]
        best = conset.compile("pattern:transpose", **how, by="best")
        kept = min(ways, key=lambda way: way.clocks)
        (other,) = (way for way in ways if way is not kept)
        assert (best.by, best.clocks) == (kept.by, kept.clocks)
        assert best.compared == conset.Alternative(other.by, other.clocks)
        assert kept.compared is None and type(best) is type(kept)
        chosen.add(best.by)
        best.save(tmp_path / "ours.json")
        theirs = tmp_path / "theirs.json"
        arguments = ["--machine", "cm5:16", "--param", f"t_phase={t_phase}", "--by", "best"]
        assert command("compile", "pattern:transpose", *arguments, "-o", theirs).returncode == 0
        assert theirs.read_bytes() == (tmp_path / "ours.json").read_bytes()
    assert chosen == {"phases", "steps"}
    for options in [{"algorithm": "loaded"}, {"time_limit": 1}, {"fuse": [["a", "b"]]}]:
        with pytest.raises(conset.InputError, match="has no effect with --by best"):
            conset.compile("pattern:transpose", "cm5:8", by="best", **options)


def test_what_does_not_fit_steps_is_refused():
    for options, words in [
        ({"objective": "phases"}, "--objective has no effect with --by steps"),
        ({"time_limit": 1}, "--time-limit has no effect"),
        ({"fuse": [["a", "b"]]}, "--fuse has no effect"),
        ({"max_phases": 3}, "--max-phases has no effect"),
        ({"algorithm": "paper"}, "unknown `paper`"),
        ({"algorithm": "levels:3x2"}, "a product of 6 for 8 cells"),
        ({"algorithm": "levels:4x2/diagonals"}, "unknown `diagonals`"),
    ]:
        with pytest.raises(conset.InputError, match=words):
            conset.compile("pattern:transpose", "cm5:8", by="steps", **options)
    with pytest.raises(conset.InputError, match="--by"):
        conset.compile("pattern:transpose", "cm5:8", by="messages")
    with pytest.raises(conset.InputError, match="--algorithm"):
        conset.compile("pattern:transpose", "iwarp:4x4", algorithm="loaded")
