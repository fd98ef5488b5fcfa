"""Spiegelhalter's and Hosmer and Lemeshow's tests, against their formulas."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import calibrant as cb


def test_spiegelhalter_is_two_sided_and_equals_the_brier_test():
    p = np.tile([0.1, 0.3, 0.6, 0.9], 50)
    y = p > 0.5  # far better than claimed: z is very negative
    found = cb.calibration_test(y, p, measure="spiegelhalter", method="asymptotic")
    assert found.statistic < -4
    assert found.pvalue < 1e-4
    assert found.pvalue == pytest.approx(
        cb.calibration_test(y, p, measure="brier", method="asymptotic").pvalue
    )
    n = len(p)
    z = np.sum((y - p) * (1 - 2 * p)) / math.sqrt(np.sum((1 - 2 * p) ** 2 * p * (1 - p)))
    assert cb.spiegelhalter(y, p) == pytest.approx(z)
    assert found.n == n


def test_hosmer_lemeshow_keeps_its_digits_next_to_certainty():
    """By exact fractions: 1 - mean of predictions next to 1 has few digits if it is a difference."""
    p, w = [1 - 2.0**-30, 1 - 2.0**-40, 0.5], [2.0**30, 2.0**20, 1.0]
    mean = sum(Fraction(a) * Fraction(b) for a, b in zip(p, w, strict=True)) / Fraction(sum(w))
    events = Fraction(w[0])
    expected = mean * Fraction(sum(w))
    variance = sum(Fraction(b) ** 2 for b in w) * mean * (1 - mean)
    exact = float((events - expected) ** 2 / variance)
    assert cb.hosmer_lemeshow([1, 0, 0], p, sample_weight=w, groups=1) == pytest.approx(exact, rel=1e-12)
    assert cb.hosmer_lemeshow([1.0, 0.0], [5e-324, 0.5]) == np.inf


def test_hosmer_lemeshow_by_hand():
    rng = np.random.default_rng(5)
    p = np.sort(rng.random(100))
    y = rng.random(100) < p
    by_hand = 0.0
    for rows in np.split(np.arange(100), 10):
        seen, due = y[rows].sum(), p[rows].sum()
        by_hand += (seen - due) ** 2 / (due * (1 - due / 10))
    assert cb.hosmer_lemeshow(y, p) == pytest.approx(by_hand)
    from scipy.stats import chi2

    found = cb.calibration_test(y, p, measure="hosmer-lemeshow", method="asymptotic")
    assert found.pvalue == pytest.approx(chi2.sf(by_hand, 10))
    fitted = cb.calibration_test(y, p, measure="hosmer-lemeshow", method="asymptotic", fitted=True)
    assert fitted.pvalue == pytest.approx(chi2.sf(by_hand, 8))


def test_a_number_of_groups_that_cannot_be_is_named():
    with pytest.raises(cb.CalibrantError, match="groups must be a whole number of at least 1; got 0"):
        cb.hosmer_lemeshow([0, 1], [0.2, 0.8], groups=0)
