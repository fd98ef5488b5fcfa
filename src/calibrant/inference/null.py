"""What calibrated predictions would show, drawn: independent outcomes, or random signs."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.clusters import Clusters
from calibrant.errors import (
    Hint,
    InvalidInputError,
    LevelSetWarning,
    TooFewClustersError,
    TooFewRecordsError,
)
from calibrant.forecasts import Forecasts
from calibrant.formatting import pluralize
from calibrant.inference.group_interval import MIN_CLUSTERS
from calibrant.metrics.registry import Measure
from calibrant.metrics.scores import isotonic_curve
from calibrant.parallel import Progress, check_drawing, checked_draws, dot, in_blocks, recorded_seed
from calibrant.results import Array

MAX_SHORTFALL = 0.9  # share of the mean by which light records may fall short of it
ROUNDING = 1e-9  # relative spread of weights that is none


@dataclass(frozen=True, slots=True, eq=False)
class TwoPointWeights:
    """Heavy and light records per level, whose number, weight and squared weight are those of the level."""

    heavy: npt.NDArray[np.int64]  # how many
    light: npt.NDArray[np.int64]
    heavy_weight: Array  # of one such record
    light_weight: Array
    exact: bool  # whether all weights are those of the data

    @classmethod
    def of(cls, forecasts: Forecasts) -> TwoPointWeights:
        return cls.of_sums(forecasts.counts, forecasts.weights, forecasts.squared_weights)

    @classmethod
    def of_sums(
        cls, counts: npt.NDArray[np.int64], weights: Array, squared_weights: Array
    ) -> TwoPointWeights:
        # h heavy records of m + d sqrt(l / h) and l light ones of m - d sqrt(h / l) have mean m and standard
        # deviation d; light ones are positive for h small enough, for h = 1 always
        mean = weights / counts
        spread = np.sqrt(np.maximum(0.0, squared_weights / counts - mean**2))
        spread[spread <= np.sqrt(ROUNDING) * mean] = 0.0
        odds = np.square(np.divide(MAX_SHORTFALL * mean, spread, out=np.ones_like(mean), where=spread > 0))
        heavy = np.clip((counts * (odds / (1 + odds))).astype(np.int64), 1, np.maximum(1, counts // 2))
        light = counts - heavy
        ratio = np.sqrt(light / heavy)
        up = np.where(light > 0, spread * ratio, 0.0)
        down = np.divide(spread, ratio, out=np.zeros_like(spread), where=light > 0)
        known = (counts <= 2) | (spread == 0)
        return cls(heavy, light, mean + up, np.maximum(mean - down, 0.0), bool(known.all()))

    def outcomes(self, generator: np.random.Generator, rates: Array, rows: int) -> Array:
        size, heavy, light = (rows, len(rates)), self.heavy_weight, self.light_weight
        if np.array_equal(heavy, light):
            return np.asarray(generator.binomial(self.heavy + self.light, rates, size=size) * heavy)
        drawn = generator.binomial(self.heavy, rates, size=size) * heavy
        return np.asarray(drawn + generator.binomial(self.light, rates, size=size) * light)


def max_record_weight(forecasts: Forecasts) -> float:
    if forecasts.record_weights is not None:
        return float(forecasts.record_weights.max())
    if forecasts.levels == forecasts.n:  # one record per level
        return float(forecasts.weights.max())
    mean = forecasts.weights / forecasts.counts
    spread = np.sqrt(np.maximum(0.0, forecasts.squared_weights / forecasts.counts - mean**2))
    return float((mean + spread * np.sqrt(forecasts.counts - 1)).max())  # one record against all others


def has_equal_weights(forecasts: Forecasts) -> bool:
    if forecasts.record_weights is not None:
        return False
    apart = np.abs(forecasts.squared_weights * forecasts.n - forecasts.weights)
    return bool(np.all(apart <= 1e-6 * forecasts.weights))


MIN_BINOMIAL_RECORDS = 16  # per level, from which on a binomial draw costs less than Bernoulli draws


class NullOutcomes:
    """Draws y ~ Bernoulli(v) independently; `rates` replace v."""

    def __init__(self, forecasts: Forecasts, rates: Array | None = None) -> None:
        if not forecasts.binary:
            hint = Hint("{} tests fractions by random signs", null="signs")
            raise InvalidInputError("y_true", "must be 0 or 1 to simulate calibration", "got fractions", hint)
        self.forecasts = forecasts
        self._rates = forecasts.values if rates is None else rates
        weighted, counts = not has_equal_weights(forecasts), forecasts.counts
        sketched = weighted and forecasts.record_weights is None
        # a weighted sketch does not know its records; substitutes are exact if all weights were found
        self._substitutes = TwoPointWeights.of(forecasts) if sketched else None
        self.exact = forecasts.exact and (self._substitutes is None or self._substitutes.exact)
        many = forecasts.n >= MIN_BINOMIAL_RECORDS * forecasts.levels
        self._by_record = not sketched and (weighted or not many)
        self.width = forecasts.n if self._by_record else forecasts.levels  # random numbers per draw
        self._expected = forecasts.weights * forecasts.values
        self._single = forecasts.levels == forecasts.n
        if self._by_record:
            self._starts = np.concatenate(([0], np.cumsum(counts)[:-1]))
            self._chances = self._rates if self._single else np.repeat(self._rates, counts)

    def outcomes(self, generator: np.random.Generator, rows: int) -> Array:
        """Draw the weight of y per level, one row for each set of outcomes."""
        f = self.forecasts
        if self._substitutes is not None:
            return self._substitutes.outcomes(generator, self._rates, rows)
        if not self._by_record:
            return np.asarray(generator.binomial(f.counts, self._rates, size=(rows, f.levels)) / f.n)
        drawn = generator.random((rows, f.n))
        hits = drawn < self._chances
        if self._single or f.record_weights is not None:
            np.multiply(hits, 1 / f.n if f.record_weights is None else f.record_weights, out=drawn)
            return drawn if self._single else np.add.reduceat(drawn, self._starts, axis=1)
        return np.asarray(np.add.reduceat(hits, self._starts, axis=1, dtype=np.int64) / f.n)

    def forecasts_of(self, generator: np.random.Generator, rows: int) -> Iterator[Forecasts]:
        f = self.forecasts
        if not self._by_record or self._single or f.record_weights is None:
            yield from map(f.with_outcomes, self.outcomes(generator, rows))
            return
        for hits in generator.random((rows, f.n)) < self._chances:
            yield f.with_record_outcomes(hits.astype(np.float64))

    def residuals(self, generator: np.random.Generator, rows: int) -> Array:
        drawn = self.outcomes(generator, rows)
        drawn -= self._expected
        return drawn


@dataclass(frozen=True, slots=True)
class Drawing:
    draws: int
    seed: int
    threads: int | None = None
    progress: Progress | None = None

    @classmethod
    def checked(
        cls, draws: int, seed: int | None, threads: int | None = None, progress: Progress | None = None
    ) -> Drawing:
        check_drawing(draws, seed, threads)
        return cls(checked_draws(draws), recorded_seed(seed), threads, progress)

    def run(
        self, work: Callable[[np.random.Generator, int], Array], width: int, *, alone: bool = False
    ) -> Array:
        """Stack the rows of all draws, which take `width` random numbers each; `alone` in one thread."""
        threads = 1 if alone else self.threads
        return in_blocks(
            work, self.draws, width=width, seed=self.seed, threads=threads, progress=self.progress
        )


def with_options(entry: Measure, options: Mapping[str, Any]) -> Measure:
    return replace(entry, options={**entry.options, **options}, largest=entry.reachable(options)[1])


def null_values(forecasts: Forecasts, entry: Measure, null: NullDraws, drawing: Drawing) -> Array:
    """Return the measure of sets of calibrated outcomes; infinity where it has no value."""
    at_once, tables = batched(forecasts, entry), entry.null.tables

    def work(generator: np.random.Generator, rows: int) -> Array:
        if at_once:
            return values_of_residuals(forecasts, entry, null.residuals(generator, rows))
        if tables is None:
            return np.array([measured(one, entry) for one in null.forecasts_of(generator, rows)])
        outcomes = null.outcomes(generator, rows)
        values = tables(forecasts, outcomes, forecasts.weights[None], entry.options)
        return one_by_one(forecasts, entry, outcomes) if values is None else np.asarray(values)

    return drawing.run(work, null.width, alone=not at_once and tables is None)  # measures are Python


def batched(forecasts: Forecasts, entry: Measure) -> bool:
    """Return whether the measure evaluates many residual vectors at once under its options."""
    if entry.null.batch is None:
        return False
    return entry.null.batch(forecasts, forecasts.residuals[None], entry.options) is not None


def values_of_residuals(forecasts: Forecasts, entry: Measure, residuals: Array) -> Array:
    values = entry.null.batch and entry.null.batch(forecasts, residuals, entry.options)
    if values is None:
        return one_by_one(forecasts, entry, forecasts.weights * forecasts.values + residuals)
    return np.asarray(values)


def one_by_one(forecasts: Forecasts, entry: Measure, outcomes: Array) -> Array:
    return np.array([measured(forecasts.with_outcomes(drawn), entry) for drawn in outcomes])


def measured(forecasts: Forecasts, entry: Measure) -> float:
    """Take the measure, and infinity where it has no value: a slope when all outcomes agree, say."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LevelSetWarning)
        try:
            return float(entry.function.core(forecasts, **entry.options))
        except TooFewRecordsError:
            return np.inf


MIN_EITHER_SIDE = 5  # clusters with a record above its prediction, and with one below it
MIN_SINGLE_SIDE = 20  # the same of single 0/1 records: signs ignore the skewness of rare events
SKEWNESS_ALLOWANCE = 3.0  # standard errors per unit of the skewness of the mean, by simulation
MIN_BALANCED_SHARE = 0.75  # of the records on either side that must be there, expected under calibration
MIN_NOTICEABLE_EFFECT = 1.1  # design effect from which rows are called correlated
MAMMEN = (-(math.sqrt(5) - 1) / 2, (math.sqrt(5) + 1) / 2)  # mean 0, variance 1, third moment 1
MAMMEN_LOW = (math.sqrt(5) + 1) / (2 * math.sqrt(5))  # probability of the first of the two points


def draw_signs(generator: np.random.Generator, clusters: int, draws: int) -> Array:
    """Draw one sign per cluster (rows) for every draw (columns)."""
    size = clusters * draws
    bits = np.unpackbits(np.frombuffer(generator.bytes(-(-size // 8)), dtype=np.uint8), count=size)
    return np.asarray(2.0 * bits.reshape(clusters, draws) - 1.0)


class SignNull:
    """Draws the residuals of all levels with one random sign per cluster (per record without clusters).

    Calibration gives the residuals of a cluster mean zero, whatever their correlation and weights. The test
    is exact where they are distributed as their negatives, else approximate in the number of clusters.
    """

    exact = False

    def __init__(self, forecasts: Forecasts, rates: Array | None = None) -> None:
        self.forecasts = forecasts
        self.clusters = record_clusters(forecasts)
        self._level_of = np.repeat(np.arange(forecasts.levels), forecasts.counts)
        self._rates, means, scale = forecasts.values, forecasts.values, 1.0
        if rates is not None:
            self._rates, means = rates, isotonic_curve(forecasts)
            free = forecasts.n - 1 - int(np.count_nonzero(np.diff(means)))  # each block of the fit takes one
            scale = math.sqrt(forecasts.n / max(1, free))
        self._around = scale * (record_outcomes(forecasts) - means[self._level_of])
        self.record_residuals = record_weights(forecasts) * self._around
        self._matrix = self.clusters.matrix(self.record_residuals, self._level_of, forecasts.levels)
        self._drift = None if rates is None else forecasts.weights * (rates - forecasts.values)
        self.width = max(self.clusters.number, forecasts.levels)

    @property
    def allowance(self) -> float:
        """How far the sum of skewed residuals may fall short of what rare large ones would have added."""
        if self.forecasts.binary and has_equal_weights(self.forecasts):
            return 0.0  # the exact null knows the skewness
        # signs have none, and a sample that lacks large residuals shows little of it
        sums = self.clusters.total(self.record_residuals)
        return SKEWNESS_ALLOWANCE * skewness_of_mean(sums) * float(np.linalg.norm(sums))

    def observed(self) -> Array:
        """Return the residuals of all levels, and those with the allowance: the smaller statistic counts."""
        return self.forecasts.residuals + np.outer((0.0, self.allowance), self.forecasts.weights)

    def is_unchanged_by_signs(self) -> bool:
        """Return whether every level lies in one cluster: its absolute sum then never changes."""
        return bool(np.all(np.diff(self._matrix.indptr) <= 1))

    def residuals(self, generator: np.random.Generator, rows: int) -> Array:
        signs = draw_signs(generator, self.clusters.number, rows)
        drawn = np.ascontiguousarray((self._matrix @ signs).T)
        return drawn if self._drift is None else drawn + self._drift

    def outcomes(self, generator: np.random.Generator, rows: int) -> Array:
        """Draw the weight of y per level, which may leave [0, weight]."""
        return self.residuals(generator, rows) + self.forecasts.weights * self.forecasts.values

    def forecasts_of(self, generator: np.random.Generator, rows: int) -> Iterator[Forecasts]:
        signs = draw_signs(generator, self.clusters.number, rows)[self.clusters.codes]
        for sign in signs.T:
            yield self.forecasts.with_record_outcomes(self._rates[self._level_of] + sign * self._around)

    def score_draws(self, leverage: Array, drawing: Drawing) -> Array:
        """Return the standardized score of each row of `leverage`: of the data, then of the draws."""

        # Mammen's weights: plain signs are too liberal for few clusters and skewed scores
        def summed(residuals: Array) -> Array:
            return np.stack([self.clusters.total(residuals * one[self._level_of]) for one in leverage])

        by_cluster, once = summed(self.record_residuals), np.ones((self.clusters.number, 1))
        moved = summed(self.record_residuals + self.allowance * record_weights(self.forecasts))
        seen, lower = _standardized(by_cluster, once), _standardized(moved, once)

        def work(generator: np.random.Generator, rows: int) -> Array:
            below = generator.random((self.clusters.number, rows)) < MAMMEN_LOW
            return _standardized(by_cluster, np.where(below, *MAMMEN))

        drawn = replace(drawing, progress=None).run(work, self.clusters.number)
        return np.concatenate([np.where(np.abs(lower) < np.abs(seen), lower, seen), drawn])


NullDraws = NullOutcomes | SignNull


def skewness_of_mean(numbers: Array) -> float:
    """Return the skewness of the mean of numbers such as these, 0 if they are all equal."""
    away = numbers - numbers.mean()
    away /= float(np.abs(away).max()) or 1.0  # squares of tiny weights would vanish
    squares = dot(away, away)
    return dot(away * away, away) / squares**1.5 if squares > 0 else 0.0


def _standardized(by_cluster: Array, multipliers: Array) -> Array:
    """Return sum / centered standard error, one row per draw and one column per score."""
    number = by_cluster.shape[1]
    # not @: its threads would fight those that share out the draws
    total = np.einsum("jc,cr->jr", by_cluster, multipliers)
    squares = np.einsum("jc,cr->jr", by_cluster**2, multipliers**2) - total**2 / number
    scale = np.sqrt(np.maximum(squares, 0.0))
    found = np.divide(total, scale, out=np.zeros_like(total), where=scale > 1e-9 * np.abs(total))
    return np.asarray(found.T)


@dataclass(frozen=True, slots=True)
class ClusterSummary:
    name: str
    number: int
    effective: float  # how many equal ones they amount to
    design_effect: float  # the variance of the mean residual by clusters over that by single rows
    rows: int

    @classmethod
    def of_rows(
        cls,
        clusters: Clusters,
        outcomes: Array,
        expected: Array,
        weights: Array,
        *,
        checked: bool = True,
        real: bool = False,
        binary: bool = True,
    ) -> ClusterSummary:
        """Summarize clusters; if `checked`, refuse too few of them. `real` outcomes all vary alike."""
        residuals = weights * (outcomes - expected)
        # with the correlation c of the data, a sum varies by (1 - c) sum d^2 + c (sum d)^2 (deviations d);
        # squares of the observed sums would report a third of the clusters even where all are alike
        deviations = weights * (1.0 if real else np.sqrt(np.abs(expected * (1 - expected))))
        deviations = deviations if deviations.any() else weights
        own, whole = clusters.total(deviations**2), clusters.total(deviations) ** 2
        centered = residuals - weights * (residuals.sum() / weights.sum())
        sums = clusters.total(centered)
        by_rows, by_clusters, pairs = dot(centered, centered), dot(sums, sums), float((whole - own).sum())
        scale = by_rows / max(float(own.sum()), 1e-300)
        shared = (by_clusters - by_rows) / scale / pairs if pairs > 0 and scale > 0 else 0.0
        shared = min(1.0, max(0.0, shared))
        variance = (1 - shared) * own + shared * whole
        total, squares = float(variance.sum()), dot(variance, variance)
        effective = total**2 / squares if squares > 0 else float(clusters.number)
        effect = by_clusters / by_rows if by_rows > 0 else 1.0
        found = cls(clusters.name, clusters.number, effective, effect, len(residuals))
        if checked:
            _check_enough(found, clusters, residuals, MIN_SINGLE_SIDE if binary else MIN_EITHER_SIDE)
        return found

    def widening(self, confidence: float) -> float:
        """Return what few clusters need: they underestimate variance, and quantiles are Student's."""
        from scipy.special import ndtri, stdtrit

        share = (1 + confidence) / 2
        quantiles = float(stdtrit(max(1.0, self.effective - 1), share)) / float(ndtri(share))
        return quantiles * math.sqrt(self.number / max(1, self.number - 1))

    def __str__(self) -> str:
        if self.number == self.rows:
            return ""
        many = f"{pluralize(self.rows, 'row')} in {self.number:,} clusters ({self.name})"
        if self.design_effect < MIN_NOTICEABLE_EFFECT:
            return f"{many}: rows are not noticeably correlated within {self.name}."
        worth = _rounded(self.rows / self.design_effect)
        return (
            f"Rows are correlated within {self.name}: {self.rows:,} rows in {self.number:,} clusters carry "
            f"as much information as about {worth:,}."
        )


def cluster_summary(forecasts: Forecasts, checked: bool = False) -> ClusterSummary:
    rows = record_outcomes(forecasts), np.repeat(forecasts.values, forecasts.counts)
    weights = record_weights(forecasts)
    clusters, binary = record_clusters(forecasts), forecasts.binary
    return ClusterSummary.of_rows(clusters, *rows, weights, checked=checked, binary=binary)


def _check_enough(found: ClusterSummary, clusters: Clusters, residuals: Array, single_side: int) -> None:
    above, below = (
        np.count_nonzero(np.bincount(clusters.codes[side])) for side in (residuals > 0, residuals < 0)
    )
    single = min(single_side, -(-clusters.number // 5))  # few records are fine where sides are balanced
    noun, least = ("record", single) if clusters.all_single else ("cluster", MIN_EITHER_SIDE)
    if found.effective < MIN_CLUSTERS:
        rule = f"must amount to at least {MIN_CLUSTERS:g} of equal weight"
        got = f"got {found.number:,}, worth about {found.effective:.1f}"
        raise TooFewClustersError(f"{noun}s", rule, got, "too little data to say; collect more")
    if min(above, below) < least and (above or below):
        side = "above" if above < below else "below"
        rule = f"must include at least {least} with an outcome {side} its prediction"
        got = f"got {min(above, below)} of {found.number:,}"
        raise TooFewClustersError(f"{noun}s", rule, got, "collect more data")
    if clusters.all_single and above and below:
        # as many as balance the other side; the number itself is part of what is tested
        sums = np.array([residuals[residuals > 0].sum(), -residuals[residuals < 0].sum()])
        balanced, fewest = sums[::-1] / (sums / (above, below)), MIN_BALANCED_SHARE * least
        if balanced.min() < fewest:
            side = ("above", "below")[int(balanced.argmin())]
            rule = f"must be balanced by at least {fewest:g} outcomes {side} their predictions"
            got = f"got about {balanced.min():.2g}"
            raise TooFewClustersError(f"{noun}s", rule, got, "collect more data")


def is_clustered(forecasts: Forecasts) -> bool:
    return forecasts.clusters is not None and not forecasts.clusters.all_single


def record_clusters(forecasts: Forecasts) -> Clusters:
    """Return the clusters of the records; single records are numbered alike whether labeled or not."""
    clusters = forecasts.clusters
    return Clusters.of_single_records(forecasts.n) if clusters is None or clusters.all_single else clusters


def record_weights(forecasts: Forecasts) -> Array:
    weights = forecasts.record_weights
    return np.full(forecasts.n, 1 / forecasts.n) if weights is None else weights


def record_outcomes(forecasts: Forecasts) -> Array:
    if forecasts.record_outcomes is not None:
        return forecasts.record_outcomes
    if forecasts.cells is not None or not has_equal_weights(forecasts):
        hint = "pass the rows themselves"
        if forecasts.binary:
            raise InvalidInputError("random signs", "need single rows", "got a sketch", hint)
        rule, why = "cannot be tested from this sketch", "it keeps their sums, not how they vary"
        hint = f"{hint}, or sketch outcomes of 0 and 1"
        raise InvalidInputError("fractional outcomes", rule, why, hint)
    ones = np.rint(forecasts.outcomes * forecasts.n).astype(np.int64)
    alternating = np.column_stack([ones, forecasts.counts - ones]).ravel()
    return np.repeat(np.tile([1.0, 0.0], forecasts.levels), alternating)


def _rounded(number: float) -> int:  # to two digits
    unit = 10.0 ** max(0, math.floor(math.log10(max(number, 1.0))) - 1)
    return int(round(number / unit) * unit)
