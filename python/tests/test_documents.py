"""The programs in the documents run as they are printed."""

import doctest
import re

import pytest
from conftest import ROOT

import conset
from conset import _inputs


def programs(path):
    return re.findall(r"^```python\n(.*?)^```$", path.read_text(encoding="utf-8"), re.S | re.M)


@pytest.mark.parametrize("document, count", [("python/README.md", 2), ("docs/guide.md", 1)])
def test_programs_run(document, count, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    found = programs(ROOT / document)
    assert len(found) == count
    for text in found:
        exec(compile(text, document, "exec"), {})


@pytest.mark.parametrize("module", [conset, _inputs])
def test_examples_of_the_modules(module):
    result = doctest.testmod(module)
    assert result.attempted > 0 and result.failed == 0
