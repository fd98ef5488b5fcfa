"""Rounding decides neither which penalty a spline takes nor where the knots of pooled blocks lie."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

from calibrant.fits.isotonic import centered_isotonic
from calibrant.fits.levels import Levels
from calibrant.fits.logistic import logistic
from calibrant.fits.spline import SplineFit, spline

EXAMPLES = settings(max_examples=8, phases=[Phase.generate])


@st.composite
def levels(draw):
    """Up to 25 levels on a grid of 64ths, or crowded where logits are dense, with rates on quarters."""
    n = draw(st.integers(4, 25))
    places = np.sort(draw(st.lists(st.integers(1, 63), min_size=n, max_size=n, unique=True)))
    rates = np.array(draw(st.lists(st.integers(0, 4), min_size=n, max_size=n))) / 4
    weights = np.array(draw(st.lists(st.integers(1, 40), min_size=n, max_size=n)), float)
    values = places / 64 if draw(st.booleans()) else 0.5 + (places - 32) / 4_096
    assume(0 < rates.mean() < 1)
    return Levels(values, rates, weights)


def shifts(fit):
    return fit.shifts if isinstance(fit, SplineFit) else np.array([fit.intercept, fit.low])


@EXAMPLES
@given(levels(), st.integers(0, 2**31))
def test_a_spline_does_not_see_the_rounding_of_weights(sample, seed):
    noise = 1 + np.random.default_rng(seed).integers(-2, 3, len(sample)) * 2.0**-52
    other = spline(Levels(sample.values, sample.rates, sample.weights * noise))
    assert shifts(other) == pytest.approx(shifts(spline(sample)), abs=1e-9)


@EXAMPLES
@given(levels())
def test_a_spline_turned_round_is_the_spline_turned_round(sample):
    turned = Levels(1 - sample.values[::-1], 1 - sample.rates[::-1], sample.weights[::-1])
    one, other = spline(sample), spline(turned)
    assume(isinstance(one, SplineFit))
    assert other.shifts == pytest.approx(-one.shifts[::-1], abs=1e-9)


@settings(max_examples=60)
@given(levels(), st.sampled_from([1e-3, 7.0, 2.0**40]))
def test_centered_knots_near_1_do_not_see_the_scale_of_weights(sample, scale):
    values = 1 - (1 - sample.values) * 1e-9
    assume(len(np.unique(values)) == len(values))
    one = centered_isotonic(Levels(values, sample.rates, sample.weights), honest_ends=False)
    other = centered_isotonic(Levels(values, sample.rates, sample.weights * scale), honest_ends=False)
    inside = np.linspace(values[0], values[-1], 50)
    found = np.interp(inside, other.values, other.rates)
    assert found == pytest.approx(np.interp(inside, one.values, one.rates), abs=1e-9)


@pytest.mark.parametrize("family", ["temperature", "platt", "beta"])
@pytest.mark.parametrize("shrink", ["auto", None])
@pytest.mark.parametrize("values", [(0.3, 0.1 + 0.2), (0.5, 0.5 + 2**-50), (1 - 2**-52, 1.0), (0.0, 5e-324)])
def test_rounding_of_predictions_shows_no_slope(family, shrink, values):
    """Whichever way the last bits of equal predictions point, a slope through them would be any number."""
    one, other = (
        logistic(Levels(np.array(values), np.array(rates), np.array([5.0, 5.0])), family, shrink=shrink)
        for rates in ((0.2, 0.8), (0.8, 0.2))
    )
    assert one.low == one.high == other.low == other.high == 1.0
    assert one.intercept == pytest.approx(other.intercept)
