"""Trees of LightGBM as plain tables."""

from __future__ import annotations

from typing import Any

from calibrant.fits.forest import Forest, Node, Tree
from calibrant.fits.growth import WORTH_THREADS, Growth
from calibrant.results import Array


def grown_by_lightgbm(
    rows: Array, target: Array, weight: Array, growth: Growth, objective: str, start: Array | None
) -> Forest:
    import lightgbm

    settings = lightgbm_settings(len(rows), growth, objective)
    shown = lightgbm.Dataset(
        rows, target, weight=weight, init_score=start, categorical_feature=list(growth.categorical)
    )
    booster = lightgbm.train(settings, shown, num_boost_round=growth.trees)
    trees = [tree_of_lightgbm(info["tree_structure"]) for info in booster.dump_model()["tree_info"]]
    return Forest(tuple(trees))


def lightgbm_settings(records: int, growth: Growth, objective: str) -> dict[str, Any]:
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
