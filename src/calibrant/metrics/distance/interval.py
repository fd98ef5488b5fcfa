"""Interval calibration error: the best trade between binned error and width of the bins."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from calibrant.errors import reject_name
from calibrant.forecasts import Forecasts
from calibrant.kernels.cumulative import shifted_error
from calibrant.kernels.partitions import least_average_width, least_largest_width, spread_boundaries
from calibrant.metrics.bibliography import DISTANCE_PAPER
from calibrant.metrics.calling import measure_function
from calibrant.metrics.certificates import bracketed, mean_move, residual_mass, rounded, rounding
from calibrant.metrics.distance.lower import proven_lower
from calibrant.metrics.registry import Measure, Settings
from calibrant.results import Certified

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

    Also called intCE. The width is the mean width of the bins that records fall in (Definition 6.1 of the
    distance paper) or, with `width="max"`, the largest (its section 2.3, and the survey). It is an upper
    bound on the upper distance. With more levels than a quadratic program can take (4,096, or 512 for the
    largest width) the partition is cut at well-chosen boundaries only; the bounds then hold the exact
    value. `method="surrogate"` is SintCE (Definition 10 of the testing paper): bins of one width w with a
    random start, plus w, the best w = 2^-k; the mean over starts is exact, not sampled, and the two
    conventions of width agree. Not to be confused with binned_calibration_error, whose bins are given.

    Parameters
    ----------
    width
        The mean width of the bins that records fall in ("average") or the largest ("max").
    method
        "exact", or "surrogate" for bins of one width.

    Returns
    -------
    float
        The least sum of error and width.

    Examples
    --------
    >>> round(interval_calibration_error([0, 1, 1, 0], [0.4, 0.4, 0.6, 0.6]), 9)
    0.1
    """
    if width not in EXACT_LEVELS:
        raise reject_name("width", width, list(EXACT_LEVELS))
    if method not in ("exact", "surrogate"):
        raise reject_name("method", method, ["exact", "surrogate"])
    return _surrogate(forecasts) if method == "surrogate" else _least(forecasts, width)


def _least(forecasts: Forecasts, width: str) -> Certified:
    values, curve = forecasts.values, forecasts.curve
    details: dict[str, Any]
    boundaries = spread_boundaries(curve, EXACT_LEVELS[width] + 1)
    if width == "average":
        partition = least_average_width(values, forecasts.weights, curve, boundaries)
        cost, details = partition.cost, {"bins": len(partition.starts), "starts": values[partition.starts]}
    else:
        cost, largest = least_largest_width(values, curve, boundaries)
        details = {"width": largest}
    if len(boundaries) > forecasts.levels:
        return Certified.point(cost, **details)
    lower = proven_lower(forecasts)  # lower <= upper distance <= interval error
    return Certified(cost, min(lower, cost), cost, False, None, MappingProxyType(details))


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
    """Bound on a sketch: raw bins may follow the cells, and no bins beat the lower distance.

    A bin of whole cells has its residual unchanged and a hull wider by the extents of its end cells. Of the
    shifts of bins of width w a share of at most h / w cuts a cell, and then moves at most 2 A.
    """
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


MEASURES = (
    Measure(
        "interval",
        interval_calibration_error,
        words="interval calibration error",
        largest=1.0,
        family="distances",
        meaning="least binned error plus width of the bins, over all ways to cut bins",
        complete=True,
        sound=True,
        consistency=(0.5, 1.0),
        symmetric=True,
        cost="O(m^2) up to 4,096 levels, then O(m) for bounds",
        citation=DISTANCE_PAPER + ", Definition 6.1",
        variants=({"width": "max"}, {"method": "surrogate"}),
    ),
)
