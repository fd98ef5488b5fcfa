"""Few numbers that draw like many: curves and cells thinned for a picture, never for a measure."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from calibrant.forecasts import Forecasts
from calibrant.results import Array

POINTS = 400  # a curve on the page has about as many points as a screen can show


def coarse(forecasts: Forecasts, cells: int = 512) -> Forecasts:
    """Merge neighbouring levels into about `cells` cells, for simulated bands.

    Half of the cuts are even in weight, half in prediction, so that neither dense nor sparse stretches
    blur; predictions of 0 and 1, which leave no doubt, keep cells of their own. The result has no
    certificates: it serves pictures and is never measured.
    """
    if forecasts.levels <= cells:
        return forecasts
    middle = np.cumsum(forecasts.weights) - forecasts.weights / 2
    place = (forecasts.values - forecasts.values[0]) / (forecasts.values[-1] - forecasts.values[0])
    cell = (middle * (cells / 2)).astype(np.int64) + (place * (cells / 2)).astype(np.int64)
    cell += (forecasts.values > 0).astype(np.int64) + (forecasts.values == 1)
    starts = np.flatnonzero(np.diff(cell, prepend=-1))
    weights = np.add.reduceat(forecasts.weights, starts)
    mean = np.add.reduceat(forecasts.weights * forecasts.values, starts) / weights
    last = np.append(starts[1:], forecasts.levels) - 1
    values = np.clip(
        mean, forecasts.values[starts], forecasts.values[last]
    )  # a mean may round out of its cell
    return Forecasts.from_levels(
        values,
        weights,
        np.add.reduceat(forecasts.outcomes, starts),
        squared_weights=np.add.reduceat(forecasts.squared_weights, starts),
        counts=np.add.reduceat(forecasts.counts, starts),
        total_weight=forecasts.total_weight,
        binary=forecasts.binary,
        record_weights=forecasts.record_weights,
    )


def thinned(height: Array, points: int = POINTS) -> npt.NDArray[np.intp]:
    """Return which points of a curve to draw: both ends, and the lowest and highest of every stretch.

    Extremes are kept because they are what the eye and the measures look for.

    >>> thinned(np.array([0.0, 3.0, 1.0, -2.0, 0.5, 0.0]), points=4).tolist()
    [0, 1, 3, 5]
    """
    if len(height) <= points:
        return np.arange(len(height))
    edges = np.linspace(0, len(height), max(2, points // 2), dtype=np.int64)[:-1]
    kept = {0, len(height) - 1}
    for start, stop in zip(edges, np.append(edges[1:], len(height)), strict=True):
        piece = height[start:stop]
        kept.update((int(start + np.argmin(piece)), int(start + np.argmax(piece))))
    return np.array(sorted(kept), dtype=np.intp)


def density(forecasts: Forecasts, low: float, high: float, bins: int = 50) -> tuple[Array, Array]:
    """Return the edges of equal bins over [low, high] and the share of the weight in each."""
    edges = np.linspace(low, high, bins + 1)
    place = np.clip(((forecasts.values - low) / (high - low) * bins).astype(np.int64), 0, bins - 1)
    return edges, np.bincount(place, weights=forecasts.weights, minlength=bins).astype(np.float64)
