"""Calibration intercept where one outcome has almost no weight."""

import math

import pytest

import calibrant as cb


@pytest.mark.parametrize("weight", [1e-3, 1e-8, 1e-20, 1e-60])
@pytest.mark.parametrize("event", [0, 1])
def test_intercept_of_a_nearly_certain_outcome(event, weight):
    """One level of each outcome: nearly all weight is at 0.5, so the odds of the shift are the weights'."""
    found = cb.calibration_intercept([event, 1 - event], [0.5, 0.5 + 1e-9], sample_weight=[1, weight])
    assert found == pytest.approx((2 * event - 1) * -math.log(weight), rel=1e-6)
