"""The pages on language models run as printed, cell by cell."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
CELL = re.compile(r"^```\{code-cell\}\n(?::tags:[^\n]*\n)?(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.slow
@pytest.mark.parametrize("page", ["tutorials/language-model-confidence.md", "confidence.md"])
def test_cells_run(page, monkeypatch):
    pytest.importorskip("pandas")
    pytest.importorskip("altair")
    path, kept, names = DOCS / page, dict(os.environ), {}
    monkeypatch.chdir(path.parent)
    try:
        for cell in CELL.findall(path.read_text(encoding="utf-8")):
            if cell.startswith("!calibrant "):
                words = cell.strip().removeprefix("!calibrant ").split()
                shown = subprocess.run(
                    [sys.executable, "-m", "calibrant", *words], capture_output=True, text=True, check=True
                ).stdout
                assert max(map(len, shown.splitlines())) <= 100 or words[0] == "compare"
            else:
                exec(compile(cell, str(path), "exec"), names)
    finally:
        os.environ.clear()
        os.environ.update(kept)
