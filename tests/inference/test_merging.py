"""Merged levels: tests, intervals and comparisons are those on all predictions, and the same everywhere."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cb
from calibrant.evaluation.gate import judge
from calibrant.inference import bootstrap as coarsening
from calibrant.inference.bootstrap import Resampler, merged_levels


@pytest.mark.parametrize("name", ["smooth", "ece", "kuiper", "brier", "kernel", "brier-mcb"])
def test_intervals_on_cells_are_those_on_all_predictions(name, monkeypatch):
    rng = np.random.default_rng(8)
    p = rng.random(6_000)
    y = rng.random(len(p)) < p**1.3
    merged = cb.confidence_interval(y, p, measure=name, draws=1999, seed=1)
    tested = cb.calibration_test(y, p, measure=name, draws=1999, seed=1)
    monkeypatch.setattr(coarsening, "MAX_SIMULATED_LEVELS", 10**9)
    single = cb.confidence_interval(y, p, measure=name, draws=1999, seed=1)
    assert merged.cells < 600
    assert single.cells is None
    assert merged.value == single.value == cb.measure(y, p, name).value
    width = single.upper - single.lower
    np.testing.assert_allclose([merged.lower, merged.upper], [single.lower, single.upper], atol=0.08 * width)
    assert tested.statistic == merged.value


@pytest.mark.parametrize("kind", ["fractions", "weights", "few levels", "a p-value near 0.05"])
def test_interval_test_and_evaluation_give_one_mean_and_one_pvalue(kind):
    rng = np.random.default_rng(4)
    p = rng.uniform(0.05, 0.95, 400).round(1 if kind == "few levels" else 6)
    y = (rng.random(400) < p).astype(float)
    if kind == "fractions":
        y = p + rng.uniform(-1, 1, 400) * np.minimum(p, 1 - p)
    if kind == "a p-value near 0.05":
        y = (rng.random(400) < p - 0.04).astype(float)
    weight = rng.lognormal(size=400) if kind == "weights" else None
    names = [
        "smooth",
        "ece",
        "kuiper",
        "atb",
        "kernel",
        "slope",
        "in-the-large",
        "interval",
        "lower-distance",
    ]
    found = cb.evaluate(y, p, sample_weight=weight, measures=names, draws=49)
    draws = set()
    for name in names:
        how = {"measure": name, "sample_weight": weight, "draws": 49}
        interval, row = cb.confidence_interval(y, p, **how), found[name]
        if row.pvalue is None:
            assert kind == "fractions"
            assert np.isnan(interval.null_mean)
            continue
        tested = cb.calibration_test(y, p, **how)
        draws.add(tested.draws)
        assert (row.pvalue, row.chance, interval.null_mean) == (
            tested.pvalue, tested.null_mean, tested.null_mean,
        ), name  # fmt: skip
    assert kind != "a p-value near 0.05" or 490 in draws


def test_few_predictions_are_simulated_as_they_are():
    rng = np.random.default_rng(8)
    p = rng.random(1_000)
    assert cb.confidence_interval(rng.random(1_000) < p, p, draws=99).cells is None


@pytest.mark.parametrize("related", [False, True], ids=["independent", "clusters"])
def test_every_function_gives_one_interval_and_one_pvalue(related):
    """What `evaluate` prints is what the single functions, the gate and the audit say."""
    rng = np.random.default_rng(3)
    p = rng.random(5_000)
    y = (rng.random(5_000) < np.clip(p**1.2, 0, 1)).astype(int)
    how = {"clusters": rng.integers(0, 900, 5_000)} if related else {}
    names = ["ece", "smooth", "brier", "slope", "kuiper", "in-the-large", "brier-mcb", "atb", "ks", "o/e"]
    found = cb.evaluate(y, p, measures=names, **how)
    for row in found.rows:
        name = row.about.name
        interval = cb.confidence_interval(y, p, measure=name, **how)
        assert (row.value, row.low, row.high) == (interval.value, interval.lower, interval.upper), name
        if row.pvalue is not None:
            tested = cb.calibration_test(y, p, measure=name, **how)
            assert (row.pvalue, row.chance) == (tested.pvalue, tested.null_mean), name
            assert interval.null_mean == tested.null_mean, name
    rows = {row.about.name: row for row in found.rows}
    findings = judge(found.forecasts, {"smooth": 0.3, "ece": 0.4, "brier": 0.5}, confidence=0.95, seed=0)
    for one in findings:
        assert (one.low, one.high) == (rows[one.name].low, rows[one.name].high)
    whole = cb.audit(y, p, groups={"g": np.zeros(5_000)}, **how).everyone
    ends = rows["in-the-large"].low, rows["in-the-large"].high
    np.testing.assert_allclose(whole.limits, ends, rtol=1e-9)


def test_weights_that_follow_the_outcome_are_drawn_with_it():
    """Merged records keep how weights and outcomes go together."""
    rng = np.random.default_rng(4)
    n = 40_000
    p = rng.beta(2, 2, n)
    y = (rng.random(n) < p).astype(float)
    w = rng.exponential(np.where(y > 0, 1.0, 3.0))
    forecasts = cb.Forecasts(y, p, sample_weight=w)
    resampler = Resampler(coarsening.coarse(forecasts, 512))
    drawn = resampler.draw(np.random.default_rng(5), 400)
    gap = (drawn.outcomes - drawn.weights * resampler.forecasts.values).sum(axis=1)
    share = w / w.sum()
    expected = np.sqrt(np.sum((share * (y - p - np.sum(share * (y - p)))) ** 2))
    assert np.std(gap) == pytest.approx(expected, rel=0.12)


def test_cells_keep_every_sum():
    p = np.random.default_rng(9).random(5_000)
    forecasts = cb.Forecasts(p > 0.5, p)
    cells = merged_levels(forecasts, coarsening.cell_starts(forecasts, 64))
    for name in ("weights", "outcomes", "counts", "squared_weights"):
        assert getattr(cells, name).sum() == pytest.approx(getattr(forecasts, name).sum())
    assert cells.curve[-1] == pytest.approx(forecasts.curve[-1], abs=1e-14)


@pytest.mark.parametrize("name", ["atb", "smooth", "kuiper"])
def test_compared_on_cells_as_on_levels(name, monkeypatch):
    rng = np.random.default_rng(10)
    p = rng.random(20_000)
    y = rng.random(len(p)) < p
    other = np.clip(p + 0.1 * rng.random(len(p)), 0, 1)
    how = {"measure": name, "draws": 999, "seed": 1}
    cells = cb.compare(y, p, other, **how)
    monkeypatch.setattr(coarsening, "MAX_SIMULATED_LEVELS", 10**9)
    levels = cb.compare(y, p, other, **how)
    assert levels.cells is None
    assert cells.cells < 600
    assert cells.values == levels.values
    exact, near = levels.differences[0], cells.differences[0]
    assert near.difference == exact.difference
    width = exact.upper - exact.lower
    assert abs(near.lower - exact.lower) < 0.1 * width
    assert abs(near.upper - exact.upper) < 0.1 * width


def test_merged_clusters_give_the_interval_of_single_predictions(monkeypatch):
    rng = np.random.default_rng(9)
    c, p = rng.integers(0, 2_000, 20_000), rng.random(20_000)
    y = rng.random(20_000) < 0.9 * p
    merged = cb.confidence_interval(y, p, clusters=c, draws=199)
    monkeypatch.setattr(coarsening, "MAX_SIMULATED_LEVELS", 10**9)
    single = cb.confidence_interval(y, p, clusters=c, draws=199)
    assert merged.cells is not None
    assert single.cells is None
    assert merged.value == single.value
    np.testing.assert_allclose([merged.lower, merged.upper], [single.lower, single.upper], rtol=0.03)
