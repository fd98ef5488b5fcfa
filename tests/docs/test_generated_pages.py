"""Pages made by scripts say what the scripts would write now."""

from __future__ import annotations

import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def made_by(script):
    return runpy.run_path(str(ROOT / "docs" / script))


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


def is_current(page, script, written, source):
    """Fail with what to run and why, not with a diff of two whole pages."""
    stored, wanted = text(page).splitlines(), written.splitlines()
    pairs = zip([*stored, "(end)"], [*wanted, "(end)"], strict=False)
    k, (has, needs) = next(((k, two) for k, two in enumerate(pairs, 1) if two[0] != two[1]), (0, ("", "")))
    current = text(page) == written
    assert current, (
        f"{page} is made from {source}, which have changed: run .venv/bin/python docs/{script} and commit "
        f"what it writes. Line {k} is {has[:200]!r} and would be {needs[:200]!r}"
    )


def test_the_page_of_measures_is_current():
    script, source = "make_measures.py", "the rows and docstrings of measures"
    is_current("docs/measures.md", script, made_by(script)["page"](), source)


def test_the_page_of_commands_is_current():
    script, source = "make_command_line.py", "the options and docstrings of the commands"
    is_current("docs/reference/command-line.md", script, made_by(script)["page"](), source)


def test_the_page_on_scale_is_what_was_measured_and_names_every_measure_without_a_certificate():
    script, source = "make_scale.py", "docs/scale.in.md, what was measured and the rows of measures"
    is_current("docs/scale.md", script, made_by(script)["page"](), source)


def test_the_glossary_is_that_of_the_reports():
    script, source = "make_glossary.py", "the words that reports explain"
    is_current("docs/glossary.md", script, made_by(script)["page"](), source)


def test_the_speed_tables_are_what_was_measured():
    script, source = "make_speed.py", "the text in that script and what was measured"
    is_current("docs/speed.md", script, made_by(script)["page"](), source)


def test_the_page_on_recalibration_is_what_was_measured():
    script, source = "make_fix.py", "docs/fix.in.md, what was measured and the rows of methods"
    is_current("docs/fix.md", script, made_by(script)["page"](), source)


def test_links_of_the_readme_lead_somewhere():
    import re

    for target in re.findall(r"\]\(([^)#]+)\)", text("README.md")):
        assert (ROOT / target).exists(), target
