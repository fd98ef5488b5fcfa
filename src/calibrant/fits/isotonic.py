"""Isotonic fits: the best non-decreasing rates, with honest ends, and with blocks drawn to their centres."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from calibrant.fits.honest_ends import honest_range
from calibrant.fits.levels import Levels
from calibrant.results import Array

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
