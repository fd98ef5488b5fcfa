"""The page on lying says what the lab finds."""

from __future__ import annotations

from pathlib import Path

import calibrant as cb

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "truthful.md").read_text()


def test_sentences_come_from_the_lab():
    assert str(cb.truthfulness_gap("level-set", [0.3])) in PAGE
    assert str(cb.truthfulness_gap("smooth", [0.25, 0.75])) in PAGE
    found = cb.truthfulness_gap("atb", [0.5, 0.5], sequential=True)
    assert f"from {found.honest:.4g} to {found.best:.4g}" in " ".join(PAGE.split())


def test_the_lists_are_those_of_the_registry():
    for kind in ("strict", "batch", "approximate"):
        line = next(text for text in PAGE.split("\n- ") if text.startswith(f"**{kind}**"))
        named = set(line.split(":", 1)[1].split(".")[0].replace("`", "").replace(" ", "").split(","))
        rows = {row.name for row in cb.measures().values() if row.truthful == kind}
        assert named == rows, f"put the keys of `{kind}` measures right in the list of docs/truthful.md"
