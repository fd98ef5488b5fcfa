"""Binned calibration error: the popular estimate, with the choices that usually stay unsaid."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, reject_name, sentence
from calibrant.forecasts import Forecasts
from calibrant.measures.bins import Bins, bin_starts
from calibrant.measures.registry.calling import public
from calibrant.results import Array, Certified


@public
def binned_calibration_error(
    forecasts: Forecasts,
    *,
    bins: Bins = 15,
    strategy: Literal["uniform", "quantile"] = "uniform",
    norm: int | Literal["max"] = 1,
    debiased: bool = False,
    add_width: bool = False,
) -> Certified:
    """Binned calibration error: sum over bins of the weight times |mean outcome - mean prediction|^norm.

    Also called ECE in most software. `norm=2` takes the square root of the sum, `norm="max"` the largest
    gap. Bins are closed on the left, the last one on both sides; ties are never split. `debiased=True`
    (norm 2) subtracts the sampling variance of each bin (Kumar, Liang & Ma 2019). `add_width=True` (norm 1)
    adds the mean width of the bins' hulls: then it is a proven upper bound on the upper distance
    to calibration. It jumps when a prediction crosses an edge: prefer smooth_calibration_error.

    >>> binned_calibration_error([0, 1, 1, 1], [0.5, 0.6, 0.7, 0.8], bins=2)
    0.1
    """
    starts = bin_starts(forecasts, bins, strategy)
    if norm not in (1, 2, "max"):
        raise reject_name("norm", str(norm), ["1", "2", "max"])
    if (debiased and norm != 2) or (add_width and norm != 1):
        option, needed = ("debiased", 2) if debiased else ("add_width", 1)
        raise InvalidInputError(sentence(option, f"needs norm={needed}", f"got norm={norm!r}"))
    weight = np.add.reduceat(forecasts.weights, starts)
    residual = np.add.reduceat(forecasts.residuals, starts)
    gap = np.abs(residual) / weight
    if norm == "max":
        return Certified.point(float(gap.max()), bins=len(starts))
    if norm == 2:
        squares = gap**2 - (_sampling_variance(forecasts, starts, weight) if debiased else 0.0)
        return Certified.point(float(np.sqrt(max(0.0, float(weight @ squares)))), bins=len(starts))
    last = np.append(starts[1:], forecasts.levels) - 1
    width = float(weight @ (forecasts.values[last] - forecasts.values[starts])) if add_width else 0.0
    return Certified.point(float(np.abs(residual).sum()) + width, bins=len(starts))


def _sampling_variance(forecasts: Forecasts, starts: npt.NDArray[np.intp], weight: Array) -> Array:
    """Variance of each bin's mean outcome, mean (1 - mean) / (n - 1), n the effective number of records."""
    mean = np.add.reduceat(forecasts.outcomes, starts) / weight
    effective = weight**2 / np.add.reduceat(forecasts.squared_weights, starts)
    return mean * (1 - mean) / np.where(effective > 1, effective - 1, np.inf)
