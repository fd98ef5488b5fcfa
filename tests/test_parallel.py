"""Sums that are cut into pieces are those of numpy, to the bit."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.parallel import TERMS_AT_ONCE, chunked_sum, dot


@pytest.mark.parametrize("count", [0, 1, 10, TERMS_AT_ONCE, TERMS_AT_ONCE + 1, 5 * TERMS_AT_ONCE + 13])
def test_sums_are_those_of_numpy(count):
    one, other = np.random.default_rng(count).normal(size=(2, count))
    assert chunked_sum(lambda part: one[part] ** 2, count) == np.sum(one**2)
    assert dot(one, other) == np.sum(one * other)


def test_known_sums():
    assert chunked_sum(lambda part: np.arange(10.0)[part] ** 2, 10) == 285.0
    assert dot(np.array([1.0, 2.0]), np.array([3.0, 4.0])) == 11.0
