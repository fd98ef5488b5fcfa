"""boost: trees on covariates and logit, from the spline as start, kept only where they gain enough."""

from __future__ import annotations

import numpy as np

from calibrant.errors import InvalidInputError, sentence
from calibrant.fits.boosting import STAGE, boosted
from calibrant.fits.growth import Growth, grower
from calibrant.fits.logits import logit
from calibrant.groups.features import Features
from calibrant.recalibration.levels_of_columns import coded, met
from calibrant.recalibration.maps.boost import CLIP, BoostMap
from calibrant.recalibration.methods.checks import at_least_two
from calibrant.recalibration.methods.spline import spline
from calibrant.recalibration.registry import Fitted
from calibrant.recalibration.samples import Rows

FOLDS = 4
NOTHING_GAINED = "Trees gained less than one standard error on held-out records: the map is the spline alone."


def boost(
    sample: Rows,
    *,
    seed: int,
    trees: int = 400,
    learning_rate: float = 0.03,
    leaves: int = 15,
    smallest_leaf: int = 100,
    ridge: float = 10.0,
) -> Fitted:
    """Fit the spline, then boost from it; the number of trees is that of least cross-fitted log loss."""
    at_least_two("leaves", leaves)
    if isinstance(trees, bool) or not isinstance(trees, int) or trees < STAGE:
        raise InvalidInputError(sentence("trees", f"must be a whole number from {STAGE}", f"got {trees!r}"))
    assert sample.covariates is not None  # the registry row says so
    start = spline(sample, seed=seed)
    columns = coded(sample.covariates)
    features = Features.of(columns)
    given = met(features, columns)
    x = logit(start.map.predict(sample.predictions), CLIP)
    rows = np.column_stack((given.encoded.rows, x))
    growth = Growth(features.categorical, trees, learning_rate, leaves, smallest_leaf, ridge)
    fold = sample.dealt(FOLDS, seed)
    grown = boosted(rows, sample.outcomes, x, np.ascontiguousarray(sample.weights), fold, growth)
    missing = tuple(name for name, count in given.encoded.missing.items() if count)
    details = {
        "gain": grown.gain,
        "gain_error": grown.error,
        "trees": len(grown.forest),
        "trees_tried": grown.trees,
        "grown_by": grower(),
        "start": dict(start.details),
    }
    note = () if len(grown.forest) else (NOTHING_GAINED,)
    return Fitted(BoostMap(start.map, features, grown.forest, missing), (*start.notes, *note), details)
