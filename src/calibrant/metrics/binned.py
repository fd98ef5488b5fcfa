"""Expected calibration error (ECE): over bins, as most software has it, and over the distinct predictions.

Levels are never split between bins, so ties cannot depend on row order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, LevelSetWarning, reject_name, warn_user
from calibrant.forecasts import Forecasts
from calibrant.inputs import number, whole_number
from calibrant.kernels.cumulative import shifted_error
from calibrant.metrics.bibliography import BINS_PAPER, DISTANCE_PAPER
from calibrant.metrics.calling import check_choice, measure_function
from calibrant.metrics.certificates import (
    EPS,
    bracketed,
    cells_of,
    no_certificate,
    residual_mass,
    rounded,
    rounding,
    widened,
)
from calibrant.metrics.registry import Measure, Null, Settings
from calibrant.parallel import dot
from calibrant.results import Array, Certified, Witness

Bins = int | float | Sequence[float] | Array
Index = npt.NDArray[np.intp]
MAX_BINS = 10**7  # edges are held in memory
MAX_EXAMPLE_RECORDS = 30  # records; fewer are a worked example
REMEDY = "Use smooth_calibration_error or averaged_two_bin_error, or recalibrate or round first."


@measure_function
def expected_calibration_error(
    forecasts: Forecasts,
    *,
    bins: Bins = 15,
    strategy: Literal["uniform", "quantile"] = "uniform",
    norm: int | Literal["max"] = 1,
    debiased: bool = False,
    add_width: bool = False,
    shift: Literal["average"] | None = None,
    midpoints: bool = False,
) -> Certified:
    """Expected calibration error (ECE): the mean over bins of |mean outcome - mean prediction|^norm.

    Also called binned calibration error; level_set_error has no bins. Bins are closed on the left, the last
    one on both sides; ties are never split. It jumps when a prediction crosses an edge: prefer
    smooth_calibration_error, or ``shift="average"``.

    Parameters
    ----------
    bins
        How many bins, or their edges; with `shift` also their width, a number below 1.
    strategy
        Bins of equal width ("uniform") or of about equal weight ("quantile").
    norm
        The power of the gaps; 2 takes the root of the sum, "max" the largest gap.
    debiased
        With norm 2: subtract the sampling variance of each bin (Kumar, Liang & Ma 2019).
    add_width
        With norm 1: add the mean width of the bins' hulls, for a proven bound on the upper distance.
    shift
        "average" (norm 1): the exact mean over where bins of one width begin.
    midpoints
        With norm 1: round predictions to the middle of their bin first, the survey's bucketed ECE.

    Examples
    --------
    >>> expected_calibration_error([0, 1, 1, 1], [0.5, 0.6, 0.7, 0.8], bins=2)
    0.1
    """
    if norm not in (1, 2, "max"):
        raise reject_name("norm", str(norm), ["1", "2", "max"])
    if midpoints and (norm != 1 or strategy != "uniform" or debiased or add_width or shift is not None):
        raise InvalidInputError("midpoints", "needs uniform bins and norm=1, and no other option")
    if shift is not None:
        width = _width(bins, strategy, norm, debiased, shift)
        error = shifted_error(forecasts.values, forecasts.residuals, width)
        return Certified.point(error + (width if add_width else 0.0), width=width)
    starts = bin_starts(forecasts, bins, strategy)
    if (debiased and norm != 2) or (add_width and norm != 1):
        option, needed = ("debiased", 2) if debiased else ("add_width", 1)
        raise InvalidInputError(option, f"needs norm={needed}", f"got norm={norm!r}")
    weight = np.add.reduceat(forecasts.weights, starts)
    residual = np.add.reduceat(forecasts.residuals, starts)
    if midpoints:
        edges = np.linspace(0, 1, int(bins) + 1) if isinstance(bins, (int, np.integer)) else np.asarray(bins)
        at = np.searchsorted(edges[1:-1], forecasts.values[starts], side="right")
        middles = (edges[at] + edges[at + 1]) / 2
        residual = np.add.reduceat(forecasts.outcomes, starts) - weight * middles
    gap = np.abs(residual) / weight
    if norm == "max":
        return Certified.point(float(gap.max()), bins=len(starts))
    if norm == 2:
        squares = gap**2 - (_sampling_variance(forecasts, starts, weight) if debiased else 0.0)
        return Certified.point(float(np.sqrt(max(0.0, float(weight @ squares)))), bins=len(starts))
    last = np.append(starts[1:], forecasts.levels) - 1
    width = float(weight @ (forecasts.values[last] - forecasts.values[starts])) if add_width else 0.0
    return Certified.point(float(np.abs(residual).sum()) + width, bins=len(starts))


binned_calibration_error = expected_calibration_error


def _width(bins: Bins, strategy: str, norm: object, debiased: bool, shift: str) -> float:
    """Return the width of bins that can be shifted; refuse options that say nothing about them."""
    check_choice("shift", shift, ["average"])
    is_width = isinstance(bins, float) and 0 < bins < 1
    counted = isinstance(bins, (int, np.integer)) and not isinstance(bins, bool) and bins >= 1
    if not (is_width or counted) or strategy != "uniform" or norm != 1 or debiased:
        rule = "needs a number of uniform bins, or their width, and norm=1, not debiased"
        got = f"got bins={bins!r}, strategy={strategy!r}, norm={norm!r}, debiased={debiased}"
        raise InvalidInputError("shift", rule, got)
    return float(bins) if is_width else 1.0 / int(bins)  # type: ignore[arg-type]


def _sampling_variance(forecasts: Forecasts, starts: Index, weight: Array) -> Array:
    """Variance of each bin's mean outcome, mean (1 - mean) / (n - 1), n the effective number of records."""
    # n - 1 is W^2 / sum w_i^2 - 1 = sum over i != j of w_i w_j / sum w_i^2, a sum without cancellation.
    # Weights of the outcome 0 and products of pairs are summed over the records where those are known.
    ones, records = np.add.reduceat(forecasts.outcomes, starts), forecasts.record_weights
    squares = np.add.reduceat(forecasts.squared_weights, starts)
    first = (np.cumsum(forecasts.counts) - forecasts.counts)[starts]
    zeros = np.maximum(weight - ones, 0.0)
    if records is not None and forecasts.record_outcomes is not None:
        zeros = np.add.reduceat(records * (1.0 - forecasts.record_outcomes), first)
    if records is not None:
        bins = np.split(records, first[1:])
        pairs = np.array([2.0 * float(w[1:] @ np.cumsum(w)[:-1]) for w in bins])
    elif forecasts.cells is None:  # n (n - 1) pairs of 1 / n each
        counts = np.add.reduceat(forecasts.counts, starts).astype(np.float64)
        pairs = counts * (counts - 1.0) / float(forecasts.n) ** 2
    else:
        pairs = np.maximum(weight**2 - squares, 0.0)
    share = np.divide(squares, pairs, out=np.zeros(len(starts)), where=pairs > 0)
    return np.asarray((ones / weight) * (zeros / weight) * share)


def _absolute_bins(forecasts: Forecasts, residuals: Array, settings: Settings) -> Array | None:
    if any(settings[option] for option in ("debiased", "add_width", "shift", "midpoints")):
        return None
    starts = bin_starts(forecasts, settings["bins"], settings["strategy"])
    weight = np.add.reduceat(forecasts.weights, starts)
    sums = np.abs(np.add.reduceat(residuals, starts, axis=1))
    norm = settings["norm"]
    if norm == "max":
        return np.asarray((sums / weight).max(axis=1))
    return np.asarray(np.sqrt(np.square(sums) @ (1 / weight)) if norm == 2 else sums.sum(axis=1))


@expected_calibration_error.certificate
def _binned_bounds(forecasts: Forecasts, measured: Certified, settings: Settings) -> Certified:
    if settings["shift"]:
        # a share of at most h bins of the shifts cuts a cell of spread h, and then moves at most 2 A
        bins = 1 / settings["bins"] if settings["bins"] < 1 else int(settings["bins"])
        moved = 2 * dot(forecasts.extents, residual_mass(forecasts))
        return widened(measured, bins * (moved + 4 * rounding(forecasts)))
    for option in ("debiased", "add_width", "midpoints"):
        if settings[option]:
            raise no_certificate("ece", f"got {option}=True")
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


EXPECTED_ERROR = Measure(
    "ece",
    expected_calibration_error,
    family="bins",
    headline=True,
    meaning="mean gap between prediction and outcome rate over 15 bins of equal width",
    symmetric=False,
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
)


def mostly_distinct(forecasts: Forecasts) -> bool:
    """Return whether most levels hold a single 0/1 record, so that E[y | v] cannot be read off the data."""
    return forecasts.binary and forecasts.n > MAX_EXAMPLE_RECORDS and 2 * forecasts.levels > forecasts.n


def warn_if_singletons(forecasts: Forecasts, what: str, remedy: str = REMEDY) -> None:
    """Warn that `what` is meaningless on raw continuous predictions, with the remedies."""
    if mostly_distinct(forecasts):
        text = (
            f"{what} compares each distinct prediction with the outcomes that share it, but here "
            f"{forecasts.n:,} records have {forecasts.levels:,} distinct predictions: the value is mostly "
            f"noise. {remedy}"
        )
        warn_user(text, LevelSetWarning)


@measure_function
def level_set_error(forecasts: Forecasts, *, norm: float = 1, root: bool = False) -> Certified:
    """Calibration error over the distinct predictions, E |E[y|v] - v|^norm.

    This is the ECE, or l1-calibration error, of the papers: the total variation of the cumulative curve.
    With `norm=2` it is the l2 error without the root, as in the truthfulness paper; `root=True` takes the
    1/norm root, as in the survey's ECE_q. `norm=math.inf` is the maximum calibration error. Nothing is
    binned, so it means little when hardly any prediction repeats, and warns; see expected_calibration_error.

    Parameters
    ----------
    norm
        The power of the gaps; math.inf for the largest.
    root
        Whether to take the root of that power at the end.

    Examples
    --------
    >>> level_set_error([0, 1, 1, 1], [0.5, 0.5, 0.5, 0.5])
    0.25
    """
    if not number("norm", norm) > 0:
        raise InvalidInputError("norm", "must be positive", f"got {norm}")
    warn_if_singletons(forecasts, "level_set_error")
    gap = np.abs(forecasts.residuals) / forecasts.weights
    if np.isinf(norm):
        return Certified.point(float(gap.max()), prediction=float(forecasts.values[gap.argmax()]))
    witness = None
    if norm == 1:
        meaning = "+1 where the outcomes exceed the prediction, -1 where they fall short"
        witness = Witness(forecasts.values, np.sign(forecasts.residuals), meaning)
    return Certified.point(float(mean_power(gap, forecasts.weights, float(norm), root)), witness)


def mean_power(gaps: Array, weights: Array, norm: float, root: bool) -> Array:
    """Return the weighted mean of gap^norm over the last axis, or its root, for one row of gaps or many."""
    if not root:
        return np.asarray(gaps**norm @ weights)
    largest = gaps.max(axis=-1)  # as a unit: high powers of small gaps vanish, their roots do not
    share = gaps / np.where(largest > 0, largest, 1.0)[..., None]
    return np.asarray(largest * (share**norm @ weights) ** (1 / norm))


def _level_gaps(forecasts: Forecasts, residuals: Array, settings: Settings) -> Array:
    norm, weight = settings["norm"], forecasts.weights
    gap = np.abs(residuals)
    if norm == 1:
        return np.asarray(gap.sum(axis=1))
    gap /= weight
    if np.isinf(norm):
        return np.asarray(gap.max(axis=1))
    return mean_power(gap, weight, float(norm), bool(settings["root"]))


LEVEL_SET = Measure(
    "level-set",
    level_set_error,
    words="level-set calibration error",
    family="levels",
    meaning="mean gap between each distinct prediction and the outcome rate behind it",
    sound=True,
    needs_level_sets=True,
    null=Null(_level_gaps, power=1),
    citation=DISTANCE_PAPER + ", section 1",
    variants=({"norm": 2}, {"norm": 3, "root": True}, {"norm": float("inf")}),
)


def expected_binned_square(forecasts: Forecasts, bins: int) -> float:
    """Return the mean sum over bins of the squared residual (Example 3.4 of the truthfulness paper)."""
    # Bin b holds the records ranked b n / bins up to (b + 1) n / bins. Of a level with c records it holds a
    # fixed number k, drawn without replacement: a sum with mean k m and variance k (c - k) / (c - 1) s^2,
    # where m and s^2 are mean and variance of the residuals of the level. Levels are independent.
    if forecasts.cells is not None:
        raise no_certificate("ubse", "got ties='random', which needs the records")
    if forecasts.record_weights is not None:
        hint = 'leave out the weights, or use ties="together"'
        raise InvalidInputError("ties", '"random" needs records that weigh the same', hint=hint)
    counts = forecasts.counts
    ends, above = (np.arange(1, bins + 1) * forecasts.n) // bins, np.cumsum(counts)
    marks = np.unique(np.concatenate(([0], above, ends)))  # between two of them, one level meets one bin
    level, inside = np.searchsorted(above, marks[:-1], side="right"), np.diff(marks).astype(np.float64)
    where = np.searchsorted(ends, marks[:-1], side="right")
    mean, rate = forecasts.residuals / counts, forecasts.outcomes * forecasts.n / counts
    variance = rate * (1 - rate)  # of outcomes 0 and 1, whose mean square is their mean
    if forecasts.record_outcomes is not None:
        deviations = forecasts.record_outcomes - np.repeat(rate, counts)
        variance = np.add.reduceat(deviations**2, above - counts) / counts
    spread = np.maximum(variance, 0.0) / float(forecasts.n) ** 2
    means = np.bincount(where, inside * mean[level], bins)
    left = (counts[level] - inside) / np.maximum(counts[level] - 1, 1)
    variances = np.bincount(where, inside * left * spread[level], bins)
    return float(means @ means + variances.sum())


def bin_starts(forecasts: Forecasts, bins: Bins, strategy: str) -> Index:
    """Return the first level of every occupied bin, ascending."""
    edges = inner_edges(bins, strategy)
    position = forecasts.values
    if _by_weight(bins, strategy):  # a level goes where the middle of its weight falls
        position = np.cumsum(forecasts.weights) - forecasts.weights / 2
    starts = np.searchsorted(position, edges, side="left")
    bounds = np.concatenate(([0], starts, [forecasts.levels]))
    return bounds[:-1][np.diff(bounds) > 0]  # empty bins are left out


def _by_weight(bins: Bins, strategy: str) -> bool:
    """Return whether bins end at shares of weight up to a level's middle, not at predictions."""
    return strategy == "quantile" and isinstance(bins, (int, np.integer))


def inner_edges(bins: Bins, strategy: str) -> Array:
    """Return the inner edges of the bins; a position equal to an edge lies in the bin above it."""
    check_choice("strategy", strategy, ("uniform", "quantile"))
    if isinstance(bins, (int, np.integer)):
        whole_number("bins", bins, 1, MAX_BINS)
        inner = np.arange(1, bins) / bins
        # the slack keeps a middle that is k/bins in exact arithmetic on the same side whatever the rounding
        return inner - 1e-12 if strategy == "quantile" else inner
    try:
        edges = np.asarray(bins, dtype=np.float64)
    except (TypeError, ValueError):
        edges = np.empty(0)
    if edges.ndim != 1 or len(edges) < 2 or not np.all(np.diff(edges) > 0):
        raise InvalidInputError("bins", "must be a number or ascending edges", f"got {bins!r}")
    if edges[0] > 0 or edges[-1] < 1:
        raise InvalidInputError("bins", "must cover [0, 1]", f"got edges from {edges[0]} to {edges[-1]}")
    return edges[1:-1]


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
        sums = []
        for end in (low, high):
            part, steps = np.where(self.last > self.first, end, whole), np.zeros(self.bins + 1)
            np.add.at(steps, self.first, part)
            np.add.at(steps, self.last + 1, -part)
            sums.append(np.cumsum(steps)[:-1])
        return Range(*sums)


def touched_bins(forecasts: Forecasts, bins: Bins, strategy: str) -> Touched:
    edges, cells = inner_edges(bins, strategy), cells_of(forecasts)
    low, high = cells.low, cells.high
    if _by_weight(bins, strategy):  # a level's middle lies between the weight below its cell and that with it
        above = np.cumsum(forecasts.weights)
        inside = forecasts.extents > 0
        middle = above - forecasts.weights / 2
        low = np.where(inside, above - forecasts.weights, middle) - rounding(forecasts)
        high = np.where(inside, above, middle) + rounding(forecasts)
    first, last = (np.searchsorted(edges, end, side="right") for end in (low, high))
    return Touched(first, last, len(edges) + 1)


def residual_ranges(forecasts: Forecasts, touched: Touched) -> Range:
    cells = cells_of(forecasts)
    return touched.total(-cells.over, cells.under, forecasts.residuals)


def settled_bins(touched: Touched, residual: Range, slack: float) -> Touched:
    """Give a cut cell to its first bin when all bins it touches have residuals of one proven sign."""
    # the sum of absolute residuals is linear there: how the cell is shared among them cannot matter
    sign = np.where(residual.low > slack, 1, np.where(residual.high < -slack, -1, 0))
    runs = np.concatenate(([0], np.cumsum(sign[1:] != sign[:-1])))  # equal numbers: no change between
    alike = (runs[touched.first] == runs[touched.last]) & (sign[touched.first] != 0)
    return Touched(touched.first, np.where(alike, touched.first, touched.last), touched.bins)
