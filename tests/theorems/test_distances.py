"""The theorems that tie the distances to each other and to the other measures, on every sample."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from samples import samples

import calibrant as cb

pytestmark = pytest.mark.filterwarnings("ignore::calibrant.LevelSetWarning")
ROUNDING = 1e-9
some = settings(max_examples=100)


def lower_bounds(f):
    found = cb.lower_distance.core(f, tolerance=1e-9)
    return found.lower, found.upper


@given(sample=samples(max_size=12))
@some
def test_the_sandwich(sample):
    """lower <= upper <= ECE, upper <= interval <= 4 sqrt(lower) (Theorem 6.2 of the distance paper)."""
    f = sample.forecasts
    low, high = lower_bounds(f)
    upper = cb.upper_distance(f)
    assert low <= upper + ROUNDING
    assert upper <= cb.level_set_error(f) + ROUNDING
    for width in ("average", "max"):
        interval = cb.interval_calibration_error(f, width=width)
        assert upper <= interval + ROUNDING
        assert interval <= 4 * np.sqrt(high) + ROUNDING
    assert upper <= cb.binned_calibration_error(f, add_width=True) + ROUNDING


@given(sample=samples(max_size=12))
@some
def test_average_width_is_at_most_the_largest(sample):
    f = sample.forecasts
    average = cb.interval_calibration_error(f)
    assert average <= cb.interval_calibration_error(f, width="max") + ROUNDING
    assert average <= cb.level_set_error(f) + ROUNDING
    assert average <= cb.binned_calibration_error(f, add_width=True) + ROUNDING


@given(sample=samples(max_size=12))
@some
def test_the_surrogate_is_consistent(sample):
    """lower <= SintCE <= 6 sqrt(lower) (Lemma 27 of the testing paper)."""
    low, high = lower_bounds(sample.forecasts)
    surrogate = cb.interval_calibration_error(sample.forecasts, method="surrogate")
    assert low - ROUNDING <= surrogate <= 6 * np.sqrt(high) + ROUNDING


@given(sample=samples(max_size=6))
@settings(max_examples=15)
def test_powers_are_ordered_and_bounded_by_the_bias(sample):
    """|bias|^a <= E|u-v|^a by Jensen, and for moves below 1 a higher power costs less."""
    f = sample.forecasts
    distance = lower_bounds(f)[1]
    for alpha in (1.5, 2.0):
        found = cb.lower_distance.core(f, alpha=alpha)
        bias = abs(f.base_rate - f.mean_prediction)
        assert bias**alpha <= found.upper + ROUNDING
        assert found.lower <= distance + ROUNDING
        assert distance**alpha <= found.upper + 1e-8


@pytest.mark.parametrize("alpha", [0.01, 0.1, 0.25, 0.4])
def test_predictions_and_outcomes_alone_leave_a_quadratic_gap(alpha):
    """Lemma 4.5: one law of (prediction, outcome), distance 2 alpha^2 or alpha according to the points."""
    p = np.array([0.5 - alpha, 0.5 - alpha, 0.5 + alpha, 0.5 + alpha])
    w = np.array([0.5 - alpha / 2, alpha / 2, alpha / 2, 0.5 - alpha / 2])
    y = np.array([0.5 - alpha, 1, 0, 0.5 + alpha])
    y[[0, 3]] = (np.array([0.25 - alpha / 2, 0.25])) / w[0]
    f = cb.Forecasts(y, p, sample_weight=w)
    assert f.outcomes == pytest.approx([0.25, 0.25])
    assert cb.lower_distance(f) <= 2 * alpha**2 + 1e-6
    assert cb.upper_distance(f) == pytest.approx(alpha)
    assert cb.distance_to_calibration(y, p, ["a", "b", "c", "d"], sample_weight=w) <= 2 * alpha**2 + 1e-12
    assert cb.distance_to_calibration(y, p, ["a", "a", "b", "b"], sample_weight=w) == pytest.approx(alpha)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.2])
def test_the_survey_example_of_an_uncertain_distance(epsilon):
    """Appendix B of the survey: the same law of (prediction, outcome), distance delta or 2 epsilon delta."""
    delta = epsilon / (1 - 2 * epsilon)
    w = np.array([0.5 - epsilon, epsilon, epsilon, 0.5 - epsilon])
    y = np.array([0.5 - delta, 1, 0, 0.5 + delta])
    p = np.array([0.5 - delta, 0.5 - delta, 0.5 + delta, 0.5 + delta])
    assert cb.upper_distance(y, p, sample_weight=w) == pytest.approx(delta)
    true = cb.distance_to_calibration(y, p, [0, 1, 2, 3], sample_weight=w)
    assert true <= 2 * epsilon * delta + 1e-12
    assert cb.lower_distance(y, p, sample_weight=w) <= true + 1e-6


@given(sample=samples(max_size=8))
@some
def test_the_true_distance_lies_between(sample):
    """lower <= dCE <= upper for any points behind the records (Lemma 5.4)."""
    rng = np.random.default_rng(len(sample.p))
    _, level = np.unique(sample.p, return_inverse=True)
    ids = level * 2 + rng.integers(0, 2, len(level))
    true = cb.distance_to_calibration(sample.y, sample.p, ids, sample_weight=sample.w)
    assert lower_bounds(sample.forecasts)[0] - ROUNDING <= true
    assert true <= cb.upper_distance(sample.forecasts) + ROUNDING
