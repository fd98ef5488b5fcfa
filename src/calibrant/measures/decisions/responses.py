"""What the levels are answered with: their own outcome rates, or rates fitted on other records."""

from __future__ import annotations

from calibrant.fits.crossfit import Recalibrator, Responses, cross_fitted
from calibrant.forecasts import Forecasts
from calibrant.measures.decisions.thresholds import hindsight
from calibrant.measures.level_sets import warn_if_singletons
from calibrant.options import whole_number
from calibrant.seeds import recorded_seed

REMEDY = 'Pass recalibrator="isotonic" to estimate the outcome rates on other records, or round first.'


def responses(
    forecasts: Forecasts,
    what: str,
    recalibrator: Recalibrator | None,
    folds: int,
    seed: int,
) -> Responses:
    """Return the levels as they are, with a warning where they mean nothing, or cross-fitted rates."""
    whole_number("folds", folds, 2)
    recorded_seed(seed)
    if recalibrator is None:
        warn_if_singletons(forecasts, what, REMEDY)
        return hindsight(forecasts)
    return cross_fitted(forecasts, recalibrator, folds, seed)
