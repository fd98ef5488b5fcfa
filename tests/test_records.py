"""The global order: sorted by prediction, exactly, also where only the last bits differ."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.kernels.ordering import _sorted_by, ascending, canonical

NEARLY_EQUAL = st.integers(0, 40).map(lambda k: 0.5 + k * 2.0**-53)
ANY = st.one_of(st.floats(0, 1), NEARLY_EQUAL, st.sampled_from([0.0, 1.0, 5e-324, 0.3]))


@given(st.lists(ANY, min_size=1, max_size=60))
def test_sorts_like_numpy(values):
    _is_sorted(np.array(values) + 0.0)


@given(st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=20))
def test_sorts_responses_outside_the_unit_interval(values):
    _is_sorted(np.array(values))


def test_the_ties_of_a_million_rows_have_one_order():
    rng, n = np.random.default_rng(1), 10**6
    values, outcome, weight = rng.random(n).round(3), rng.integers(0, 2, n), rng.random(n)
    order, ordered = canonical(values, outcome, weight, [])
    np.testing.assert_array_equal(ordered, np.sort(values))
    np.testing.assert_array_equal(values[order], ordered)
    moved = rng.permutation(n)
    again, _ = canonical(values[moved], outcome[moved], weight[moved], [])
    np.testing.assert_array_equal(order, moved[again])


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
    order = _sorted_by(np.unique(runs, return_inverse=True)[1].astype(np.uint64), digest)
    np.testing.assert_array_equal(np.sort(order), np.arange(len(runs)))
    np.testing.assert_array_equal(runs[order], runs)
    np.testing.assert_array_equal(digest[order], digest[np.lexsort((digest, runs))])


GRIDS = {
    "tenths": lambda rng, n: rng.random(n).round(1),
    "thousandths": lambda rng, n: rng.random(n).round(3),
    "one value": lambda rng, n: np.full(n, 0.3),
    "ends": lambda rng, n: rng.choice([-0.0, 0.0, 1.0], n),
    "rare ones": lambda rng, n: np.insert(np.full(n - 3, 0.4), [1, n // 2, n - 4], [0.9, 0.2, 0.2]),
    "single precision": lambda rng, n: rng.random(n).round(2).astype(np.float32).astype(float),
}


@pytest.mark.parametrize("grid", [*GRIDS, "half of them on a grid"])
@pytest.mark.parametrize("weighted", [False, True])
def test_ties_have_one_order_whatever_the_order_of_the_rows(grid, weighted):
    rng, n = np.random.default_rng(5), 4_500
    values = np.where(rng.random(n) < 0.5, rng.random(n), 0.25) if grid not in GRIDS else GRIDS[grid](rng, n)
    outcome, column = rng.random(n).round(1), rng.integers(0, 3, n)
    weight = rng.integers(1, 4, n) / 3 if weighted else None
    order, ordered = canonical(values, outcome, weight, [column])
    np.testing.assert_array_equal(ordered, np.sort(values))
    moved = rng.permutation(n)
    again, _ = canonical(
        values[moved], outcome[moved], None if weight is None else weight[moved], [column[moved]]
    )
    for known in (outcome, column) if weight is None else (outcome, column, weight):
        np.testing.assert_array_equal(known[order], known[moved][again])
