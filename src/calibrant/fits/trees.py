"""Boosted trees by LightGBM, which become plain tables: nothing of the package outlives the fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.errors import MissingDependencyError
from calibrant.fits.forest import Forest, Node, Tree, TreeParams
from calibrant.results import Array

MIN_THREADED_RECORDS = 200_000  # on fewer, threads that wait for one another cost more than they bring


class GrowingTrees:
    """Trees that add up to the mean of a target, or that add to the logits `start` of outcomes or shares."""

    def __init__(
        self, rows: Array, target: Array, weight: Array, growth: TreeParams, start: Array | None = None
    ) -> None:
        try:
            import lightgbm
        except ImportError:
            hint = "pip install 'calibrant[boost]'"
            raise MissingDependencyError("boosted trees", "need LightGBM", hint=hint) from None
        settings = {
            "objective": "regression" if start is None else "cross_entropy",
            "learning_rate": growth.learning_rate,
            "num_leaves": growth.leaves,
            "min_child_samples": growth.smallest_leaf,
            "lambda_l2": growth.ridge,
            "boost_from_average": False,
            "verbosity": -1,
            "deterministic": True,
            "force_row_wise": True,
            "num_threads": 1 if len(rows) < MIN_THREADED_RECORDS else 0,
            "seed": growth.seed,
            "extra_trees": growth.scattered,
        }
        categorical = list(growth.categorical)
        data = lightgbm.Dataset(
            rows, target, weight=weight, init_score=start, categorical_feature=categorical, params=settings
        )
        self._booster, self._done = lightgbm.Booster(settings, data), 0

    def grow(self, count: int) -> Forest:
        for _ in range(count):
            if self._booster.update():
                break
        trees = self._booster.dump_model(start_iteration=self._done, num_iteration=count)["tree_info"]
        self._done += count
        return Forest(tuple(tree_of_lightgbm(info["tree_structure"]) for info in trees))


def boosted_logits(rows: Array, outcome: Array, start: Array, weight: Array, growth: TreeParams) -> Forest:
    return GrowingTrees(rows, outcome, weight, growth, start).grow(growth.trees)


def boosted_means(rows: Array, target: Array, weight: Array, growth: TreeParams) -> Forest:
    return GrowingTrees(rows, target, weight, growth).grow(growth.trees)


STAGE_TREES = 10  # trees between two looks at the held-out loss
STRETCH_TREES = 40  # trees grown in every fold before it is asked whether more are needed


@dataclass(frozen=True, slots=True, eq=False)
class Boosted:
    """Trees to add to the start, and their cross-fitted gain of log loss with its standard error."""

    forest: Forest
    gain: float
    error: float
    trees: int  # that cross-fitting asked for, whether or not they were kept


def boosted(
    rows: Array,
    outcome: Array,
    start: Array,
    weight: Array,
    fold: npt.NDArray[np.int64],
    growth: TreeParams,
    *,
    held_out: Sequence[int] | None = None,
) -> Boosted:
    """Grow trees on all records if their gain, judged on each of some folds, exceeds one standard error."""
    folds = np.unique(fold) if held_out is None else held_out
    inside = np.isin(fold, folds)
    losses = _held_out(rows, outcome, start, weight, fold, folds, growth)[inside]
    judged = weight[inside]
    share = judged / judged.sum()
    stage = int(np.argmin(share @ losses))
    before = np.logaddexp(0.0, start[inside]) - outcome[inside] * start[inside]
    gains = before - losses[:, stage]
    gain = float(share @ gains)
    error = float(np.sqrt(share @ (gains - gain) ** 2 / judged.sum()))
    trees, forest = STAGE_TREES * (stage + 1), Forest(())
    if gain > error:
        forest = boosted_logits(rows, outcome, start, weight, replace(growth, trees=trees))
    return Boosted(forest, gain, error, trees)


def _held_out(
    rows: Array,
    outcome: Array,
    start: Array,
    weight: Array,
    fold: npt.NDArray[np.int64],
    folds: Sequence[int] | npt.NDArray[np.int64],
    growth: TreeParams,
) -> Array:
    """Return the log loss of each held-out record after 10, 20, ... trees that did not see it.

    Twice as many trees are tried as have the least loss: with slow learning it may rest and fall again.
    """
    parts = [(fold != k, fold == k) for k in folds]
    growing = [GrowingTrees(rows[a], outcome[a], weight[a], growth, start[a]) for a, _ in parts]
    held = np.isin(fold, folds)
    share = np.where(held, weight, 0.0) / weight[held].sum()
    reached = start.copy()  # logits of the held-out records, by trees that did not see them
    stretches: list[Array] = []
    for done in range(0, growth.trees, STRETCH_TREES):
        count = min(STRETCH_TREES, growth.trees - done)
        losses = np.zeros((len(rows), count // STAGE_TREES))
        for (_, inside), more in zip(parts, growing, strict=True):
            added = more.grow(count).filled(count).staged(rows[inside], STAGE_TREES)
            eta = reached[inside, None] + added
            losses[inside] = np.logaddexp(0.0, eta) - outcome[inside, None] * eta
            reached[inside] += added[:, -1]
        stretches.append(losses)
        means = share @ np.hstack(stretches)
        if len(means) >= 2 * int(np.argmin(means)) + STRETCH_TREES // STAGE_TREES:
            break
    return np.hstack(stretches)


def tree_of_lightgbm(root: dict[str, Any]) -> Tree:
    """Turn nested dictionaries into a table, parents before children.

    LightGBM always sends missing categories to the right. It takes a missing number for 0 if the column
    had no gaps when it was fitted; here such a record goes where most of the others went.
    """
    table: list[Node] = []

    def place(item: dict[str, Any]) -> int:
        at = len(table)
        table.append({})
        if "leaf_value" in item:
            table[at] = {"value": float(item["leaf_value"])}
            return at
        left, right = place(item["left_child"]), place(item["right_child"])
        missing_left = False
        question: dict[str, Any] = {"feature": item["split_feature"]}
        if item["decision_type"] == "==":
            question["codes"] = sorted(int(code) for code in str(item["threshold"]).split("||"))
        else:
            missing_left, question["at_most"] = item["default_left"], float(item["threshold"])
            if item["missing_type"] != "NaN":
                sides = [item[name] for name in ("left_child", "right_child")]
                counts = [side.get("internal_count", side.get("leaf_count", 0)) for side in sides]
                missing_left = counts[0] >= counts[1]
        missing = "left" if missing_left else "right"
        table[at] = {**question, "left": left, "right": right, "missing": missing}
        return at

    place(root)
    return tuple(table)
