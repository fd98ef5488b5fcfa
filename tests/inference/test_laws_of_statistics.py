"""The limit laws: against their definitions, against simulation, and far into the tail."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from calibrant.metrics import null_laws


def range_cdf(x):
    h = np.arange(1, 200) - 0.5
    return np.sum((8 / x**2 + 2 / (h * np.pi) ** 2) * np.exp(-2 * (h * np.pi) ** 2 / x**2))


def largest_cdf(x):
    k = np.arange(200)
    return 4 / np.pi * np.sum((-1.0) ** k / (2 * k + 1) * np.exp(-((2 * k + 1) ** 2) * np.pi**2 / (8 * x**2)))


@pytest.mark.parametrize(
    ("tail", "cdf"), [(null_laws.log_range_tail, range_cdf), (null_laws.log_largest_tail, largest_cdf)]
)
def test_both_series_agree_with_the_distribution_function(tail, cdf):
    for x in [0.2, 0.5, 1.0, 1.4999, 1.5, 1.5001, 2.0, 3.0, 4.0, 5.0]:
        assert math.exp(tail(x)) == pytest.approx(1 - cdf(x), abs=1e-13)


@pytest.mark.parametrize(
    "tail", [null_laws.log_range_tail, null_laws.log_largest_tail, null_laws.log_normal_tail]
)
def test_tails_are_monotone_and_reach_beyond_the_smallest_float(tail):
    x = np.concatenate([[0.0], np.linspace(0.05, 60, 5000)])
    logs = np.array([tail(t) for t in x])
    assert np.all(np.diff(logs) <= 0)
    assert np.all(logs <= 0)
    assert np.all(np.diff(logs[x > 1]) < 0)
    assert logs[-1] < -1500  # e^-1500 is far below 1e-300
    # the tail is 8 (or 4, or 2) times the normal one in the end
    factor = {null_laws.log_range_tail: 8, null_laws.log_largest_tail: 4, null_laws.log_normal_tail: 2}[tail]
    assert tail(37.0) == pytest.approx(math.log(factor) + stats.norm.logsf(37.0), rel=1e-14)


def test_the_values_at_which_a_peer_returns_noise():
    """At 9.3 and 23.5 a popular implementation says 1.09e-12 and 1.39e-12: rounding, not probability."""
    assert math.exp(null_laws.log_range_tail(9.3)) == pytest.approx(8 * stats.norm.sf(9.3), rel=1e-12)
    assert null_laws.log_range_tail(23.5) == pytest.approx(math.log(8) + stats.norm.logsf(23.5), rel=1e-12)


@pytest.mark.parametrize("degrees", [1, 3, 8, 10, 40])
def test_chi_square_tail(degrees):
    for x in [0.0, 0.5, 8.0, 100.0, 1200.0]:
        assert null_laws.log_chi_square_tail(x, degrees) == pytest.approx(
            stats.chi2.logsf(x, degrees), rel=1e-10, abs=1e-12
        )
    x = np.linspace(1300, 1500, 400)  # across the point where the plain tail underflows
    logs = np.array([null_laws.log_chi_square_tail(t, degrees) for t in x])
    assert np.all(np.diff(logs) < 0)
    assert np.abs(np.diff(logs, 2)).max() < 1e-5  # no step where the formula changes


def test_means_of_the_laws():
    x = np.linspace(0, 12, 200_001)
    for law in (null_laws.BROWNIAN_RANGE, null_laws.BROWNIAN_LARGEST, null_laws.NORMAL):
        tail = np.exp([law.log_tail(t) for t in x[::50]])
        assert np.trapezoid(tail, x[::50]) == pytest.approx(law.mean, abs=1e-4)
