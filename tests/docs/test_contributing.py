"""CONTRIBUTING.md names what is there: "`name` of `file.py`", wherever that file is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"`(\w+)`\s+(?:of|in)\s+`([\w/]+\.py)`")
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
PAIRS = NAMED.findall(TEXT)
FILES = sorted(set(re.findall(r"`((?:[\w-]+/)*\w[\w.-]*\.(?:py|bib|toml|md))(?: \w+)?`", TEXT)))


@pytest.mark.parametrize(("name", "file"), PAIRS, ids=lambda part: part)
def test_every_name_is_in_its_file(name, file):
    folders = (ROOT / part for part in ("src", "tests", "docs", "benchmarks"))
    places = [path for folder in folders for path in folder.rglob("*.py") if f"/{path}".endswith(f"/{file}")]
    assert places, f"CONTRIBUTING.md names {file}, which is nowhere"
    defined = re.compile(rf"^\s*(?:def |class )?{name}\b\s*(?:[(:=\[|]|$)", re.MULTILINE)
    assert any(defined.search(path.read_text(encoding="utf-8")) for path in places), (
        f"CONTRIBUTING.md names `{name}` of {file}, which has no such name"
    )


@pytest.mark.parametrize("file", FILES)
def test_every_file_is_there(file):
    folders = (ROOT / part for part in ("src", "tests", "docs", "benchmarks"))
    places = [ROOT / file, *(path for folder in folders for path in folder.rglob(f"*{Path(file).suffix}"))]
    assert any(path.is_file() and f"/{path}".endswith(f"/{file}") for path in places), file


def test_names_are_found():
    assert len(PAIRS) > 8
    assert len(FILES) > 40
