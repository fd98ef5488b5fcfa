"""histogram (with its guarantee) and scaling-binning: as many outputs as bins."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, TooFewRecordsError
from calibrant.fits.levels import Levels
from calibrant.fits.logistic import Clip, Shrink, logistic
from calibrant.inference.intervals import clopper_pearson
from calibrant.inputs import open_share, whole_number
from calibrant.recalibration.maps.piecewise import LogisticMap, StepMap
from calibrant.recalibration.methods.curves import logistic_notes
from calibrant.recalibration.registry import Fitted
from calibrant.recalibration.samples import Sample
from calibrant.results import Array


@dataclass(frozen=True, slots=True, eq=False)
class RateBins:
    """Bins (-inf, e_1], (e_1, e_2], ..., (e_k, inf), and the `basis` that a guarantee rests on."""

    edges: Array
    rates: Array
    counts: Array
    basis: str = ""

    def tolerance(self, alpha: float) -> float:
        return simultaneous_tolerance(float(self.counts.min()), len(self.counts), alpha)


ROUNDING = 1e-12  # of a sum of weights: two records that sum to less than 2 are still two
_Binning = Callable[[int], RateBins]


def histogram(
    sample: Sample,
    *,
    seed: int,
    bins: int | None = None,
    tolerance: float | None = None,
    confidence: float = 0.9,
) -> Fitted:
    """Take the outcome rate of bins of equal mass: the most bins within the tolerance, `bins` or n^(1/3)."""
    alpha = 1.0 - open_share("confidence", confidence)
    if bins is not None and tolerance is not None:
        raise InvalidInputError("bins and tolerance", "must not both be given")
    counted = _binning(sample, seed)
    if tolerance is None:
        wanted = _checked_bins(bins, sample.n)
        if sample.n < 2 * wanted:
            rule = f"needs {2 * wanted:,} records for {wanted} bins"
            raise TooFewRecordsError("histogram", rule, f"got {sample.n:,}")
        chosen = counted(wanted)
    else:
        chosen = _finest(sample, counted, open_share("tolerance", tolerance), alpha)
    rates, counts = chosen.rates, chosen.counts
    void = _void(sample) or (chosen.basis if chosen.basis.startswith("none") else "")
    lower, upper, reached = None, None, None
    if not void and sample.binary:  # exact limits that hold for all bins at once
        whole = np.rint(counts)
        ones = np.where(whole > 0, np.rint(rates * whole), 0.0)
        lower, upper = clopper_pearson(ones, whole, alpha / len(counts))
    guarantee = void or "none: a bin holds no record"
    if not void and counts.min() > 0:
        reached = chosen.tolerance(alpha)
        within = f"all {len(counts)} bins are within {reached:.4g} of their true rates"
        guarantee = f"with probability {1 - alpha:g} {within}; from {chosen.basis}"
    details = {"bins": len(rates), "confidence": confidence, "tolerance": reached, "guarantee": guarantee}
    missed = tolerance is not None and reached is None
    notes = (f"The tolerance that was asked for has no guarantee ({guarantee}).",) if missed else ()
    return Fitted(StepMap(chosen.edges, rates, lower, upper), notes, details)


def _finest(sample: Sample, counted: _Binning, tolerance: float, alpha: float) -> RateBins:
    """Return the most bins of which all are within the tolerance; only predictions are looked at for it."""
    n = sample.n
    known = _untied(sample) or bool(_void(sample))  # records strictly inside a bin: floor(n / B) - 1 at least

    def reached(bins: int) -> float:
        return simultaneous_tolerance(n // bins - 1, bins, alpha) if known else counted(bins).tolerance(alpha)

    most = bisect_right(range(1, n // 2 + 1), tolerance, key=reached)  # it grows with the bins,
    while most and reached(most) > tolerance:  # but for the luck of the halves
        most -= 1
    if not most:
        needed = int(np.ceil(np.log(2 / alpha) / (2 * tolerance**2))) + 1
        rule = f"needs {needed:,} records for one bin within {tolerance:g}"
        raise TooFewRecordsError("histogram", rule, f"got {n:,}")
    return counted(most)


def _checked_bins(bins: int | None, n: float) -> int:
    return max(1, min(int(n / 2), round(math.cbrt(n)))) if bins is None else whole_number("bins", bins, 1)


def _untied(sample: Sample) -> bool:
    return len(sample.levels) == sample.n and not sample.weighted


def _void(sample: Sample) -> str:
    if sample.weighted:
        return "none: records are weighted"
    return "" if sample.clusters is None else "none: records of one cluster depend on each other"


def _binning(sample: Sample, seed: int) -> _Binning:
    """Cut at predictions that occur once, leaving out their records; else at a random half of the records."""
    levels, n = sample.levels, sample.n
    untied = _untied(sample)
    whole = not untied and (bool(sample.why_not_splittable) or n < 4)
    halves = cache(lambda: sample.cut(2, seed)[0])

    def counted(bins: int) -> RateBins:
        once = None if sample.weighted else untied_edges(levels, bins)
        if once is not None:
            basis = "records strictly inside bins cut at order statistics"
            return bin_rates(levels, once, basis, without_edges=True)
        if bins == 1 or whole:
            edges = equal_mass_edges(levels, bins)
            basis = "all records of one bin" if len(edges) == 0 else "none: merged records made the edges too"
            return bin_rates(levels, edges, basis)
        basis = (
            "bins cut at a random half of the records, rates of the other half (tied or weighted predictions)"
        )
        one, other = halves()
        edges = equal_mass_edges(one.levels, bins)
        return bin_rates(other.levels, edges, basis)

    return counted


def scaling_binning(
    sample: Sample, *, seed: int, bins: int | None = None, shrink: Shrink = None, clip: Clip = "auto"
) -> Fitted:
    """Fit Platt, then replace its output by the mean in `bins` of equal mass, or n^(1/3) by their weights."""
    wanted = _checked_bins(bins, sample.levels.total * (1.0 + ROUNDING))
    levels = sample.levels
    fit = logistic(levels, "platt", shrink=shrink, clip=clip)
    scaled = Levels(levels.values, LogisticMap.of(fit).predict(levels.values), levels.weights)
    binned = bin_rates(scaled, equal_mass_edges(levels, wanted))
    details = {"bins": len(binned.rates), "clip": fit.clip}
    return Fitted(StepMap(binned.edges, binned.rates), logistic_notes(sample, fit), details)


def equal_mass_edges(levels: Levels, bins: int) -> Array:
    return _below_last(levels, np.unique(_shares_reached(levels, bins)[2]))


def _shares_reached(levels: Levels, bins: int) -> tuple[Array, Array, npt.NDArray[np.intp]]:
    """Return the cumulative weight, the targets 1/bins, 2/bins, ... of it, and the levels that reach them."""
    reached = np.cumsum(levels.weights)
    targets = np.arange(1, bins) * (reached[-1] / bins)
    at = np.searchsorted(reached, targets * (1.0 - 1e-12))
    return reached, targets, np.minimum(at, len(levels) - 1)


def _below_last(levels: Levels, at: npt.NDArray[np.intp]) -> Array:
    edges: Array = levels.values[at]
    return np.asarray(edges[edges < levels.values[-1]])


def untied_edges(levels: Levels, bins: int) -> Array | None:
    """Return edges of equal mass at predictions that occur once; None if one is over a quarter bin away."""
    if bins == 1 and levels.weights.max() > 1.5:
        return None
    reached, targets, wanted = _shares_reached(levels, bins)
    once = np.flatnonzero(levels.weights < 1.5)  # numbers of records, but for rounding
    at = np.searchsorted(once, wanted)
    if len(once) == 0 or at.max(initial=0) >= len(once):
        return None
    found = once[at]
    if np.any(reached[found] - targets > reached[-1] / bins / 4 + 1.0) or np.any(np.diff(found) <= 0):
        return None
    return _below_last(levels, found)


def bin_rates(levels: Levels, edges: Array, basis: str = "", *, without_edges: bool = False) -> RateBins:
    """Return the rate of each bin, that of all records where it is empty."""
    member = np.searchsorted(edges, levels.values, side="left")
    weights = levels.weights.copy()
    if without_edges:  # a record that made an edge is not an independent draw; those strictly inside are
        weights[np.isin(levels.values, edges)] = 0.0
    counts = np.bincount(member, weights, len(edges) + 1)
    ones = np.bincount(member, weights * levels.rates, len(edges) + 1)
    empty = counts <= 0
    rates = np.where(empty, levels.base_rate, ones / np.where(empty, 1.0, counts))
    return RateBins(edges, np.clip(rates, 0.0, 1.0), counts.astype(np.float64), basis)


def simultaneous_tolerance(smallest: float, bins: int, alpha: float) -> float:
    """Return how far bins of `smallest` records or more may all be off: Hoeffding (Gupta and Ramdas 2021)."""
    return float(np.sqrt(np.log(2 * bins / alpha) / (2 * smallest))) if smallest > 0 else np.inf
