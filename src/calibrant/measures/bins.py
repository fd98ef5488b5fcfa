"""Partitions of the predictions into bins; levels are never split, so ties cannot depend on row order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, reject_name, sentence
from calibrant.forecasts import Forecasts
from calibrant.options import whole_number
from calibrant.results import Array

MOST_BINS = 10**7  # edges are held in memory
Bins = int | Sequence[float] | Array


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


def _checked_edges(bins: Sequence[float] | Array) -> Array:
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
