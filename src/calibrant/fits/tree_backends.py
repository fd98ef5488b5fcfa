"""Trees of LightGBM as plain tables.

Trees of scikit-learn as plain tables, and the logistic loss by Newton rounds of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from calibrant.fits.forest import WORTH_THREADS, Forest, Node, Tree, TreeParams
from calibrant.results import Array


def grown_by_lightgbm(
    rows: Array, target: Array, weight: Array, growth: TreeParams, objective: str, start: Array | None
) -> Forest:
    import lightgbm

    settings = lightgbm_settings(len(rows), growth, objective)
    shown = lightgbm.Dataset(
        rows, target, weight=weight, init_score=start, categorical_feature=list(growth.categorical)
    )
    booster = lightgbm.train(settings, shown, num_boost_round=growth.trees)
    trees = [tree_of_lightgbm(info["tree_structure"]) for info in booster.dump_model()["tree_info"]]
    return Forest(tuple(trees))


def lightgbm_settings(records: int, growth: TreeParams, objective: str) -> dict[str, Any]:
    return {
        "objective": objective,
        "learning_rate": growth.learning_rate,
        "num_leaves": growth.leaves,
        "min_child_samples": growth.smallest_leaf,
        "lambda_l2": growth.ridge,
        "boost_from_average": False,
        "verbosity": -1,
        "deterministic": True,
        "force_row_wise": True,
        "num_threads": 1 if records < WORTH_THREADS else 0,
        "seed": growth.seed,
        "extra_trees": growth.scattered,
    }


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
        if item["decision_type"] == "==":
            codes = tuple(sorted(int(code) for code in str(item["threshold"]).split("||")))
            table[at] = Node(item["split_feature"], left, right, False, 0.0, codes, 0.0)
            return at
        missing_left = item["default_left"]
        if item["missing_type"] != "NaN":
            missing_left = _count(item["left_child"]) >= _count(item["right_child"])
        threshold = float(item["threshold"])
        table[at] = Node(item["split_feature"], left, right, missing_left, threshold, None, 0.0)
        return at

    place(root)
    return tuple(node for node in table if node is not None)


def _count(item: dict[str, Any]) -> int:
    count: int = item.get("internal_count", item.get("leaf_count", 0))
    return count


MOST_CODES = 255  # categories that scikit-learn takes; rarer ones count as missing
NEWTON_ROUND = 25  # trees that scikit-learn grows between two looks at the logistic loss
LEAST_VARIANCE = 1e-3  # of an outcome in a Newton step


def newton_rounds(rows: Array, outcome: Array, start: Array, weight: Array, growth: TreeParams) -> Forest:
    """Grow trees on Newton residuals (y - q) / h with weights h: scikit-learn takes no initial score."""
    from scipy.special import expit

    logit, trees = start, list[Tree]()
    while len(trees) < growth.trees:
        count = min(NEWTON_ROUND, growth.trees - len(trees))
        q = expit(logit)
        h = np.maximum(q * (1.0 - q), LEAST_VARIANCE)
        # half the ridge: it is compared with sums of weight * h here as there, but the steps are fewer
        grown = grown_by_scikit_learn(rows, (outcome - q) / h, weight * h, growth, count, growth.ridge / 2.0)
        trees += grown.trees
        logit = logit + grown.predict(rows)
    return Forest(tuple(trees))


def grown_by_scikit_learn(
    rows: Array,
    target: Array,
    weight: Array,
    growth: TreeParams,
    trees: int | None = None,
    ridge: float = 0.0,
) -> Forest:
    from sklearn.ensemble import HistGradientBoostingRegressor

    kept, columns = _few_codes(rows, growth.categorical)
    model = HistGradientBoostingRegressor(
        max_iter=trees or growth.trees,
        learning_rate=growth.learning_rate,
        max_leaf_nodes=growth.leaves,
        min_samples_leaf=growth.smallest_leaf,
        l2_regularization=ridge or growth.ridge,
        categorical_features=list(columns) or None,
        early_stopping=False,
        max_features=0.5 if growth.scattered else 1.0,
        random_state=growth.seed,
    )
    with _few_threads(len(rows)):
        model.fit(kept, target, sample_weight=weight)
    where, codes = _columns_inside(model, rows.shape[1], columns)
    grown = [_from_scikit_learn(stage[0], where, codes) for stage in model._predictors]
    base = float(np.ravel(model._baseline_prediction)[0])
    first = tuple(
        Node.leaf(node.value + base) if node.feature < 0 else node for node in (grown[0] if grown else ())
    )
    return Forest((first, *grown[1:]))


def _few_threads(records: int) -> AbstractContextManager[Any]:
    from threadpoolctl import threadpool_limits

    limits: AbstractContextManager[Any] = threadpool_limits(1 if records < WORTH_THREADS else None, "openmp")
    return limits


def _few_codes(rows: Array, categorical: Sequence[int]) -> tuple[Array, tuple[int, ...]]:
    """Return the rows with rare categories missing, and which columns still have a category."""
    kept, columns = rows, []
    for j in categorical:
        present, counts = np.unique(rows[~np.isnan(rows[:, j]), j], return_counts=True)
        if len(present) >= MOST_CODES:
            kept = kept.copy() if kept is rows else kept
            rare = present[np.argsort(-counts, kind="stable")[MOST_CODES - 1 :]]
            kept[np.isin(rows[:, j], rare), j] = np.nan
        if len(present):
            columns.append(j)
    return kept, tuple(columns)


def _columns_inside(
    model: Any, width: int, categorical: Sequence[int]
) -> tuple[list[int], dict[int, list[int]]]:
    """Return which column each feature of the fitted model is, and the codes behind its categories.

    scikit-learn puts categorical columns first, and renumbers the codes that it has seen.
    """
    if not categorical:
        return list(range(width)), {}
    where = [*categorical, *(j for j in range(width) if j not in set(categorical))]
    seen = model._preprocessor.named_transformers_["encoder"].categories_
    known = [[int(code) for code in column if not np.isnan(code)] for column in seen]
    return where, dict(zip(categorical, known, strict=True))


def _from_scikit_learn(predictor: Any, where: list[int], codes: dict[int, list[int]]) -> Tree:
    bits = predictor.raw_left_cat_bitsets
    read: Callable[[Any], Node] = lambda node: _node_of(node, where, codes, bits)  # noqa: E731
    return tuple(read(node) for node in predictor.nodes)


def _node_of(node: Any, where: list[int], codes: dict[int, list[int]], bits: Any) -> Node:
    """Read one node; a category that the fit has not seen goes where missing goes."""
    if node["is_leaf"]:
        return Node.leaf(float(node["value"]))
    feature, missing_left = where[int(node["feature_idx"])], bool(node["missing_go_to_left"])
    left_codes = None
    if node["is_categorical"]:
        words = bits[node["bitset_idx"]]
        known = codes[feature]
        inside = [k for k in range(len(known)) if (int(words[k // 32]) >> (k % 32)) & 1]
        left = {known[k] for k in inside}
        if missing_left:
            left |= set(range(max(known) + 1)) - set(known)
        left_codes = tuple(sorted(left))
    sides = int(node["left"]), int(node["right"])
    return Node(feature, *sides, missing_left, float(node["num_threshold"]), left_codes, 0.0)
