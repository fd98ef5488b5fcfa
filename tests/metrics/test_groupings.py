"""Cheapest groupings beyond the reach of brute force: exact runs, local search, and proven brackets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import distance as oracle
from samples import samples

from benchmarks.groupings import KINDS, gap_and_seconds, sample
from calibrant.kernels.partitions import LevelMasses, best_grouping, grouping_cost
from calibrant.metrics.distance import grouping
from calibrant.metrics.distance.grouping import (
    bracketed_grouping,
    improved_grouping,
    runs_of_equal_records,
    whole_level_prices,
)
from calibrant.metrics.distance.lower import level_masses


def starts(size):
    return [np.arange(size), np.zeros(size, dtype=np.intp)]


@given(
    st.lists(
        st.tuples(st.sampled_from([0.0, 0.2, 0.5, 0.5, 0.8, 1.0]) | st.floats(0, 1), st.booleans()),
        min_size=1,
        max_size=7,
    ),
    st.sampled_from([1.0, 1.5, 2.0]),
)
@settings(max_examples=60, deadline=None)
def test_runs_are_the_best_of_all_groupings_of_equal_records(rows, alpha):
    rows = sorted(rows)
    v, r = np.array([a for a, _ in rows]), np.array([float(b) for _, b in rows])
    w = np.full(len(v), 1 / len(v))
    least = min(
        sum(float((w[g] * np.abs(v[g] - r[g].mean()) ** alpha).sum()) for g in map(list, parts))
        for parts in oracle.partitions(range(len(v)))
    )
    found = runs_of_equal_records(v, r, alpha, least)
    assert found.upper == found.lower == pytest.approx(least, abs=1e-12)
    assert grouping_cost(LevelMasses(v, w, w * r), found.group, alpha) == pytest.approx(least, abs=1e-12)


@pytest.mark.slow
def test_runs_on_400_samples_of_up_to_eleven_records():
    for seed in range(400):
        rng = np.random.default_rng(seed)
        size = int(rng.integers(2, 12))
        v = np.sort(rng.random(size)) if seed % 2 else np.sort(np.round(5 * rng.random(size)) / 5)
        r, w = (rng.random(size) < 0.5).astype(float), np.full(size, 1 / size)
        least = best_grouping(LevelMasses(v, w, w * r))[0]
        assert runs_of_equal_records(v, r, 1.0, np.inf).upper == pytest.approx(least, abs=1e-12)


def check_bracket(levels, least):
    found = bracketed_grouping(levels, starts(len(levels.values)), gap=0.0)
    assert found.lower <= least + 1e-12
    assert found.upper >= least - 1e-12
    assert found.upper - found.lower <= 1e-5 * found.upper + 1e-7
    assert grouping_cost(levels, found.group) == pytest.approx(found.upper, abs=1e-12)


@given(samples(max_size=7))
@settings(max_examples=25, deadline=None)
def test_brackets_close_on_the_best_of_all_groupings(given_sample):
    f = given_sample.forecasts
    least = oracle.upper_distance(f.values, f.weights, f.outcomes)
    check_bracket(level_masses(f), least)


@pytest.mark.slow
def test_brackets_close_on_300_samples_of_up_to_eleven_levels():
    for seed in range(50):
        for kind in KINDS:
            size = int(np.random.default_rng(7 * seed + 1).integers(3, 12))
            levels = sample(kind, size, 5_000 + seed)
            check_bracket(levels, best_grouping(levels)[0])


@given(samples(max_size=7), st.sampled_from([1.0, 2.0]))
@settings(max_examples=40, deadline=None)
def test_local_search_never_worsens_and_prices_never_exceed(given_sample, alpha):
    f = given_sample.forecasts
    levels = level_masses(f)
    least = best_grouping(levels, alpha)[0]
    cost, group = improved_grouping(levels, starts(f.levels), alpha, kicks=5)
    assert cost == pytest.approx(grouping_cost(levels, group, alpha), abs=1e-12)
    assert least - 1e-12 <= cost <= min(grouping_cost(levels, s, alpha) for s in starts(f.levels)) + 1e-12
    if alpha == 1.0:
        edges = np.unique(np.concatenate([np.linspace(0, 1, 21), f.values]))
        assert whole_level_prices(levels, edges).sum() <= least + 1e-9


def test_compiling_does_not_use_up_the_time(monkeypatch):
    """The first search in a process once spent its seconds on compiling and stopped at a gap of 5%."""
    levels = sample("uniform", 7, 5_000)
    real, calls = grouping.cheap_groups, []

    class SlowAtFirst:
        compile_now = staticmethod(real.compile_now)

        def __call__(self, *arguments):
            calls.append(0)
            if len(calls) == 1:
                clock[0] += 60.0
            return real(*arguments)

    clock = [0.0]
    monkeypatch.setattr(grouping, "cheap_groups", SlowAtFirst())
    monkeypatch.setattr(grouping, "monotonic", lambda: clock[0])
    check_bracket(levels, best_grouping(levels)[0])


@pytest.mark.parametrize("kind", KINDS)
def test_fourteen_levels_within_one_percent(kind):
    gap, _ = gap_and_seconds(kind, 14, 0)
    assert gap <= 0.0101


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [30, 60])
def test_gaps_of_at_most_two_percent_in_twenty_seconds(kind, size):
    gap, seconds = gap_and_seconds(kind, size, 1)
    assert gap <= 0.02
    assert seconds <= 20
