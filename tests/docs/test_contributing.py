"""CONTRIBUTING.md names what is there: "`name` of `file.py`", wherever that file is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"`(\w+)`\s+(?:of|in)\s+`([\w/]+\.py)`")
PAIRS = NAMED.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("name", "file"), PAIRS, ids=lambda part: part)
def test_every_name_is_in_its_file(name, file):
    folders = (ROOT / part for part in ("src", "tests", "docs", "benchmarks"))
    places = [path for folder in folders for path in folder.rglob("*.py") if f"/{path}".endswith(f"/{file}")]
    assert places, f"CONTRIBUTING.md names {file}, which is nowhere"
    defined = re.compile(rf"^\s*(?:def |class )?{name}\b\s*(?:[(:=\[|]|$)", re.MULTILINE)
    assert any(defined.search(path.read_text(encoding="utf-8")) for path in places), (
        f"CONTRIBUTING.md names `{name}` of {file}, which has no such name"
    )


def test_names_are_found():
    assert len(PAIRS) > 8
