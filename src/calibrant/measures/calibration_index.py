"""The integrated calibration index and its quantiles: how far predictions lie from their recalibration."""

from __future__ import annotations

import numpy as np

from calibrant.forecasts import Forecasts
from calibrant.kernels.row_order import ascending
from calibrant.measures.registry.calling import public
from calibrant.measures.registry.papers import INDEX_PAPER
from calibrant.measures.registry.row import Measure
from calibrant.measures.scores import isotonic_curve
from calibrant.options import closed_share
from calibrant.results import Certified
from calibrant.sums import dot


@public
def integrated_calibration_index(forecasts: Forecasts, *, quantile: float | None = None) -> Certified:
    """Mean distance between prediction and recalibrated prediction (ICI; Austin & Steyerberg 2019).

    `quantile=0.5` and `0.9` give E50 and E90. The recalibrated prediction here is the isotonic fit, which
    needs no bandwidth; the authors used loess, so figures differ slightly.

    Parameters
    ----------
    quantile
        0.5 for E50, 0.9 for E90; the mean if absent.

    Returns
    -------
    float
        The mean, or quantile, of the distance.

    Examples
    --------
    >>> round(integrated_calibration_index([0, 1, 1, 1], [0.5, 0.6, 0.7, 0.8]), 6)
    0.35
    """
    gap = isotonic_curve(forecasts)
    gap -= forecasts.values
    np.abs(gap, out=gap)
    if quantile is None:
        return Certified.point(dot(forecasts.weights, gap))
    closed_share("quantile", quantile)
    order, ascending_gap = ascending(gap)
    below = np.cumsum(forecasts.weights[order])  # rounding keeps its end from being 1
    reached = below >= quantile * below[-1] - 1e-12
    return Certified.point(float(ascending_gap[np.argmax(reached)]))


ROWS = (
    Measure(
        "ici",
        integrated_calibration_index,
        words="integrated calibration index",
        largest=1.0,
        family="regression",
        meaning="mean distance between the prediction and its isotonic recalibration (not loess)",
        complete=True,
        symmetric=True,
        cost="O(m)",
        citation=INDEX_PAPER,
    ),
    Measure(
        "e50",
        integrated_calibration_index,
        words="median calibration gap",
        options={"quantile": 0.5},
        largest=1.0,
        family="regression",
        meaning="median distance between the prediction and its isotonic recalibration (not loess)",
        complete=True,
        cost="O(m log m)",
        citation=INDEX_PAPER,
    ),
    Measure(
        "e90",
        integrated_calibration_index,
        words="90th percentile of the calibration gap",
        options={"quantile": 0.9},
        largest=1.0,
        family="regression",
        meaning="distance from the isotonic recalibration (not loess) that 90 % of records stay below",
        complete=True,
        cost="O(m log m)",
        citation=INDEX_PAPER,
    ),
)
