"""Draws that are kept: measures simulated with one seed see the same outcomes, so these are drawn once."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from calibrant.forecasts import Forecasts
from calibrant.inference.null_outcomes import NullOutcomes
from calibrant.inference.resample import Resampler, Resamples
from calibrant.results import Array

MOST_KEPT = 2**23  # numbers: 64 MB


class KeptOutcomes(NullOutcomes):
    """Calibrated outcomes that a second measure gets without drawing them again."""

    def __init__(self, forecasts: Forecasts) -> None:
        super().__init__(forecasts)
        self._kept: dict[Hashable, Array] = {}

    def outcomes(self, generator: np.random.Generator, rows: int) -> Array:
        """Draw `rows` sets of outcomes, or return those drawn before; nobody may write to them."""
        key = (_stream(generator), rows)
        if key in self._kept:
            return self._kept[key]
        drawn = super().outcomes(generator, rows)
        if (1 + len(self._kept)) * drawn.size <= MOST_KEPT:
            drawn.flags.writeable = False
            self._kept[key] = drawn
        return drawn

    def residuals(self, generator: np.random.Generator, rows: int) -> Array:
        """Draw `rows` sets of residuals: outcomes minus what was predicted."""
        return np.asarray(self.outcomes(generator, rows) - self._expected)


class KeptResampler(Resampler):
    """Resamples that a second measure gets without drawing them again."""

    def __init__(self, forecasts: Forecasts) -> None:
        super().__init__(forecasts)
        self._kept: dict[Hashable, Resamples] = {}

    def draw(self, generator: np.random.Generator, rows: int) -> Resamples:
        """Draw `rows` resamples, or return those drawn before."""
        key = (_stream(generator), rows)
        if key in self._kept:
            return self._kept[key]
        drawn = super().draw(generator, rows)
        if drawn.records is None and (1 + len(self._kept)) * 4 * drawn.weights.size <= MOST_KEPT:
            self._kept[key] = drawn
        return drawn


def _stream(generator: np.random.Generator) -> Hashable:
    """Return what a fresh generator will draw from: its seed and its number among the blocks."""
    seeds = generator.bit_generator.seed_seq
    assert isinstance(seeds, np.random.SeedSequence)
    return (str(seeds.entropy), seeds.spawn_key)
