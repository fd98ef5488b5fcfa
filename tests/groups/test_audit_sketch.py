"""audit(sketch): proven bounds hold what the rows say, p-values are those of chance, whatever the data."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant import Sketch, audit
from calibrant.errors import InvalidInputError, UnknownNameError

BY = ["city", "age"]


def rows(rng, n, kind):
    """Ugly data: ties, 0 and 1, gridded decimals, weights over many orders of magnitude."""
    p = {
        "uniform": lambda: rng.random(n),
        "grid": lambda: rng.integers(0, 11, n) / 10,
        "edges": lambda: np.clip(
            np.nextafter(rng.integers(0, 129, n) / 128, rng.choice([-1, 0.5, 2], n)), 0, 1
        ),
        "ends": lambda: rng.choice([0.0, 1.0, 0.5, 1e-9, 1 - 1e-9, 1e-300, 5e-324], n),
        "clumped": lambda: 0.3 + 1e-4 * rng.random(n),
        "equal": lambda: np.full(n, 0.37),
    }[kind]()
    y = (rng.random(n) < np.clip(p + rng.normal(0, 0.1), 0, 1)).astype(int)
    columns = {
        "city": np.array(["A", "B", None, "C"], dtype=object)[rng.integers(0, 4, n)].tolist(),
        "age": rng.integers(0, 3, n).tolist(),
    }
    return y, p, columns


def sketched(y, p, columns, weight=None, cells=64):
    import pyarrow as pa

    table = {"y": y, "p": p, **columns} | ({} if weight is None else {"w": weight})
    return Sketch.from_frame(
        pa.table(table),
        outcome="y",
        prediction="p",
        weight=None if weight is None else "w",
        by=list(columns),
        cells=cells,
    )


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 120),
    kind=st.sampled_from(["uniform", "grid", "edges", "ends", "clumped", "equal"]),
    weighted=st.sampled_from([False, "some zeros", "all"]),
    statistic=st.sampled_from(["kuiper", "mean"]),
    cells=st.sampled_from([1, 2, 7, 10, 64, 128, 4096]),
)
def test_bounds_hold_what_the_rows_say(seed, n, kind, weighted, statistic, cells):
    rng = np.random.default_rng(seed)
    y, p, columns = rows(rng, n, kind)
    weight = 10.0 ** rng.uniform(-6, 6, n) if weighted else None
    if weighted == "some zeros":
        weight[1:] *= rng.random(n - 1) < 0.7
    options = {"min_size": 1, "draws": 0, "statistic": statistic}
    exact = audit(y, p, groups=columns, sample_weight=weight, **options)
    found = audit(sketched(y, p, columns, weight, cells), **options)
    assert found.lower <= found.metric <= found.upper
    assert found.lower * (1 - 1e-9) <= exact.metric <= found.upper * (1 + 1e-9)
    assert (found.n, found.tested, found.not_tested) == (exact.n, exact.tested, exact.not_tested)
    by_rule = {group.rule: group for group in found.groups}
    for group in exact.groups:
        mine = by_rule[group.rule]
        assert mine.lower <= group.statistic(statistic) <= mine.upper
        assert mine.lower <= mine.statistic(statistic) <= mine.upper
        assert mine.size == group.size
        for name in ("share", "gap", "sigma", "mean_prediction", "mean_outcome"):
            assert getattr(mine, name) == pytest.approx(getattr(group, name), rel=1e-9, abs=1e-12), name


@pytest.mark.parametrize("tiny", [5e-324, 1e-320, 1e-310, 1e-300])
@pytest.mark.parametrize("statistic", ["kuiper", "mean"])
def test_predictions_whose_variance_underflows_accuse_nobody(tiny, statistic):
    """Only an outcome that was as good as impossible is infinitely wrong."""
    p, columns = [tiny, 0.5, 0.25, 0.5], {"city": ["A", "B", "B", "B"]}
    for first, wrong in ((0, False), (1, True)):
        y, weight = [first, 1, 0, 0], [2.0, 3.0, 3.0, 2.0]
        options = {"min_size": 1, "draws": 0, "statistic": statistic}
        for found in (
            audit(y, p, groups=columns, sample_weight=weight, **options),
            audit(sketched(y, p, columns, weight), **options),
        ):
            group = next(group for group in found.groups if group.rule == "city = A")
            assert (group.z > 1e100) == (found.metric > 1e100) == wrong
            assert wrong or group.z == 0.0


@pytest.mark.parametrize("statistic", ["kuiper", "mean"])
def test_one_prediction_per_cell_loses_nothing(statistic):
    y, p, columns = rows(np.random.default_rng(3), 4000, "grid")
    exact = audit(y, p, groups=columns, draws=0, statistic=statistic)
    found = audit(sketched(y, p, columns, cells=1000), draws=0, statistic=statistic)
    assert found.upper - found.lower < 1e-9
    for mine, group in zip(found.groups, exact.groups, strict=True):
        assert mine.rule == group.rule
        assert (mine.predictions, mine.size) == (group.predictions, group.size)
        for name in ("kuiper", "z", "metric", "start", "stop"):
            assert getattr(mine, name) == pytest.approx(getattr(group, name), rel=1e-9, abs=1e-12), name


def test_pvalues_agree_with_those_of_rows():
    """Both simulate the same null: mean statistics and p-values agree within their own noise."""
    rng = np.random.default_rng(5)
    y, p, columns = rows(rng, 3000, "uniform")
    exact = audit(y, p, groups=columns, draws=1999, seed=1)
    found = audit(sketched(y, p, columns, cells=2048), draws=1999, seed=2)
    assert found.cells is not None
    by_rule = {group.rule: group for group in found.groups}
    for group in exact.groups:
        mine = by_rule[group.rule]
        assert mine.pvalue == pytest.approx(group.pvalue, abs=0.06)
        assert mine.expected == pytest.approx(group.expected, rel=0.05)


def test_pvalues_agree_with_weights_and_few_cells():
    rng = np.random.default_rng(6)
    y, p, columns = rows(rng, 3000, "grid")
    weight = rng.integers(1, 4, 3000).astype(float)
    exact = audit(y, p, groups=columns, sample_weight=weight, draws=1999, seed=1)
    found = audit(sketched(y, p, columns, weight, cells=100), draws=1999, seed=2)
    for mine, group in zip(found.groups, exact.groups, strict=True):
        assert mine.rule == group.rule
        assert mine.pvalue == pytest.approx(group.pvalue, abs=0.06)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["uniform", "grid", "clumped"])
def test_calibrated_data_is_rejected_as_often_as_promised(kind):
    rejected, runs = 0, 400
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        _, p, columns = rows(rng, 400, kind)
        y = (rng.random(400) < p).astype(int)
        rejected += audit(sketched(y, p, columns, cells=32), draws=99, seed=seed).pvalue <= 0.05
    assert rejected / runs <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / runs)


def test_many_cells_are_merged_for_pvalues_alone():
    rng = np.random.default_rng(7)
    p = rng.random(30_000)
    columns = {"city": np.array(["A", "B"])[(rng.random(30_000) < 0.3).astype(int)].tolist()}
    wrong = np.where(np.array(columns["city"]) == "B", 0.9 * p, p)
    y = (rng.random(30_000) < wrong).astype(int)
    exact = audit(y, p, groups=columns, draws=99, seed=1)
    found = audit(sketched(y, p, columns, cells=65_536), draws=99, seed=1)
    assert found.cells <= 2060
    assert found.lower <= exact.metric <= found.upper <= found.lower * 1.01
    assert found.worst.rule == exact.worst.rule == "city = B"
    assert found.pvalue == found.worst.pvalue == 1 / (found.draws + 1)
    assert "on the raw rows" in str(found)
    assert "cells" in str(found)


def test_the_same_seed_gives_the_same_result_and_merging_days_does_not_matter():
    y, p, columns = rows(np.random.default_rng(8), 500, "uniform")
    whole = sketched(y, p, columns, cells=50)
    days = [
        sketched(y[part], p[part], {k: v[part] for k, v in columns.items()}, cells=50)
        for part in (slice(0, 200), slice(200, 500))
    ]
    first, second = audit(whole, seed=4), audit(days[1] + days[0], seed=4)
    assert first.metric == pytest.approx(second.metric, rel=1e-12)
    assert [g.pvalue for g in first.groups] == [g.pvalue for g in second.groups]


def test_some_columns_of_the_sketch_can_be_chosen():
    y, p, columns = rows(np.random.default_rng(9), 500, "uniform")
    found = audit(sketched(y, p, columns), groups="city", draws=0)
    exact = audit(y, p, groups={"city": columns["city"]}, draws=0)
    assert {g.rule for g in found.groups} == {g.rule for g in exact.groups}
    deep = audit(sketched(y, p, columns), depth=1, draws=0)
    assert not any(" and " in g.rule for g in deep.groups)
    few = audit(sketched(y, p, columns), limit=2, draws=0)
    assert (few.tested, few.not_tested.over_limit) == (3, 4 + 3 + 12 - 2)


def test_rules_pick_new_rows():
    y, p, columns = rows(np.random.default_rng(10), 300, "uniform")
    found = audit(sketched(y, p, columns), draws=0)
    for group in found.groups:
        assert int(group.rule.members(columns).sum()) == group.size


def test_what_a_sketch_cannot_do_is_refused():
    y, p, columns = rows(np.random.default_rng(11), 50, "uniform")
    sketch = sketched(y, p, columns)
    with pytest.raises(InvalidInputError, match="must have groups"):
        audit(Sketch.from_arrays(y, p))
    with pytest.raises(InvalidInputError, match="must hold a record"):
        audit(Sketch(by="city"))
    with pytest.raises(InvalidInputError, match="covariates need the rows"):
        audit(sketch, covariates=columns)
    with pytest.raises(InvalidInputError, match="variant 'real' needs the rows"):
        audit(sketch, variant="real")
    with pytest.raises(InvalidInputError, match="already"):
        audit(sketch, p)
    with pytest.raises(UnknownNameError, match="town"):
        audit(sketch, groups=["town"])
    with pytest.raises(InvalidInputError, match="must name a column"):
        audit(sketch, groups=[])
    with pytest.raises(InvalidInputError, match="must be 0 or 1"):
        audit(sketched([0.5, 1.0], [0.2, 0.3], {"city": ["A", "B"]}))
