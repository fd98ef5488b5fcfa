"""augment: Appendix E of the multi-calibration paper, for reproduction; cross-fitting judges it too."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, get_args

import numpy as np

from calibrant.errors import InvalidInputError, reject_name, sentence
from calibrant.fits.forest import Forest
from calibrant.fits.growth import Growth
from calibrant.fits.linear import Linear, logistic_regression
from calibrant.fits.trees import boosted_logits, boosted_means
from calibrant.groups.features import Features
from calibrant.recalibration.levels_of_columns import coded, met
from calibrant.recalibration.maps.augment import AugmentMap, predicted_by
from calibrant.recalibration.registry import Fitted
from calibrant.recalibration.samples import Rows
from calibrant.results import Array

Model = Literal["tree", "boosting", "logistic"]
TREE = Growth(trees=1, learning_rate=1.0, leaves=1024, smallest_leaf=100, ridge=0.0)
BOOSTING = Growth(trees=100, learning_rate=0.1, leaves=31, smallest_leaf=20, ridge=0.0)  # LightGBM's defaults


def augment(sample: Rows, *, seed: int, model: Model = "tree", times: int = 3) -> Fitted:
    """Refit a model to covariates and its previous prediction, `times` times on the same records.

    The predictions given are those of a model fitted to other records. "tree" is a decision tree with at
    least 100 records per leaf, "boosting" is LightGBM with its defaults, "logistic" is logistic regression
    with scikit-learn's default ridge, on numbers divided by their largest, solved to the end.
    """
    if model not in get_args(Model):
        raise reject_name("model", str(model), list(get_args(Model)))
    if isinstance(times, bool) or not isinstance(times, int) or times < 1:
        raise InvalidInputError(sentence("times", "must be a whole number from 1", f"got {times!r}"))
    assert sample.covariates is not None  # the registry row says so
    columns = coded(sample.covariates)
    features = Features.of(columns)
    given = met(features, columns)
    q, models, logits = sample.predictions, list[Forest | Linear](), model != "tree"
    for _ in range(times):
        rows = np.column_stack((given.encoded.rows, q))
        models.append(_refitted(rows, sample, features.categorical, model))
        q = predicted_by(models[-1], rows, logits)
    missing = tuple(name for name, count in given.encoded.missing.items() if count)
    fitted = AugmentMap(features, tuple(models), logits, missing)
    return Fitted(fitted, (), {"model": model, "times": times})


def _refitted(rows: Array, sample: Rows, categorical: tuple[int, ...], model: Model) -> Forest | Linear:
    weight = np.ascontiguousarray(sample.weights)
    if model == "logistic":
        return logistic_regression(rows, sample.outcomes, weight, categorical)
    if model == "boosting":
        growth = replace(BOOSTING, categorical=categorical)
        return boosted_logits(rows, sample.outcomes, np.zeros(sample.n), weight, growth)
    return boosted_means(rows, sample.outcomes, weight, replace(TREE, categorical=categorical))
