"""Boosted trees by LightGBM, or by scikit-learn where that is not installed; both become plain tables.

Nothing of either package outlives the fit. Boosting starts from given logits and grows as many trees as
cross-fitting asks for, none where they gain too little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.fits.forest import MIN_THREADED_RECORDS, Forest, Grower, Node, Tree, TreeParams, grower
from calibrant.results import Array


class GrowingLogits:
    """Trees that add to the logits `start` so that the logistic loss falls; outcomes may be shares.

    Each call of `grow` goes on where the last one ended.
    """

    def __init__(
        self, rows: Array, outcome: Array, start: Array, weight: Array, growth: TreeParams,
        by: Grower | None = None,
    ) -> None:  # fmt: skip
        self._data = rows, outcome, weight
        self._logit, self._growth = start.copy(), growth
        self._booster = None
        if (by or grower()) == "lightgbm":
            self._booster = _Booster(rows, outcome, weight, growth, "cross_entropy", start)

    def grow(self, count: int) -> Forest:
        """Return `count` further trees; fewer where nothing is left to split."""
        if self._booster is not None:
            return self._booster.grow(count)
        rows, outcome, weight = self._data
        grown = newton_rounds(rows, outcome, self._logit, weight, replace(self._growth, trees=count))
        self._logit += grown.predict(rows)
        return grown


def boosted_logits(
    rows: Array, outcome: Array, start: Array, weight: Array, growth: TreeParams, by: Grower | None = None
) -> Forest:
    """Grow all trees at once."""
    return GrowingLogits(rows, outcome, start, weight, growth, by).grow(growth.trees)


def boosted_means(
    rows: Array, target: Array, weight: Array, growth: TreeParams, by: Grower | None = None
) -> Forest:
    """Return trees that add up to the mean of a target given the rows."""
    if (by or grower()) == "lightgbm":
        return _Booster(rows, target, weight, growth, "regression").grow(growth.trees)
    return grown_by_scikit_learn(rows, target, weight, growth)


STAGE = 10  # trees between two looks at the held-out loss
STRETCH = 40  # trees grown in every fold before it is asked whether more are needed


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
    """Grow trees on all records; keep them only if the held-out gain exceeds one standard error.

    `held_out` are the folds on which the number of trees is judged, by default each in turn.
    """
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
    trees, forest = STAGE * (stage + 1), Forest(())
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

    Trees grow a stretch at a time until twice as many were tried as have the least loss, and a stretch
    more: with slow learning the loss may rest for a while and fall again.
    """
    parts = [(fold != k, fold == k) for k in folds]
    growing = [GrowingLogits(rows[a], outcome[a], start[a], weight[a], growth) for a, _ in parts]
    held = np.isin(fold, folds)
    share = np.where(held, weight, 0.0) / weight[held].sum()
    reached = start.copy()  # logits of the held-out records, by trees that did not see them
    stretches: list[Array] = []
    for done in range(0, growth.trees, STRETCH):
        count = min(STRETCH, growth.trees - done)
        losses = np.zeros((len(rows), count // STAGE))
        for (_, inside), more in zip(parts, growing, strict=True):
            added = more.grow(count).filled(count).staged(rows[inside], STAGE)
            eta = reached[inside, None] + added
            losses[inside] = np.logaddexp(0.0, eta) - outcome[inside, None] * eta
            reached[inside] += added[:, -1]
        stretches.append(losses)
        means = share @ np.hstack(stretches)
        if len(means) >= 2 * int(np.argmin(means)) + STRETCH // STAGE:
            break
    return np.hstack(stretches)


class _Booster:
    """LightGBM, a few trees at a time: it knows the logits of its records without walking down the trees."""

    def __init__(
        self, rows: Array, target: Array, weight: Array, growth: TreeParams, objective: str,
        start: Array | None = None,
    ) -> None:  # fmt: skip
        import lightgbm

        settings = {
            "objective": objective,
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
        data = lightgbm.Dataset(
            rows, target, weight=weight, init_score=start, categorical_feature=list(growth.categorical),
            params=settings,
        )  # fmt: skip
        self._booster, self._done = lightgbm.Booster(settings, data), 0

    def grow(self, count: int) -> Forest:
        for _ in range(count):
            if self._booster.update():
                break
        trees = self._booster.dump_model(start_iteration=self._done, num_iteration=count)["tree_info"]
        self._done += count
        return Forest(tuple(tree_of_lightgbm(info["tree_structure"]) for info in trees))


def tree_of_lightgbm(root: dict[str, Any]) -> Tree:
    """Turn nested dictionaries into a table, parents before children.

    LightGBM always sends missing categories to the right. It takes a missing number for 0 if the column
    had no gaps when it was fitted; here such a record goes where most of the others went.
    """
    table: list[Node | None] = []

    def place(item: dict[str, Any]) -> int:
        at = len(table)
        table.append(None)
        if "leaf_value" in item:
            table[at] = Node.leaf(float(item["leaf_value"]))
            return at
        left, right = place(item["left_child"]), place(item["right_child"])
        missing_left, threshold, codes = False, 0.0, None
        if item["decision_type"] == "==":
            codes = tuple(sorted(int(code) for code in str(item["threshold"]).split("||")))
        else:
            missing_left, threshold = item["default_left"], float(item["threshold"])
            if item["missing_type"] != "NaN":
                sides = [item[name] for name in ("left_child", "right_child")]
                counts = [side.get("internal_count", side.get("leaf_count", 0)) for side in sides]
                missing_left = counts[0] >= counts[1]
        table[at] = Node(item["split_feature"], left, right, missing_left, threshold, codes, 0.0)
        return at

    place(root)
    return tuple(node for node in table if node is not None)


MAX_CODES = 255  # categories that scikit-learn takes; rarer ones count as missing
NEWTON_ROUND = 25  # trees that scikit-learn grows between two looks at the logistic loss
MIN_VARIANCE = 1e-3  # of an outcome in a Newton step


def newton_rounds(rows: Array, outcome: Array, start: Array, weight: Array, growth: TreeParams) -> Forest:
    """Grow trees on Newton residuals (y - q) / h with weights h: scikit-learn takes no initial score."""
    from scipy.special import expit

    logit, trees = start, list[Tree]()
    while len(trees) < growth.trees:
        q = expit(logit)
        h = np.maximum(q * (1.0 - q), MIN_VARIANCE)
        # half the ridge: it is compared with sums of weight * h here as there, but the steps are fewer
        round_ = replace(growth, trees=min(NEWTON_ROUND, growth.trees - len(trees)), ridge=growth.ridge / 2.0)
        grown = grown_by_scikit_learn(rows, (outcome - q) / h, weight * h, round_)
        trees += grown.trees
        logit = logit + grown.predict(rows)
    return Forest(tuple(trees))


def grown_by_scikit_learn(rows: Array, target: Array, weight: Array, growth: TreeParams) -> Forest:
    from sklearn.ensemble import HistGradientBoostingRegressor
    from threadpoolctl import threadpool_limits

    kept, columns = _few_codes(rows, growth.categorical)
    model = HistGradientBoostingRegressor(
        max_iter=growth.trees,
        learning_rate=growth.learning_rate,
        max_leaf_nodes=growth.leaves,
        min_samples_leaf=growth.smallest_leaf,
        l2_regularization=growth.ridge,
        categorical_features=list(columns) or None,
        early_stopping=False,
        max_features=0.5 if growth.scattered else 1.0,
        random_state=growth.seed,
    )
    with threadpool_limits(1 if len(rows) < MIN_THREADED_RECORDS else None, "openmp"):
        model.fit(kept, target, sample_weight=weight)
    where, codes = list(range(rows.shape[1])), dict[int, list[int]]()
    if columns:  # scikit-learn puts categorical columns first, and renumbers the codes that it has seen
        where = [*columns, *(j for j in where if j not in set(columns))]
        seen = model._preprocessor.named_transformers_["encoder"].categories_
        known = [[int(code) for code in column if not np.isnan(code)] for column in seen]
        codes = dict(zip(columns, known, strict=True))
    base = float(np.ravel(model._baseline_prediction)[0])
    trees = []
    for k, (predictor,) in enumerate(model._predictors):
        bits = predictor.raw_left_cat_bitsets
        nodes = [_node_of(node, where, codes, bits, 0.0 if k else base) for node in predictor.nodes]
        trees.append(tuple(nodes))
    return Forest(tuple(trees))


def _few_codes(rows: Array, categorical: Sequence[int]) -> tuple[Array, tuple[int, ...]]:
    """Return the rows with rare categories missing, and which columns still have a category."""
    kept, columns = rows, []
    for j in categorical:
        present, counts = np.unique(rows[~np.isnan(rows[:, j]), j], return_counts=True)
        if len(present) >= MAX_CODES:
            kept = kept.copy() if kept is rows else kept
            rare = present[np.argsort(-counts, kind="stable")[MAX_CODES - 1 :]]
            kept[np.isin(rows[:, j], rare), j] = np.nan
        if len(present):
            columns.append(j)
    return kept, tuple(columns)


def _node_of(node: Any, where: list[int], codes: dict[int, list[int]], bits: Any, base: float) -> Node:
    """Read one node; a category that the fit has not seen goes where missing goes."""
    if node["is_leaf"]:
        return Node.leaf(float(node["value"]) + base)
    feature, missing_left = where[int(node["feature_idx"])], bool(node["missing_go_to_left"])
    left_codes = None
    if node["is_categorical"]:
        words, known = bits[node["bitset_idx"]], codes[feature]
        left = {code for k, code in enumerate(known) if (int(words[k // 32]) >> (k % 32)) & 1}
        if missing_left:
            left |= set(range(max(known) + 1)) - set(known)
        left_codes = tuple(sorted(left))
    sides = int(node["left"]), int(node["right"])
    return Node(feature, *sides, missing_left, float(node["num_threshold"]), left_codes, 0.0)
