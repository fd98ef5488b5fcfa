"""Theorems that tie the continuous measures together: they hold on every sample, however ugly."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import samples

import calibrant as cb

ROUNDING = 1e-9
few = settings(max_examples=120)


@given(sample=samples())
def test_earth_mover_and_smooth_error(sample):
    """Lemma 3.4 of the survey: EMD / 2 <= smCE <= EMD."""
    f = sample.forecasts
    smooth, mover = cb.smooth_calibration_error(f), cb.earth_mover_error(f)
    assert mover / 2 - ROUNDING <= smooth <= mover + ROUNDING


@given(sample=samples())
def test_two_bin_errors(sample):
    """l1-ATB^2 / 2 <= ATB <= l1-ATB, and (2/3) smCE <= l1-ATB (truthfulness paper, Lemma 5.4)."""
    f = sample.forecasts
    first, second = cb.averaged_two_bin_error(f, norm=1), cb.averaged_two_bin_error(f)
    assert first**2 / 2 - ROUNDING <= second <= first + ROUNDING
    assert 2 / 3 * cb.smooth_calibration_error(f) <= first + ROUNDING


@given(sample=samples())
def test_kernel_error_is_at_least_a_third_of_the_smooth_error(sample):
    """Theorem 8.5 of the distance paper, the lower half."""
    f = sample.forecasts
    assert cb.smooth_calibration_error(f) / 3 <= cb.kernel_calibration_error(f) + ROUNDING


@few
@given(sample=samples(max_size=20))
def test_measures_that_are_tied_to_the_lower_distance(sample):
    """With d the lower distance to calibration (its proven bounds):

    d / 2 <= smCE <= 2 d (Theorem 7.3 of the distance paper), kCE <= sqrt(d) (8.5), l1-ATB <= 3 d (Lemma
    5.3 of the truthfulness paper), d / 2 <= cECE <= 2 sqrt(d) (Błasiok and Nakkiran).
    """
    f = sample.forecasts
    distance, convolved = cb.measure(f, "lower-distance"), cb.measure(f, "convolved")
    smooth = cb.smooth_calibration_error(f)
    assert distance.lower / 2 - ROUNDING <= smooth <= 2 * distance.upper + ROUNDING
    assert cb.averaged_two_bin_error(f, norm=1) <= 3 * distance.upper + ROUNDING
    assert cb.kernel_calibration_error(f) <= np.sqrt(distance.upper) + ROUNDING
    assert distance.lower / 2 <= convolved.upper + ROUNDING
    assert convolved.lower <= 2 * np.sqrt(distance.upper) + ROUNDING


CONTRACTING = [
    (cb.level_set_error, {}),
    (cb.binned_calibration_error, {"bins": 4}),
    (cb.smooth_calibration_error, {}),
    (cb.earth_mover_error, {}),
    (cb.kernel_calibration_error, {"bandwidth": 1e9}),
    (cb.lower_distance, {}),
]


@pytest.mark.filterwarnings("ignore::calibrant.LevelSetWarning")
@pytest.mark.parametrize(("function", "options"), CONTRACTING)
@few
@given(sample=samples(max_size=15))
def test_predicting_the_mean_prediction_is_never_worse(function, options, sample):
    """CAL(constant mean of r) <= CAL(r): the constant keeps only the total residual."""
    constant = np.full(len(sample.p), min(1.0, float(sample.weights @ sample.p)))
    flat = cb.Forecasts(sample.y, constant, sample_weight=sample.w)
    assert function(flat, **options) <= function(sample.forecasts, **options) + 1e-5


@given(
    sample=samples(max_size=12),
    shift=st.lists(st.sampled_from([0.0, 1e-9, 1e-3, -1e-3, 0.1, -0.3, 1.0]), min_size=12, max_size=12),
)
def test_smooth_and_earth_mover_errors_are_lipschitz(sample, shift):
    """In E|v1 - v2|: smCE 2-Lipschitz, EMD 3-Lipschitz (steeper weights, same bound)."""
    moved = np.clip(sample.p + np.array(shift[: len(sample.p)]), 0, 1)
    distance = float(sample.weights @ np.abs(moved - sample.p))
    other = cb.Forecasts(sample.y, moved, sample_weight=sample.w)
    for function, constant in ((cb.smooth_calibration_error, 2), (cb.earth_mover_error, 3)):
        change = abs(function(other) - function(sample.forecasts))
        assert change <= constant * distance + ROUNDING


@pytest.mark.parametrize("epsilon", [0.001, 0.1, 0.5])
def test_lemma_13_of_the_testing_paper(epsilon):
    """Constants A dCE <= smCE <= B dCE need A <= 1 and B >= 3/2; these two samples attain both."""
    flat = cb.Forecasts([0.5 + epsilon], [0.5])
    assert cb.smooth_calibration_error(flat) == pytest.approx(epsilon, abs=1e-12)
    assert cb.lower_distance(flat) == pytest.approx(epsilon, abs=1e-6)
    pair = cb.Forecasts([1, 0], [0.5 - epsilon, 0.5])
    assert cb.smooth_calibration_error(pair) == pytest.approx(0.75 * epsilon, abs=1e-12)
    assert cb.lower_distance(pair) == pytest.approx(epsilon / 2, abs=1e-6)


@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 0.2])
def test_the_two_point_example_of_the_distance_paper(epsilon):
    """f(a) = 1/2 - e with y = 0, f(b) = 1/2 + e with y = 1: ECE jumps to 1/2 - e, continuous ones do not."""
    f = cb.Forecasts(np.tile([0, 1], 20), np.tile([0.5 - epsilon, 0.5 + epsilon], 20))
    assert cb.level_set_error(f) == pytest.approx(0.5 - epsilon, abs=1e-12)
    # residuals -+(1/2 - e)/2 at distance 2 e: the weight function gains its slope times their distance
    assert cb.smooth_calibration_error(f) == pytest.approx((0.5 - epsilon) * epsilon, abs=1e-12)
    assert cb.earth_mover_error(f) == pytest.approx(2 * (0.5 - epsilon) * epsilon, abs=1e-12)
    assert cb.lower_distance(f) <= epsilon + 1e-6
    assert cb.kernel_calibration_error(f) <= np.sqrt(epsilon)
