"""Very many records: dealt to folds by cells of neighbouring predictions, fitted as they are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cb
from calibrant.recalibration import samples
from calibrant.recalibration.samples import CellSample, ForecastSample, RowSample

UGLY = st.one_of(st.sampled_from([0.0, 1.0, 0.1, 0.3, 0.3 + 2.0**-53, 5e-324]), st.floats(0, 1))


@pytest.fixture
def few_are_many(monkeypatch):
    monkeypatch.setattr(samples, "MAX_DEALT_RECORDS", 1_000)


def _drawn(n, seed=0, digits=None):
    rng = np.random.default_rng(seed)
    p = rng.random(n) if digits is None else rng.random(n).round(digits)
    return (rng.random(n) < 0.8 * p + 0.05).astype(int), p


@given(st.lists(st.tuples(st.booleans(), UGLY), min_size=1, max_size=60), st.integers(2, 16))
def test_cells_hold_every_record_once(pairs, cells):
    y, p = np.array(pairs, dtype=float).T
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(samples, "MAX_DEALT_RECORDS", 0)
        patched.setattr(samples, "FOLD_CELLS", cells)
        held = ForecastSample(cb.Forecasts(y, p)).in_cells
    assert (held.ones.sum(), held.zeros.sum()) == (y.sum(), (1 - y).sum())
    assert (np.diff(held.values) > 0).all()
    for end in (0.0, 1.0):  # predictions without doubt are merged with no others
        at = held.values == end
        assert (held.ones[at].sum(), held.zeros[at].sum()) == (
            (y[p == end] == 1).sum(),
            (y[p == end] == 0).sum(),
        )


@pytest.mark.parametrize("digits", [None, 2])
@pytest.mark.parametrize("method", ["platt", "isotonic", "spline", "venn-abers"])
def test_the_map_is_that_of_all_records_and_the_gain_that_of_folds_of_records(method, digits, monkeypatch):
    y, p = _drawn(6_000, digits=digits)
    one_by_one = cb.recalibrate(y, p, method=method, seed=1)
    gain, spread = one_by_one.assessment.gain, one_by_one.assessment.upper - one_by_one.assessment.lower
    monkeypatch.setattr(samples, "MAX_DEALT_RECORDS", 1_000)
    monkeypatch.setattr(samples, "FOLD_CELLS", 2_048)
    by_cells = cb.recalibrate(y, p, method=method, seed=1)
    assert one_by_one.assessment.cells is None
    assert by_cells.assessment.cells <= (2_500 if digits is None else 101)
    grid = np.linspace(0, 1, 101)
    np.testing.assert_array_equal(by_cells.predict(grid), one_by_one.predict(grid))
    assert by_cells.assessment.verdict == one_by_one.assessment.verdict == "helps"
    assert by_cells.assessment.gain == pytest.approx(gain, abs=0.1 * spread)


def test_the_choice_is_made_by_cells_too(few_are_many, tmp_path):
    y, p = _drawn(5_000)
    fitted = cb.recalibrate(y, p, candidates=("platt", "isotonic"), seed=3)
    assert fitted.chosen != "identity"
    assert fitted.assessment.cells
    fitted.save(tmp_path / "map.json")
    assert cb.load_recalibration(tmp_path / "map.json").assessment.to_dict() == fitted.assessment.to_dict()


@pytest.mark.parametrize(("n", "held_out"), [(1_000, RowSample), (1_001, CellSample)])
def test_the_limit(few_are_many, n, held_out):
    fitted = cb.recalibrate(*_drawn(n), method="platt", seed=0)
    assert {type(part) for part in fitted.folds.held_out} == {held_out}


def test_weights_and_fractions_are_dealt_one_by_one(few_are_many):
    y, p = _drawn(2_000)
    for outcome, weight in ((y, np.arange(1, 2_001)), (0.9 * y, None)):
        fitted = cb.recalibrate(outcome, p, method="platt", sample_weight=weight, seed=0)
        assert fitted.assessment.cells is None
