"""Certificates for binned measures: a cell that an edge cuts may belong to either bin, in any part.

Where every edge is an edge of cells no cell is cut, and the value of the sketch is exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from calibrant.forecasts import Forecasts
from calibrant.measures.bins import Bins, bin_cuts
from calibrant.measures.registry.resolution import (
    EPS,
    Settings,
    bracketed,
    cells_of,
    no_certificate,
    rounding,
)
from calibrant.results import Array, Certified

Index = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class _Range:
    """An interval for each bin that holds what the raw rows put there."""

    low: Array
    high: Array

    @property
    def least(self) -> Array:
        """Smallest absolute value."""
        return np.maximum(0.0, np.maximum(self.low, -self.high))

    @property
    def most(self) -> Array:
        """Largest absolute value."""
        return np.maximum(-self.low, self.high)


@dataclass(frozen=True, slots=True)
class _Touched:
    """The first and the last bin that records of each cell can lie in."""

    first: Index
    last: Index
    bins: int

    def total(self, low: Array, high: Array, whole: Array) -> _Range:
        """Sum over the cells of each bin: `whole` for a cell inside it, [low, high] for one that it cuts."""
        cut = self.last > self.first
        return _Range(*(self._spread(np.where(cut, part, whole)) for part in (low, high)))

    def _spread(self, part: Array) -> Array:
        """Add `part` to all bins from first to last, by differences."""
        steps = np.zeros(self.bins + 1)
        np.add.at(steps, self.first, part)
        np.add.at(steps, self.last + 1, -part)
        return np.cumsum(steps)[:-1]


def binned(forecasts: Forecasts, found: Certified, settings: Settings) -> Certified:
    """Bound the binned calibration error in each of its norms."""
    for option in ("debiased", "add_width"):
        if settings.get(option):
            raise no_certificate("binned", f"got {option}=True")
    norm = settings.get("norm", 1)
    touched = _touched(forecasts, settings.get("bins", 15), settings.get("strategy", "uniform"))
    residual = _residuals(forecasts, touched)
    slack = 4 * rounding(forecasts)
    if norm == 1:
        residual = _residuals(forecasts, _settled(touched, residual, slack))
        error = slack + 8 * EPS * touched.bins  # the bins share the rounding of the cells
        return bracketed(found, float(residual.least.sum()) - error, float(residual.most.sum()) + error)
    weight = touched.total(np.zeros(forecasts.levels), forecasts.weights, forecasts.weights)
    most = residual.most + slack
    # no gap exceeds 1, whatever little weight is left in a bin
    steepest = np.minimum(1.0, most / np.maximum(weight.low - slack, 1e-300))
    flattest = np.maximum(0.0, residual.least - slack) / (weight.high + slack)
    if norm == "max":
        return bracketed(found, float(flattest.max()) - slack, float(steepest.max()) + slack)
    least = float(flattest @ np.maximum(0.0, residual.least - slack))
    return bracketed(found, np.sqrt(least) - slack, np.sqrt(float(steepest @ most)) + slack)


def squared(forecasts: Forecasts, found: Certified, settings: Settings) -> Certified:
    """Bound the unnormalised binned squared error."""
    bins = settings.get("bins") or max(1, round(forecasts.n ** (1 / 3)))
    touched = _touched(forecasts, bins, settings.get("strategy", "quantile"))
    residual, slack = _residuals(forecasts, touched), 4 * rounding(forecasts)
    least = np.maximum(0.0, residual.least - slack)
    most = residual.most + slack
    return bracketed(found, float(least @ least) - slack, float(most @ most) + slack)


def _touched(forecasts: Forecasts, bins: Bins, strategy: str) -> _Touched:
    cuts, cells = bin_cuts(bins, strategy), cells_of(forecasts)
    low, high = cells.low, cells.high
    if (
        cuts.by_weight
    ):  # the middle of a level's weight lies between the weight below its cell and that with it
        above = np.cumsum(forecasts.weights)
        inside = forecasts.extents > 0
        middle = above - forecasts.weights / 2
        low = np.where(inside, above - forecasts.weights, middle) - rounding(forecasts)
        high = np.where(inside, above, middle) + rounding(forecasts)
    first, last = (np.searchsorted(cuts.inner, end, side="right") for end in (low, high))
    return _Touched(first, last, len(cuts.inner) + 1)


def _residuals(forecasts: Forecasts, touched: _Touched) -> _Range:
    cells = cells_of(forecasts)
    return touched.total(-cells.over, cells.under, forecasts.residuals)


def _settled(touched: _Touched, residual: _Range, slack: float) -> _Touched:
    """Give a cut cell to its first bin when all bins it touches have residuals of one proven sign.

    The sum of absolute residuals is linear there: how the cell is shared among them cannot matter.
    """
    sign = np.where(residual.low > slack, 1, np.where(residual.high < -slack, -1, 0))
    runs = np.concatenate(([0], np.cumsum(sign[1:] != sign[:-1])))  # equal numbers: no change between
    alike = (runs[touched.first] == runs[touched.last]) & (sign[touched.first] != 0)
    return _Touched(touched.first, np.where(alike, touched.first, touched.last), touched.bins)
