"""Thinned maps stay within their tolerance, and the bins of a tolerance are found at once."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from calibrant.kernels.cumulative import kept_knots
from calibrant.recalibration.maps.piecewise import PiecewiseMap
from calibrant.recalibration.methods.binning import _finest, simultaneous_tolerance

PLACES = [0.0, 5e-324, 1e-320, 1e-310, 1e-299, 1e-16, 0.1, 0.2, np.nextafter(0.2, 1), 0.5, 1 - 1e-16, 1.0]


@pytest.mark.parametrize("machine_code", [False, True])
@pytest.mark.parametrize("tolerance", [1e-6, 1e-2, 0.3])
def test_a_thinned_map_is_nowhere_off_by_more_than_the_tolerance(tolerance, machine_code):
    """Between knots that nearly agree a slope overflows: those are kept."""
    kernel = kept_knots.machine_code() if machine_code else kept_knots.plain
    rng = np.random.default_rng(0)
    for _ in range(60):
        values = np.sort(rng.choice(PLACES, rng.integers(3, 10), replace=False))
        rates = np.sort(rng.random(len(values)).round(2))
        whole = PiecewiseMap(values, rates)
        kept = kernel(values, rates, tolerance)
        thinned = PiecewiseMap(values[kept], rates[kept])
        x = np.concatenate([values, rng.random(20)])
        assert np.abs(whole.predict(x) - thinned.predict(x)).max() <= tolerance * (1 + 1e-9)


def most_bins(n, tolerance):
    """The most bins of n records without ties, of which no more is known here."""
    return _finest(SimpleNamespace(n=n, levels=range(n), weighted=False), lambda bins: bins, tolerance, 0.1)


@pytest.mark.parametrize("n", [60, 1_000, 4_321])
@pytest.mark.parametrize("tolerance", [0.08, 0.2, 0.5])
def test_the_most_bins_within_a_tolerance_are_found(n, tolerance):
    fit = [b for b in range(1, n // 2 + 1) if simultaneous_tolerance(n // b - 1, b, 0.1) <= tolerance]
    if fit:
        assert most_bins(n, tolerance) == fit[-1]


def test_they_are_found_for_a_billion_records():
    bins = most_bins(10**9, 0.01)
    tolerances = [simultaneous_tolerance(10**9 // b - 1, b, 0.1) for b in (bins, bins + 1)]
    assert tolerances[0] <= 0.01 < tolerances[1]
