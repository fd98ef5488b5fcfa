"""Roots of functions of one number."""

from __future__ import annotations

import math

import numpy as np
import pytest

from calibrant.fits.roots import STEPS, root


def functions(seed):
    """Return functions of one number that are smooth, steep, flat at the root, or have a step there."""
    a, b, c = np.random.default_rng(seed).normal(size=3)
    return (
        lambda x: a * x**3 + b * x + c,
        lambda x: math.exp(a * x) - abs(b) - 0.1,
        lambda x: math.tanh(50 * a * (x - b)),
        lambda x: (x - b) ** 5,
        lambda x: math.copysign(1.0, x - b),
    )


def test_roots_are_scipys():
    from scipy.optimize import brentq

    tried = 0
    for seed in range(300):
        low, high = 3 * np.random.default_rng([seed, 1]).normal(size=2)
        for function in functions(seed):
            if function(low) * function(high) < 0:
                tried += 1
                found = root(function, low, high, 1e-13)
                scipys = brentq(function, low, high, xtol=1e-13, maxiter=STEPS)
                assert found == pytest.approx(scipys, abs=1e-12)
    assert tried > 300


@pytest.mark.parametrize("ends", [(0.0, 1.0), (1.0, 0.0), (-2.0, 0.0)])
def test_an_end_may_be_the_root(ends):
    assert root(lambda x: x, *ends, 1e-12) == 0.0


def test_a_change_of_sign_that_rounding_hides_is_at_the_nearer_end():
    assert root(lambda x: 1e-17 * (2 - x), 0.0, 1.0, 1e-12) == 1.0
    assert root(lambda x: -1e-17 * (2 + x), 0.0, 1.0, 1e-12) == 0.0


def test_a_function_without_values_is_an_error():
    with pytest.raises(ValueError, match="NaN"):
        root(lambda x: math.nan, 0.0, 1.0, 1e-12)
