"""The page on the architecture shows the imports that the source has."""

from __future__ import annotations

import runpy
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_and_the_picture_are_what_the_source_says():
    script = runpy.run_path(str(DOCS / "make_architecture.py"))
    rooms = script["graph"]()
    assert (
        script["page"]((DOCS / "architecture.md").read_text(), rooms)
        == (DOCS / "architecture.md").read_text()
    ), "run docs/make_architecture.py"
    assert script["svg"](rooms) == (DOCS / "architecture.svg").read_text(), "run docs/make_architecture.py"
