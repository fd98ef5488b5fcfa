"""Pages made by scripts say what the scripts would write now."""

from __future__ import annotations

import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def made_by(script):
    return runpy.run_path(str(ROOT / "docs" / script))


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_page_of_measures_is_current():
    assert text("docs/measures.md") == made_by("make_measures.py")["page"](), "run docs/make_measures.py"


def test_the_page_of_verbs_is_current():
    written = made_by("make_command_line.py")["page"]()
    assert text("docs/reference/command-line.md") == written, "run docs/make_command_line.py"


def test_the_page_on_scale_is_what_was_measured_and_names_every_measure_without_a_certificate():
    assert text("docs/scale.md") == made_by("make_scale.py")["page"](), "run docs/make_scale.py"


def test_the_glossary_is_that_of_the_reports():
    assert text("docs/glossary.md") == made_by("make_glossary.py")["page"](), "run docs/make_glossary.py"


def test_the_speed_tables_are_what_was_measured():
    script = made_by("make_speed.py")
    assert text("docs/speed.md") == script["page"](), "run docs/make_speed.py"
    assert text("README.md") == script["with_headlines"](text("README.md")), "run docs/make_speed.py"


def test_the_page_on_recalibration_is_what_was_measured():
    assert text("docs/fix.md") == made_by("make_fix.py")["page"](), "run docs/make_fix.py"


def test_links_of_the_readme_lead_somewhere():
    import re

    for target in re.findall(r"\]\(([^)#]+)\)", text("README.md")):
        assert (ROOT / target).exists(), target
