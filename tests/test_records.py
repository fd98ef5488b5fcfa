"""The global order: sorted by prediction, exactly, also where only the last bits differ."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.kernels.row_order import _sorted_within, ascending

NEARLY_EQUAL = st.integers(0, 40).map(lambda k: 0.5 + k * 2.0**-53)
ANY = st.one_of(st.floats(0, 1), NEARLY_EQUAL, st.sampled_from([0.0, 1.0, 5e-324, 0.3]))


@given(st.lists(ANY, min_size=1, max_size=60))
def test_sorts_like_numpy(values):
    _is_sorted(np.array(values) + 0.0)


@given(st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=20))
def test_sorts_responses_outside_the_unit_interval(values):
    _is_sorted(np.array(values))


@pytest.mark.parametrize("spread", [1.0, 1e-9, 1e-15])
def test_sorts_a_million(spread):
    rng = np.random.default_rng(0)
    _is_sorted(0.3 + spread * 0.7 * rng.random(10**6))


def _is_sorted(values):
    order, found = ascending(values)
    np.testing.assert_array_equal(found, np.sort(values))
    np.testing.assert_array_equal(values[order], found)
    np.testing.assert_array_equal(np.sort(order), np.arange(len(values)))


@given(
    st.lists(st.tuples(st.sampled_from([0.1, 0.2, 0.7]), st.integers(0, 9)), min_size=1, max_size=60),
    st.booleans(),
)
def test_hashes_are_sorted_within_runs(pairs, alike):
    """Also where the leading bits of all hashes agree."""
    pairs.sort(key=lambda pair: pair[0])
    runs = np.array([run for run, _ in pairs])
    digest = np.array([k if alike else k << 60 for _, k in pairs], dtype=np.uint64)
    order = _sorted_within(runs, digest)
    np.testing.assert_array_equal(np.sort(order), np.arange(len(runs)))
    np.testing.assert_array_equal(runs[order], runs)
    np.testing.assert_array_equal(digest[order], digest[np.lexsort((digest, runs))])
