"""Where a curve would lie if the predictions were calibrated: bands simulated from the predictions alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from calibrant.forecasts import Forecasts
from calibrant.inference.merging import coarse
from calibrant.measures.scores import isotonic_curve
from calibrant.results import Array

Curve = Callable[[Forecasts], Array]


@dataclass(frozen=True, slots=True, eq=False)
class NullBand:
    """Pointwise limits at `x` that hold a share `level` of the curves of calibrated forecasts."""

    x: Array
    lower: Array
    upper: Array
    level: float
    draws: int
    seed: int


def consistency_band(
    forecasts: Forecasts,
    *,
    seed: int,
    curve: Curve = isotonic_curve,
    level: float = 0.95,
    draws: int = 200,
    cells: int = 512,
) -> NullBand:
    """Draw outcomes from the predictions, fit `curve` to each draw, and take pointwise quantiles.

    Consistency band of Dimitriadis, Gneiting & Jordan (2021), section 3. It is drawn around the diagonal:
    a fitted curve inside it is what chance alone would give. Many levels are merged into cells first, and
    a cell of weighted records is drawn as the binomial of the same mean and variance.
    """
    merged = coarse(forecasts, cells)
    rng = np.random.default_rng(seed)
    size = _alike(merged)
    x = np.unique(np.interp(np.linspace(0, 1, 101), np.linspace(0, 1, merged.levels), merged.values))
    fits = np.empty((draws, len(x)))
    for row in fits:
        outcomes = merged.weights * rng.binomial(size, merged.values) / size
        row[:] = np.interp(x, merged.values, curve(_with_outcomes(merged, outcomes)))
    tail = (1 - level) / 2
    lower, upper = np.quantile(fits, [tail, 1 - tail], axis=0)
    return NullBand(x, lower, upper, level, draws, seed)


def _alike(cells: Forecasts) -> npt.NDArray[np.int64]:
    """Return how many records of equal weight are as noisy as those of each cell."""
    with np.errstate(divide="ignore", invalid="ignore"):  # squares of the smallest weights are 0
        alike = np.nan_to_num(cells.weights**2 / cells.squared_weights, nan=1.0)
    return np.asarray(np.rint(np.clip(alike, 1, cells.counts)), dtype=np.int64)


def _with_outcomes(cells: Forecasts, outcomes: Array) -> Forecasts:
    return Forecasts.from_levels(
        cells.values,
        cells.weights,
        outcomes,
        squared_weights=cells.squared_weights,
        counts=cells.counts,
        total_weight=cells.total_weight,
    )
