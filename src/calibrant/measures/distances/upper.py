"""Upper distance and true distance to calibration: the nearest calibrated predictor, by grouping."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, reject_rows, sentence
from calibrant.forecasts import Forecasts
from calibrant.inputs import array_of, check_same_length, is_gap
from calibrant.kernels.grouping_search import searched_grouping
from calibrant.kernels.intervals import spread_boundaries
from calibrant.kernels.partitions import (
    best_grouping,
    contiguous_groups,
    cost_apart,
    grouping_cost,
    run_of_levels,
)
from calibrant.measures.distances.lower import proven_lower
from calibrant.measures.registry.calling import public
from calibrant.measures.registry.null import Settings
from calibrant.measures.registry.papers import DISTANCE_PAPER
from calibrant.measures.registry.resolution import bracketed, mean_move, rounded
from calibrant.measures.registry.row import Measure
from calibrant.options import number
from calibrant.records import Missing, Records, check_records, warn_if_swapped
from calibrant.results import Array, Certified
from calibrant.sums import running

EXACT_GROUPS = 13  # items whose 3^m (set, subset) pairs can all be tried
SEARCHED = 128  # items up to which local search takes a moment
EXACT_RUNS = 1_024  # boundaries of a quadratic program


@public
def upper_distance(forecasts: Forecasts, *, alpha: float = 1.0) -> Certified:
    """Upper distance to calibration: least E|v - k(v)| over recalibrations k that are calibrated.

    Written dCE with a bar above. Records with the same prediction move together, to the mean outcome of a
    group of predictions, so it is an upper bound on the distance to calibration whatever the features
    are. Exact up to 13 distinct predictions (groups of any shape are tried); above that the value is the
    cheapest grouping found: into neighbouring predictions and, up to 128 levels, by moving, merging and
    splitting groups from there. Then `lower` is the lower distance; `exact` says which. `alpha` >= 1 takes
    E|v - k(v)|^alpha, without a root. Not to be confused with lower_distance, nor with the expected
    calibration error, which it never exceeds.

    Parameters
    ----------
    alpha
        The power of the moves, at least 1.

    Returns
    -------
    float
        The cost of the best grouping found.

    Examples
    --------
    >>> round(upper_distance([0, 1, 1, 0], [0.4, 0.4, 0.6, 0.6]), 9)
    0.1
    """
    if not 1 <= number("alpha", alpha) < np.inf:
        raise InvalidInputError(sentence("alpha", "must be at least 1 and finite", f"got {alpha}"))
    return _group_levels(forecasts, float(alpha))


def _group_levels(forecasts: Forecasts, alpha: float = 1.0) -> Certified:
    return _nearest(forecasts, forecasts.values, forecasts.weights, forecasts.outcomes, alpha)


def distance_to_calibration(
    y_true: Any, y_prob: Any, ids: Any, *, sample_weight: Any = None, missing: Missing = "error"
) -> float:
    """Distance to calibration: least E|f(x) - g(x)| over calibrated predictors g of the points x.

    Written dCE. `ids` names the point x behind each record; a point has one prediction. Unlike every other
    measure it needs them: predictions and outcomes alone only bound it, lower_distance <= dCE <=
    upper_distance. See certified_distance for the bounds when there are more than 13 points.

    Parameters
    ----------
    y_true, y_prob
        Outcomes and predicted probabilities.
    ids
        The point behind each record; a point has one prediction.
    sample_weight
        Non-negative weights, one per record.
    missing
        Refuse rows with a missing value ("error"), or leave them out ("drop").

    Returns
    -------
    float
        The distance; above 13 points the cheapest grouping found.

    Examples
    --------
    >>> round(distance_to_calibration([0, 1, 1, 0], [0.4, 0.4, 0.6, 0.6], ["a", "b", "c", "d"]), 9)
    0.1
    """
    return float(certified_distance(y_true, y_prob, ids, sample_weight=sample_weight, missing=missing))


def certified_distance(
    y_true: Any, y_prob: Any, ids: Any, *, sample_weight: Any = None, missing: Missing = "error"
) -> Certified:
    """Return the distance to calibration of distance_to_calibration with proven bounds.

    Exact up to 13 points x; above that the value is the cheapest grouping found and `lower` the lower
    distance. `details["points"]` holds the ids, `details["group"]` the group of each.

    Parameters
    ----------
    y_true, y_prob
        Outcomes and predicted probabilities.
    ids
        The point behind each record; a point has one prediction.
    sample_weight
        Non-negative weights, one per record.
    missing
        Refuse rows with a missing value ("error"), or leave them out ("drop").

    Returns
    -------
    Certified
        The value with `lower`, `upper` and whether it is exact.

    Examples
    --------
    >>> certified_distance([0, 1, 1, 0], [0.4, 0.4, 0.6, 0.6], ["a", "b", "c", "d"]).exact
    True
    """
    checked = check_records(y_true, y_prob, sample_weight, missing)
    warn_if_swapped(checked, y_true=y_true, y_prob=y_prob)
    return distance_over_points(Records.of(checked), ids)


def distance_over_points(records: Records, ids: Any) -> Certified:
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
    measured = _nearest(forecasts, values[order], weights[order] / total, outcomes[order] / total)
    details = {"points": names[order], **measured.details}
    if not measured.exact:  # grouping whole level sets, in groups of any shape, is one way to group points
        levels = _group_levels(forecasts)
        if levels.value < measured.value:
            level = np.searchsorted(forecasts.values, values[order])
            details["group"] = levels.details["group"][level]
            measured = replace(levels, lower=min(measured.lower, levels.value), exact=False)
    return replace(measured, details=MappingProxyType(details))


@upper_distance.certified_by
def _upper_bounds(forecasts: Forecasts, measured: Certified, settings: Settings) -> Certified:
    """Bound on a sketch: raw records may be grouped as their cells are; nothing beats the lower distance.

    |v - k(v)|^alpha is alpha-Lipschitz in v, and its mean is at least the alpha-th power of the mean.
    """
    if forecasts.exact:
        return rounded(forecasts, measured)
    margin = mean_move(forecasts)
    alpha = float(settings["alpha"])
    # inexact: its lower bound is the floor already
    floor = proven_lower(forecasts) if measured.exact else measured.lower ** (1 / alpha)
    return bracketed(measured, max(0.0, floor - margin) ** alpha, measured.upper + alpha * margin)


def _nearest(
    forecasts: Forecasts, values: Array, weights: Array, outcomes: Array, alpha: float = 1.0
) -> Certified:
    """Cheapest grouping of items (levels or points, ascending), exact for few, bracketed for many."""
    if len(values) <= EXACT_GROUPS:
        grouping = best_grouping(values, weights, outcomes, alpha)
        return Certified.point(grouping.cost, group=grouping.group)
    boundaries = spread_boundaries(running(outcomes - weights * values), EXACT_RUNS + 1)
    runs = contiguous_groups(values, weights, outcomes, boundaries)
    together, apart = run_of_levels(runs.starts, len(values)), np.arange(len(values))
    if len(values) <= SEARCHED:
        cost, group = searched_grouping(values, weights, outcomes, [together, apart], alpha)
    else:
        of_runs = runs.cost if alpha == 1 else grouping_cost(values, weights, outcomes, together, alpha)
        of_levels = cost_apart(values, weights, outcomes, alpha)
        cost, group = min(of_runs, of_levels), together if of_runs <= of_levels else apart
    lower = min(proven_lower(forecasts) ** alpha, cost)  # Jensen: E|u - v|^alpha >= (E|u - v|)^alpha
    details = MappingProxyType({"group": group})
    return Certified(cost, lower, cost, cost - lower <= 1e-15, None, details)


def _points(
    ids: Any, rows: npt.NDArray[np.int64], length: int, prediction: Array
) -> tuple[npt.NDArray[Any], npt.NDArray[np.intp]]:
    """Return the distinct ids and the number of each record's; refuse an id with two predictions.

    `rows` says which of the user's rows, `length` in all, the predictions belong to; they ascend.
    """
    labels = array_of(ids, "ids")
    if labels.ndim != 1:
        raise InvalidInputError(sentence("ids", "must be one-dimensional", f"got shape {labels.shape}"))
    check_same_length(labels, range(length), ("ids", "y_prob"))

    def refuse(
        subject: str, rule: str, values: npt.NDArray[Any], bad: npt.NDArray[np.bool_], hint: str = ""
    ) -> None:
        shown, where = np.zeros(length, dtype=values.dtype), np.zeros(length, dtype=np.bool_)
        shown[rows], where[rows] = values, bad
        reject_rows(subject, rule, shown, where, hint)

    kept = labels[rows]
    if kept.dtype.kind in "fO":
        absent = np.array([is_gap(label) for label in kept.tolist()], dtype=np.bool_)
        refuse("ids", "must not be missing", kept, absent)
    try:
        names, first, point = np.unique(kept, return_index=True, return_inverse=True)
    except TypeError:
        hint = "use numbers only or text only"
        raise InvalidInputError(sentence("ids", "must be comparable with each other", hint=hint)) from None
    hint = "an id stands for one point x, which has one prediction f(x)"
    bad = prediction != prediction[first][point]
    refuse("y_prob", "must be the same for all records of one id", prediction, bad, hint)
    return names, point


ROWS = (
    Measure(
        "upper-distance",
        upper_distance,
        words="upper distance to calibration",
        largest=1.0,
        family="distances",
        meaning="least mean move that makes the predictions calibrated, equal predictions moving together",
        complete=True,
        sound=True,
        consistency=(0.5, 1.0),
        symmetric=True,
        cost="O(3^m) up to 13 levels, then O(m) for bounds",
        variants=({"alpha": 2.0},),
        citation=DISTANCE_PAPER + ", Definition 5.2",
    ),
)
