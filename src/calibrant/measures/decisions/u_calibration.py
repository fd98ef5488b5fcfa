"""U-calibration error and monotone regret: the predictions against the best constant, or monotone, answer."""

from __future__ import annotations

import numpy as np

from calibrant.fits.crossfit import Responses, cross_fitted, isotonic_interpolation
from calibrant.forecasts import Forecasts
from calibrant.measures.decisions.thresholds import curve_of
from calibrant.measures.decisions.worst_task import certified_worst
from calibrant.measures.registry.calling import public
from calibrant.measures.registry.papers import SURVEY
from calibrant.measures.registry.row import Measure
from calibrant.options import number
from calibrant.results import Certified
from calibrant.seeds import recorded_seed

SAME = 1e-12  # a base rate this near to a prediction is that prediction but for rounding


@public
def u_calibration_error(forecasts: Forecasts) -> Certified:
    """U-calibration error: payoff lost against the best constant report, in the worst task.

    The largest regret, over all decision tasks with payoffs in [0, 1], of somebody who trusts the
    predictions and sees in hindsight that always acting on the base rate would have paid more (Kleinberg,
    Leme, Schneider & Teng 2023). The base rate is the best constant report for every proper score at once.
    0 where the predictions serve everybody at least as well as the base rate does; never more than
    decision_loss. No level sets are needed: it means something on raw continuous predictions.

    Returns
    -------
    float
        Payoff lost per record, in units of the largest payoff.

    Examples
    --------
    >>> round(u_calibration_error([0, 1, 1, 1], [0.5] * 4), 12)
    0.5
    >>> u_calibration_error([0, 0, 1, 1], [0.1, 0.2, 0.8, 0.9])
    0.0
    """
    rates = np.full(forecasts.levels, _base_rate(forecasts))
    groups = Responses(forecasts.values, rates, forecasts.weights, forecasts.outcomes, forecasts.counts)
    return certified_worst(curve_of(groups))


@public
def monotone_regret(forecasts: Forecasts, *, folds: int = 0, seed: int = 0) -> Certified:
    """Payoff lost against the best non-decreasing recalibration, in the worst task.

    The isotonic fit is the best non-decreasing map of the predictions for every proper score at once, so
    this is decision_loss with isotonic rates in place of the rates of level sets (section 4.4 of the
    survey); it means something on continuous predictions. With ``folds=0`` the map is fitted on the same
    records, as hindsight would, and flatters itself a little; with `folds` >= 2 on the other folds, and the
    value is that of ``decision_loss(recalibrator="isotonic")``.

    Parameters
    ----------
    folds
        0 to fit on the same records; 2 or more to fit on the other folds.
    seed
        What deals the records to folds.

    Returns
    -------
    float
        Payoff lost per record, in units of the largest payoff.

    Examples
    --------
    >>> round(monotone_regret([0, 1, 1, 1], [0.5] * 4), 12)
    0.5
    """
    recorded_seed(seed)
    if number("folds", folds):
        return certified_worst(curve_of(cross_fitted(forecasts, "isotonic", folds, seed)))
    raw = np.clip(forecasts.outcomes / forecasts.weights, 0.0, 1.0)
    rates = isotonic_interpolation(forecasts.values, raw, forecasts.weights)(forecasts.values)
    groups = Responses(forecasts.values, rates, forecasts.weights, forecasts.outcomes, forecasts.counts)
    return certified_worst(curve_of(groups))


def _base_rate(forecasts: Forecasts) -> float:
    """Return the base rate, or the prediction from which only rounding separates it.

    At a threshold that both equal, both act or neither does. A rounding error between the two would let
    one act and not the other, and count a loss that does not exist.
    """
    rate = min(1.0, max(0.0, forecasts.base_rate))
    nearest = forecasts.values[int(np.argmin(np.abs(forecasts.values - rate)))]
    return float(nearest) if abs(nearest - rate) <= SAME else rate


ROWS = (
    Measure(
        "u-calibration",
        u_calibration_error,
        words="U-calibration error",
        largest=1.0,
        family="decisions",
        meaning="payoff lost against always acting on the base rate, in the worst task (payoffs in [0, 1])",
        complete=True,
        symmetric=True,
        decision="0 means that nobody would have done better by acting on the base rate throughout",
        cost="O(m log m)",
        citation="Kleinberg, Leme, Schneider & Teng 2023, U-calibration: forecasting for an unknown agent",
    ),
    Measure(
        "monotone-regret",
        monotone_regret,
        words="monotone regret",
        largest=1.0,
        family="decisions",
        meaning="payoff lost against the best monotone recalibration, in the worst task (payoffs in [0, 1])",
        complete=True,
        symmetric=True,
        decision="what a monotone recalibration, fitted in hindsight, could gain at most",
        cost="O(m log m)",
        citation=SURVEY + ", section 4.4",
    ),
)
