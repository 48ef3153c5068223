"""What the tests share: the repository's files, and the command to compare with."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def meshes() -> Path:
    """The folder of the meshes that the project's generators made."""
    return ROOT / "fixtures" / "meshes"


@pytest.fixture(scope="session")
def command():
    """A function that runs the command `conset`: CONSET_COMMAND, or the one on the path."""
    program = os.environ.get("CONSET_COMMAND") or shutil.which("conset")
    if program is None:
        pytest.skip("the command `conset` is missing: set CONSET_COMMAND to compare with it")

    def run(*arguments: object) -> subprocess.CompletedProcess:
        line = [program, *map(str, arguments)]
        return subprocess.run(line, capture_output=True, text=True, timeout=120)

    return run
