"""What is known of a measure under calibration: mean, limit law, and values for many outcomes at once.

Given the predictions, calibration means that the outcomes are independent Bernoulli(v). A *batch*
takes one row of residuals for each simulated set of outcomes, all on the same predictions and weights,
and returns one value a row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.forecasts import Forecasts
from calibrant.kernels.curves import curve_extremes, two_bin_absolutes, two_bin_squares
from calibrant.kernels.laplace import laplace_forms
from calibrant.kernels.trimming import smooth_values
from calibrant.measures.bins import bin_starts
from calibrant.measures.ece import mean_power
from calibrant.measures.registry.laws import Law
from calibrant.measures.scores import CLIP
from calibrant.results import Array

Settings = Mapping[str, Any]
Batch = Callable[[Forecasts, Array, Settings], Array | None]
Deviation = Callable[[Forecasts, Array, Array], Array]  # forecasts, changes of weights and of outcomes
Mean = Callable[[Forecasts, Settings], float | None]


@dataclass(frozen=True, slots=True, eq=False)
class Null:
    """A measure under calibration; where a field is absent, simulation with the measure itself answers.

    `batch` and `mean` return None where the settings given are not theirs. `residuals_only` says that the
    batch needs predictions and residuals and nothing else, so that it also holds when weights change.
    `power` k says more: the value is the k-th power of a seminorm of the residuals, so the k-th roots of
    two values differ by at most the seminorm of the difference. `deviation` is such a bound of another kind.
    """

    batch: Batch | None = None
    residuals_only: bool = False
    power: int = 0
    deviation: Deviation | None = None
    mean: Mean | None = None  # exact, not a limit
    law: Law | None = None
    two_sided: bool = False  # a value below its mean (or ideal) speaks against calibration as well


def ranges(forecasts: Forecasts, residuals: Array, settings: Settings) -> Array:
    """Kuiper: max C - min C, C_0 = 0 included."""
    low, high = curve_extremes(residuals).T
    return np.asarray(high - low)


def largest(forecasts: Forecasts, residuals: Array, settings: Settings) -> Array:
    """Kolmogorov-Smirnov: max |C|."""
    low, high = curve_extremes(residuals).T
    return np.asarray(np.maximum(high, -low))


def two_bins(forecasts: Forecasts, residuals: Array, settings: Settings) -> Array:
    """ATB and l1-ATB: the integral of |C|^norm + |C_m - C|^norm."""
    integrals = two_bin_absolutes if settings.get("norm", 2) == 1 else two_bin_squares
    return integrals(residuals, forecasts.values)


def squared_bins(forecasts: Forecasts, residuals: Array, settings: Settings) -> Array:
    """UBSE: sum over bins of the squared residual."""
    bins = settings.get("bins") or max(1, round(forecasts.n ** (1 / 3)))
    starts = bin_starts(forecasts, bins, settings.get("strategy", "quantile"))
    sums = np.add.reduceat(residuals, starts, axis=1)
    return np.asarray(np.square(sums, out=sums).sum(axis=1))


def absolute_bins(forecasts: Forecasts, residuals: Array, settings: Settings) -> Array | None:
    """Binned calibration error, norms 1, 2 and "max", neither debiased nor with its width added."""
    if settings.get("debiased") or settings.get("add_width"):
        return None
    starts = bin_starts(forecasts, settings.get("bins", 15), settings.get("strategy", "uniform"))
    weight = np.add.reduceat(forecasts.weights, starts)
    sums = np.abs(np.add.reduceat(residuals, starts, axis=1))
    norm = settings.get("norm", 1)
    if norm == "max":
        return np.asarray((sums / weight).max(axis=1))
    return np.asarray(np.sqrt(np.square(sums) @ (1 / weight)) if norm == 2 else sums.sum(axis=1))


def level_gaps(forecasts: Forecasts, residuals: Array, settings: Settings) -> Array:
    """ECE: E |gap|^norm over the levels."""
    norm, weight = settings.get("norm", 1), forecasts.weights
    gap = np.abs(residuals)
    if norm == 1:
        return np.asarray(gap.sum(axis=1))
    gap /= weight
    if np.isinf(norm):
        return np.asarray(gap.max(axis=1))
    return mean_power(gap, weight, float(norm), bool(settings.get("root")))


def smooth(forecasts: Forecasts, residuals: Array, settings: Settings) -> Array:
    """Smooth calibration error."""
    return smooth_values(forecasts.values, residuals, float(settings.get("lipschitz", 1.0)))


def earth_mover(forecasts: Forecasts, residuals: Array, settings: Settings) -> Array:
    """Earth mover's error: the smooth error with Lipschitz constant 2."""
    return smooth_values(forecasts.values, residuals, 2.0)


def laplace(forecasts: Forecasts, residuals: Array, settings: Settings) -> Array | None:
    """Laplace kernel error, or its square; other kernels have no linear-time form."""
    if settings.get("kernel", "laplace") != "laplace":
        return None
    squares = laplace_forms(forecasts.values, residuals, float(settings.get("bandwidth", 1.0)))
    return squares if settings.get("squared") else np.sqrt(squares)


def ends(forecasts: Forecasts, residuals: Array, settings: Settings) -> Array:
    """Calibration in the large."""
    return np.asarray(residuals.sum(axis=1))


def brier(forecasts: Forecasts, residuals: Array, settings: Settings) -> Array:
    """Brier score, sum a (1 - v)^2 + (w - a) v^2 with a = b + w v."""
    return np.asarray(residuals @ (1 - 2 * forecasts.values) + brier_mean(forecasts, settings))


def log_score(forecasts: Forecasts, residuals: Array, settings: Settings) -> Array:
    """Log loss: linear in the residuals as well."""
    miss, hit = _log_costs(forecasts, settings)
    return np.asarray(residuals @ (hit - miss) + log_mean(forecasts, settings))


def residual_variance(forecasts: Forecasts, settings: Settings) -> float:
    """Mean of every binned squared error (ATB, UBSE): Lemma 3.3 of the truthfulness paper with r = p."""
    return forecasts.null_variance


def two_bin_mean(forecasts: Forecasts, settings: Settings) -> float | None:
    """Mean of ATB for norm 2."""
    return forecasts.null_variance if settings.get("norm", 2) == 2 else None


def kernel_mean(forecasts: Forecasts, settings: Settings) -> float | None:
    """Mean of the squared kernel error: k(v, v) = 1 for the kernels known by name."""
    known = settings.get("kernel", "laplace") in ("laplace", "gaussian")
    return forecasts.null_variance if settings.get("squared") and known else None


def zero(forecasts: Forecasts, settings: Settings) -> float:
    """Mean of a signed residual."""
    return 0.0


def brier_mean(forecasts: Forecasts, settings: Settings) -> float:
    """Mean Brier score of calibrated forecasts, E[v (1 - v)]."""
    return float(forecasts.weights @ (forecasts.values * (1 - forecasts.values)))


def log_mean(forecasts: Forecasts, settings: Settings) -> float:
    """Mean log loss of calibrated forecasts: their entropy."""
    miss, hit = _log_costs(forecasts, settings)
    return float(forecasts.weights @ (forecasts.values * hit + (1 - forecasts.values) * miss))


def _log_costs(forecasts: Forecasts, settings: Settings) -> tuple[Array, Array]:
    clip = settings.get("clip", CLIP)
    safe = np.clip(forecasts.values, clip, 1 - clip)
    return -np.log1p(-safe), -np.log(safe)


def transport_deviation(forecasts: Forecasts, weights: Array, outcomes: Array) -> Array:
    """Bound on how far the lower distance moves when the masses of the levels change by these rows.

    Its dual weighs outcome 0 by r_0(v) and outcome 1 by r_1(v), both 1-Lipschitz; without loss
    |r_0(v)| <= v and |r_1(v)| <= 1 - v. So the value moves by at most the integral over t of the
    change of P(y = 0, v > t) plus that of P(y = 1, v < t), each taken absolutely.
    """
    gaps = np.diff(forecasts.values, prepend=0.0, append=1.0)
    above = np.cumsum((weights - outcomes)[:, ::-1], axis=1)[:, ::-1]
    below = np.cumsum(outcomes, axis=1)
    return np.asarray(np.abs(above) @ gaps[:-1] + np.abs(below) @ gaps[1:])
