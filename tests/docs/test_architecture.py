"""The page on the architecture shows the imports that the source has."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_and_the_picture_are_what_the_source_says():
    script = runpy.run_path(str(DOCS / "make_architecture.py"))
    packages = script["graph"]()
    remedy = "packages import others than the page shows: run .venv/bin/python docs/make_architecture.py"
    stored = (DOCS / "architecture.md").read_text()
    assert script["page"](stored, packages) == stored, remedy
    assert script["svg"](packages) == (DOCS / "architecture.svg").read_text(), remedy


def test_every_file_that_the_page_names_exists():
    page = (DOCS / "architecture.md").read_text().split("<!-- packages")[0]
    named = re.findall(r"`([\w/]+(?:\.py|/))`", page)
    assert len(named) > 20
    assert [name for name in named if not (DOCS.parent / "src" / "calibrant" / name).exists()] == []
