"""A partition, measured in one pass without lists, says what its lists of members say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.columns import code_columns
from calibrant.groups import subpopulations
from calibrant.groups.statistics import SUMS, Variant
from calibrant.groups.subpopulations import Partition
from calibrant.kernels.groups import partition_curves


def _sample(n: int, values: int, digits: int, seed: int):
    rng = np.random.default_rng(seed)
    p = np.sort(rng.random(n).round(digits))
    y = (rng.random(n) < p).astype(float)
    columns = code_columns({"a": rng.integers(0, values, n), "b": rng.integers(0, 2, n)}, n, "groups")
    return columns, p, y, rng.random(n) + 0.1


@pytest.mark.parametrize("variant", ["plain", "proportional", "low-prevalence", "real"])
@settings(max_examples=40)
@given(
    n=st.integers(1, 40),
    values=st.integers(1, 5),
    digits=st.integers(0, 3),
    seed=st.integers(0, 10**6),
)
def test_lists_and_one_pass_agree(variant, n, values, digits, seed):
    columns, p, y, w = _sample(n, values, digits, seed)
    terms = Variant(variant).terms(p, y, w)
    parts = Partition.by(columns)
    in_a_pass, by_lists = parts.measure(terms), parts.lists.measure(terms)
    occupied = in_a_pass.size > 0
    for name in in_a_pass.__slots__:
        found, expected = getattr(in_a_pass, name)[occupied], getattr(by_lists, name)[occupied]
        np.testing.assert_array_equal(found, expected, err_msg=name)


def test_machine_code_says_the_same_as_plain_python():
    columns, p, y, w = _sample(4000, 7, 2, 1)
    rows = Variant().terms(p, y, w).rows
    found = []
    for kernel in (partition_curves.plain, partition_curves.machine_code()):
        sums, ends = np.empty((14, SUMS)), np.empty((14, 4), dtype=np.int64)
        kernel(Partition.by(columns).cell, rows, sums, ends)
        found.append(np.column_stack((sums, ends)))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12)


def test_members_rules_and_selection():
    columns = code_columns({"a": ["x", "y", "x", "y"], "b": [0, 0, 1, 0]}, 4, "groups")
    parts = Partition.by(columns)
    assert list(parts.rules) == ["a = x and b = 0", "a = x and b = 1", "a = y and b = 0", "a = y and b = 1"]
    some = parts.select([0, 2])
    assert [some.members_of(k).tolist() for k in range(2)] == [[0], [1, 3]]
    assert [some.lists.members_of(k).tolist() for k in range(2)] == [[0], [1, 3]]
    assert list(some.lists.rules) == list(some.rules) == ["a = x and b = 0", "a = y and b = 0"]


@pytest.mark.parametrize("values", [256, 65_536])
def test_a_constant_column_before_one_that_fills_its_type(values):
    columns = code_columns({"k": [0] * values, "c": np.arange(values)[::-1]}, values, "groups")
    parts = Partition.by(columns)
    assert parts.cell.tolist() == list(range(values))[::-1]
    assert parts.rules[-1] == f"k = 0 and c = {values - 1}"


def test_many_cells_are_numbered_by_occupation(monkeypatch):
    columns, p, y, w = _sample(300, 5, 2, 2)
    terms = Variant().terms(p, y, w)
    plain = Partition.by(columns)
    monkeypatch.setattr(subpopulations, "MAX_CELLS", 3)
    sparse = Partition.by(columns)
    assert list(sparse.rules) == [
        r for r, size in zip(plain.rules, plain.measure(terms).size, strict=True) if size
    ]
    np.testing.assert_array_equal(
        sparse.measure(terms).z, plain.measure(terms).z[plain.measure(terms).size > 0]
    )
