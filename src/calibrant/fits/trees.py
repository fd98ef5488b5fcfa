"""Boosted trees: grown by LightGBM, kept as plain tables, so that nothing of the package outlives the fit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, MissingDependencyError
from calibrant.kernels.fits import forest_sums
from calibrant.results import Array

MAX_CODES = 2**24  # of a category: a question holds a bit for each
MACHINE_CODE_ABOVE = 5_000  # walks down a tree, from which compiling pays off


# Nodes are as files have them. A leaf has a "value". A question has the number of a "feature", the places of
# its "left" and "right" child, and where "missing" goes; a number goes left where it is "at_most" a
# threshold, a category where its code is among "codes".
Node = Mapping[str, Any]
Tree = Sequence[Node]  # the root first


@dataclass(frozen=True, eq=False)
class Forest:
    trees: tuple[Tree, ...]

    def __len__(self) -> int:
        return len(self.trees)

    def filled(self, count: int) -> Forest:
        """Return `count` trees: those that are missing because growth ended early add nothing."""
        return Forest((*self.trees, *[({"value": 0.0},)] * (count - len(self))))

    def predict(self, rows: Array) -> Array:
        if not self.trees:
            return np.zeros(len(rows))
        return self.staged(rows, len(self))[:, -1]

    def staged(self, rows: Array, every: int) -> Array:
        """Return the sums after `every`, 2 `every`, ... trees, one column each."""
        sums = np.zeros((len(rows), len(self) // every))
        if len(rows) * len(self) >= MACHINE_CODE_ABOVE:
            forest_sums.compile_now()
        nodes, thresholds, values, bits, roots = self._arrays
        given = np.ascontiguousarray(rows, dtype=np.float64)
        forest_sums(given, nodes, thresholds, values, bits, roots, every, sums)
        return sums

    @cached_property
    def _arrays(self) -> tuple[npt.NDArray[Any], ...]:
        roots = np.cumsum([0, *(len(tree) for tree in self.trees)])
        nodes = [node for tree in self.trees for node in tree]
        table = np.zeros((len(nodes), 6), dtype=np.int64)
        below = np.repeat(roots[:-1], np.diff(roots))
        for column, name in enumerate(("feature", "left", "right")):
            table[:, column] = [node.get(name, -1) for node in nodes]
        table[:, 1:3] += below[:, None]
        table[:, 3] = [node.get("missing") == "left" for node in nodes]
        words, at = [np.zeros(0, dtype=np.uint64)], 0
        for k, node in enumerate(nodes):
            if "codes" in node:
                words.append(np.zeros(max(node["codes"], default=0) // 64 + 1, dtype=np.uint64))
                for code in node["codes"]:  # a bit for each
                    words[-1][code // 64] |= np.uint64(1) << np.uint64(code % 64)
                table[k, 4], table[k, 5] = at, len(words[-1])
                at += len(words[-1])
        thresholds, values = (np.array([node.get(x, 0.0) for node in nodes]) for x in ("at_most", "value"))
        return table, thresholds, values, np.concatenate(words), roots[:-1].astype(np.int64)

    @classmethod
    def from_list(cls, trees: Sequence[Sequence[Node]], features: int) -> Forest:
        """Read trees back: children come after their parents, so that every walk ends."""
        for k, tree in enumerate(trees):
            for place, node in enumerate(tree):
                if not _is_node(node, place, len(tree), features):
                    rule = "must be a table of leaves and questions, root first"
                    raise InvalidInputError(f"tree {k}", rule, f"got {node!r}")
            if not tree:
                raise InvalidInputError(f"tree {k}", "must have a root")
        return cls(tuple(tuple(tree) for tree in trees))


def _is_node(node: Any, place: int, size: int, features: int) -> bool:
    try:
        if "value" in node:
            return math.isfinite(node["value"])
        codes = node.get("codes", (0,))
        inside = place < node["left"] < size and place < node["right"] < size
        known = 0 <= node["feature"] < features and node["missing"] in ("left", "right")
        whole = all(type(item) is int for item in (node["feature"], node["left"], node["right"], *codes))
        asked = "codes" in node or not math.isnan(node["at_most"])
        return inside and known and whole and asked and all(0 <= code < MAX_CODES for code in codes)
    except (AttributeError, KeyError, OverflowError, TypeError):
        return False


@dataclass(frozen=True, slots=True)
class TreeParams:
    categorical: tuple[int, ...] = ()  # columns that hold codes; NaN is missing everywhere
    trees: int = 400
    learning_rate: float = 0.03
    leaves: int = 15
    smallest_leaf: int = 100
    ridge: float = 10.0
    seed: int = 1
    scattered: bool = False  # random thresholds: greedy ones miss two columns that matter only together


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


def grown_trees(
    rows: Array, target: Array, weight: Array, growth: TreeParams, start: Array | None = None
) -> Forest:
    return GrowingTrees(rows, target, weight, growth, start).grow(growth.trees)


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
    folds: Sequence[int],
) -> Boosted:
    """Grow trees on all records if their gain, judged on each of the folds, exceeds one standard error."""
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
        forest = grown_trees(rows, outcome, weight, replace(growth, trees=trees), start)
    return Boosted(forest, gain, error, trees)


def _held_out(
    rows: Array,
    outcome: Array,
    start: Array,
    weight: Array,
    fold: npt.NDArray[np.int64],
    folds: Sequence[int],
    growth: TreeParams,
) -> Array:
    """Return the log loss of each held-out record after 10, 20, ... trees that did not see it."""
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
        # twice as many trees as have the least loss: with slow learning it may rest and fall again
        if len(means) >= 2 * int(np.argmin(means)) + STRETCH_TREES // STAGE_TREES:
            break
    return np.hstack(stretches)


def tree_of_lightgbm(root: dict[str, Any]) -> Tree:
    """Turn nested dictionaries into a table, parents before children."""
    table: list[Node] = []

    def place(item: dict[str, Any]) -> int:
        at = len(table)
        table.append({})
        if "leaf_value" in item:
            table[at] = {"value": float(item["leaf_value"])}
            return at
        left, right = place(item["left_child"]), place(item["right_child"])
        missing_left = False  # LightGBM sends missing categories to the right
        question: dict[str, Any] = {"feature": item["split_feature"]}
        if item["decision_type"] == "==":
            question["codes"] = sorted(int(code) for code in str(item["threshold"]).split("||"))
        else:
            missing_left, question["at_most"] = item["default_left"], float(item["threshold"])
            # no gaps in the fit: NaN goes where most records went, whereas LightGBM takes it for 0
            if item["missing_type"] != "NaN":
                sides = [item[name] for name in ("left_child", "right_child")]
                counts = [side.get("internal_count", side.get("leaf_count", 0)) for side in sides]
                missing_left = counts[0] >= counts[1]
        missing = "left" if missing_left else "right"
        table[at] = {**question, "left": left, "right": right, "missing": missing}
        return at

    place(root)
    return tuple(table)
