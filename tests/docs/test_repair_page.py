"""The page from audit to repair: its numbers are those of the script, where the data are there."""

from __future__ import annotations

import re
import runpy
import warnings
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?:e-?\d+)?")
TOLERANCE = 0.05  # relative: another release of LightGBM or BLAS may move the last digits of a fit


def test_figures_are_told_apart_from_words():
    assert figures("p = 0.195 of 6,106 rows, 1.5e-3 p2") == ("p = # of # rows, # p2", [0.195, 6106, 1.5e-3])


@pytest.mark.slow
def test_the_page_is_what_the_script_writes(shared_data):
    pytest.importorskip("lightgbm")
    page = runpy.run_path(str(DOCS / "make_repair.py"))["page"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made, made_figures = figures(page(shared_data))
    written, written_figures = figures((DOCS / "repair.md").read_text())
    assert made == written, "run docs/make_repair.py"
    assert made_figures == pytest.approx(written_figures, rel=TOLERANCE, abs=1e-3), "run docs/make_repair.py"


def figures(text):
    """Return the text with every number as #, and the numbers."""
    return NUMBER.sub("#", text), [float(one.replace(",", "")) for one in NUMBER.findall(text)]


def test_the_page_has_every_part_of_its_template():
    written, template = (DOCS / "repair.md").read_text(), (DOCS / "repair.in.md").read_text()
    headings = [line for line in template.splitlines() if line.startswith("## ")]
    assert headings == [line for line in written.splitlines() if line.startswith("## ")]
    assert "{" not in written.replace("{Married", "").replace("{Divorced", "")
