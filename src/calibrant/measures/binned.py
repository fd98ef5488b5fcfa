"""Binned calibration error: the popular estimate, with the choices that usually stay unsaid."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, reject_name, sentence
from calibrant.forecasts import Forecasts
from calibrant.kernels.shifted_bins import shifted_error
from calibrant.measures.bins import Bins, bin_starts
from calibrant.measures.registry.bin_bounds import residual_ranges, settled_bins, touched_bins
from calibrant.measures.registry.calling import public
from calibrant.measures.registry.null import Null, Settings
from calibrant.measures.registry.papers import BINS_PAPER
from calibrant.measures.registry.resolution import (
    EPS,
    bracketed,
    no_certificate,
    residual_mass,
    rounded,
    rounding,
    widened,
)
from calibrant.measures.registry.row import Measure
from calibrant.results import Array, Certified
from calibrant.sums import dot


@public
def binned_calibration_error(
    forecasts: Forecasts,
    *,
    bins: Bins = 15,
    strategy: Literal["uniform", "quantile"] = "uniform",
    norm: int | Literal["max"] = 1,
    debiased: bool = False,
    add_width: bool = False,
    shift: Literal["average"] | None = None,
) -> Certified:
    """Binned calibration error: sum over bins of the weight times |mean outcome - mean prediction|^norm.

    Also called ECE in most software. `norm=2` takes the square root of the sum, `norm="max"` the largest
    gap. Bins are closed on the left, the last one on both sides; ties are never split. `debiased=True`
    (norm 2) subtracts the sampling variance of each bin (Kumar, Liang & Ma 2019). `add_width=True` (norm 1)
    adds the mean width of the bins' hulls: then it is a proven upper bound on the upper distance
    to calibration. It jumps when a prediction crosses an edge: prefer smooth_calibration_error, or
    ``shift="average"`` (norm 1), which averages over where bins of width 1 / `bins` begin, exactly; with
    ``add_width=True`` that width is added, and the value is an upper bound in the same sense.

    Parameters
    ----------
    bins
        How many bins, or their edges.
    strategy
        Bins of equal width ("uniform") or of about equal weight ("quantile").
    norm
        The power of the gaps, or "max".
    debiased
        With norm 2: subtract the sampling variance of each bin.
    add_width
        With norm 1: add the mean width of the bins.
    shift
        "average": the mean over where bins of one width begin.

    Returns
    -------
    float
        The error; 0 if every bin is right on average.

    Examples
    --------
    >>> binned_calibration_error([0, 1, 1, 1], [0.5, 0.6, 0.7, 0.8], bins=2)
    0.1
    """
    starts = bin_starts(forecasts, bins, strategy)
    if norm not in (1, 2, "max"):
        raise reject_name("norm", str(norm), ["1", "2", "max"])
    if shift is not None:
        return _shifted(forecasts, _width(bins, strategy, norm, debiased, shift), add_width)
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


def _shifted(forecasts: Forecasts, width: float, add_width: bool) -> Certified:
    error = shifted_error(forecasts.values, forecasts.residuals, width)
    return Certified.point(error + (width if add_width else 0.0), width=width)


def _width(bins: Bins, strategy: str, norm: object, debiased: bool, shift: str) -> float:
    """Return the width of bins that can be shifted; refuse options that say nothing about them."""
    if shift != "average":
        raise reject_name("shift", shift, ["average"])
    if not isinstance(bins, (int, np.integer)) or strategy != "uniform" or norm != 1 or debiased:
        rule = "needs a number of uniform bins and norm=1, not debiased"
        got = f"got bins={bins!r}, strategy={strategy!r}, norm={norm!r}, debiased={debiased}"
        raise InvalidInputError(sentence("shift", rule, got))
    return 1.0 / int(bins)


def _sampling_variance(forecasts: Forecasts, starts: npt.NDArray[np.intp], weight: Array) -> Array:
    """Variance of each bin's mean outcome, mean (1 - mean) / (n - 1), n the effective number of records.

    n - 1 is W^2 / sum w_i^2 - 1 = sum over i != j of w_i w_j / sum w_i^2, a sum without cancellation.
    """
    ones, zeros = np.add.reduceat(forecasts.outcomes, starts), _zeros(forecasts, starts, weight)
    squares = np.add.reduceat(forecasts.squared_weights, starts)
    pairs = _products_of_pairs(forecasts, starts, weight, squares)
    share = np.divide(squares, pairs, out=np.zeros(len(starts)), where=pairs > 0)
    return (ones / weight) * (zeros / weight) * share


def _zeros(forecasts: Forecasts, starts: npt.NDArray[np.intp], weight: Array) -> Array:
    """Weight of the outcome 0 in each bin, summed over the records where they are known."""
    if forecasts.record_weights is None or forecasts.record_outcomes is None:
        return np.maximum(weight - np.add.reduceat(forecasts.outcomes, starts), 0.0)
    zeros = forecasts.record_weights * (1.0 - forecasts.record_outcomes)
    return np.add.reduceat(zeros, _first_records(forecasts, starts))


def _products_of_pairs(
    forecasts: Forecasts, starts: npt.NDArray[np.intp], weight: Array, squares: Array
) -> Array:
    """Sum of w_i w_j over all ordered pairs of different records of each bin: W^2 - sum w_i^2."""
    if forecasts.cells is None and forecasts.record_weights is None:  # n (n - 1) pairs of 1 / n each
        counts = np.add.reduceat(forecasts.counts, starts).astype(np.float64)
        return counts * (counts - 1.0) / float(forecasts.n) ** 2
    if forecasts.record_weights is None:
        return np.maximum(weight**2 - squares, 0.0)
    bins = np.split(forecasts.record_weights, _first_records(forecasts, starts)[1:])
    return np.array([2.0 * float(w[1:] @ np.cumsum(w)[:-1]) for w in bins])


def _first_records(forecasts: Forecasts, starts: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Number of the first record of each bin, in the order of the levels."""
    return (np.cumsum(forecasts.counts) - forecasts.counts)[starts]


def _absolute_bins(forecasts: Forecasts, residuals: Array, settings: Settings) -> Array | None:
    """Binned calibration error, norms 1, 2 and "max", neither debiased nor with its width added."""
    if settings["debiased"] or settings["add_width"] or settings["shift"]:
        return None
    starts = bin_starts(forecasts, settings["bins"], settings["strategy"])
    weight = np.add.reduceat(forecasts.weights, starts)
    sums = np.abs(np.add.reduceat(residuals, starts, axis=1))
    norm = settings["norm"]
    if norm == "max":
        return np.asarray((sums / weight).max(axis=1))
    return np.asarray(np.sqrt(np.square(sums) @ (1 / weight)) if norm == 2 else sums.sum(axis=1))


def _shifted_bounds(forecasts: Forecasts, measured: Certified, bins: int) -> Certified:
    """A share of at most h bins of the shifts cuts a cell of spread h, and then moves at most 2 A."""
    moved = 2 * dot(forecasts.extents, residual_mass(forecasts))
    return widened(measured, bins * (moved + 4 * rounding(forecasts)))


@binned_calibration_error.certified_by
def _binned_bounds(forecasts: Forecasts, measured: Certified, settings: Settings) -> Certified:
    """Bound the binned calibration error in each of its norms."""
    if settings["shift"]:
        return _shifted_bounds(forecasts, measured, int(settings["bins"]))
    for option in ("debiased", "add_width"):
        if settings[option]:
            raise no_certificate("binned", f"got {option}=True")
    norm = settings["norm"]
    touched = touched_bins(forecasts, settings["bins"], settings["strategy"])
    if forecasts.exact and not touched.cut:
        return rounded(forecasts, measured)
    residual = residual_ranges(forecasts, touched)
    slack = 4 * rounding(forecasts)
    if norm == 1:
        residual = residual_ranges(forecasts, settled_bins(touched, residual, slack))
        error = slack + 8 * EPS * touched.bins  # the bins share the rounding of the cells
        return bracketed(measured, float(residual.least.sum()) - error, float(residual.most.sum()) + error)
    weight = touched.total(np.zeros(forecasts.levels), forecasts.weights, forecasts.weights)
    most = residual.most + slack
    # no gap exceeds 1, whatever little weight is left in a bin
    steepest = np.minimum(1.0, most / np.maximum(weight.low - slack, 1e-300))
    flattest = np.maximum(0.0, residual.least - slack) / (weight.high + slack)
    if norm == "max":
        return bracketed(measured, float(flattest.max()) - slack, float(steepest.max()) + slack)
    least = float(flattest @ np.maximum(0.0, residual.least - slack))
    return bracketed(measured, np.sqrt(least) - slack, np.sqrt(float(steepest @ most)) + slack)


ROWS = (
    Measure(
        "binned",
        binned_calibration_error,
        words="binned calibration error",
        largest=1.0,
        family="bins",
        headline=True,
        meaning="mean gap between prediction and outcome rate over 15 equal bins (the usual ECE)",
        complete=True,
        null=Null(_absolute_bins, power=1),
        cost="O(m + bins)",
        citation=BINS_PAPER,
        variants=(
            {"strategy": "quantile", "bins": 4},
            {"norm": 2},
            {"norm": "max"},
            {"shift": "average", "bins": 8},
            {"bins": [0, 0.1, 0.5, 1]},
        ),
    ),
)
