"""The page from audit to repair: its numbers are those of the script, where the data are there."""

from __future__ import annotations

import runpy
import warnings
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.slow
def test_the_page_is_what_the_script_writes(shared_data):
    pytest.importorskip("lightgbm")
    page = runpy.run_path(str(DOCS / "make_repair.py"))["page"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert page(shared_data) == (DOCS / "repair.md").read_text(), "run docs/make_repair.py"


def test_the_page_has_every_part_of_its_template():
    written, template = (DOCS / "repair.md").read_text(), (DOCS / "repair.in.md").read_text()
    headings = [line for line in template.splitlines() if line.startswith("## ")]
    assert headings == [line for line in written.splitlines() if line.startswith("## ")]
    assert "{" not in written.replace("{Married", "").replace("{Divorced", "")
