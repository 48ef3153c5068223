"""Errors are exceptions with the texts of the command; long work can be interrupted."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import conset

# A search that takes much longer than the tests wait.
LONG = dict(source="pattern:all-to-all", machine="iwarp:8x8", time_limit=600.0)


def test_exceptions_have_the_usual_bases():
    assert issubclass(conset.InputError, ValueError)
    assert issubclass(conset.InternalError, RuntimeError)
    for error in (conset.InputError, conset.CompileError, conset.VerifyError):
        assert issubclass(error, conset.Error) and error.__module__ == "conset"
    with pytest.raises(conset.InputError) as raised:
        conset.compile("no such file")
    copy = pickle.loads(pickle.dumps(raised.value))
    assert isinstance(copy, conset.InputError) and str(copy) == str(raised.value)


@pytest.mark.parametrize(
    "arguments, options",
    [
        (dict(source="none.msh"), ["none.msh"]),
        (dict(source="pattern:all-to-all", machine="tours:4x4"), ["--machine", "tours:4x4"]),
        (dict(source="pattern:no", machine="ring:4"), ["--machine", "ring:4"]),
        (dict(source="pattern:all-to-all", parts=3), ["--parts", "3"]),
        (
            dict(source="pattern:all-to-all", params={"channels_per_cell": 0}),
            ["--param", "channels_per_cell=0"],
        ),
        (
            dict(source="pattern:all-to-all", machine="iwarp:4x4", max_phases=1),
            ["--machine", "iwarp:4x4", "--max-phases", "1"],
        ),
        (
            dict(source="pattern:all-to-all", algorithm="paper", max_plans=3),
            ["--algorithm", "paper", "--max-plans", "3"],
        ),
        (dict(source="pattern:all-to-all", time_limit=-1.0), ["--time-limit", "-1"]),
    ],
)
def test_texts_are_those_of_the_command(arguments, options, command):
    source = arguments.pop("source")
    with pytest.raises(conset.Error) as raised:
        conset.compile(source, **arguments)
    rest = options if options[0] == source else [source, *options]
    done = command("compile", *rest)
    assert done.stderr == f"error: {raised.value}\n"
    expected = {1: conset.CompileError, 2: conset.InputError}[done.returncode]
    assert type(raised.value) is expected


def test_positions_in_files_are_those_of_the_command(command, tmp_path):
    path = tmp_path / "wrong.cset"
    path.write_text("conset set 1\nset a\n  c0 => c1 words 3\n")
    with pytest.raises(conset.InputError) as raised:
        conset.compile(path, "ring:4")
    assert str(raised.value).startswith(f"{path}:3:6: ")
    message = str(raised.value).splitlines()[0].split(": ", 1)[1]
    assert message in command("compile", path).stderr


@pytest.mark.parametrize(
    "arguments, error",
    [
        (dict(parts=0), "invalid value '0' for '--parts'"),
        (dict(parts=1.5), TypeError),
        (dict(parts="4"), TypeError),
        (dict(seed=-1), "invalid value '-1' for '--seed'"),
        (dict(seed=2**64), "expected a whole number from 0"),
        (dict(algorithm="fast"), "possible values: paper, auto"),
        (dict(objective="money"), "invalid value 'money' for '--objective'"),
        (dict(placement="nearest"), "invalid value"),
        (dict(elements="tetrahedra"), "invalid value"),
        (dict(words=0), "--words is for patterns"),
        (dict(max_plans=0), "invalid value '0' for '--max-plans'"),
        (dict(time_limit=float("nan")), "expected seconds"),
        (dict(time_limit=1.0, max_plans=3), "cannot be used with"),
        (dict(params=["a=1"]), TypeError),
        (dict(params={"speed": 3}), "speed"),
        (dict(dead=["c5"]), TypeError),
        (dict(dead=[999]), "--dead"),
        (dict(reuse="old.json"), TypeError),
        (dict(machine=5), TypeError),
        (dict(machine="none.toml"), "none.toml: cannot be read"),
        (dict(format="jpeg"), "not a format that conset reads"),
        (dict(partition=np.zeros((2, 2), int)), "shape"),
        (dict(partition=[0], repartition=True), "cannot be used with"),
        (dict(imbalance=-1), "invalid value '-1' for '--imbalance'"),
        (dict(imbalance=3, partition=[0]), "cannot be used with"),
        (dict(max_partitions=0), "invalid value '0' for '--max-partitions'"),
        (dict(progress=5), TypeError),
        (dict(unknown=5), TypeError),
    ],
)
def test_wrong_arguments(arguments, error, meshes):
    expected = conset.InputError if isinstance(error, str) else error
    with pytest.raises(expected) as raised:
        conset.compile(meshes / "plate.msh", **arguments)
    if isinstance(error, str):
        assert error in str(raised.value)


@pytest.mark.parametrize("source", [None, 5, "", b"bytes", object(), [], {}, [["a", "b"]], ""])
def test_wrong_sources(source):
    with pytest.raises((TypeError, conset.InputError)):
        conset.compile(source)


def test_files_that_are_something_else(meshes, tmp_path):
    with pytest.raises(conset.InputError, match="not compiled"):
        conset.load(meshes / "plate.msh")
    with pytest.raises(conset.InputError, match="folder"):
        conset.load(tmp_path)
    with pytest.raises(conset.InputError, match="folder without an OpenFOAM mesh"):
        conset.compile(tmp_path)
    schedule = conset.compile([[0, 1, 3]], "ring:4")
    path = tmp_path / "s.json"
    schedule.save(path)
    with pytest.raises(conset.InputError, match="conset.load"):
        conset.compile(path)


def test_the_checker_refuses_a_changed_schedule(tmp_path):
    path = tmp_path / "s.json"
    conset.compile([[0, 1, 3], [2, 3, 3]], "ring:4").save(path)
    text = path.read_text()
    for change in (('"start":0', '"start":9'), ('"start": 0', '"start": 9')):
        text = text.replace(*change, 1)
    path.write_text(text)
    with pytest.raises(conset.VerifyError):
        conset.load(path)


def test_progress_is_reported_and_its_exception_ends_the_call(meshes):
    reports = []
    conset.compile(meshes / "plate.msh", "iwarp:4x4", progress=reports.append)
    stages = [report.stage for report in reports]
    assert "partitioning" in stages and "checking" in stages
    assert reports[-1].clocks >= reports[-1].bound

    def stop(report):
        if report.stage == "planning":
            raise LookupError("enough")

    start = time.monotonic()
    with pytest.raises(LookupError, match="enough"):
        conset.compile(**LONG, progress=stop)
    assert time.monotonic() - start < 30


def test_an_interrupt_ends_the_call_and_other_threads_run():
    ticks = []
    stop = threading.Event()

    def tick():
        while not stop.wait(0.01):
            ticks.append(time.monotonic())

    ticker = threading.Thread(target=tick)
    ticker.start()
    interrupt = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    start = time.monotonic()
    try:
        interrupt.start()
        with pytest.raises(KeyboardInterrupt):
            conset.compile(**LONG)
        taken = time.monotonic() - start
    finally:
        stop.set()
        ticker.join()
    assert 0.4 < taken < 10, "long before the time limit"
    assert len(ticks) > 5, "the lock of the interpreter is free meanwhile"
    # The next call works.
    assert conset.compile([[0, 1, 3]], "ring:4").run()[0].payload_ok


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_process_can_compile():
    program = (
        "import conset, os, sys\n"
        "before = conset.compile('pattern:all-to-all', 'iwarp:4x4')\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    again = conset.compile('pattern:all-to-all', 'iwarp:4x4')\n"
        "    os._exit(0 if again.clocks == before.clocks else 1)\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], timeout=60)
    assert done.returncode == 0


def test_progress_on_the_terminal_is_cleared(capfd, monkeypatch):
    from conset import _progress

    monkeypatch.setattr(_progress, "PATIENCE", 0.0)
    monkeypatch.setattr(_progress, "PERIOD", 0.0)
    conset.compile("pattern:all-to-all", "iwarp:4x4", progress=True)
    out, err = capfd.readouterr()
    assert out == "" and "conset: planning" in err and err.endswith(" \r")
