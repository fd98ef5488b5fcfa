"""Levels: what a fit needs to know of the records, one number per distinct prediction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from calibrant.forecasts import Forecasts
from calibrant.results import Array


@dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """Distinct predictions in ascending order, the outcome rate of each, and how many records it counts for.

    The weights sum to the number of records, or to the effective number where records weigh differently:
    priors and end corrections compare them with one record.
    """

    values: Array
    rates: Array
    weights: Array

    def __len__(self) -> int:
        return len(self.values)

    @property
    def total(self) -> float:
        """How many records all levels count for."""
        return float(self.weights.sum())

    @property
    def ones(self) -> Array:
        """Weight of the outcome 1, per level."""
        return self.weights * self.rates

    @property
    def base_rate(self) -> float:
        """Weighted mean outcome."""
        return float(self.ones.sum() / self.weights.sum())

    @property
    def both_outcomes(self) -> bool:
        """Whether outcome 0 and outcome 1 both occur."""
        return bool(np.any(self.rates > 0) and np.any(self.rates < 1))

    def with_predictions(self, predictions: Array) -> Levels:
        """Return the same records under other predictions; equal ones become one level."""
        order = np.argsort(predictions, kind="stable")
        return levels_of_sorted(predictions[order], self.rates[order], self.weights[order])

    @classmethod
    def of(cls, forecasts: Forecasts, *, frequency: bool = False) -> Levels:
        """Return the levels of forecasts.

        Sampling weights are rescaled to sum to Kish's effective number of records, (sum w)^2 / sum w^2: their
        scale does not matter. Frequency weights count records.
        """
        count = forecasts.total_weight if frequency else 1.0 / float(forecasts.squared_weights.sum())
        rates = np.clip(forecasts.outcomes / forecasts.weights, 0.0, 1.0)
        return cls(forecasts.values, rates, forecasts.weights * count)


def levels_of_sorted(values: Array, outcomes: Array, weights: Array) -> Levels:
    """Return the levels of records that are sorted by prediction."""
    starts = np.flatnonzero(np.diff(values, prepend=-1.0))
    if len(starts) == len(values):
        return Levels(values, outcomes.astype(np.float64), weights)
    mass = np.add.reduceat(weights, starts)
    ones = np.add.reduceat(weights * outcomes, starts)
    return Levels(values[starts], np.clip(ones / mass, 0.0, 1.0), mass)


def pooled(places: Array, levels: Levels, cells: int) -> tuple[Array, Levels]:
    """Return levels pooled in equal cells of `places` (ascending), with the mean place of each cell."""
    if len(places) <= cells:
        return places, levels
    low, width = places[0], places[-1] - places[0]
    share = (places - low) / width if width > 0 else np.zeros(len(places))
    cell = np.minimum((share * cells).astype(np.int64), cells - 1)
    starts: npt.NDArray[np.intp] = np.flatnonzero(np.diff(cell, prepend=-1))
    mass = np.add.reduceat(levels.weights, starts)

    def mean(of: Array) -> Array:
        return np.asarray(np.add.reduceat(levels.weights * of, starts) / mass)

    rates = np.clip(mean(levels.rates), 0.0, 1.0)
    return mean(places), Levels(mean(levels.values), rates, mass)
