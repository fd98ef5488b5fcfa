"""Every public function documents all its parameters, what it returns, and shows an example."""

from __future__ import annotations

import inspect
import re

import pytest

import calibrant as cb
from calibrant.public_names import all_homes

FUNCTIONS = [
    name for name in all_homes() if callable(getattr(cb, name)) and not inspect.isclass(getattr(cb, name))
]


def _section(text: str, name: str) -> str:
    found = re.search(rf"^{name}\n-+\n(.*?)(?=^\S[^\n]*\n---+$|\Z)", text, re.M | re.S)
    return found[1] if found else ""


def _documented(section: str) -> set[str]:
    """Return the names at the start of the section's unindented lines: ``a, b : type`` names two."""
    heads = [line.split(" : ")[0] for line in section.splitlines() if line and not line.startswith(" ")]
    return {name.strip(" *`") for head in heads for name in head.split(",")}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_parameters_results_and_examples_are_documented(name):
    text = inspect.getdoc(getattr(cb, name)) or ""
    parameters = set(inspect.signature(getattr(cb, name)).parameters)
    missing = sorted(parameters - _documented(_section(text, "Parameters")))
    assert not missing, f"{name}: add {missing} to the section Parameters of its docstring"
    assert _section(text, "Returns").strip(), f"{name}: its docstring needs a section Returns"
    assert ">>>" in _section(text, "Examples"), f"{name}: its docstring needs a section Examples with >>>"
    order = [text.find(f"\n{part}\n--") for part in ("Parameters", "Returns", "Examples")]
    assert sorted(order) == order or not parameters, f"{name}: Parameters, Returns, Examples"


def test_a_section_ends_where_the_next_begins():
    text = (
        "Sum.\n\nParameters\n----------\na, b : int\n    Terms.\n**rest\n    More.\n\nReturns\n-------\nint\n"
    )
    assert _documented(_section(text, "Parameters")) == {"a", "b", "rest"}
    assert _section(text, "Returns").strip() == "int"
