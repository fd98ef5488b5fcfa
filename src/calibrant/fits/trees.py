"""Gradient-boosted trees: LightGBM where it is installed, scikit-learn otherwise, tables in either case.

Nothing of either package outlives the fit: what is returned is a Forest of plain tables.

Boosting from a given start: as many trees as cross-fitting asks for, none where they gain too little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.fits.forest import Forest, Grower, TreeParams, grower
from calibrant.fits.tree_backends import (
    grown_by_lightgbm,
    grown_by_scikit_learn,
    lightgbm_settings,
    newton_rounds,
    tree_of_lightgbm,
)
from calibrant.results import Array


def boosted_logits(
    rows: Array, outcome: Array, start: Array, weight: Array, growth: TreeParams, by: Grower | None = None
) -> Forest:
    """Return trees that add to the logits `start` so that the logistic loss falls; outcomes may be shares."""
    if (by or grower()) == "lightgbm":
        return grown_by_lightgbm(rows, outcome, weight, growth, "cross_entropy", start)
    return newton_rounds(rows, outcome, start, weight, growth)


class GrowingLogits:
    """Trees of `boosted_logits` a few at a time: each call goes on where the last one ended."""

    def __init__(self, rows: Array, outcome: Array, start: Array, weight: Array, growth: TreeParams) -> None:
        self._data = rows, outcome, weight
        self._logit, self._growth, self._done = start.copy(), growth, 0
        self._booster: Any = None

    def grow(self, count: int) -> Forest:
        """Return `count` further trees; fewer where nothing is left to split."""
        if grower() == "lightgbm":
            return self._grown_by_lightgbm(count)
        some = replace(self._growth, trees=count)
        rows, outcome, weight = self._data
        grown = newton_rounds(rows, outcome, self._logit, weight, some)
        self._logit += grown.predict(rows)
        return grown

    def _grown_by_lightgbm(self, count: int) -> Forest:
        """Continue one booster: it knows the logits of its records without walking down the trees again."""
        import lightgbm

        rows, outcome, weight = self._data
        if self._booster is None:
            settings = lightgbm_settings(len(rows), self._growth, "cross_entropy")
            categories = list(self._growth.categorical)
            data = lightgbm.Dataset(
                rows, outcome, weight=weight, init_score=self._logit, categorical_feature=categories,
                params=settings,
            )  # fmt: skip
            self._booster = lightgbm.Booster(settings, data)
        for _ in range(count):
            if self._booster.update():
                break
        trees = self._booster.dump_model(start_iteration=self._done, num_iteration=count)["tree_info"]
        self._done += count
        return Forest(tuple(tree_of_lightgbm(info["tree_structure"]) for info in trees))


def boosted_means(
    rows: Array, target: Array, weight: Array, growth: TreeParams, by: Grower | None = None
) -> Forest:
    """Return trees that add up to the mean of a target given the rows."""
    if (by or grower()) == "lightgbm":
        return grown_by_lightgbm(rows, target, weight, growth, "regression", None)
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
    errors: float = 1.0,
    held_out: Sequence[int] | None = None,
) -> Boosted:
    """Grow trees on all records; keep them only if the held-out gain exceeds `errors` standard errors.

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
    trees = STAGE * (stage + 1)
    if gain <= errors * error:
        return Boosted(Forest(()), gain, error, trees)
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
