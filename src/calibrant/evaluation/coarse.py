"""Few numbers that draw like many: curves thinned for a picture, never for a measure."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from calibrant.forecasts import Forecasts
from calibrant.results import Array

POINTS = 400  # a curve on the page has about as many points as a screen can show


def points_to_draw(height: Array, points: int = POINTS) -> npt.NDArray[np.intp]:
    """Return which points of a curve to draw: both ends, and the lowest and highest of every stretch.

    Extremes are kept because they are what the eye and the measures look for.

    >>> points_to_draw(np.array([0.0, 3.0, 1.0, -2.0, 0.5, 0.0]), points=4).tolist()
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
