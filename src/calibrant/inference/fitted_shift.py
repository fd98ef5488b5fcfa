"""The shift of a group as it is fitted, with its standard error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.inference.shift import common_shift
from calibrant.inference.shift_interval import FARTHEST
from calibrant.results import Array

ROUNDING = 1e-9  # a shift is not known better, even where outcomes are fractions that say all
FEWEST = 2  # records that show how much outcomes vary, beyond the first
SMALLEST = 1e-200  # in place of a variance of 0, which predictions next to 0 have


@dataclass(frozen=True, slots=True)
class Shift:
    """A fitted shift and its standard error, for weights or fractional outcomes (a sandwich)."""

    value: float
    error: float


def approximate_shift(logits: Array, outcomes: Array, weights: Array) -> Shift:
    """Fit the shift of a group; the error is the larger of what records show and what the model implies.

    Fractional outcomes vary less than the model implies for outcomes of 0 or 1, so that what records show is
    all there is: for few records it is enlarged, up to what the model implies.
    """
    from scipy.special import expit

    weights = weights / weights.max()
    value = common_shift(logits, float(weights @ outcomes), weights, float(weights @ (1 - outcomes)))
    rates, rest = expit(logits + value), expit(-logits - value)  # next to 1 a rate says nothing of its rest
    spread = rates * rest
    shown = float(weights**2 @ (outcomes * rest - (1 - outcomes) * rates) ** 2)
    implied = float(weights**2 @ spread)
    binary = bool(np.all((outcomes == 0) | (outcomes == 1)))
    least = implied if binary else min(implied, max(shown, SMALLEST) * _for_few(weights))
    error = np.sqrt(max(shown, least)) / max(float(weights @ spread), SMALLEST)
    return Shift(value, min(max(float(error), ROUNDING), FARTHEST))


def _for_few(weights: Array) -> float:
    """Return by what a variance grows if few records show it, as Student's law does at 95 %."""
    from scipy.special import ndtri, stdtrit

    freedom = float(weights.sum() ** 2 / (weights**2).sum()) - 1
    if freedom < FEWEST:
        return float("inf")
    return (1 + 1 / freedom) * float(stdtrit(freedom, 0.975) / ndtri(0.975)) ** 2
