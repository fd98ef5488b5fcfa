"""What docs/guarantees.md promises, simulated on fewer data sets."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

import calibrant as cb
from calibrant.evaluation.gate import judge
from calibrant.evaluation.rows import NullReference, measure_rows

DOCS = Path(__file__).parents[2] / "docs"
spec = importlib.util.spec_from_file_location("make_guarantees", DOCS / "make_guarantees.py")
make = importlib.util.module_from_spec(spec)
sys.modules["make_guarantees"] = make  # dataclasses look their module up
spec.loader.exec_module(make)

SCENES = [("calibrated", 20), ("calibrated", 200), ("overconfident", 20), ("twice as frequent", 200)]


def test_the_page_on_guarantees_is_what_was_simulated():
    rows = make.read_settings(DOCS / "_static" / "guarantees.csv")
    assert (DOCS / "guarantees.md").read_text() == make.page(rows), "run docs/make_guarantees.py --page-only"


@pytest.mark.slow
@pytest.mark.parametrize("form", make.FORMS)
@pytest.mark.parametrize("kind", make.KINDS)
def test_size_coverage_and_gate_are_as_promised(kind, form):
    """Some 1,700 shares are looked at: with 1e-7 each, all of them together fail once in 6,000 runs."""
    for truth, n in SCENES:
        for cell in make.simulate(make.Piece(kind, form, truth, n), 30):
            assert not cell.missed(1e-7), cell


@pytest.mark.parametrize("name", ["kuiper", "binned", "in-the-large", "brier-mcb"])
def test_the_simulated_gate_is_the_gate(name):
    rng = np.random.default_rng(1)
    p = rng.random(200)
    f = cb.Forecasts(rng.random(200) < 0.8 * p, p)
    luck = NullReference(f, draws=make.DRAWS, confidence=make.CONFIDENCE, seed=1)
    with make.draws_shared():
        row = luck.judged(measure_rows(f, [cb.measures()[name]])[0])
    for limit in (0.001, 0.05, 0.5):
        gate = judge(f, {name: limit}, confidence=make.CONFIDENCE, draws=make.DRAWS, seed=1)[0]
        found = make.judged_row(row, limit, make.CONFIDENCE, f.n)
        assert (gate.outcome, gate.low, gate.high) == (found.outcome, found.low, found.high)


def test_results_say_what_is_approximate():
    rng = np.random.default_rng(1)
    p = rng.random(100)
    y, w = rng.random(100) < p, rng.random(100) + 0.1
    for data, chance in (
        (cb.Forecasts(y, p), "exact"),
        (cb.Sketch.from_arrays(y, p, sample_weight=w, cells=8).forecasts(), "approximate"),
    ):
        luck = NullReference(data, draws=19, confidence=0.95, seed=1)
        row = luck.judged(measure_rows(data, [cb.measures()["smooth"]])[0])
        assert row.pvalue_method == chance
        assert row.interval_method.endswith("(approximate)")
        found = judge(data, {"smooth": 0.1}, confidence=0.95, draws=19, seed=1)[0]
        assert found.method == row.interval_method


def test_shared_draws_change_nothing():
    f = make.Piece("tied", "rows", "overconfident", 60).drawn(1)

    def judged():
        luck = NullReference(f, draws=19, confidence=0.95, seed=3)
        return [
            luck.judged(measure_rows(f, [cb.measures()[name]])[0])
            for name in ("kuiper", "smooth", "brier", "slope")
        ]

    alone = judged()
    with make.draws_shared():
        together = judged()
    for one, other in zip(alone, together, strict=True):
        assert (one.pvalue, one.low, one.high) == (other.pvalue, other.low, other.high)


def test_what_is_more_than_chance():
    """The limit is the smallest count rarer than stated, and a broken promise is named."""
    for share, of in ((0.05, 400), (0.07, 60)):
        least = next(count for count in range(of) if make.unlikely(count, of, share, 1e-5))
        assert binom.sf(least - 1, of, share) < 1e-5 <= binom.sf(least - 2, of, share)
    cell = make.Cell(
        make.Piece("tied", "rows", "calibrated", 20), "kuiper", 0.0, 400, 400, 60, 400, 340, 0, 60
    )
    assert cell.missed() == ["size", "coverage", "wrong fails"]
    assert not make.Cell(cell.piece, "kuiper", 0.0, 400, 400, 25, 400, 376, 20, 20).missed()


def test_the_page_lists_its_cells_and_what_is_lacking(tmp_path):
    piece = make.Piece("uniform", "rows", "calibrated", 20)
    found = make.stored(tmp_path, piece, 2)
    assert found == make.stored(tmp_path, piece, 1) == make.simulate(piece, 2)  # from the store
    assert {cell.sets for cell in found} == {2}
    make.write_settings(tmp_path / "settings.csv", found)
    rows = make.read_settings(tmp_path / "settings.csv")
    assert [(row["measure"], row["sets"]) for row in rows] == [(cell.name, 2) for cell in found]
    assert all(row[name] is None or 0 <= row[name] <= 100 for row in rows for name in make.COLUMNS)
    text = make.page(rows)
    assert "| kuiper | uniform |" in text
    assert "Not simulated yet: uniform, rows, overconfident, n = 20;" in text


def test_the_page_is_the_one_its_settings_give():
    """The published page is regenerated from the file of settings, which its summary describes."""
    rows = make.read_settings(DOCS / "_static" / "guarantees.csv")
    assert make.page(rows) == (DOCS / "guarantees.md").read_text(encoding="utf-8")
    assert not [row for row in rows if row["missed"]]
