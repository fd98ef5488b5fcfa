"""The verdict of an audit does not hang on the seed: more is drawn, and what stays open is undecided."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import calibrant as cb
from calibrant.inference.pvalues import could_flip


def named(seed, draws=199):
    """Return the wrong and the undecided groups of the demo."""
    demo = cb.load_demo()
    found = cb.audit(
        demo["default"], demo["p"], groups=demo[["employment", "region"]], seed=seed, draws=draws
    )
    return {one.rule for one in found.significant()}, {one.rule for one in found.undecided}, found


def agree(some):
    """Return whether no group is wrong with one seed and neither wrong nor undecided with another."""
    wrong, possible = set.union(*(one for one, _, _ in some)), [one | near for one, near, _ in some]
    return all(wrong <= each for each in possible)


def test_seeds_name_the_same_groups():
    some = [named(seed) for seed in range(4)]
    assert agree(some)
    assert all(199 <= found.draws <= 19_900 for _, _, found in some)
    assert any(found.draws > 199 for _, _, found in some)


@pytest.mark.slow
def test_many_seeds_name_the_same_groups():
    assert agree([named(seed) for seed in range(24)])


def test_undecided_groups_are_not_called_wrong():
    wrong, near, found = named(0, draws=3)  # at most 300 draws: too few for some
    assert near
    assert not wrong & near
    for group in found.undecided:
        assert could_flip(group.pvalue, found.draws)
        assert "undecided" in str(group)
    assert "ndecided for" in found.verdict


def test_clear_cases_take_the_draws_asked_for():
    rng = np.random.default_rng(3)
    p = rng.uniform(0.2, 0.8, 4000)
    group = np.arange(4000) % 2
    y = (rng.random(4000) < p + 0.2).astype(float)
    found = cb.audit(y, p, groups={"g": group}, seed=1)
    assert found.draws == 199
    assert len(found.significant()) == 3
    again = pickle.loads(pickle.dumps(found))
    assert [one.beyond for one in again.groups] == [one.beyond for one in found.groups]
