"""Records that stand in for those that a weighted sketch no longer has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from calibrant.forecasts import Forecasts
from calibrant.results import Array
from calibrant.sums import AT_ONCE

MOST = 0.9  # share of the mean by which light records may fall short of it
ROUNDING = 1e-9  # relative spread of weights that is none


@dataclass(frozen=True, slots=True, eq=False)
class StandIns:
    """Per level: some heavy records and some light ones, alike among themselves.

    Their number, their weight and their squared weight are those of the level, so that outcomes drawn for
    them have the right mean and variance and never leave [0, weight]. Weights of one or two records, and of
    records that weigh the same, are found exactly: then `exact` is True.
    """

    heavy: npt.NDArray[np.int64]  # how many
    light: npt.NDArray[np.int64]
    heavy_weight: Array  # of one such record
    light_weight: Array
    exact: bool

    @classmethod
    def of(cls, forecasts: Forecasts) -> StandIns:
        """Find the records of each level."""
        return cls.of_sums(forecasts.counts, forecasts.weights, forecasts.squared_weights)

    @classmethod
    def of_sums(cls, counts: npt.NDArray[np.int64], weights: Array, squared_weights: Array) -> StandIns:
        """Solve for two weights per level, from the sums over its records.

        With mean weight m and standard deviation d, h heavy records of m + d sqrt(l / h) and l light ones of
        m - d sqrt(h / l) have both. Light ones are positive for h small enough: for h = 1 always.
        """
        mean = weights / counts
        spread = np.sqrt(np.maximum(0.0, squared_weights / counts - mean**2))
        spread[spread <= np.sqrt(ROUNDING) * mean] = 0.0
        odds = np.square(np.divide(MOST * mean, spread, out=np.ones_like(mean), where=spread > 0))
        heavy = np.clip((counts * (odds / (1 + odds))).astype(np.int64), 1, np.maximum(1, counts // 2))
        light = counts - heavy
        ratio = np.sqrt(light / heavy)
        up = np.where(light > 0, spread * ratio, 0.0)
        down = np.divide(spread, ratio, out=np.zeros_like(spread), where=light > 0)
        known = (counts <= 2) | (spread == 0)
        return cls(heavy, light, mean + up, np.maximum(mean - down, 0.0), bool(known.all()))

    def outcomes(self, generator: np.random.Generator, rates: Array, rows: int) -> Array:
        """Draw the weight of y per level, `rows` times, each record an event with the rate of its level."""
        size = (rows, len(rates))
        if np.array_equal(self.heavy_weight, self.light_weight):
            return np.asarray(
                generator.binomial(self.heavy + self.light, rates, size=size) * self.heavy_weight
            )
        drawn = generator.binomial(self.heavy, rates, size=size) * self.heavy_weight
        drawn += generator.binomial(self.light, rates, size=size) * self.light_weight
        return np.asarray(drawn)


def heaviest(forecasts: Forecasts) -> float:
    """Return the weight that no record exceeds: known from the records, or bounded from their squares."""
    if forecasts.record_weights is not None:
        return float(forecasts.record_weights.max())
    if forecasts.levels == forecasts.n:  # one record per level
        return float(forecasts.weights.max())
    mean = forecasts.weights / forecasts.counts
    spread = np.sqrt(np.maximum(0.0, forecasts.squared_weights / forecasts.counts - mean**2))
    return float((mean + spread * np.sqrt(forecasts.counts - 1)).max())  # one record against all others


def alike(forecasts: Forecasts) -> bool:
    """Return whether every record weighs the same, from the squared weights (a sketch keeps no records)."""
    if forecasts.record_weights is not None:
        return False
    for start in range(0, forecasts.levels, AT_ONCE):
        part = slice(start, start + AT_ONCE)
        squares, weights = forecasts.squared_weights[part] * forecasts.n, forecasts.weights[part]
        if not np.allclose(squares, weights, rtol=1e-6, atol=0):
            return False
    return True
