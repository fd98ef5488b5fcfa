"""Every chart that `charts()` draws is in a section of the page, and sections name no other."""

from __future__ import annotations

import ast
import inspect
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import calibrant as cb
from calibrant.evaluation.repair_preview import group_differences, propose
from calibrant.evaluation.report import sections, specifications
from calibrant.report import charts
from calibrant.report.charts.canvas import drawing

WITHOUT_A_SECTION = {"reliability": "in the overview, above all sections"}


@pytest.fixture(scope="module")
def page():
    """Return the keys that are drawn and the figures of all sections, of an evaluation with everything."""
    rng = np.random.default_rng(4)
    p = rng.integers(1, 20, 600) / 20
    groups = {"area": rng.choice(["north", "south"], 600), "year": rng.integers(2020, 2024, 600)}
    evaluation = cb.evaluate(rng.random(600) < p**1.5, p, groups=groups, seed=1)
    proposal = propose(evaluation.forecasts, seed=evaluation.seed)
    differences = group_differences(evaluation)
    keys = set(evaluation.charts)
    shown = sections(evaluation, proposal, differences=differences)
    return keys, {key for one in shown for key in one.figures}


def keys_in_the_source():
    """Return every key that there can be, also those for which these data have nothing to draw."""
    tree = ast.parse(inspect.getsource(specifications))
    named = {key.value for node in ast.walk(tree) if isinstance(node, ast.Dict) for key in node.keys}
    stored = [node for node in ast.walk(tree) if isinstance(node, ast.Subscript)]
    return named | {node.slice.value for node in stored if isinstance(node.slice, ast.Constant)}


def test_every_chart_is_in_a_section(page):
    keys, shown = page
    lost = sorted((keys | keys_in_the_source()) - shown - set(WITHOUT_A_SECTION))
    assert not lost, (
        f"{lost} of specifications() in evaluation/report.py are in no section: name each among the "
        "figures of a section in evaluation/report.py, or in WITHOUT_A_SECTION of this file with the reason"
    )


def test_every_chart_can_be_drawn_in_a_notebook():
    files = {path.stem for path in Path(charts.__file__).parent.glob("*.py")} - {"__init__", "canvas"}
    assert files == set(charts.CHARTS), "each file of report/charts/ has a line in CHARTS of its __init__.py"
    for file, names in charts.CHARTS.items():
        module = import_module(f"calibrant.report.charts.{file}")
        drawn = {name for name, item in vars(module).items() if isinstance(item, drawing)}
        assert drawn
        lost = sorted(drawn - set(names.split()))
        assert not lost, f"name {lost} in CHARTS of report/charts/__init__.py"
        for name in names.split():
            assert getattr(charts, name) is vars(module)[name]
    assert set(charts.__all__) == {name for names in charts.CHARTS.values() for name in names.split()}
    with pytest.raises(AttributeError, match="no_such_chart"):
        charts.no_such_chart  # noqa: B018


def test_every_figure_of_a_section_is_drawn(page):
    keys, shown = page
    assert shown <= keys, f"{sorted(shown - keys)}: add a line to specifications() in evaluation/report.py"
    assert keys == keys_in_the_source(), "the evaluation of this file must have data for every chart"
