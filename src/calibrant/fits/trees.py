"""Gradient-boosted trees: LightGBM where it is installed, scikit-learn otherwise, tables in either case.

Nothing of either package outlives the fit: what is returned is a Forest of plain tables.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from calibrant.fits.forest import Forest
from calibrant.fits.growth import Grower, Growth, grower
from calibrant.fits.lightgbm_trees import grown_by_lightgbm, lightgbm_settings, tree_of_lightgbm
from calibrant.fits.scikit_learn_trees import grown_by_scikit_learn, newton_rounds
from calibrant.results import Array


def boosted_logits(
    rows: Array, outcome: Array, start: Array, weight: Array, growth: Growth, by: Grower | None = None
) -> Forest:
    """Return trees that add to the logits `start` so that the logistic loss falls; outcomes may be shares."""
    if (by or grower()) == "lightgbm":
        return grown_by_lightgbm(rows, outcome, weight, growth, "cross_entropy", start)
    return newton_rounds(rows, outcome, start, weight, growth)


class GrowingLogits:
    """Trees of `boosted_logits` a few at a time: each call goes on where the last one ended."""

    def __init__(self, rows: Array, outcome: Array, start: Array, weight: Array, growth: Growth) -> None:
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
    rows: Array, target: Array, weight: Array, growth: Growth, by: Grower | None = None
) -> Forest:
    """Return trees that add up to the mean of a target given the rows."""
    if (by or grower()) == "lightgbm":
        return grown_by_lightgbm(rows, target, weight, growth, "regression", None)
    return grown_by_scikit_learn(rows, target, weight, growth)
