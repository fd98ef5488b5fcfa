"""The page on decisions says what its script finds, word for word."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.filterwarnings("ignore::calibrant.metrics.binned.LevelSetWarning")
def test_every_number_comes_from_the_script(shared_data):
    spec = importlib.util.spec_from_file_location("decisions", DOCS / "examples" / "decisions.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    page = (DOCS / "decisions.md").read_text()
    for name, text in script.blocks(shared_data).items():
        assert text in page, f"block {name!r} of docs/decisions.md is out of date"
