"""Many data sets at once, and runs by compiled search, agree with one at a time and with numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import samples

from calibrant.evaluation.rows import CachedNullOutcomes, CachedResampler
from calibrant.fits.roots import root
from calibrant.inference.bootstrap import Resampler, values_of_resamples
from calibrant.inference.null import NullOutcomes, one_by_one
from calibrant.kernels import fits, partitions
from calibrant.kernels.fits import isotonic_rates, pooled_scores
from calibrant.metrics.lookup import find_measure
from calibrant.metrics.registry import Measure
from calibrant.parallel import cumulative

TABLES = ("slope", "brier-mcb", "log-mcb", "brier", "log-loss")


@pytest.fixture(autouse=True)
def machine_code():
    for kernel in (fits._fits, pooled_scores):
        kernel.compile_now()


def alone(row: Measure) -> Measure:
    """Return the same row, which takes one data set at a time."""
    from dataclasses import replace

    return replace(row, null=replace(row.null, tables=None, batch=None))


@pytest.mark.parametrize("name", TABLES)
@given(sample=samples(max_size=25, fractional=False), seed=st.integers(0, 9))
@settings(max_examples=25)
def test_outcomes_at_once_are_those_one_by_one(name, sample, seed):
    forecasts, row = sample.forecasts, find_measure(name)
    outcomes = NullOutcomes(forecasts).outcomes(np.random.default_rng(seed), 6)
    at_once = row.null.tables(forecasts, outcomes, forecasts.weights[None], row.settings())
    single = one_by_one(forecasts, row, outcomes)
    loose = 1e-8 if sample.w is None else 1e-4  # weights over ten orders of magnitude cost digits
    np.testing.assert_allclose(at_once, single, rtol=loose, atol=1e-9)


@pytest.mark.parametrize("name", TABLES)
@given(sample=samples(max_size=25), seed=st.integers(0, 9))
@settings(max_examples=25)
def test_resamples_at_once_are_those_one_by_one(name, sample, seed):
    forecasts, row = sample.forecasts, find_measure(name)
    drawn = Resampler(forecasts).draw(np.random.default_rng(seed), 6)
    at_once = values_of_resamples(forecasts, row, drawn, quick=False)
    single = values_of_resamples(forecasts, alone(row), drawn, quick=False)
    loose = 1e-8 if sample.w is None else 1e-4  # weights over ten orders of magnitude cost digits
    np.testing.assert_allclose(at_once, single, rtol=loose, atol=1e-9)


@given(
    size=st.integers(2, 60),
    ties=st.booleans(),
    spread=st.sampled_from([0.0, 3.0, 12.0]),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=60)
def test_compiled_search_finds_the_same_runs(size, ties, spread, seed):
    rng = np.random.default_rng(seed)
    values = np.sort(np.round(rng.random(size), 1) if ties else rng.random(size))
    weights = 10 ** (spread * rng.random(size))
    weights /= weights.sum()
    outcomes = weights * rng.integers(0, 2, size)
    curve = cumulative(outcomes - weights * values)
    kernels = (partitions.mean_runs, partitions.hull_runs, partitions.level_boundaries)
    found, levels = [], partitions.LevelMasses(values, weights, outcomes)
    for fast in (False, True):
        with pytest.MonkeyPatch.context() as patch:
            for kernel in kernels:
                patch.setattr(kernel, "worth_compiling", lambda _, fast=fast: fast)
            cuts = partitions.spread_boundaries(curve, 30)
            found.append(
                (
                    cuts,
                    partitions.contiguous_groups(levels, cuts),
                    partitions.least_average_width(values, weights, curve, cuts),
                )
            )
    (cuts, groups, hulls), (fast_cuts, fast_groups, fast_hulls) = found
    np.testing.assert_array_equal(cuts, fast_cuts)
    cost, fast_cost = (partitions.grouping_cost(levels, runs) for runs in (groups, fast_groups))
    assert cost == pytest.approx(fast_cost, abs=1e-12)
    np.testing.assert_array_equal(hulls[1], fast_hulls[1])
    assert hulls[0] == fast_hulls[0]


@given(sample=samples(max_size=20, fractional=False), seed=st.integers(0, 9))
@settings(max_examples=20)
def test_kept_draws_are_the_draws(sample, seed):
    forecasts = sample.forecasts
    kept, resampler = CachedNullOutcomes(forecasts), CachedResampler(forecasts)
    for _ in range(2):
        fresh = NullOutcomes(forecasts).residuals(np.random.default_rng(seed), 5)
        np.testing.assert_array_equal(kept.residuals(np.random.default_rng(seed), 5), fresh)
        again = resampler.draw(np.random.default_rng(seed), 5)
        np.testing.assert_array_equal(
            again.outcomes, Resampler(forecasts).draw(np.random.default_rng(seed), 5).outcomes
        )
    other = kept.outcomes(np.random.default_rng(seed + 1), 5)
    np.testing.assert_array_equal(other, NullOutcomes(forecasts).outcomes(np.random.default_rng(seed + 1), 5))


@given(
    size=st.integers(1, 40),
    kind=st.sampled_from(["labels", "rates", "tenths", "zeros", "ones"]),
    spread=st.sampled_from([0.0, 12.0]),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=80)
def test_compiled_isotonic_rates_are_those_of_scipy(size, kind, spread, seed):
    from scipy.optimize import isotonic_regression

    rng = np.random.default_rng(seed)
    draws = {
        "labels": lambda: rng.integers(0, 2, size).astype(float),
        "rates": lambda: rng.random(size),
        "tenths": lambda: rng.integers(0, 11, size) / 10,
        "zeros": lambda: np.zeros(size),
        "ones": lambda: np.ones(size),
    }
    rates, weights = draws[kind](), 10 ** (spread * rng.random(size))
    isotonic_rates.compile_now()
    found = isotonic_rates(rates, weights)
    np.testing.assert_allclose(found, isotonic_regression(rates, weights=weights).x, atol=1e-12)
    assert np.all(np.diff(found) >= 0)


@given(
    at=st.floats(-5, 5),
    steep=st.floats(1e-3, 1e3),
    below=st.floats(1e-3, 50),
    above=st.floats(1e-3, 50),
    swapped=st.booleans(),
)
@settings(max_examples=100)
def test_roots_are_found(at, steep, below, above, swapped):
    ends = (at + above, at - below) if swapped else (at - below, at + above)
    for function in (np.tanh, lambda x: x**3, lambda x: np.expm1(min(x, 300.0))):
        assert root(lambda x, f=function: f(steep * (x - at)), *ends, 1e-9) == pytest.approx(at, abs=1e-8)
