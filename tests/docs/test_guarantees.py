"""What docs/guarantees.md promises, simulated on fewer data sets."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

import calibrant as cb

DOCS = Path(__file__).parents[2] / "docs"
spec = importlib.util.spec_from_file_location("make_guarantees", DOCS / "make_guarantees.py")
make = importlib.util.module_from_spec(spec)
sys.modules["make_guarantees"] = make  # dataclasses look their module up
spec.loader.exec_module(make)

HEADLINE = [name for name, row in cb.measures().items() if row.headline]


@pytest.mark.slow
@pytest.mark.parametrize("kind", make.KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("name", HEADLINE)
def test_size_coverage_and_gate_are_as_promised(name, kind):
    if kind.sketched and not cb.measures()[name].certified:
        pytest.skip("a sketch cannot bound it")
    for truth in make.TRUTHS:
        for n in (20, 200):
            cell = make.simulate(kind, truth, n, name, 60)
            assert cell.holds, cell


@pytest.mark.parametrize("name", ["kuiper", "binned", "in-the-large", "brier-mcb"])
def test_the_simulated_gate_is_the_gate(name):
    rng = np.random.default_rng(1)
    p = rng.random(200)
    f = cb.Forecasts(rng.random(200) < 0.8 * p, p)
    for limit in (0.001, 0.05, 0.5):
        assert make.gate_agrees(f, name, limit, seed=1)


def test_the_page_lists_its_cells():
    cell = make.simulate(make.KINDS[0], "calibrated", 20, "kuiper", 3)
    text = make.page([cell], 3)
    assert "| kuiper | uniform | calibrated | 20 |" in text
