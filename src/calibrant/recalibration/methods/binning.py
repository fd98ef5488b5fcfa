"""histogram (with its guarantee) and scaling-binning: as many outputs as bins."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.errors import InvalidInputError, TooFewRecordsError, sentence
from calibrant.fits.histogram import (
    RateBins,
    bin_rates,
    clopper_pearson,
    equal_mass_edges,
    simultaneous_tolerance,
)
from calibrant.fits.levels import Levels
from calibrant.fits.logistic import Clip, Shrink, logistic
from calibrant.recalibration.maps.logistic import LogisticMap
from calibrant.recalibration.maps.steps import StepMap
from calibrant.recalibration.methods.checks import checked_share
from calibrant.recalibration.methods.logistic import logistic_notes
from calibrant.recalibration.registry import Fitted
from calibrant.recalibration.samples import Merged, Sample
from calibrant.results import Array


@dataclass(frozen=True, slots=True, eq=False)
class _Counted:
    """Bins, what the guarantee rests on, and within which tolerance all of them are."""

    bins: RateBins
    basis: str
    records: int


def histogram(
    sample: Sample,
    *,
    seed: int,
    bins: int | None = None,
    tolerance: float | None = None,
    confidence: float = 0.9,
) -> Fitted:
    """Take the outcome rate of bins of equal mass.

    Given a tolerance, the most bins for which all are within it; else `bins`, or n^(1/3).
    """
    alpha = 1.0 - checked_share("confidence", confidence)
    wanted = _wanted_bins(sample.n, bins, tolerance, alpha)
    counted = _counted(sample, wanted, seed)
    lower, upper = _limits(sample, counted, alpha)
    guarantee = _guarantee(sample, counted, alpha)
    rates = counted.bins.rates
    details = {
        "bins": len(rates), "confidence": confidence, "tolerance": guarantee.pop("tolerance"), **guarantee,
    }  # fmt: skip
    return Fitted(StepMap(counted.bins.edges, rates, lower, upper), (), details)


def _wanted_bins(n: int, bins: int | None, tolerance: float | None, alpha: float) -> int:
    if bins is not None and tolerance is not None:
        raise InvalidInputError(sentence("bins and tolerance", "must not both be given"))
    if tolerance is not None:
        checked_share("tolerance", tolerance)
        most = bisect_right(  # the tolerance grows with the bins
            range(1, n // 2 + 1), tolerance, key=lambda b: simultaneous_tolerance(n, b, alpha)
        )
        if not most:
            needed = int(np.ceil(np.log(2 / alpha) / (2 * tolerance**2))) + 1
            rule = f"needs {needed:,} records for one bin within {tolerance:g}"
            raise TooFewRecordsError(sentence("histogram", rule, f"got {n:,}"))
        return most
    wanted = max(1, min(n // 2, round(n ** (1 / 3)))) if bins is None else bins
    if isinstance(wanted, bool) or not isinstance(wanted, int) or wanted < 1:
        raise InvalidInputError(sentence("bins", "must be a whole number from 1", f"got {bins!r}"))
    if n < 2 * wanted:
        rule = f"needs {2 * wanted:,} records for {wanted} bins"
        raise TooFewRecordsError(sentence("histogram", rule, f"got {n:,}"))
    return wanted


def _counted(sample: Sample, bins: int, seed: int) -> _Counted:
    """Cut at order statistics, whose records are left out; with ties or weights, at a random half of them."""
    levels = sample.levels
    if len(levels) == sample.n and not sample.weighted:
        edges = equal_mass_edges(levels, bins)
        basis = "records strictly inside bins cut at order statistics"
        return _Counted(bin_rates(levels, edges, without_edges=True), basis, sample.n)
    if bins == 1 or isinstance(sample, Merged) or sample.n < 4:
        edges = equal_mass_edges(levels, bins)
        basis = "all records of one bin" if len(edges) == 0 else "none: merged records made the edges too"
        return _Counted(bin_rates(levels, edges, without_edges=False), basis, sample.n)
    (one, other), _ = sample.cut(2, seed)
    edges = equal_mass_edges(one.levels, bins)
    basis = "bins cut at a random half of the records, rates of the other half (tied or weighted predictions)"
    return _Counted(bin_rates(other.levels, edges, without_edges=False), basis, other.n)


def _limits(sample: Sample, counted: _Counted, alpha: float) -> tuple[Array | None, Array | None]:
    """Return exact limits that hold for all bins at once, where records are 0/1 and weigh the same."""
    if sample.weighted or not sample.binary or counted.basis.startswith("none"):
        return None, None
    counts = np.rint(counted.bins.counts)
    ones = np.rint(counted.bins.rates * counts)
    ones = np.where(counts > 0, ones, 0.0)
    return clopper_pearson(ones, counts, alpha / len(counts))


def _guarantee(sample: Sample, counted: _Counted, alpha: float) -> dict[str, Any]:
    if sample.weighted or counted.basis.startswith("none"):
        reason = "none: records are weighted" if sample.weighted else counted.basis
        return {"tolerance": None, "guarantee": reason}
    smallest = float(counted.bins.counts.min())
    count = len(counted.bins.counts)
    tolerance = float(np.sqrt(np.log(2 * count / alpha) / (2 * smallest))) if smallest > 0 else None
    if tolerance is None:
        return {"tolerance": None, "guarantee": "none: a bin holds no record"}
    text = f"with probability {1 - alpha:g} all {count} bins are within {tolerance:.4g} of their true rates"
    return {"tolerance": tolerance, "guarantee": f"{text}; from {counted.basis}"}


def scaling_binning(
    sample: Sample, *, seed: int, bins: int | None = None, shrink: Shrink = None, clip: Clip = "auto"
) -> Fitted:
    """Fit Platt, then replace its output by the mean output in bins of equal mass."""
    wanted = max(1, min(sample.n // 2, round(sample.n ** (1 / 3)))) if bins is None else bins
    if isinstance(wanted, bool) or not isinstance(wanted, int) or wanted < 1:
        raise InvalidInputError(sentence("bins", "must be a whole number from 1", f"got {bins!r}"))
    levels = sample.levels
    fit = logistic(levels, "platt", shrink=shrink, clip=clip)
    scaled = Levels(levels.values, LogisticMap.of(fit).predict(levels.values), levels.weights)
    binned = bin_rates(scaled, equal_mass_edges(levels, wanted), without_edges=False)
    details = {"bins": len(binned.rates), "clip": fit.clip}
    return Fitted(StepMap(binned.edges, binned.rates), logistic_notes(sample, fit), details)
