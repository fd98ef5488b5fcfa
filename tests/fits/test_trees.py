"""Trees as tables: they say what the package that grew them says, also of gaps and categories never seen."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
from scipy.special import expit

from calibrant.errors import CalibrantError, MissingDependencyError
from calibrant.fits.trees import Forest, GrowingTrees, TreeParams, grown_trees
from calibrant.kernels.fits import forest_sums

CODES = (1, 3)


def table(seed: int, n: int, gaps: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Two numbers, a column of 12 categories and one of 300, with gaps; outcomes that depend on them."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, 4))
    rows[:, 1], rows[:, 3] = rng.integers(0, 12, n), rng.integers(0, 300, n)
    if gaps:
        rows[rng.random((n, 4)) < 0.1] = np.nan
    eta = np.nan_to_num(rows[:, 0]) + np.nan_to_num(rows[:, 1]) % 3 - 1
    return rows, (rng.random(n) < 1 / (1 + np.exp(-eta))).astype(float)


def slow_sum(forest: Forest, row: np.ndarray) -> float:
    """Walk one record down every tree."""
    total = 0.0
    for tree in forest.trees:
        node = tree[0]
        while "feature" in node:
            value = row[node["feature"]]
            if np.isnan(value):
                left = node["missing"] == "left"
            else:
                left = int(value) in node["codes"] if "codes" in node else value <= node["at_most"]
            node = tree[node["left" if left else "right"]]
        total += node["value"]
    return total


def test_every_walk_is_the_slow_walk_and_stages_are_partial_sums():
    pytest.importorskip("lightgbm")
    rows, y = table(0, 2000)
    forest = grown_trees(rows, y, np.ones(2000), TreeParams(CODES, trees=30), np.zeros(2000))
    new, _ = table(1, 60)
    new[:10, 3] = 1000.0  # a category not seen in training
    assert forest.predict(new) == pytest.approx([slow_sum(forest, row) for row in new], abs=1e-12)
    staged = forest.staged(new, 10)
    assert staged.shape == (60, 3)
    for stage in range(3):
        assert staged[:, stage] == pytest.approx(
            Forest(forest.trees[: 10 * (stage + 1)]).predict(new), abs=1e-12
        )
    plain = np.zeros((60, 3))
    forest_sums.plain(new, *forest._arrays, 10, plain)
    np.testing.assert_array_equal(plain, staged)


def test_lightgbm_says_the_same_as_its_tables():
    lightgbm = pytest.importorskip("lightgbm")
    rows, y = table(2, 3000)
    w = np.random.default_rng(0).random(3000) + 0.5
    growth = TreeParams(CODES, trees=40, smallest_leaf=20)
    forest = grown_trees(rows, y, w, growth)
    settings = {
        "objective": "regression",
        "learning_rate": growth.learning_rate,
        "num_leaves": growth.leaves,
        "min_child_samples": growth.smallest_leaf,
        "lambda_l2": growth.ridge,
        "boost_from_average": False,
        "verbosity": -1,
        "deterministic": True,
        "force_row_wise": True,
        "num_threads": 1,
        "seed": growth.seed,
    }
    data = lightgbm.Dataset(rows, y, weight=w, categorical_feature=list(CODES))
    booster = lightgbm.train(settings, data, num_boost_round=40)
    new, _ = table(3, 500)
    new[:10, 3] = 1000.0
    np.testing.assert_allclose(forest.predict(new), booster.predict(new), rtol=0, atol=1e-12)


def test_boosting_lowers_the_logistic_loss_from_any_start():
    pytest.importorskip("lightgbm")
    rows, y = table(6, 3000)
    start = np.where(rows[:, 2] > 0, 0.5, -0.2)
    forest = grown_trees(rows, y, np.ones(3000), TreeParams(CODES, trees=50), start)
    new, fresh = table(7, 3000)
    before = np.where(new[:, 2] > 0, 0.5, -0.2)
    after = before + forest.predict(new)
    loss = [np.mean(np.logaddexp(0, eta) - fresh * eta) for eta in (before, after)]
    assert loss[1] < loss[0] - 0.05


def test_tables_survive_json_to_the_last_bit():
    pytest.importorskip("lightgbm")
    rows, y = table(8, 1500)
    forest = grown_trees(rows, y, np.ones(1500), TreeParams(CODES, trees=20), np.zeros(1500))
    again = Forest.from_list(json.loads(json.dumps(forest.trees)), 4)
    np.testing.assert_array_equal(again.predict(rows), forest.predict(rows))


@pytest.mark.parametrize(
    "tree",
    [
        [],
        [{"feature": 0, "at_most": 1.0, "left": 0, "right": 1, "missing": "left"}, {"value": 1.0}],  # a loop
        [
            {"feature": 9, "at_most": 1.0, "left": 1, "right": 2, "missing": "left"},
            {"value": 1},
            {"value": 2},
        ],
        [{"feature": 0, "at_most": 1.0, "left": 1, "right": 7, "missing": "left"}, {"value": 1.0}],
        [{"value": "nan"}],
        [{"value": "much"}],
        [{"feature": 0, "left": 1, "right": 2, "missing": "left"}, {"value": 1}, {"value": 2}],
        [{"feature": 0, "codes": [-3], "left": 1, "right": 2, "missing": "left"}, {"value": 1}, {"value": 2}],
    ],
)
def test_a_table_that_is_no_tree_is_refused(tree):
    with pytest.raises(CalibrantError):
        Forest.from_list([tree], 2)


def test_no_trees_add_nothing():
    assert Forest(()).predict(np.zeros((3, 2))).tolist() == [0, 0, 0]
    assert Forest((({"value": 2.5},),)).predict(np.zeros((2, 1))).tolist() == [2.5, 2.5]


def test_without_lightgbm_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    rows, y = table(9, 50)
    with pytest.raises(MissingDependencyError, match=r"calibrant\[boost\]"):
        grown_trees(rows, y, np.ones(50), TreeParams(CODES, trees=10))


@pytest.mark.parametrize("n", [5, 60, 600])
def test_growing_in_parts_is_growing_at_once(n):
    """Also where nothing is left to split: then further trees are none, or add nothing."""
    pytest.importorskip("lightgbm")
    rng = np.random.default_rng(n)
    rows = np.column_stack((rng.normal(size=n), rng.integers(0, 3, n).astype(float)))
    y, start = (rng.random(n) < expit(rows[:, 0])).astype(float), rng.normal(size=n) / 10
    growth = TreeParams((1,), trees=30, smallest_leaf=25, learning_rate=0.1)
    whole = grown_trees(rows, y, np.ones(n), growth, start)
    growing = GrowingTrees(rows, y, np.ones(n), growth, start)
    parts = sum(growing.grow(10).filled(10).predict(rows) for _ in range(3))
    np.testing.assert_allclose(parts, whole.predict(rows), rtol=0, atol=1e-12)
