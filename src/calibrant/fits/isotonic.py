"""Isotonic fits: the best non-decreasing rates, with honest ends, and with blocks drawn to their centres."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from calibrant.fits.levels import Levels
from calibrant.results import Array


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

    With honest ends a lowest block without any outcome 1 gets (1/2) / (N + 1), the estimate of Krichevsky and
    Trofimov (1981), instead of 0, never more than the next block; a highest block of outcomes 1 likewise.
    """
    blocks = _pooled_blocks(levels)
    rates = _off_the_ends(blocks.rates, blocks.weights) if honest_ends else blocks.rates
    counts = np.diff(blocks.starts, append=len(levels))
    return Knots(levels.values, np.repeat(rates, counts))


def centered_isotonic(levels: Levels, *, honest_ends: bool = True) -> Knots:
    """Return one knot per block, at its mean prediction: increasing where isotonic regression is flat.

    Centered isotonic regression of Oron and Flournoy (2017).
    """
    blocks = _pooled_blocks(levels)
    rates = _off_the_ends(blocks.rates, blocks.weights) if honest_ends else blocks.rates
    return Knots(blocks.centres, rates)


def _pooled_blocks(levels: Levels) -> _Blocks:
    from scipy.optimize import isotonic_regression

    fitted = isotonic_regression(levels.rates, weights=levels.weights)
    starts = fitted.blocks[:-1]
    last = fitted.blocks[1:] - 1
    weights = np.add.reduceat(levels.weights, starts)
    centres = np.add.reduceat(levels.weights * levels.values, starts) / weights
    centres = np.clip(
        centres, levels.values[starts], levels.values[last]
    )  # a mean may round out of its block
    rates = np.maximum.accumulate(np.clip(fitted.x[starts], 0.0, 1.0))
    return _Blocks(starts, weights, centres, rates)


def _off_the_ends(rates: Array, weights: Array) -> Array:
    """Return the rates of the blocks with the two outer ones moved off 0 and 1, order kept."""
    moved = rates.copy()
    if rates[0] <= 0.0:
        next_rate = rates[1] if len(rates) > 1 and rates[1] < 1.0 else 1.0
        moved[0] = min(0.5 / (weights[0] + 1.0), next_rate)
    if rates[-1] >= 1.0:
        rate_before = rates[-2] if len(rates) > 1 and rates[-2] > 0.0 else 0.0
        moved[-1] = max(1.0 - 0.5 / (weights[-1] + 1.0), rate_before)
    return moved
