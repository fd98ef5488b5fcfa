"""Random binning: an unbiased estimate of the squared Laplace kernel error by bins of random width."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.forecasts import Forecasts
from calibrant.measures.kernel import check_bandwidth
from calibrant.measures.registry.calling import of_rows
from calibrant.options import whole_number
from calibrant.results import Array, Result
from calibrant.seeds import recorded_seed


@dataclass(frozen=True, slots=True, repr=False)
class RandomBinning(Result):
    """An estimate of the squared Laplace kernel error, its standard error, and how it was drawn."""

    square: float
    standard_error: float
    draws: int
    bandwidth: float
    seed: int


@of_rows
def random_binning_estimate(
    forecasts: Forecasts,
    *,
    bandwidth: float = 1.0,
    draws: int = 100,
    seed: int | None = None,
) -> RandomBinning:
    """Estimate the squared Laplace kernel error by binned squared errors with random bins.

    Bins of width Gamma(2, bandwidth) and uniform shift put u and v together with probability
    exp(-|u - v| / bandwidth), so the sum over bins of the squared residual sum is unbiased for
    ``kernel_calibration_error(..., squared=True)``. It needs neither a kernel nor an order, only
    bins, and so serves where records cannot be compared pair by pair; on one machine the exact value is
    cheaper.

    Parameters
    ----------
    bandwidth
        Of the Laplace kernel.
    draws, seed
        How many partitions into bins are drawn, and what seeds them; the result records the seed.

    Returns
    -------
    RandomBinning
        The mean over draws with its standard error.

    Examples
    --------
    >>> random_binning_estimate([0, 0, 1], [0.3, 0.3, 0.3], seed=0).square.__round__(9)
    0.001111111
    """
    check_bandwidth(bandwidth)
    whole_number("draws", draws, 2)
    used = recorded_seed(seed)
    rng = np.random.default_rng(used)
    widths, shifts = rng.gamma(2.0, bandwidth, size=draws), rng.random(draws)
    squares = np.array([_binned_square(forecasts, *bins) for bins in zip(widths, shifts, strict=True)])
    error = float(squares.std(ddof=1) / np.sqrt(draws))
    return RandomBinning(float(squares.mean()), error, draws, bandwidth, used)


def _binned_square(forecasts: Forecasts, width: float, shift: float) -> float:
    """Return the sum over the bins [(k - shift) width, (k + 1 - shift) width) of the squared residual."""
    if width * forecasts.levels > 1.0:  # fewer bins than levels: read the curve where they end
        edges = np.arange(1.0 - shift, 1.0 / width, 1.0) * width
        ends = np.searchsorted(forecasts.values, edges)
    else:
        ends = np.flatnonzero(np.diff(np.floor(forecasts.values / width + shift))) + 1
    reached: Array = forecasts.curve[np.concatenate(([0], ends, [forecasts.levels]))]
    return float(np.sum(np.diff(reached) ** 2))
