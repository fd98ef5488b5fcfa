"""Neighbouring levels merged into cells, before anything is simulated on very many levels.

Merging moves predictions within their cell, and so it moves the cumulative curve of a noise only inside
cells. By how much is known from the variance of the noise, before a single draw: `coarsen_for_interval` uses
the fewest cells that add less than one percent to an interval, and reports what they add.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.forecasts import Forecasts
from calibrant.inference.bootstrap import resampling_centre
from calibrant.inference.null import has_equal_weights
from calibrant.kernels.cumulative import curve_moves
from calibrant.metrics.registry import Measure
from calibrant.parallel import dot
from calibrant.results import Array

FEWEST_CELLS = 1024
MERGED_ABOVE = 16_384  # levels; fewer are simulated as they are
TOLERATED = 0.01  # of the interval's half-width
LEAST_SHARE = math.sqrt(0.5)  # all measures with a `merging` are at least this times |mean residual|
SIGMAS = 4.0  # standard deviations added to the mean of what merging changes


def cell_starts(forecasts: Forecasts, cells: int) -> npt.NDArray[np.intp]:
    """Return the first level of each of about `cells` cells.

    Half of the cuts are even in weight, half in prediction, so that neither dense nor sparse stretches
    blur; predictions of 0 and 1, which leave no doubt, keep cells of their own.
    """
    values, share = forecasts.values, np.arange(1, cells // 2 + 1) / (cells / 2)
    by_weight = _first_past(np.cumsum(forecasts.weights), forecasts.weights, share)
    by_value = np.searchsorted(values, values[0] + share * (values[-1] - values[0]))
    ends = np.searchsorted(values, [np.nextafter(0.0, 1.0), 1.0])
    starts = np.unique(np.concatenate([[0], by_weight, by_value, ends]))
    return np.asarray(starts[starts < forecasts.levels], dtype=np.intp)


def _first_past(below: Array, weights: Array, share: Array) -> npt.NDArray[np.intp]:
    """Return the first level whose middle, half its weight below its upper end, reaches each share.

    The middle of a level lies between its ends, so it is the level that holds the share, or the next: no
    middles need be written down.
    """
    at = np.searchsorted(below, share)
    within = np.minimum(at, len(below) - 1)
    return at + ((at < len(below)) & (below[within] - weights[within] / 2 < share))


def coarse(forecasts: Forecasts, cells: int = 512) -> Forecasts:
    """Merge neighbouring levels into about `cells` cells, which have no certificates."""
    if forecasts.levels <= cells:
        return forecasts
    return merged_levels(forecasts, cell_starts(forecasts, cells))


def merged_levels(forecasts: Forecasts, starts: npt.NDArray[np.intp]) -> Forecasts:
    """Merge the levels from each start to the next."""
    weights = np.add.reduceat(forecasts.weights, starts)
    mean = np.add.reduceat(forecasts.weights * forecasts.values, starts) / weights
    last = np.append(starts[1:], forecasts.levels) - 1
    # a mean may round out of its cell
    values = np.clip(mean, forecasts.values[starts], forecasts.values[last])
    related = forecasts.clusters is not None or forecasts.censoring is not None
    made = Forecasts.from_levels(
        values,
        weights,
        np.add.reduceat(forecasts.outcomes, starts),
        squared_weights=np.add.reduceat(forecasts.squared_weights, starts),
        counts=np.add.reduceat(forecasts.counts, starts),
        total_weight=forecasts.total_weight,
        binary=forecasts.binary,
        record_weights=forecasts.record_weights,
        record_outcomes=forecasts.record_outcomes if related else None,  # random signs need the records
        clusters=forecasts.clusters,
        censoring=forecasts.censoring,
    )
    if forecasts.censoring is not None:  # resamples estimate the censoring again, from all rows
        made.__dict__["records"] = forecasts.records
    return made


@dataclass(frozen=True, slots=True, eq=False)
class Coarsened:
    """Forecasts to simulate on, where each cell starts (None: nothing merged), and what merging may add.

    `added` counts in the unit in which the measure is a seminorm: the value itself, or its root.
    """

    forecasts: Forecasts
    starts: npt.NDArray[np.intp] | None = None
    added: float = 0.0

    @property
    def cells(self) -> int | None:
        """How many cells there are, None where nothing was merged."""
        return None if self.starts is None else self.forecasts.levels


def coarsen_for_interval(
    forecasts: Forecasts, row: Measure, settings: dict[str, Any], confidence: float
) -> Coarsened:
    """Merge into the fewest cells that widen an interval by less than 1 %; not at all where none do.

    A deviation is at least LEAST_SHARE times that of the mean residual, whose quantile is known, so an
    interval's half-width is known from below before anything is drawn.
    """
    counted = forecasts.binary and forecasts.record_outcomes is None and has_equal_weights(forecasts)
    if row.null.merging is None or forecasts.levels < MERGED_ABOVE or not counted:
        return Coarsened(forecasts)
    variance = noise_variance(forecasts)
    quantile = NormalDist().inv_cdf((1 + confidence) / 2)
    reach = LEAST_SHARE * quantile * math.sqrt(float(variance.sum()))
    cells = FEWEST_CELLS
    while 4 * cells <= forecasts.levels:
        starts = cell_starts(forecasts, cells)
        taken = merged_levels(forecasts, starts)
        moved = CoarseningError.of(forecasts, taken, starts, variance)
        added = row.null.merging(moved.area, moved.length, settings) + moved.shift
        if added <= TOLERATED * reach:
            return Coarsened(taken, starts, added)
        cells *= 2
    return Coarsened(forecasts)


def noise_variance(forecasts: Forecasts) -> Array:
    """Return the variance that resampling gives to the residual of each level: sum of w^2 (y - v)^2."""
    v = forecasts.values
    rate = np.clip(resampling_centre(forecasts) / forecasts.weights, 0.0, 1.0)
    return np.asarray(forecasts.squared_weights * (rate * (1 - v) ** 2 + (1 - rate) * v**2))


@dataclass(frozen=True, slots=True, eq=False)
class CoarseningError:
    """How far merging moves the cumulative curve of a noise: bounds that it exceeds hardly ever.

    `area` is the integral of the move, `length` the root of the integral of its square, and `shift` what
    changes because all records of a cell count with the mean prediction of the cell. Moves in different
    cells are independent, so sums over cells are close to their means: SIGMAS standard deviations are added.
    """

    area: float
    length: float
    shift: float

    @classmethod
    def of(
        cls, forecasts: Forecasts, cells: Forecasts, starts: npt.NDArray[np.intp], variance: Array
    ) -> CoarseningError:
        """Integrate standard deviation and variance of the move, cell by cell."""
        areas, squares, apart = curve_moves(
            forecasts.values, variance, forecasts.squared_weights, cells.values, starts
        )
        return cls(
            float(areas.sum()) + SIGMAS * math.sqrt(dot(areas, areas)),
            math.sqrt(float(squares.sum()) + SIGMAS * math.sqrt(3 * dot(squares, squares))),
            SIGMAS * math.sqrt(apart),
        )
