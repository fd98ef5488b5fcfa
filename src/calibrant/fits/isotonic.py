"""Isotonic rates, plain, centered or of bounded slope, with honest ends; and Venn-Abers pairs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.fits.levels import Levels
from calibrant.kernels.fits import bounded_slope_rates, values_of_one_more
from calibrant.results import Array

Places = npt.NDArray[np.intp]
TIED = 1e-12  # rates closer than this differ by rounding, which must not decide how blocks are pooled


def honest_range(rates: Array, weights: Array) -> tuple[float, float]:
    """Return the range that non-decreasing rates are clipped to; it always holds one half."""

    # N records of outcome 0 have the rate 0.5 / (N + 1), by Krichevsky and Trofimov (1981). The range ends
    # where the rates cross it: a rule for the rate 0 alone would jump at the smallest fraction of an outcome.
    def estimates(weights: Array) -> Array:
        return 0.5 / (1.0 + np.append(0.0, np.cumsum(weights)))

    low = np.minimum(estimates(weights), np.append(rates, 1.0)).max()  # where two curves cross
    high = np.maximum(1.0 - estimates(weights[::-1])[::-1], np.append(0.0, rates)).min()
    return float(low), float(high)


class Knot(NamedTuple):
    """The points between which a map is linear: predictions and what they become."""

    values: Array
    rates: Array


def isotonic(levels: Levels, *, honest_ends: bool = True) -> Knot:
    """Return the non-decreasing rates closest to the observed ones (pool adjacent violators)."""
    starts, rates = _pooled(levels, honest_ends)
    return Knot(levels.values, np.repeat(rates, np.diff(starts, append=len(levels))))


def centered_isotonic(levels: Levels, *, honest_ends: bool = True) -> Knot:
    """Return one knot per block, at its mean prediction (Oron and Flournoy 2017)."""
    starts, rates = _pooled(levels, honest_ends)
    return Knot(_means(levels.values, levels.weights, starts), rates)


def _pooled(levels: Levels, honest_ends: bool) -> tuple[Places, Array]:
    """Return the first level of each block of equal rates, and these rates, strictly increasing."""
    from scipy.optimize import isotonic_regression

    fitted = isotonic_regression(levels.rates, weights=levels.weights).x
    rates = np.maximum.accumulate(np.clip(fitted, 0.0, 1.0))
    starts = np.flatnonzero(np.diff(rates, prepend=-1.0) > TIED)
    rates = rates[starts]
    if not honest_ends:
        return starts, rates
    low, high = honest_range(rates, np.add.reduceat(levels.weights, starts))
    below, above = int(np.sum(rates < low)), int(np.sum(rates > high))
    opens = np.ones(len(rates), dtype=bool)
    opens[1:below] = False
    opens[len(opens) - above + 1 :] = False
    return starts[opens], np.clip(rates[opens], low, high)


def _means(places: Array, weights: Array, starts: Places) -> Array:
    """Return the weighted mean place of each block of ascending places, within the block."""
    counts = np.diff(starts, append=len(places))
    # distances keep the digits of places crowded at 1, whose rounding a steep map magnifies a million times
    away = places - np.repeat(places[starts], counts)
    means = places[starts] + np.add.reduceat(weights * away, starts) / np.add.reduceat(weights, starts)
    return np.asarray(np.clip(means, places[starts], places[starts + counts - 1]))


def bounded_slope(levels: Levels, *, slope: float = 2.0, honest_ends: bool = False) -> Knot:
    """Return the rates g of least squared error with 0 <= g_{i+1} - g_i <= slope (v_{i+1} - v_i).

    With slope 2, g - v has slopes from -1 to 1: whatever the data, the gain in Brier score lies between
    smCE^2 and 2 smCE (Błasiok, Gopalan, Hu and Nakkiran 2023).
    """
    fit = np.clip(bounded_slope_rates(levels.values, levels.rates, levels.weights, float(slope)), 0.0, 1.0)
    if honest_ends:
        fit = np.clip(fit, *honest_range(fit, levels.weights))  # which cannot make a slope steeper
    return Knot(levels.values, fit)


def venn_abers(levels: Levels) -> tuple[Array, Array]:
    """Return the isotonic value of a new record, with outcome 0 and with outcome 1, in each gap of levels."""
    # the guarantee of Vovk and Petej (2014) is for the pair, with exchangeable records of weight 1
    weights = np.concatenate(([0.0], np.cumsum(levels.weights)))
    ones = np.concatenate(([0.0], np.cumsum(levels.ones)))
    low = np.clip(values_of_one_more(weights, ones, 0.0), 0.0, 1.0)
    high = np.clip(values_of_one_more(weights, ones, 1.0), 0.0, 1.0)
    return np.maximum.accumulate(low), np.maximum.accumulate(high)
