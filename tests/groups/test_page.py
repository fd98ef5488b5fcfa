"""The page on audits says what its script finds, word for word."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.slow
def test_every_number_comes_from_the_script(shared_data):
    spec = importlib.util.spec_from_file_location("audit_page", DOCS / "examples" / "audit.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    page = (DOCS / "audit.md").read_text()
    for name, text in script.blocks(shared_data).items():
        assert text in page, f"block {name!r} of docs/audit.md is out of date"
