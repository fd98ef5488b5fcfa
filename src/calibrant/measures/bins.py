"""Partitions of the predictions into bins; levels are never split, so ties cannot depend on row order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, reject_name, sentence
from calibrant.forecasts import Forecasts
from calibrant.results import Array

Bins = int | Sequence[float] | Array


def bin_starts(forecasts: Forecasts, bins: Bins, strategy: str) -> npt.NDArray[np.intp]:
    """Return the first level of every occupied bin, ascending.

    "uniform": [0, 1/k), [1/k, 2/k), ..., the last one closed. "quantile": k bins of about equal weight;
    a level goes where the middle of its weight falls. A sequence of edges is used as it is.
    """
    if not isinstance(bins, (int, np.integer)):
        return _occupied(_by_edges(forecasts, _checked_edges(bins)))
    if bins < 1:
        raise InvalidInputError(sentence("bins", "must be at least 1", f"got {bins}"))
    if strategy == "uniform":
        return _occupied(_by_edges(forecasts, np.arange(bins + 1) / bins))
    if strategy == "quantile":
        return _occupied(_by_weight(forecasts, int(bins)))
    raise reject_name("strategy", strategy, ["uniform", "quantile"])


def _checked_edges(bins: Sequence[float] | Array) -> Array:
    edges = np.asarray(bins, dtype=np.float64)
    if edges.ndim != 1 or len(edges) < 2 or not np.all(np.diff(edges) > 0):
        raise InvalidInputError(sentence("bins", "must be a number or ascending edges", f"got {bins!r}"))
    if edges[0] > 0 or edges[-1] < 1:
        raise InvalidInputError(
            sentence("bins", "must cover [0, 1]", f"got edges from {edges[0]} to {edges[-1]}")
        )
    return edges


def _by_edges(forecasts: Forecasts, edges: Array) -> npt.NDArray[np.intp]:
    return np.concatenate(
        ([0], np.searchsorted(forecasts.values, edges[1:-1], side="left"), [forecasts.levels])
    )


def _by_weight(forecasts: Forecasts, bins: int) -> npt.NDArray[np.intp]:
    middle = np.cumsum(forecasts.weights) - forecasts.weights / 2
    # the slack keeps a middle that is k/bins in exact arithmetic on the same side whatever the rounding
    return np.concatenate(
        ([0], np.searchsorted(middle, np.arange(1, bins) / bins - 1e-12, side="left"), [forecasts.levels])
    )


def _occupied(bounds: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Drop empty bins: keep each start that lies before the next one."""
    return bounds[:-1][np.diff(bounds) > 0]
