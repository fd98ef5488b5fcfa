"""Bins of equal mass: histogram binning with its guarantee."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.fits.levels import Levels
from calibrant.results import Array


@dataclass(frozen=True, slots=True, eq=False)
class RateBins:
    """Bins (-inf, e_1], (e_1, e_2], ..., (e_k, inf) of the prediction: rate and number of records of each."""

    edges: Array
    rates: Array
    counts: Array


def equal_mass_edges(levels: Levels, bins: int) -> Array:
    """Return the levels at which the weight reaches 1/bins, 2/bins, ...; fewer where levels are heavy."""
    reached = np.cumsum(levels.weights)
    targets = np.arange(1, bins) * (reached[-1] / bins)
    at = np.searchsorted(reached, targets * (1.0 - 1e-12))
    edges: Array = np.unique(levels.values[np.minimum(at, len(levels) - 1)])
    inner: Array = edges[edges < levels.values[-1]]
    return inner


def untied_edges(levels: Levels, bins: int) -> Array | None:
    """Return edges of equal mass at predictions that occur once; None if there are none near.

    An edge that is tied moves up to the next prediction that occurs once, by a quarter of a bin at most.
    """
    if bins == 1 and levels.weights.max() > 1.5:
        return None
    reached = np.cumsum(levels.weights)
    targets = np.arange(1, bins) * (reached[-1] / bins)
    once = np.flatnonzero(levels.weights < 1.5)  # numbers of records, but for rounding
    wanted = np.minimum(np.searchsorted(reached, targets * (1.0 - 1e-12)), len(levels) - 1)
    at = np.searchsorted(once, wanted)
    if len(once) == 0 or at.max(initial=0) >= len(once):
        return None
    found = once[at]
    if np.any(reached[found] - targets > reached[-1] / bins / 4 + 1.0) or np.any(np.diff(found) <= 0):
        return None
    edges: Array = levels.values[found]
    inner: Array = edges[edges < levels.values[-1]]
    return inner


def bin_rates(levels: Levels, edges: Array, *, without_edges: bool) -> RateBins:
    """Return the rate of each bin, over all its levels or over those strictly between its edges.

    Given the edges, the records strictly inside a bin are independent draws from it; the record that made the
    edge is not. A bin without any record gets the rate of all.
    """
    member = np.searchsorted(edges, levels.values, side="left")
    weights = levels.weights.copy()
    if without_edges:
        weights[np.isin(levels.values, edges)] = 0.0
    counts = np.bincount(member, weights, len(edges) + 1)
    ones = np.bincount(member, weights * levels.rates, len(edges) + 1)
    empty = counts <= 0
    rates = np.where(empty, levels.base_rate, ones / np.where(empty, 1.0, counts))
    return RateBins(edges, np.clip(rates, 0.0, 1.0), counts.astype(np.float64))


def simultaneous_tolerance(records: int, bins: int, alpha: float) -> float:
    """Return eps such that all bins are within eps of their true rates with probability 1 - alpha.

    Hoeffding's inequality on the records strictly inside each bin, floor(n / B) - 1 at least, and a union
    bound over the bins (Gupta and Ramdas 2021).
    """
    return hoeffding_tolerance(records // bins - 1, bins, alpha)


def hoeffding_tolerance(smallest: float, bins: int, alpha: float) -> float:
    """Return eps for bins whose smallest has `smallest` records; infinite if it has none."""
    return float(np.sqrt(np.log(2 * bins / alpha) / (2 * smallest))) if smallest > 0 else np.inf


def clopper_pearson(ones: Array, counts: Array, alpha: float) -> tuple[Array, Array]:
    """Return exact limits of a rate at confidence 1 - alpha, from successes and trials."""
    from scipy.special import betaincinv

    zeros = counts - ones
    low = np.where(ones > 0, betaincinv(np.maximum(ones, 1e-300), zeros + 1, alpha / 2), 0.0)
    high = np.where(zeros > 0, betaincinv(ones + 1, np.maximum(zeros, 1e-300), 1 - alpha / 2), 1.0)
    return low, high
