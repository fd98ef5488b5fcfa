"""Partitions of the predictions into bins; levels are never split, so ties cannot depend on row order.

Certificates for binned measures: a cell that an edge cuts may belong to either bin, in any part.

Where every edge is an edge of cells no cell is cut, and the value of the sketch is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, reject_name, sentence
from calibrant.forecasts import Forecasts
from calibrant.inputs import whole_number
from calibrant.metrics.certificates import cells_of, rounding
from calibrant.results import Array

MOST_BINS = 10**7  # edges are held in memory
Bins = int | float | Sequence[float] | Array


def bin_starts(forecasts: Forecasts, bins: Bins, strategy: str) -> npt.NDArray[np.intp]:
    """Return the first level of every occupied bin, ascending.

    "uniform": [0, 1/k), [1/k, 2/k), ..., the last one closed. "quantile": k bins of about equal weight;
    a level goes where the middle of its weight falls. A sequence of edges is used as it is.
    """
    cuts = bin_cuts(bins, strategy)
    position = forecasts.values
    if cuts.by_weight:
        position = np.cumsum(forecasts.weights) - forecasts.weights / 2
    starts = np.searchsorted(position, cuts.inner, side="left")
    return _occupied(np.concatenate(([0], starts, [forecasts.levels])))


@dataclass(frozen=True, slots=True)
class Cuts:
    """Where bins end and the next begin: at predictions, or at shares of weight up to a level's middle."""

    inner: Array
    by_weight: bool


def bin_cuts(bins: Bins, strategy: str) -> Cuts:
    """Return the inner edges of the bins; a position equal to an edge lies in the bin above it."""
    if strategy not in ("uniform", "quantile"):
        raise reject_name("strategy", strategy, ["uniform", "quantile"])
    if not isinstance(bins, (int, np.integer)):
        return Cuts(_checked_edges(bins)[1:-1], by_weight=False)
    whole_number("bins", bins, 1, MOST_BINS)
    inner = np.arange(1, bins) / bins
    # the slack keeps a middle that is k/bins in exact arithmetic on the same side whatever the rounding
    return Cuts(inner - 1e-12, by_weight=True) if strategy == "quantile" else Cuts(inner, by_weight=False)


def _checked_edges(bins: Bins) -> Array:
    try:
        edges = np.asarray(bins, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInputError(
            sentence("bins", "must be a number or ascending edges", f"got {bins!r}")
        ) from None
    if edges.ndim != 1 or len(edges) < 2 or not np.all(np.diff(edges) > 0):
        raise InvalidInputError(sentence("bins", "must be a number or ascending edges", f"got {bins!r}"))
    if edges[0] > 0 or edges[-1] < 1:
        raise InvalidInputError(
            sentence("bins", "must cover [0, 1]", f"got edges from {edges[0]} to {edges[-1]}")
        )
    return edges


def _occupied(bounds: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Drop empty bins: keep each start that lies before the next one."""
    return bounds[:-1][np.diff(bounds) > 0]


Index = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Range:
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
class Touched:
    """The first and the last bin that records of each cell can lie in."""

    first: Index
    last: Index
    bins: int

    @property
    def cut(self) -> bool:
        """Whether an edge cuts a cell, or may."""
        return bool(np.any(self.last > self.first))

    def total(self, low: Array, high: Array, whole: Array) -> Range:
        """Sum over the cells of each bin: `whole` for a cell inside it, [low, high] for one that it cuts."""
        cut = self.last > self.first
        return Range(*(self._spread(np.where(cut, part, whole)) for part in (low, high)))

    def _spread(self, part: Array) -> Array:
        """Add `part` to all bins from first to last, by differences."""
        steps = np.zeros(self.bins + 1)
        np.add.at(steps, self.first, part)
        np.add.at(steps, self.last + 1, -part)
        return np.cumsum(steps)[:-1]


def touched_bins(forecasts: Forecasts, bins: Bins, strategy: str) -> Touched:
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
    return Touched(first, last, len(cuts.inner) + 1)


def residual_ranges(forecasts: Forecasts, touched: Touched) -> Range:
    cells = cells_of(forecasts)
    return touched.total(-cells.over, cells.under, forecasts.residuals)


def settled_bins(touched: Touched, residual: Range, slack: float) -> Touched:
    """Give a cut cell to its first bin when all bins it touches have residuals of one proven sign.

    The sum of absolute residuals is linear there: how the cell is shared among them cannot matter.
    """
    sign = np.where(residual.low > slack, 1, np.where(residual.high < -slack, -1, 0))
    runs = np.concatenate(([0], np.cumsum(sign[1:] != sign[:-1])))  # equal numbers: no change between
    alike = (runs[touched.first] == runs[touched.last]) & (sign[touched.first] != 0)
    return Touched(touched.first, np.where(alike, touched.first, touched.last), touched.bins)
