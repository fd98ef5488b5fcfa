"""The shift of a group as it is fitted, with its standard error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.inference.shift import common_shift
from calibrant.inference.shift_interval import FARTHEST
from calibrant.results import Array

ROUNDING = 1e-9  # a shift is not known better, even where outcomes are fractions that say all
SMALLEST = 1e-200  # in place of a variance of 0, which predictions next to 0 have


@dataclass(frozen=True, slots=True)
class Shift:
    """A fitted shift and its standard error, for weights or fractional outcomes (a sandwich)."""

    value: float
    error: float


def approximate_shift(logits: Array, outcomes: Array, weights: Array) -> Shift:
    """Fit the shift of a group; the error is the larger of what records show and what the model implies."""
    from scipy.special import expit

    weights = weights / weights.max()
    value = common_shift(logits, float(weights @ outcomes), weights, float(weights @ (1 - outcomes)))
    rates = expit(logits + value)
    spread = rates * (1 - rates)
    shown = float(weights**2 @ (outcomes - rates) ** 2)
    implied = float(weights**2 @ spread)
    binary = bool(np.all((outcomes == 0) | (outcomes == 1)))
    error = np.sqrt(max(shown, implied if binary else 0.0)) / max(float(weights @ spread), SMALLEST)
    return Shift(value, min(max(float(error), ROUNDING), FARTHEST))
