"""The exact null: outcomes drawn as if the predictions were right, independently of each other."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt

from calibrant.errors import Hint, InvalidInputError, LevelSetWarning, TooFewRecordsError, sentence
from calibrant.forecasts import Forecasts
from calibrant.metrics.registry import Measure
from calibrant.parallel import AT_ONCE, Progress, in_blocks
from calibrant.results import Array

MOST = 0.9  # share of the mean by which light records may fall short of it
ROUNDING = 1e-9  # relative spread of weights that is none


@dataclass(frozen=True, slots=True, eq=False)
class TwoPointWeights:
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
    def of(cls, forecasts: Forecasts) -> TwoPointWeights:
        """Find the records of each level."""
        return cls.of_sums(forecasts.counts, forecasts.weights, forecasts.squared_weights)

    @classmethod
    def of_sums(
        cls, counts: npt.NDArray[np.int64], weights: Array, squared_weights: Array
    ) -> TwoPointWeights:
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


def max_record_weight(forecasts: Forecasts) -> float:
    """Return the weight that no record exceeds: known from the records, or bounded from their squares."""
    if forecasts.record_weights is not None:
        return float(forecasts.record_weights.max())
    if forecasts.levels == forecasts.n:  # one record per level
        return float(forecasts.weights.max())
    mean = forecasts.weights / forecasts.counts
    spread = np.sqrt(np.maximum(0.0, forecasts.squared_weights / forecasts.counts - mean**2))
    return float((mean + spread * np.sqrt(forecasts.counts - 1)).max())  # one record against all others


def has_equal_weights(forecasts: Forecasts) -> bool:
    """Return whether every record weighs the same, from the squared weights (a sketch keeps no records)."""
    if forecasts.record_weights is not None:
        return False
    for start in range(0, forecasts.levels, AT_ONCE):
        part = slice(start, start + AT_ONCE)
        squares, weights = forecasts.squared_weights[part] * forecasts.n, forecasts.weights[part]
        if not np.allclose(squares, weights, rtol=1e-6, atol=0):
            return False
    return True


CROWDED = 16  # records per level from which on a binomial draw costs less than their Bernoulli draws


class NullDraws(Protocol):
    """What tests draw from: calibrated outcomes (NullOutcomes), or random signs (SignNull)."""

    exact: bool
    width: int  # random numbers per draw

    def residuals(self, generator: np.random.Generator, rows: int) -> Array:
        """Draw `rows` sets of residuals."""

    def outcomes(self, generator: np.random.Generator, rows: int) -> Array:
        """Draw `rows` sets of outcomes, as the weight of y per level."""

    def forecasts_of(self, generator: np.random.Generator, rows: int) -> Iterator[Forecasts]:
        """Draw `rows` sets of outcomes as Forecasts."""


class NullOutcomes:
    """Draws the weight of y per level, y ~ Bernoulli(v) independently, one row for each set of outcomes.

    `kind` says how: "records" (one by one) and "levels" (one binomial per level) are exact; "stand-ins" is
    for a weighted sketch, which knows the squares of its weights but not its records. Mean and variance of
    every level are right there too, and `exact` says whether all weights could be found. `rates` other
    than the predictions draw outcomes that are not calibrated.
    """

    def __init__(self, forecasts: Forecasts, rates: Array | None = None) -> None:
        if not forecasts.binary:
            hint = Hint("{} tests fractions by random signs", null="signs")
            raise InvalidInputError(
                sentence("y_true", "must be 0 or 1 to simulate calibration", "got fractions", hint)
            )
        self.forecasts = forecasts
        self._rates = forecasts.values if rates is None else rates
        self._stand_ins: TwoPointWeights | None = None
        weighted = not has_equal_weights(forecasts)
        if weighted and forecasts.record_weights is None:
            self.kind = "stand-ins"
            self._stand_ins = TwoPointWeights.of(forecasts)
        elif weighted or forecasts.n < CROWDED * forecasts.levels:
            self.kind = "records"
        else:
            self.kind = "levels"
        self.exact = forecasts.exact and (self._stand_ins is None or self._stand_ins.exact)
        self.width = forecasts.n if self.kind == "records" else forecasts.levels
        self._expected = forecasts.weights * forecasts.values
        self._buffers = threading.local()
        if self.kind == "records":
            counts = forecasts.counts
            self._single = forecasts.levels == forecasts.n
            self._starts = np.concatenate(([0], np.cumsum(counts)[:-1]))
            self._chances = self._rates if self._single else np.repeat(self._rates, counts)

    def outcomes(self, generator: np.random.Generator, rows: int) -> Array:
        """Draw `rows` sets of outcomes."""
        return self._drawn(generator, rows, None)

    def _drawn(self, generator: np.random.Generator, rows: int, out: Array | None) -> Array:
        """Draw `rows` sets of outcomes, into `out` if that is given and single records are drawn."""
        f = self.forecasts
        if self._stand_ins is not None:
            return self._stand_ins.outcomes(generator, self._rates, rows)
        if self.kind == "levels":
            return np.asarray(generator.binomial(f.counts, self._rates, size=(rows, f.levels)) / f.n)
        drawn = generator.random((rows, f.n), out=out)
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

        The next sets that the same thread draws take their place: pages of memory that are requested again
        each time cost as much as the drawing.
        """
        drawn = self._drawn(generator, rows, self._room(rows))
        drawn -= self._expected
        return drawn

    def _room(self, rows: int) -> Array:
        """Return the buffer of this thread's draws."""
        shape = (rows, self.forecasts.n if self.kind == "records" else 0)
        if getattr(self._buffers, "draws", np.empty(0)).shape != shape:
            self._buffers.draws = np.empty(shape)
        return cast("Array", self._buffers.draws)


def null_values(
    forecasts: Forecasts,
    row: Measure,
    settings: dict[str, Any],
    *,
    null: NullDraws,
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
