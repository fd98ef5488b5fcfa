"""The queue of buckets gives what the heap gives, to the bit, or leaves the work to it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.kernels import smooth


def curves():
    """Curves of few heights, so that positions tie, with gaps of a few sizes."""
    heights = st.sampled_from([-0.3, 0.0, 1e-300, 1e-9, 0.1, 0.2, 0.1 + 1e-17, 0.5])
    return st.lists(st.tuples(heights, st.sampled_from([1e-12, 0.01, 0.1, 0.3])), min_size=1, max_size=40)


def ends(curve, gaps):
    return smooth.largest_ends(np.append(curve, 0.0), gaps)


@settings(max_examples=300, deadline=None)
@given(curves())
def test_equal_to_the_heap(steps):
    curve, gaps = (np.array(column) for column in zip(*steps, strict=True))
    gaps = gaps / max(1.0, gaps.sum())
    by_buckets = ends(curve, gaps)
    if by_buckets is not None:
        assert by_buckets.tolist() == smooth.upper_ends.plain(curve, gaps).tolist()


@pytest.mark.parametrize("bias", [-0.1, 0.0, 0.1])
def test_long_walks_are_trimmed_by_buckets(bias):
    rng = np.random.default_rng(5)
    values = np.sort(rng.random(50_000))
    curve = np.cumsum((rng.random(len(values)) < values + bias) - values)[:-1] / len(values)
    for side in (curve, -curve):
        by_buckets = ends(side, np.diff(values))
        assert by_buckets is not None
        assert by_buckets.tolist() == smooth.upper_ends(side, np.diff(values)).tolist()


def test_crowded_and_tiny_positions_are_left_to_the_heap():
    assert ends(np.full(3, 1e-300), np.full(3, 0.1)) is None
    crowd = np.append(1.0, np.linspace(2e-6, 1e-6, 5_000))
    assert ends(crowd, np.full(len(crowd), 1 / len(crowd))) is None


def test_a_long_curve_whose_positions_crowd_is_denoised_all_the_same(monkeypatch):
    monkeypatch.setattr(smooth, "BUCKETS_ABOVE", smooth.COMPILE_ABOVE)
    rng = np.random.default_rng(2)
    values = np.sort(rng.beta(0.3, 3, smooth.COMPILE_ABOVE + 10))
    curve = np.append(0.0, np.cumsum((rng.random(len(values)) < values) - values) / len(values))
    lower, upper = smooth.both_ends(curve[1:-1].copy(), np.diff(values))
    expected = smooth.swept_back(lower, upper, curve[-1])
    np.testing.assert_allclose(smooth.denoised(curve, np.diff(values)), expected, atol=1e-14)
