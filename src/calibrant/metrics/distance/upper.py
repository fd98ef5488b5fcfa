"""Upper distance, true distance and interval calibration error: the best grouping of the predictions."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, reject_rows
from calibrant.forecasts import Forecasts
from calibrant.inputs import check_same_length, finite_number, is_missing, to_array
from calibrant.kernels.cumulative import shifted_error
from calibrant.kernels.partitions import (
    LevelMasses,
    best_grouping,
    contiguous_groups,
    grouping_cost,
    least_average_width,
    least_largest_width,
    spread_boundaries,
)
from calibrant.metrics.bibliography import DISTANCE_PAPER
from calibrant.metrics.calling import check_choice, measure_function, shares_parameters
from calibrant.metrics.certificates import bracketed, mean_move, residual_mass, rounded, rounding
from calibrant.metrics.distance.grouping import (
    Bracket,
    bracketed_grouping,
    improved_grouping,
    runs_of_equal_records,
    whole_level_prices,
)
from calibrant.metrics.distance.lower import level_masses, proven_lower
from calibrant.metrics.registry import Measure, Settings
from calibrant.parallel import cumulative
from calibrant.records import Missing, Records, check_records, warn_if_swapped
from calibrant.results import Array, Certified

EXACT_GROUPS = 13  # items whose 3^m (set, subset) pairs can all be tried
SEARCHED = 128  # items up to which local search takes a moment
EXACT_RUNS = 1_024  # boundaries of a quadratic program
MAX_LEVELS_PRICED = 60  # levels up to which column generation closes the gap to about 1%
TIME_LIMIT = 15.0  # seconds
_POINTS = """\
y_true, y_prob
    Outcomes and predicted probabilities.
ids
    The point behind each record; a point has one prediction.
sample_weight
    Non-negative weights, one per record.
missing
    Refuse rows with a missing value ("error"), or leave them out ("drop").
"""


@measure_function
def upper_distance(forecasts: Forecasts, *, alpha: float = 1.0, time_limit: float = TIME_LIMIT) -> Certified:
    """Upper distance to calibration: least E|v - k(v)| over recalibrations k that are calibrated.

    Written dCE with a bar above. Records with the same prediction move together, so it is an upper bound on
    the distance to calibration whatever the features are. Exact up to 13 distinct predictions, and for a few
    hundred distinct unweighted predictions with outcomes of 0 and 1; proven to about 1% up to 60, within the
    time limit. Beyond, and with ``time_limit=0`` (the default of `measure`, tests and evaluations), the value
    is the cheapest grouping found. `alpha` >= 1 takes E|v - k(v)|^alpha, not its root.

    Examples
    --------
    >>> round(upper_distance([0, 1, 1, 0], [0.4, 0.4, 0.6, 0.6]), 9)
    0.1
    """
    _check_options(alpha, time_limit)
    return _nearest(forecasts, level_masses(forecasts), float(alpha), float(time_limit))


def _check_options(alpha: float, time_limit: float) -> None:
    finite_number("alpha", alpha, 1)
    finite_number("time_limit", time_limit, 0)


@shares_parameters(_POINTS)
def distance_to_calibration(
    y_true: Any,
    y_prob: Any,
    ids: Any,
    *,
    sample_weight: Any = None,
    missing: Missing = "error",
    alpha: float = 1.0,
    time_limit: float = TIME_LIMIT,
) -> float:
    """Distance to calibration: least E|f(x) - g(x)|^alpha over calibrated predictors g of the points x.

    Written dCE. `ids` names the point x behind each record; a point has one prediction. Unlike every other
    measure it needs them: predictions and outcomes alone only bound it, lower_distance <= dCE <=
    upper_distance. It is found as upper_distance is, with points in place of distinct
    predictions; certified_distance also returns the bounds.

    Returns
    -------
    float
        The distance, or the cheapest grouping found.

    Examples
    --------
    >>> round(distance_to_calibration([0, 1, 1, 0], [0.4, 0.4, 0.6, 0.6], ["a", "b", "c", "d"]), 9)
    0.1
    """
    options: dict[str, Any] = {"missing": missing, "alpha": alpha, "time_limit": time_limit}
    return float(certified_distance(y_true, y_prob, ids, sample_weight=sample_weight, **options))


@shares_parameters(_POINTS)
def certified_distance(
    y_true: Any,
    y_prob: Any,
    ids: Any,
    *,
    sample_weight: Any = None,
    missing: Missing = "error",
    alpha: float = 1.0,
    time_limit: float = TIME_LIMIT,
) -> Certified:
    """Return the distance to calibration of distance_to_calibration with proven bounds.

    `details["points"]` holds the ids, `details["group"]` the group of each.

    Returns
    -------
    Certified
        The value with `lower`, `upper` and whether it is exact.

    Examples
    --------
    >>> certified_distance([0, 1, 1, 0], [0.4, 0.4, 0.6, 0.6], ["a", "b", "c", "d"]).exact
    True
    """
    _check_options(alpha, time_limit)
    checked = check_records(y_true, y_prob, sample_weight, missing)
    warn_if_swapped(checked, y_true=y_true, y_prob=y_prob)
    return distance_over_points(Records.of(checked), ids, alpha, time_limit)


def distance_over_points(
    records: Records, ids: Any, alpha: float = 1.0, time_limit: float = 0.0
) -> Certified:
    """Return the distance to calibration over the points that `ids` name, one per row of the user."""
    forecasts, order = Forecasts.of_records(records), np.argsort(records.rows)
    prediction, weight = records.prediction[order], records.weight[order]
    names, point = _points(ids, records.rows[order], records.length, prediction)
    weights = np.bincount(point, weight)
    outcomes = np.bincount(point, weight * records.outcome[order])
    values = np.zeros(len(names))
    values[point] = prediction
    order = np.lexsort((outcomes / weights, values))
    total = weights.sum()
    items = LevelMasses(values[order], weights[order] / total, outcomes[order] / total)
    measured = _nearest(forecasts, items, alpha, time_limit)
    details = {"points": names[order], **measured.details}
    if not measured.exact:  # grouping whole level sets, in groups of any shape, is one way to group points
        levels = _nearest(forecasts, level_masses(forecasts), alpha, 0.0)
        if levels.value < measured.value:
            level = np.searchsorted(forecasts.values, values[order])
            details["group"] = levels.details["group"][level]
            measured = replace(levels, lower=min(measured.lower, levels.value), exact=False)
    return replace(measured, details=MappingProxyType(details))


@upper_distance.certificate
def _upper_bounds(forecasts: Forecasts, measured: Certified, settings: Settings) -> Certified:
    """Bound on a sketch: raw records may be grouped as their cells are; nothing beats the lower distance."""
    # |v - k(v)|^alpha is alpha-Lipschitz in v, and its mean is at least the alpha-th power of the mean.
    if forecasts.exact:
        return rounded(forecasts, measured)
    margin = mean_move(forecasts)
    alpha = float(settings["alpha"])
    floor = proven_lower(forecasts)  # a bound that keeps cells whole says nothing about their records
    return bracketed(measured, max(0.0, floor - margin) ** alpha, measured.upper + alpha * margin)


def _nearest(forecasts: Forecasts, items: LevelMasses, alpha: float, time_limit: float) -> Certified:
    """Cheapest grouping of levels or points, exact or with bounds."""
    count = len(items.values)
    if count <= EXACT_GROUPS:
        cost, group = best_grouping(items, alpha)
        return Certified.point(cost, group=group)
    boundaries = spread_boundaries(cumulative(items.outcomes - items.weights * items.values), EXACT_RUNS + 1)
    starts = [contiguous_groups(items, boundaries), np.arange(count)]
    if count <= SEARCHED:
        cost, group = improved_grouping(items, starts, alpha, kicks=2)
    else:
        costs = [grouping_cost(items, start, alpha) for start in starts]
        cost, group = min(costs), starts[int(np.argmin(costs))]
    found = Bracket(0.0, cost, group)
    if time_limit > 0:
        found = proven_grouping(items, found, alpha, time_limit)
    jensen = proven_lower(forecasts) ** alpha  # E|u - v|^alpha >= (E|u - v|)^alpha
    lower = min(max(jensen, found.lower), found.upper)
    return Certified.bounded(found.upper, lower, found.upper, found.upper - lower <= 1e-15, group=found.group)


def proven_grouping(items: LevelMasses, found: Bracket, alpha: float, time_limit: float) -> Bracket:
    """Improve a grouping and its bound, by the method that suits the items (page "Upper distance")."""
    values, weights, rates = items.values, items.weights, items.rates
    if np.ptp(weights) <= 1e-12 * weights[0] and np.isin(np.round(rates, 12), (0.0, 1.0)).all():
        exact = runs_of_equal_records(values, np.round(rates), alpha, found.upper)
        if exact is not None:
            return exact
    if alpha != 1 or len(values) > SEARCHED:
        return found
    starts = [found.group, np.arange(len(values))]
    if len(values) <= MAX_LEVELS_PRICED:
        return bracketed_grouping(items, starts, seconds=time_limit)
    prices = whole_level_prices(items, np.union1d(np.linspace(0.0, 1.0, 51), values))
    cost, group = improved_grouping(items, starts, kicks=10)
    return Bracket(float(prices.sum()), min(cost, found.upper), group if cost < found.upper else found.group)


def _points(
    ids: Any, rows: npt.NDArray[np.int64], length: int, prediction: Array
) -> tuple[npt.NDArray[Any], npt.NDArray[np.intp]]:
    """Return the distinct ids and each record's place among them; refuse an id with two predictions."""
    labels = to_array(ids, "ids")
    if labels.ndim != 1:
        raise InvalidInputError("ids", "must be one-dimensional", f"got shape {labels.shape}")
    check_same_length(labels, range(length), ("ids", "y_prob"))
    kept, where = labels[rows], np.zeros(length, dtype=np.bool_)
    if kept.dtype.kind in "fO":
        where[rows] = [is_missing(label) for label in kept.tolist()]
        reject_rows("ids", "must not be missing", labels, where)
    try:
        names, first, point = np.unique(kept, return_index=True, return_inverse=True)
    except TypeError:
        hint = "use numbers only or text only"
        raise InvalidInputError("ids", "must be comparable with each other", hint=hint) from None
    hint, shown = "an id denotes one point x, which has one prediction f(x)", np.zeros(length)
    shown[rows], where[rows] = prediction, prediction != prediction[first][point]
    reject_rows("y_prob", "must be the same for all records of one id", shown, where, hint)
    return names, point


UPPER_DISTANCE = Measure(
    "upper-distance",
    upper_distance,
    words="upper distance to calibration",
    family="distances",
    meaning="least mean move that makes the predictions calibrated, equal predictions moving together",
    sound=True,
    consistency=(0.5, 1.0),
    options={"time_limit": 0.0},  # tests and intervals take it many times
    cost="O(3^m) up to 13 levels, then O(m) for bounds",
    variants=({"alpha": 2.0},),
    citation=DISTANCE_PAPER + ", Definition 5.2",
)


EXACT_LEVELS = {"average": 4_096, "max": 512}  # the programs are quadratic in the levels
NARROWER = tuple(0.5**k for k in range(44))  # narrower ones could lower the value by 1e-13 at most


@measure_function
def interval_calibration_error(
    forecasts: Forecasts,
    *,
    width: Literal["average", "max"] = "average",
    method: Literal["exact", "surrogate"] = "exact",
) -> Certified:
    """Interval calibration error: least binned error plus width of the bins, over all interval partitions.

    Also called intCE, an upper bound on the upper distance. With more levels than a quadratic program can
    take (4,096, or 512 for the largest width) the partition is cut at well-chosen boundaries only; the
    bounds then hold the exact value.

    Parameters
    ----------
    width
        The mean width of the bins that records fall in ("average", Definition 6.1 of the distance paper) or
        the largest ("max", its section 2.3, and the survey).
    method
        "exact", or "surrogate" for SintCE (Definition 10 of the testing paper): the mean over starts, not
        sampled, of bins of one width w, plus w, for the best w = 2^-k.

    Examples
    --------
    >>> round(interval_calibration_error([0, 1, 1, 0], [0.4, 0.4, 0.6, 0.6]), 9)
    0.1
    """
    check_choice("width", width, EXACT_LEVELS)
    check_choice("method", method, ("exact", "surrogate"))
    if method == "surrogate":
        return _surrogate(forecasts)
    values, curve = forecasts.values, forecasts.curve
    details: dict[str, Any]
    boundaries = spread_boundaries(curve, EXACT_LEVELS[width] + 1)
    if width == "average":
        cost, starts = least_average_width(values, forecasts.weights, curve, boundaries)
        details = {"bins": len(starts), "starts": values[starts]}
    else:
        cost, largest = least_largest_width(values, curve, boundaries)
        details = {"width": largest}
    if len(boundaries) > forecasts.levels:
        return Certified.point(cost, **details)
    lower = proven_lower(forecasts)  # lower <= upper distance <= interval error
    return Certified.bounded(cost, min(lower, cost), cost, exact=False, **details)


def _surrogate(forecasts: Forecasts) -> Certified:
    """Least RintCE(w) + w over w = 2^-k; as w vanishes it tends to the error level by level."""
    best, at = float(np.abs(forecasts.residuals).sum()), 0.0
    for narrow in NARROWER:
        if narrow >= best:
            continue
        error = shifted_error(forecasts.values, forecasts.residuals, narrow)
        if error >= best * (1 - 1e-12):  # halving the width only splits bins, which cannot lower the error
            break
        if error + narrow < best:
            best, at = error + narrow, narrow
    return Certified.point(best, width=at)


@interval_calibration_error.certificate
def _interval_bounds(forecasts: Forecasts, measured: Certified, settings: Settings) -> Certified:
    """Bound on a sketch: raw bins may follow the cells, and no bins beat the lower distance."""
    # A bin of whole cells has its residual unchanged and a hull wider by the extents of its end cells. Of the
    # shifts of bins of width w a share of at most h / w cuts a cell, and then moves at most 2 A.
    if forecasts.exact:
        return rounded(forecasts, measured)
    floor = proven_lower(forecasts) if measured.exact else measured.lower  # inexact: the floor already
    floor = max(0.0, floor - mean_move(forecasts))
    slack = 4 * rounding(forecasts)
    if settings["method"] != "surrogate":
        return bracketed(measured, floor, measured.upper + 2 * float(forecasts.extents.max()) + slack)
    cut = 2 * float(forecasts.extents @ residual_mass(forecasts))
    errors = [shifted_error(forecasts.values, forecasts.residuals, w) + w + cut / w for w in NARROWER[:20]]
    return bracketed(measured, floor, min(errors) + slack)


INTERVAL = Measure(
    "interval",
    interval_calibration_error,
    family="distances",
    meaning="least binned error plus width of the bins, over all ways to cut bins",
    sound=True,
    consistency=(0.5, 1.0),
    cost="O(m^2) up to 4,096 levels, then O(m) for bounds",
    citation=DISTANCE_PAPER + ", Definition 6.1",
    variants=({"width": "max"}, {"method": "surrogate"}),
)
