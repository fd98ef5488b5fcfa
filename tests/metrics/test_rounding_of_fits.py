"""Weights over many orders of magnitude: what the sums of a sketch prove of slope, intercept and log loss."""

from __future__ import annotations

from math import fsum

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant
from calibrant.sketch.sketch import Sketch

LEVELS = (0.1, 0.3, 0.5, 0.7, 0.9)


def _rows(seed: int, orders: int, rare: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw outcomes, predictions and weights; with `rare`, one outcome has all the heavy records."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(6, 60))
    weights = 10.0 ** rng.uniform(-orders, 0, n)
    outcomes = rng.integers(0, 2, n).astype(float)
    if rare:
        outcomes[weights > 10.0 ** (-orders / 2)] = rng.integers(0, 2)
    return outcomes, rng.choice(LEVELS, n), weights


def _sketches(seed: int, y: np.ndarray, p: np.ndarray, w: np.ndarray) -> list[Sketch]:
    """Sketch the rows in order, in another order, and in pieces."""
    order = np.random.default_rng(seed + 1).permutation(len(y))
    pieces = Sketch()
    for part in np.array_split(order, 5):
        pieces.update(y[part], p[part], w[part])
    once = Sketch.from_arrays(y, p, sample_weight=w)
    return [once, Sketch.from_arrays(y[order], p[order], sample_weight=w[order]), pieces]


def _certificates(sketches: list[Sketch], name: str, **options: object) -> list[calibrant.Measurement]:
    taken = []
    for sketch in sketches:
        try:
            taken.append(sketch.measure(name, **options))
        except calibrant.CalibrantError:
            continue  # no fit, or none that rounding leaves a digit of
    return taken


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.sampled_from([2, 6, 9, 12, 15]), st.booleans())
def test_certificates_of_the_same_rows_overlap(seed, orders, rare):
    y, p, w = _rows(seed, orders, rare)
    sketches = _sketches(seed, y, p, w)
    for name in ("slope", "intercept", "log-loss", "log-mcb", "brier"):
        taken = _certificates(sketches, name)
        assert not taken or max(m.lower for m in taken) <= min(m.upper for m in taken), name
    taken = _certificates(sketches, "log-loss", normalised=True)
    assert not taken or max(m.lower for m in taken) <= min(m.upper for m in taken)


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.sampled_from([2, 6, 9, 12, 15]), st.booleans())
def test_they_hold_where_the_score_vanishes_on_exact_sums(seed, orders, rare):
    """The score of the intercept falls, so its root is inside when the exact score changes sign there."""
    y, p, w = _rows(seed, orders, rare)
    for taken in _certificates(_sketches(seed, y, p, w), "intercept"):
        assert _score(y, p, w, taken.lower) >= 0 >= _score(y, p, w, taken.upper)


def _score(y: np.ndarray, p: np.ndarray, w: np.ndarray, intercept: float) -> float:
    odds = np.exp(np.log(p / (1 - p)) + intercept)
    return fsum(w * (y / (1 + odds) - (1 - y) * odds / (1 + odds)))  # y - rate without a difference


def test_ten_orders_in_one_level_are_told_apart_from_noise():
    rng = np.random.default_rng(5)
    p = np.repeat(LEVELS, 40)
    y = (np.arange(200) % 4 > 0).astype(float)
    w = np.where(y == 1, rng.uniform(1, 2, 200), 1e-10 * rng.uniform(1, 2, 200))
    taken = _certificates(_sketches(5, y, p, w), "slope")
    assert len(taken) == 3
    assert max(m.lower for m in taken) <= min(m.upper for m in taken)
    assert np.ptp([m.value for m in taken]) > 1e-12  # the sketches do differ


def test_a_fit_that_rounding_decides_is_refused():
    y = np.array([1.0, 0.0, 1.0, 0.0, 1.0, 0.0] * 4)
    p = np.repeat([0.3, 0.5, 0.7], 8)
    w = np.where(y == 1, 1 / 3, 1e-16 * np.arange(1, 25))
    with pytest.raises(calibrant.NoCertificateError, match="orders of magnitude"):
        Sketch.from_arrays(y, p, sample_weight=w).measure("slope")


def test_ordinary_weights_cost_nothing():
    rng = np.random.default_rng(2)
    p = rng.choice(LEVELS, 10_000)
    sketch = Sketch.from_arrays(rng.random(10_000) < p, p, sample_weight=rng.uniform(0.5, 2, 10_000))
    for name in ("slope", "intercept"):
        taken = sketch.measure(name)
        assert taken.upper - taken.lower < 1e-9
