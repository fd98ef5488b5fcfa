"""The flexible calibration curve: against a general optimizer, and how often its limits cover."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import binom, norm

from calibrant.fits.calibration_curve import WIDTH, fit_calibration_curve
from calibrant.fits.levels import Levels, levels_of_sorted
from tests.oracles.assessment import curve_fit, restricted_spline


def sample(n=300, seed=0):
    rng = np.random.default_rng(seed)
    p = np.sort(expit(1.3 * rng.standard_normal(n)))
    return p, (rng.random(n) < expit(0.7 * logit(p) + 0.2)).astype(float)


def test_the_curve_equals_that_of_a_general_optimizer():
    p, y = sample()
    curve = fit_calibration_curve(levels_of_sorted(p, y, np.ones(len(p))))
    x = logit(p)
    z = (x - x.mean()) / x.std()
    middles = (np.arange(len(p)) + 0.5) / len(p)
    even, normal = np.linspace(0.02, 0.98, 5), norm.cdf(np.linspace(norm.ppf(0.02), norm.ppf(0.98), 5))
    knots = np.interp((even + normal) / 2, middles, z)
    design = np.array([restricted_spline(value, knots) for value in z])
    orthogonal = np.linalg.qr(design)[0] * np.sqrt(len(z))
    beta = curve_fit(x, y, orthogonal, WIDTH)
    assert np.allclose(curve.knots, knots)
    assert np.allclose(curve.rates(p), expit(x + orthogonal @ beta), atol=1e-5)


@pytest.mark.parametrize(("n", "knots"), [(40, 4), (100, 4), (300, 5), (5_000, 8), (60_000, 12)])
def test_knots_grow_with_the_records_and_the_curve_does_not_know_which_outcome_is_called_1(n, knots):
    p, y = sample(n)
    curve = fit_calibration_curve(levels_of_sorted(p, y, np.ones(n)))
    other = fit_calibration_curve(levels_of_sorted(1 - p[::-1], 1 - y[::-1], np.ones(n)))
    at = np.linspace(0.01, 0.99, 9)
    assert len(curve.knots) == knots
    (lower, upper), (low, high) = curve.limits(at, 0.95), other.limits(1 - at, 0.95)
    assert np.allclose([lower, upper], [1 - high, 1 - low], atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scores", "curve", "n"),
    [
        (lambda rng, n: rng.beta(1, 9, n), lambda x: x + 0.6 * np.sin(1.2 * x), 5_000),
        (lambda rng, n: rng.uniform(0.001, 0.999, n), lambda x: x + 0.3 * np.sin(2 * x), 5_000),
        (lambda rng, n: rng.uniform(0.001, 0.999, n), lambda x: x + 0.6 * np.sin(1.2 * x), 1_000),
        (lambda rng, n: expit(rng.normal(-4, 1, n)), lambda x: 0.7 * x, 1_000),
    ],
    ids=["beyond the outer knots", "waves", "ends", "rare"],
)
def test_the_limits_cover_a_curve_that_bends(scores, curve, n):
    """With four knots they held the first at 0.3 in 87% of samples, and the second at 0.5 in 11%."""
    at, sets = np.array([0.1, 0.3, 0.5, 0.7, 0.9]), 400
    truth, hits = expit(curve(logit(at))), np.zeros(5)
    for seed in range(sets):
        rng = np.random.default_rng([seed, n])
        p = np.sort(scores(rng, n))
        y = (rng.random(n) < expit(curve(logit(p)))).astype(float)
        lower, upper = fit_calibration_curve(levels_of_sorted(p, y, np.ones(n))).limits(at, 0.95)
        hits += (lower <= truth) & (truth <= upper)
    assert hits.min() >= binom.ppf(1e-3, sets, 0.9)
    assert hits.mean() >= 0.93 * sets


def test_merged_levels_and_single_records_give_the_same_curve():
    p, y = sample(200)
    p = p.round(1)
    merged = fit_calibration_curve(levels_of_sorted(p, y, np.ones(len(p))))
    single = fit_calibration_curve(Levels(p, y, np.ones(len(p))))
    at = np.linspace(0.05, 0.95, 7)
    assert np.allclose(merged.rates(at), single.rates(at), atol=0.02)  # quantiles of ties differ a little


@pytest.mark.parametrize(
    "p", [np.full(9, 0.3), np.array([0.0, 1.0]), np.array([0.0, 0.0, 0.5, 1.0, 1.0]), np.array([0.4])]
)
def test_degenerate_predictions_have_finite_limits(p):
    y = (np.arange(len(p)) % 2).astype(float)
    curve = fit_calibration_curve(levels_of_sorted(p, y, np.ones(len(p))))
    lower, upper = curve.limits(np.linspace(0, 1, 11), 0.95)
    assert np.all((lower >= 0) & (lower <= upper) & (upper <= 1))


def test_limits_beyond_the_data_assume_a_rising_curve_only():
    p, y = sample()
    curve = fit_calibration_curve(levels_of_sorted(p * 0.5, y, np.ones(len(p))))
    lower, upper = curve.limits(np.array([0.0, 0.3, 0.9]), 0.95)
    assert lower[0] == 0
    assert upper[2] == 1
    assert lower[2] <= curve.limits(np.array([curve.ends[1]]), 0.95)[0][0] + 1e-12


def test_clusters_widen_the_limits_and_clusters_of_one_hardly_do():
    p, y = sample(400)
    rows = Levels(np.repeat(p, 3), np.repeat(y, 3), np.ones(1200))
    at = np.array([0.3, 0.5, 0.7])

    def width(levels, clusters):
        lower, upper = fit_calibration_curve(levels, clusters, single=True).limits(at, 0.95)
        return upper - lower

    alone = width(Levels(p, y, np.ones(400)), np.arange(400))
    assert np.allclose(width(rows, np.repeat(np.arange(400), 3)), alone, rtol=0.1)
    plain = np.subtract(*fit_calibration_curve(Levels(p, y, np.ones(400))).limits(at, 0.95)[::-1])
    assert np.allclose(alone, plain, rtol=0.2)


def test_the_limits_cover_the_true_curve():
    at = np.array([0.2, 0.5, 0.8])
    truth, hits = expit(0.7 * logit(at) + 0.2), []
    for seed in range(100):
        p, y = sample(300, seed)
        lower, upper = fit_calibration_curve(levels_of_sorted(p, y, np.ones(300))).limits(at, 0.95)
        hits.append((lower <= truth) & (truth <= upper))
    assert np.mean(hits) >= 0.92
