"""Merged levels: what merging changes of a deviation stays below what was promised beforehand."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cb
from calibrant.evaluation.gate import judge
from calibrant.inference import bootstrap as coarsening
from calibrant.inference.bootstrap import Resampler, coarsen_for_interval, merged_levels
from calibrant.metrics.lookup import find_measure


def shapes(n):
    rng = np.random.default_rng(5)
    yield rng.random(n)
    yield rng.beta(0.3, 3, n)
    yield np.concatenate([rng.random(n // 2) * 1e-3, 1 - rng.random(n - n // 2) ** 8])


def apart_by_merging(forecasts, grid, row, draws):
    """Return by how much the deviations of the same noise differ on levels and on cells."""
    settings, power, resampler = row.settings(), row.null.power, Resampler(forecasts)
    drawn = resampler.draw(np.random.default_rng(7), draws)
    weights, outcomes = drawn.weights - forecasts.weights, drawn.outcomes - resampler.centre
    fine = row.null.batch(forecasts, outcomes - weights * forecasts.values, settings)
    cells = [np.add.reduceat(part, grid.starts, axis=1) for part in (outcomes, weights)]
    coarse = row.null.batch(grid.forecasts, cells[0] - cells[1] * grid.forecasts.values, settings)
    return np.abs(np.asarray(fine) ** (1 / power) - np.asarray(coarse) ** (1 / power))


@pytest.mark.parametrize("name", ["smooth", "emd", "atb", "l1-atb"])
def test_the_same_noise_on_levels_and_on_cells(name, monkeypatch):
    monkeypatch.setattr(coarsening, "MAX_UNMERGED_LEVELS", 1_000)
    monkeypatch.setattr(coarsening, "MAX_ADDED_SHARE", 0.2)
    row = find_measure(name)
    for p in shapes(6_000):
        y = np.random.default_rng(6).random(len(p)) < p
        forecasts = cb.Forecasts(y, p)
        grid = coarsen_for_interval(forecasts, row, 0.95)
        assert grid.starts is not None
        apart = apart_by_merging(forecasts, grid, row, 40)
        assert apart.max() <= grid.added
        assert apart.max() > grid.added / 100  # the bound is not vacuous


def rare_and_narrow(n):
    rng = np.random.default_rng(15)
    yield rng.uniform(1e-6, 2e-6, n)  # no event at all: the records that are mixed in make all of the noise
    yield rng.uniform(1e-5, 1e-4, n)
    yield 0.5 + 1e-9 * rng.random(n)
    yield np.append(1e-6 * rng.random(n - 3), [0.3, 0.6, 1.0])


@pytest.mark.parametrize("name", ["smooth", "emd", "atb", "l1-atb"])
def test_predictions_that_hardly_differ_keep_the_promise_too(name):
    row = find_measure(name)
    for p in rare_and_narrow(20_000):
        forecasts = cb.Forecasts(np.random.default_rng(6).random(len(p)) < p, p)
        grid = coarsen_for_interval(forecasts, row, 0.95)
        assert grid.starts is not None
        assert np.all(apart_by_merging(forecasts, grid, row, 20) <= grid.added)


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


@pytest.mark.parametrize("name", ["atb", "smooth"])
def test_compared_on_cells_as_on_levels(name, monkeypatch):
    rng = np.random.default_rng(10)
    p = rng.random(4_000)
    y = rng.random(len(p)) < p
    other = np.clip(p + 0.1 * rng.random(len(p)), 0, 1)
    how = {"measure": name, "draws": 999, "seed": 1}
    levels = cb.compare(y, p, other, **how)
    monkeypatch.setattr(coarsening, "MAX_UNMERGED_LEVELS", 1_000)
    monkeypatch.setattr(coarsening, "MIN_CELLS", 256)
    monkeypatch.setattr(coarsening, "MAX_ADDED_SHARE", 0.05)
    cells = cb.compare(y, p, other, **how)
    assert levels.cells is None
    assert cells.cells <= 1_100
    assert cells.values == levels.values
    exact, near = levels.differences[0], cells.differences[0]
    assert near.difference == exact.difference
    width = exact.upper - exact.lower
    assert abs(near.lower - exact.lower) < 0.15 * width
    assert abs(near.upper - exact.upper) < 0.15 * width
    assert 0 < cells.added < 0.1 * width


@pytest.mark.parametrize("alike", [False, True], ids=["any", "alike within clusters"])
@pytest.mark.parametrize("name", ["smooth", "atb"])
def test_clusters_keep_the_promise_as_well(name, alike, monkeypatch):
    monkeypatch.setattr(coarsening, "MAX_UNMERGED_LEVELS", 1_000)
    monkeypatch.setattr(coarsening, "MAX_ADDED_SHARE", 0.5)
    rng, row = np.random.default_rng(8), find_measure(name)
    c = rng.integers(0, 600, 6_000)
    p = (
        np.clip(rng.random(600)[c] + 0.01 * rng.normal(size=6_000), 0.01, 0.99)
        if alike
        else rng.random(6_000)
    )
    y = rng.random(6_000) < np.clip(p + 0.2 * rng.normal(size=600)[c], 0, 1)
    forecasts = cb.Forecasts(y, p).with_clusters(c)
    grid = coarsen_for_interval(forecasts, row, 0.95)
    assert grid.starts is not None
    apart = apart_by_merging(forecasts, grid, row, 200)
    assert apart.max() <= grid.added
    assert apart.max() > grid.added / 100


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
