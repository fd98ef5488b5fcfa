"""Resampling of records without sorting again: levels keep their place, only their weights change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.forecasts import Forecasts
from calibrant.inference.null_outcomes import CROWDED, alike, batched, measured
from calibrant.measures.distances.lower import deviation_applies
from calibrant.measures.registry.row import Measure
from calibrant.results import Array
from calibrant.seeds import Progress, in_blocks


@dataclass(frozen=True, slots=True, eq=False)
class Resamples:
    """Weight, weight of y, squared weight and records of every level; one row a resample."""

    weights: Array
    outcomes: Array
    squared_weights: Array
    counts: Array


class Resampler:
    """Draws the n records anew, with replacement, and says what that does to each level.

    Unweighted 0/1 records of one level and outcome are alike, so only their numbers are drawn. A weighted
    sketch does not know its records: each (level, outcome) is then taken for as many equal records as
    give its squared weight, and `exact` is False.
    """

    def __init__(self, forecasts: Forecasts) -> None:
        self.forecasts = forecasts
        counted = alike(forecasts) and forecasts.record_outcomes is None
        self.kind = "counts" if counted else "records" if forecasts.record_outcomes is not None else "sketch"
        self.exact = self.kind != "sketch" and forecasts.exact
        self.width = 2 * forecasts.levels if self.kind == "sketch" else forecasts.n
        self._starts = np.concatenate(([0], np.cumsum(forecasts.counts)[:-1]))
        if self.kind == "counts":
            ones = np.rint(forecasts.outcomes * forecasts.n).astype(np.int64)
            self._cells = np.concatenate([ones, forecasts.counts - ones])
            self._crowded = forecasts.n >= CROWDED * 2 * forecasts.levels
            self._cell_of = None if self._crowded else np.repeat(np.arange(len(self._cells)), self._cells)

    def draw(self, generator: np.random.Generator, rows: int) -> Resamples:
        """Draw `rows` resamples."""
        if self.kind == "counts":
            return self._by_counts(generator, rows)
        return (
            self._by_records(generator, rows) if self.kind == "records" else self._by_sketch(generator, rows)
        )

    def _by_counts(self, generator: np.random.Generator, rows: int) -> Resamples:
        f = self.forecasts
        if self._cell_of is None:
            drawn = generator.multinomial(f.n, self._cells / f.n, size=rows)
        else:
            picked = self._cell_of[generator.integers(0, f.n, size=(rows, f.n))]
            drawn = tallied(picked, len(self._cells))
        ones, zeros = drawn[:, : f.levels], drawn[:, f.levels :]
        counts = (ones + zeros).astype(np.float64)
        return Resamples(counts / f.n, ones / f.n, counts / f.n**2, counts)

    def _by_records(self, generator: np.random.Generator, rows: int) -> Resamples:
        f = self.forecasts
        outcomes, weight = f.record_outcomes, f.record_weights
        times = tallied(generator.integers(0, f.n, size=(rows, f.n)), f.n).astype(np.float64)
        mass = times if weight is None else times * weight
        mass = mass / mass.sum(axis=1, keepdims=True)
        own = np.full(f.n, 1 / f.n) if weight is None else weight
        return Resamples(
            np.add.reduceat(mass, self._starts, axis=1),
            np.add.reduceat(mass * outcomes, self._starts, axis=1),
            np.add.reduceat(mass * own, self._starts, axis=1),
            np.add.reduceat(times, self._starts, axis=1),
        )

    def _by_sketch(self, generator: np.random.Generator, rows: int) -> Resamples:
        f = self.forecasts
        each = f.squared_weights / f.weights  # the weight of one of the equal records
        ones = generator.poisson(f.outcomes / each, size=(rows, f.levels)) * each
        zeros = generator.poisson((f.weights - f.outcomes).clip(0) / each, size=(rows, f.levels)) * each
        total = (ones + zeros).sum(axis=1, keepdims=True)
        weights = (ones + zeros) / np.where(total > 0, total, 1.0)
        outcomes = ones / np.where(total > 0, total, 1.0)
        return Resamples(weights, outcomes, weights * each, np.ceil(weights / each))


def tallied(picked: Any, cells: int) -> Any:
    """Count how often each cell occurs in every row."""
    rows = len(picked)
    picked += np.arange(rows)[:, None] * cells
    return np.bincount(picked.ravel(), minlength=rows * cells).reshape(rows, cells)


def resampled_values(
    forecasts: Forecasts,
    row: Measure,
    settings: dict[str, Any],
    *,
    resampler: Resampler,
    draws: int,
    seed: int,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Array:
    """Return the measure of `draws` resamples of the records; NaN where it has no value."""
    quick = row.null.residuals_only and batched(forecasts, row, settings)

    def work(generator: np.random.Generator, rows: int) -> Array:
        return values_of(forecasts, row, settings, resampler.draw(generator, rows), quick)

    return in_blocks(
        work,
        draws,
        width=resampler.width,
        seed=seed,
        threads=threads if quick else 1,
        progress=progress,
    )


def resampled_deviations(
    forecasts: Forecasts,
    row: Measure,
    settings: dict[str, Any],
    *,
    resampler: Resampler,
    draws: int,
    seed: int,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Array | None:
    """Return how far resampling moves the value (its `power`-th root) at most; None if nothing bounds it."""
    null = row.null
    quick = null.power > 0 and batched(forecasts, row, settings)
    if not quick and (null.deviation is None or not deviation_applies(row.settings(settings))):
        return None

    def work(generator: np.random.Generator, rows: int) -> Array:
        drawn = resampler.draw(generator, rows)
        weights, outcomes = drawn.weights - forecasts.weights, drawn.outcomes - forecasts.outcomes
        if not quick:
            return null.deviation(forecasts, weights, outcomes)  # type: ignore[misc]
        moved = null.batch(forecasts, outcomes - weights * forecasts.values, settings)  # type: ignore[misc]
        return np.asarray(moved) ** (1 / null.power)

    return in_blocks(work, draws, width=resampler.width, seed=seed, threads=threads, progress=progress)


def values_of(
    forecasts: Forecasts, row: Measure, settings: dict[str, Any], drawn: Resamples, quick: bool
) -> Array:
    """Take the measure of every resample: all at once where residuals are all it needs."""
    if quick:
        residuals = drawn.outcomes - drawn.weights * forecasts.values
        return np.asarray(row.null.batch(forecasts, residuals, settings))  # type: ignore[misc]
    found = [measured(_rebuilt(forecasts, drawn, k), row, settings) for k in range(len(drawn.weights))]
    return np.where(np.isfinite(found), found, np.nan)


def _rebuilt(forecasts: Forecasts, drawn: Resamples, k: int) -> Forecasts:
    kept = drawn.weights[k] > 0
    return Forecasts.from_levels(
        forecasts.values[kept],
        drawn.weights[k][kept],
        drawn.outcomes[k][kept],
        squared_weights=drawn.squared_weights[k][kept],
        counts=drawn.counts[k][kept].astype(np.int64),
        total_weight=forecasts.total_weight,
        binary=forecasts.binary,
    )
