"""Algorithm 1: paths, their rules in words, and what the words mean."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from people import people

from calibrant import audit
from calibrant.columns import code_columns
from calibrant.groups.subpopulations import random_paths


def applied(rule: str, frame: pd.DataFrame) -> np.ndarray:
    """Who meets a rule, read from its words alone."""
    inside = np.ones(len(frame), bool)
    for condition in rule.split(" and "):
        inside &= _meets(condition, frame)
    return inside


def _meets(condition: str, frame: pd.DataFrame) -> np.ndarray:
    if condition == "everyone":
        return np.ones(len(frame), bool)
    if match := re.fullmatch(r"\((\w+) < (\S+) or missing\)", condition):
        return ((frame[match[1]] < float(match[2])) | frame[match[1]].isna()).to_numpy()
    if match := re.fullmatch(r"(\S+) <= (\w+) < (\S+)", condition):
        column = frame[match[2]]
        return ((column >= float(match[1])) & (column < float(match[3]))).to_numpy()
    if match := re.fullmatch(r"(\w+) (<|>=) (\S+)( \(not missing\))?", condition):
        column, cut = frame[match[1]], float(match[3])
        return (column < cut if match[2] == "<" else column >= cut).to_numpy()
    if match := re.fullmatch(r"(\w+) is (not )?missing", condition):
        return (frame[match[1]].notna() if match[2] else frame[match[1]].isna()).to_numpy()
    if match := re.fullmatch(r"(\w+) (=|!=|in|not in) (.*)", condition):
        wanted = match[3].strip("{}").split(", ")
        text = frame[match[1]].map(
            lambda v: "missing" if pd.isna(v) else f"{v:g}" if isinstance(v, float) else str(v)
        )
        inside = text.isin(wanted).to_numpy()
        return inside if match[2] in ("=", "in") else ~inside
    raise AssertionError(f"a rule that cannot be read: {condition}")


@pytest.fixture(scope="module")
def data():
    y, p, frame = people(31, 1000)
    frame["grade"] = np.random.default_rng(0).integers(0, 4, 1000).astype(float)
    return y, p, frame


def test_words_say_exactly_who_is_meant(data):
    y, p, frame = data
    found = audit(y, p, covariates=frame, subpopulations=400, draws=0, seed=2)
    assert found.tested == 401
    for group in found.groups:
        inside = applied(group.rule, frame)
        assert inside.sum() == group.size, group.rule
        assert y[inside].mean() == pytest.approx(group.mean_outcome), group.rule


def test_each_step_keeps_one_half_of_the_distinct_values_of_one_column(data):
    _, _, frame = data
    columns = code_columns(frame, len(frame), "covariates")
    paths = random_paths(columns, 10, np.random.default_rng(4))
    for _ in range(30):
        path = [subset.members for subset, _ in next(paths)]
        before = set(range(len(frame)))
        for members in path:
            after = set(members.tolist())
            assert np.all(np.diff(members) > 0)
            assert after < before
            assert any(_is_a_half(column.codes, before, after) for column in columns)
            before = after
        assert all(len(members) >= 10 for members in path[:-1])


def _is_a_half(codes: np.ndarray, before: set[int], after: set[int]) -> bool:
    old, new = {codes[i] for i in before}, {codes[i] for i in after}
    whole = after == {i for i in before if codes[i] in new}  # members with equal values stay together
    return whole and len(new) in (len(old) // 2, len(old) - len(old) // 2)


def test_ordered_columns_are_cut_at_the_median_and_nominal_ones_anywhere(data):
    y, p, frame = data
    found = audit(y, p, covariates=frame[["grade"]], subpopulations=50, draws=0, seed=1)
    assert {g.rule for g in found.groups} == {
        "everyone", "grade < 2", "grade >= 2", "grade = 0", "grade = 1", "grade = 2", "grade = 3",
    }  # fmt: skip
    free = audit(y, p, covariates=frame[["grade"]], nominal=["grade"], subpopulations=50, draws=0, seed=1)
    assert {"grade in {0, 2}", "grade in {1, 3}", "grade in {0, 3}"} <= {g.rule for g in free.groups}
    assert free.tested == 1 + 4 + 6
    assert free.not_tested.duplicates > 0


def test_ordered_categories_and_dates_keep_their_order():
    rng = np.random.default_rng(0)
    n = 400
    size = pd.Categorical(
        rng.choice(["small", "medium", "large", "huge"], n),
        ["small", "medium", "large", "huge"],
        ordered=True,
    )
    day = pd.to_datetime("2024-01-01") + pd.to_timedelta(rng.integers(0, 4, n), unit="D")
    p = rng.random(n)
    frame = pd.DataFrame({"size": size, "day": day})
    found = audit(rng.random(n) < p, p, covariates=frame, subpopulations=300, draws=0, seed=0)
    rules = {part for group in found.groups for part in group.rule.split(" and ")}
    assert {"size < large", "size >= large"} <= rules
    assert not any("in {" in rule for rule in rules)
    assert any(rule.startswith("day >= 2024-01-03") for rule in rules)


def test_a_constant_covariate_ends_at_once():
    p = np.linspace(0.1, 0.9, 40)
    found = audit(p > 0.5, p, covariates={"same": np.zeros(40), "gone": [None] * 40}, draws=9)
    assert found.tested == 1


def test_covariates_of_every_kind_are_coded():
    columns = code_columns(
        {
            "whole": np.array([3, 1, 3]),
            "wide": np.array([3, 10**15, -(10**15)]),
            "flag": [True, False, True],
            "gap": [1.5, None, float("nan")],
            "mixed": ["b", 1, None],
        },
        3,
        "covariates",
    )
    found = {c.name: (c.codes.tolist(), list(c.labels), c.nominal, c.missing) for c in columns}
    assert found["whole"] == ([1, 0, 1], [1, 3], False, False)
    assert found["wide"] == ([1, 2, 0], [-(10**15), 3, 10**15], False, False)
    assert found["flag"] == ([1, 0, 1], [False, True], True, False)
    assert found["gap"] == ([1, 0, 0], [None, 1.5], False, True)
    assert found["mixed"] == ([2, 1, 0], [None, 1, "b"], True, True)


def paper_path(columns: list[np.ndarray], least: int, rng: np.random.Generator) -> list[frozenset[int]]:
    """Algorithm 1 as printed, for ordered covariates: the subpopulations along one path."""
    members, found = np.arange(len(columns[0])), []
    while len(members) >= least:
        values = columns[rng.integers(len(columns))][members]
        distinct = np.unique(values)
        median = distinct[len(distinct) // 2]
        members = members[values < median] if rng.random() < 0.5 else members[values >= median]
        found.append(frozenset(members.tolist()))
    return found[:-1]


def test_paths_reach_what_algorithm_1_reaches_and_no_more():
    """Three covariates of two values: the paper ends half of the paths at one that is used up, here none."""
    rng = np.random.default_rng(0)
    data = [np.arange(32) % 2, np.arange(32) // 2 % 2, np.arange(32) // 4 % 2]
    everyone = frozenset(range(32))
    paper = {one for _ in range(2000) for one in paper_path(data, 4, rng)} - {everyone}
    columns = code_columns({f"x{j}": values for j, values in enumerate(data)}, 32, "covariates")
    walks = random_paths(columns, 4, np.random.default_rng(1))
    paths = [next(walks) for _ in range(200)]
    ours = {frozenset(subset.members.tolist()) for path in paths for subset, _ in path}
    assert ours == paper
    depth = np.mean([len(set(paper_path(data, 4, rng)) - {everyone}) for _ in range(500)])
    assert np.mean([len(path) for path in paths]) == 3 > depth + 0.5


@pytest.mark.parametrize("subpopulations", [3, 40, 400])
@pytest.mark.parametrize("min_size", [1, 25])
def test_paths_that_meet_change_nothing(data, monkeypatch, subpopulations, min_size):
    """Caching subsets for later paths only saves time: results are the same without it."""
    y, p, frame = data
    few = frame[list(frame.columns[:2])].assign(grade=frame["grade"])
    options = {"subpopulations": subpopulations, "min_size": min_size, "draws": 9, "seed": 5}
    kept = audit(y, p, covariates=few, **options).to_dict()
    monkeypatch.setattr("calibrant.groups.subpopulations.MAX_REMEMBERED", 0)
    assert audit(y, p, covariates=few, **options).to_dict() == kept
