"""Compares the time of a compilation from Python with that of the command.

Usage: python compile.py CONSET INPUT [MACHINE [REPETITIONS]]

Prints the median and the least seconds of: the command as a process; the call in a process that
has imported the package; and a new process that imports the package and makes the call.
"""

import statistics
import subprocess
import sys
import time

import conset


def measure(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main():
    command, source = sys.argv[1:3]
    machine = sys.argv[3] if len(sys.argv) > 3 else "iwarp"
    repetitions = int(sys.argv[4]) if len(sys.argv) > 4 else 21
    line = [command, "compile", source, "--machine", machine, "--quiet"]
    program = f"import conset; conset.compile({source!r}, {machine!r})"
    works = {
        "command": lambda: subprocess.run(line, check=True, stdout=subprocess.DEVNULL),
        "call": lambda: conset.compile(source, machine),
        "process": lambda: subprocess.run([sys.executable, "-c", program], check=True),
    }
    # In turn, so that other load on the computer affects all of them.
    times = {name: [] for name in works}
    for _ in range(repetitions):
        for name, work in works.items():
            times[name].append(measure(work))
    base = statistics.median(times["command"])
    for name, seconds in times.items():
        median = statistics.median(seconds)
        least = min(seconds)
        print(f"{name:8} median {median:.4f} s ({median / base:.2f} x), least {least:.4f} s")


if __name__ == "__main__":
    main()
