"""What predictions cost on levels, and how sure a difference of two costs is."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from calibrant.fits.levels import Levels
from calibrant.results import Array
from calibrant.sums import dot

SAFE = 1e-6  # predictions closer to 0 and 1 are charged as this: one miss costs 14 nats, not 36


@dataclass(frozen=True, slots=True, eq=False)
class Costs:
    """The loss of each level under outcome 1 and under outcome 0, with what the level holds."""

    if_one: Array
    if_zero: Array
    rates: Array
    weights: Array

    @property
    def mean(self) -> float:
        """Mean loss per record."""
        return dot(self.weights, _expected(self.if_one, self.if_zero, self.rates)) / float(self.weights.sum())

    def standard_error_against(self, other: Costs) -> float:
        """Standard error of the mean difference of the two losses, record by record."""
        one, zero = self.if_one - other.if_one, self.if_zero - other.if_zero
        total = float(self.weights.sum())
        mean = dot(self.weights, _expected(one, zero, self.rates)) / total
        squares = dot(self.weights, _expected((one - mean) ** 2, (zero - mean) ** 2, self.rates)) / total
        return math.sqrt(squares / total)


def _expected(if_one: Array, if_zero: Array, rates: Array) -> Array:
    return np.asarray(rates * if_one + (1.0 - rates) * if_zero)


def costs(levels: Levels, predictions: Array, loss: str) -> Costs:
    """Return the log loss or Brier score of one prediction per level."""
    if loss == "brier":
        return Costs((1.0 - predictions) ** 2, predictions**2, levels.rates, levels.weights)
    safe = np.clip(predictions, SAFE, 1.0 - SAFE)
    return Costs(-np.log(safe), -np.log1p(-safe), levels.rates, levels.weights)


def joined_costs(parts: list[Costs]) -> Costs:
    """Return the costs of several folds as one."""
    return Costs(
        np.concatenate([part.if_one for part in parts]),
        np.concatenate([part.if_zero for part in parts]),
        np.concatenate([part.rates for part in parts]),
        np.concatenate([part.weights for part in parts]),
    )
