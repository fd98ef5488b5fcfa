"""Histograms: what they guarantee, the tolerance asked for, and whether they keep it."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cb
from recalibration.laws import GRID, fit, overconfident


def test_histogram_says_what_it_guarantees():
    y, p = overconfident(1000)
    found = fit(y, p, method="histogram", bins=10)
    assert "within 0.1636" in found.guarantee
    assert found.details["tolerance"] == pytest.approx(0.16358232978818182)
    lower, upper = found.interval(GRID)
    q = found.predict(GRID)
    assert (lower <= q).all()
    assert (q <= upper).all()
    assert fit(y, p, method="histogram", tolerance=0.2).details["tolerance"] <= 0.2
    tied = fit(y, np.round(p, 1), method="histogram", bins=5)
    assert "random half" in tied.guarantee
    weighted = fit(y, p, method="histogram", sample_weight=1.0 + np.arange(1000) % 2)
    assert weighted.guarantee == "none: records are weighted"
    clustered = fit(y, p, method="histogram", clusters=np.arange(1000) // 2)
    assert clustered.guarantee == "none: records of one cluster depend on each other"


@pytest.mark.parametrize("places", [1, 2, 12])
@pytest.mark.parametrize("tolerance", [0.06, 0.1, 0.2, 0.3])
def test_a_histogram_keeps_the_tolerance_it_was_asked_for(places, tolerance):
    """Rates of tied predictions come from half of the records, which takes fewer bins."""
    y, p = overconfident(1000)
    found = fit(y, np.round(p, places), method="histogram", tolerance=tolerance)
    assert found.details["tolerance"] <= tolerance
    assert not found.notes


def test_a_tolerance_without_guarantee_is_said():
    y, p = overconfident(1000)
    with pytest.warns(cb.RecalibrationWarning, match=r"has no guarantee \(none: records are weighted\)"):
        cb.recalibrate(y, p, method="histogram", tolerance=0.2, sample_weight=1.0 + np.arange(1000) % 2)


@pytest.mark.slow
def test_histogram_covers_its_bins():
    """All ten bins within their limits in at least 90% of samples (simulated: rates known exactly)."""
    rng = np.random.default_rng(0)
    misses = 0
    for _ in range(400):
        p = rng.random(500)
        found = fit((rng.random(500) < 0.5 + 0.4 * np.sin(6 * p)).astype(int), p, method="histogram", bins=10)
        edges = np.concatenate(([0.0], found.map.edges, [1.0]))
        area = np.diff(0.5 * edges - 0.4 / 6 * np.cos(6 * edges)) / np.diff(edges)
        lower, upper = found.map.lower, found.map.upper
        misses += bool(((area < lower) | (area > upper)).any())
    assert misses / 400 <= 0.1 + 3 * np.sqrt(0.09 / 400)


def test_a_tied_pair_hardly_moves_the_map():
    rng = np.random.default_rng(0)
    p = rng.random(1_000)
    y = (rng.random(1_000) < p**1.5).astype(int)
    at = np.linspace(0.01, 0.99, 99)
    plain = cb.recalibrate(y, p, method="histogram").predict(at)
    order = np.argsort(p)
    for place in range(0, 999, 37):
        tied = p.copy()
        tied[order[place + 1]] = tied[order[place]]
        found = cb.recalibrate(y, tied, method="histogram")
        assert "strictly inside" in found.guarantee
        moved = np.abs(found.predict(at) - plain)
        assert np.count_nonzero(moved > 0.03) <= 1  # a point between two places of one edge
