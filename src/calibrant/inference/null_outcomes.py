"""Outcomes as calibration would have them: the null is fully known, so it can be drawn exactly."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from typing import Any, cast

import numpy as np

from calibrant.errors import InvalidInputError, TooFewRecordsError, sentence
from calibrant.forecasts import Forecasts
from calibrant.inference.stand_ins import StandIns, alike
from calibrant.measures.level_sets import LevelSetWarning
from calibrant.measures.registry.row import Measure
from calibrant.progress import Progress
from calibrant.results import Array
from calibrant.seeds import in_blocks

CROWDED = 16  # records per level from which on a binomial draw costs less than their Bernoulli draws


class NullOutcomes:
    """Draws the weight of y per level, y ~ Bernoulli(v) independently, one row for each set of outcomes.

    `kind` says how: "records" (one by one) and "levels" (one binomial per level) are exact; "stand-ins" is
    for a weighted sketch, which knows the squares of its weights but not its records. Mean and variance of
    every level are right there too, and `exact` says whether all weights could be found. `rates` other
    than the predictions draw outcomes that are not calibrated.
    """

    def __init__(self, forecasts: Forecasts, rates: Array | None = None) -> None:
        if not forecasts.binary:
            hint = "a fraction stands for a known probability; draw 0/1 outcomes from it, or test with "
            hint += 'method="asymptotic"'
            raise InvalidInputError(
                sentence("y_true", "must be 0 or 1 to simulate calibration", "got fractions", hint)
            )
        self.forecasts = forecasts
        self._rates = forecasts.values if rates is None else rates
        self._stand_ins: StandIns | None = None
        weighted = not alike(forecasts)
        if weighted and forecasts.record_weights is None:
            self.kind = "stand-ins"
            self._stand_ins = StandIns.of(forecasts)
        elif weighted or forecasts.n < CROWDED * forecasts.levels:
            self.kind = "records"
        else:
            self.kind = "levels"
        self.exact = forecasts.exact and (self._stand_ins is None or self._stand_ins.exact)
        self.width = forecasts.n if self.kind == "records" else forecasts.levels
        self._expected = forecasts.weights * forecasts.values
        self._rooms = threading.local()
        if self.kind == "records":
            counts = forecasts.counts
            self._single = forecasts.levels == forecasts.n
            self._starts = np.concatenate(([0], np.cumsum(counts)[:-1]))
            self._chances = self._rates if self._single else np.repeat(self._rates, counts)

    def outcomes(self, generator: np.random.Generator, rows: int) -> Array:
        """Draw `rows` sets of outcomes."""
        return self._drawn(generator, rows, None)

    def _drawn(self, generator: np.random.Generator, rows: int, room: Array | None) -> Array:
        """Draw `rows` sets of outcomes, into `room` if that is given and single records are drawn."""
        f = self.forecasts
        if self._stand_ins is not None:
            return self._stand_ins.outcomes(generator, self._rates, rows)
        if self.kind == "levels":
            return np.asarray(generator.binomial(f.counts, self._rates, size=(rows, f.levels)) / f.n)
        drawn = generator.random((rows, f.n), out=room)
        hits = drawn < self._chances
        if f.record_weights is not None:
            np.multiply(hits, f.record_weights, out=drawn)
        elif self._single:
            return np.multiply(hits, 1 / f.n, out=drawn)
        if self._single:
            return drawn
        if f.record_weights is not None:
            return np.add.reduceat(drawn, self._starts, axis=1)
        return np.asarray(np.add.reduceat(hits, self._starts, axis=1, dtype=np.int64) / f.n)

    def forecasts_of(self, generator: np.random.Generator, rows: int) -> Iterator[Forecasts]:
        """Draw `rows` sets of outcomes as Forecasts; those of weighted records are known one by one."""
        f = self.forecasts
        if self.kind != "records" or self._single or f.record_weights is None:
            yield from map(f.with_outcomes, self.outcomes(generator, rows))
            return
        for hits in generator.random((rows, f.n)) < self._chances:
            yield f.with_record_outcomes(hits.astype(np.float64))

    def residuals(self, generator: np.random.Generator, rows: int) -> Array:
        """Draw `rows` sets of residuals: outcomes minus what was predicted.

        The next sets that the same thread draws take their place: pages of memory that are asked for anew
        each time cost as much as the drawing.
        """
        drawn = self._drawn(generator, rows, self._room(rows))
        drawn -= self._expected
        return drawn

    def _room(self, rows: int) -> Array:
        """Return room for the draws of this thread."""
        shape = (rows, self.forecasts.n if self.kind == "records" else 0)
        if getattr(self._rooms, "room", np.empty(0)).shape != shape:
            self._rooms.room = np.empty(shape)
        return cast("Array", self._rooms.room)


def null_values(
    forecasts: Forecasts,
    row: Measure,
    settings: dict[str, Any],
    *,
    null: NullOutcomes,
    draws: int,
    seed: int,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Array:
    """Return the measure of `draws` sets of calibrated outcomes; infinity where it has no value."""
    if batched(forecasts, row, settings):
        batch = row.null.batch

        def work(generator: np.random.Generator, rows: int) -> Array:
            return np.asarray(batch(forecasts, null.residuals(generator, rows), settings))  # type: ignore[misc]

    elif row.null.tables is not None:

        def work(generator: np.random.Generator, rows: int) -> Array:
            return values_of_outcomes(forecasts, row, settings, null.outcomes(generator, rows))

    else:
        threads = 1  # the measures themselves are Python

        def work(generator: np.random.Generator, rows: int) -> Array:
            drawn = null.forecasts_of(generator, rows)
            return np.array([measured(one, row, settings) for one in drawn])

    return in_blocks(work, draws, width=null.width, seed=seed, threads=threads, progress=progress)


def batched(forecasts: Forecasts, row: Measure, settings: dict[str, Any]) -> bool:
    """Return whether the row evaluates many residual vectors at once under these settings."""
    if row.null.batch is None:
        return False
    return row.null.batch(forecasts, forecasts.residuals[None], settings) is not None


def values_of_outcomes(
    forecasts: Forecasts, row: Measure, settings: dict[str, Any], outcomes: Array
) -> Array:
    """Take the measure of each row of outcomes: all at once where the measure can."""
    tables = row.null.tables
    at_once = None if tables is None else tables(forecasts, outcomes, forecasts.weights[None], settings)
    return one_by_one(forecasts, row, settings, outcomes) if at_once is None else np.asarray(at_once)


def one_by_one(forecasts: Forecasts, row: Measure, settings: dict[str, Any], outcomes: Array) -> Array:
    """Take the measure of each row of outcomes with the measure itself."""
    return np.array([measured(forecasts.with_outcomes(drawn), row, settings) for drawn in outcomes])


def measured(forecasts: Forecasts, row: Measure, settings: dict[str, Any]) -> float:
    """Take the measure, and infinity where it has no value: a slope when all outcomes agree, say."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LevelSetWarning)
        try:
            return float(row.function.core(forecasts, **settings))
        except TooFewRecordsError:
            return np.inf
