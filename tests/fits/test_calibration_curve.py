"""The flexible calibration curve: against a general optimizer, and how often its limits cover."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, logit

from calibrant.fits.calibration_curve import KNOTS, WIDTH, fit_calibration_curve
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
    knots = np.interp(KNOTS, middles, z)
    design = np.array([restricted_spline(value, knots) for value in z])
    scales = design.std(axis=0)
    scales[0] = 1.0
    beta = curve_fit(x, y, design / scales, WIDTH)
    assert np.allclose(curve.rates(p), expit(x + design / scales @ beta), atol=1e-5)


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
