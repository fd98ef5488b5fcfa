"""Isotonic rates, plain, centered or of bounded slope, with honest ends; and Venn-Abers pairs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from calibrant.fits.levels import Levels
from calibrant.kernels.isotonic import bounded_slope_rates as exact_fit
from calibrant.kernels.isotonic import values_of_one_more
from calibrant.results import Array


@dataclass(frozen=True, slots=True)
class HonestRange:
    """The range that rates are held to; it always holds one half."""

    low: float
    high: float

    def holds(self, rates: Array) -> Array:
        """Return the rates held to the range."""
        return np.clip(rates, self.low, self.high)


def honest_range(rates: Array, weights: Array) -> HonestRange:
    """Return the range that non-decreasing rates are held to.

    N records without any outcome 1 have the rate (1/2) / (N + 1), by Krichevsky and Trofimov (1981). The low
    end is the greatest value that is at most this estimate for the weight of all rates below it. For 0/1
    records of equal weight it moves a lowest block of rate 0, never beyond the next block. Fractions
    of an outcome move it by as little as they move the rates: a rule for the rate 0 alone would jump.
    """
    low = np.minimum(_estimates(weights), np.append(rates, 1.0)).max()  # where two curves cross
    high = np.maximum(1.0 - _estimates(weights[::-1])[::-1], np.append(0.0, rates)).min()
    return HonestRange(float(low), float(high))


def _estimates(weights: Array) -> Array:
    """Return the estimate for the records before each level, and for all."""
    return 0.5 / (1.0 + np.append(0.0, np.cumsum(weights)))


FEW = 2_000  # levels up to which pooling them here takes less time than loading SciPy's
TIED = 1e-12  # rates closer than this differ by rounding, which must not decide how blocks are pooled


@dataclass(frozen=True, slots=True, eq=False)
class Knots:
    """A map that is linear between `values` (ascending) and constant outside them."""

    values: Array
    rates: Array


@dataclass(frozen=True, slots=True, eq=False)
class _Blocks:
    """Pooled neighbours: first level of each, its weight, mean prediction and rate (strictly increasing)."""

    starts: npt.NDArray[np.integer]
    weights: Array
    centres: Array
    rates: Array


def isotonic(levels: Levels, *, honest_ends: bool = True) -> Knots:
    """Return the non-decreasing rates closest to the observed ones (pool adjacent violators).

    With honest ends they stay off 0 and 1, as far as the records at the ends warrant: see `honest_range`.
    """
    blocks = _pooled_blocks(levels)
    blocks = _with_honest_ends(blocks) if honest_ends else blocks
    counts = np.diff(blocks.starts, append=len(levels))
    return Knots(levels.values, np.repeat(blocks.rates, counts))


def centered_isotonic(levels: Levels, *, honest_ends: bool = True) -> Knots:
    """Return one knot per block, at its mean prediction: increasing where isotonic regression is flat.

    Centered isotonic regression of Oron and Flournoy (2017).
    """
    blocks = _pooled_blocks(levels)
    blocks = _with_honest_ends(blocks) if honest_ends else blocks
    return Knots(blocks.centres, blocks.rates)


def _pooled_blocks(levels: Levels) -> _Blocks:
    starts, pooled = _pooled(levels.rates, levels.weights)
    weights = np.add.reduceat(levels.weights, starts)
    centres = _means(levels.values, levels.weights, starts)
    rates = np.maximum.accumulate(np.clip(pooled, 0.0, 1.0))
    return _joined(_Blocks(starts, weights, centres, rates), np.diff(rates, prepend=-1.0) > TIED)


def _pooled(rates: Array, weights: Array) -> tuple[npt.NDArray[np.integer], Array]:
    """Pool adjacent violators: return the first level of each block, and its mean rate."""
    if len(rates) <= FEW:
        return few_pooled(rates.tolist(), weights.tolist())
    from scipy.optimize import isotonic_regression

    fitted = isotonic_regression(rates, weights=weights)
    starts = fitted.blocks[:-1]
    return starts, fitted.x[starts]


def few_pooled(rates: list[float], weights: list[float]) -> tuple[npt.NDArray[np.integer], Array]:
    """Pool as SciPy does, each sum in the same order: a level takes in what follows, then what precedes."""
    means, masses, starts = [rates[0]], [weights[0]], [0]
    level = 1
    while level < len(rates):
        mean, mass, start = rates[level], weights[level], level
        level += 1
        if means[-1] >= mean:
            last, before, start = means.pop(), masses.pop(), starts.pop()
            total = before * last + mass * mean
            mass += before
            mean = total / mass
            while level < len(rates) and mean >= rates[level]:
                total += weights[level] * rates[level]
                mass += weights[level]
                mean = total / mass
                level += 1
            while means and means[-1] >= mean:
                total += masses[-1] * means.pop()
                mass += masses.pop()
                start = starts.pop()
                mean = total / mass
        means.append(mean)
        masses.append(mass)
        starts.append(start)
    return np.array(starts, dtype=np.intp), np.array(means)


def _with_honest_ends(blocks: _Blocks) -> _Blocks:
    """Return the blocks held to the honest range; those beyond one end become one block."""
    ends = honest_range(blocks.rates, blocks.weights)
    count = len(blocks.rates)
    below, above = int(np.sum(blocks.rates < ends.low)), int(np.sum(blocks.rates > ends.high))
    opens = np.ones(count, dtype=bool)
    opens[1:below] = False
    opens[count - above + 1 :] = False
    joined = _joined(blocks, opens)
    return replace(joined, rates=ends.holds(joined.rates))


def _joined(blocks: _Blocks, opens: npt.NDArray[np.bool_]) -> _Blocks:
    """Return the blocks with each that does not open one joined to the block before, whose rate it takes."""
    first = np.flatnonzero(opens)
    weights = np.add.reduceat(blocks.weights, first)
    centres = _means(blocks.centres, blocks.weights, first)
    return _Blocks(blocks.starts[first], weights, centres, blocks.rates[first])


def _means(places: Array, weights: Array, starts: npt.NDArray[np.integer]) -> Array:
    """Return the weighted mean place of each block of ascending places, within the block.

    Means of distances from the first place keep their digits where all places crowd at 1: a map that climbs
    there would show the rounding of its knots a million times magnified.
    """
    counts = np.diff(starts, append=len(places))
    away = places - np.repeat(places[starts], counts)
    means = places[starts] + np.add.reduceat(weights * away, starts) / np.add.reduceat(weights, starts)
    return np.asarray(np.clip(means, places[starts], places[starts + counts - 1]))


def bounded_slope(levels: Levels, *, slope: float = 2.0, honest_ends: bool = False) -> Knots:
    """Return the rates g of least squared error with 0 <= g_{i+1} - g_i <= slope (v_{i+1} - v_i).

    With slope 2 these are the maps v + e(v), e with slopes between -1 and 1, of Błasiok, Gopalan, Hu and
    Nakkiran (2023): what they gain in Brier score lies between smCE^2 and 2 smCE, whatever the data.
    """
    fit = exact_fit(levels.values, levels.rates, levels.weights, float(slope))
    fit = np.clip(fit, 0.0, 1.0)  # only rounding can leave [0, 1]
    if honest_ends:
        fit = honest_range(fit, levels.weights).holds(fit)  # which cannot make a slope steeper
    return Knots(levels.values, fit)


@dataclass(frozen=True, slots=True, eq=False)
class VennAbersPairs:
    """Levels, and the pair of values of each gap before, between and after them."""

    values: Array
    if_zero: Array
    if_one: Array


def venn_abers(levels: Levels) -> VennAbersPairs:
    """Return, for every gap, the isotonic value of a new record with outcome 0 and with outcome 1.

    Vovk and Petej (2014). With exchangeable records of weight 1, one of the two values is perfectly
    calibrated: the guarantee is for the pair.
    """
    weights = np.concatenate(([0.0], np.cumsum(levels.weights)))
    ones = np.concatenate(([0.0], np.cumsum(levels.ones)))
    low = np.clip(values_of_one_more(weights, ones, 0.0), 0.0, 1.0)
    high = np.clip(values_of_one_more(weights, ones, 1.0), 0.0, 1.0)
    return VennAbersPairs(levels.values, np.maximum.accumulate(low), np.maximum.accumulate(high))
