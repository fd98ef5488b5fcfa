"""The robust null: one random sign per cluster of records.

Under calibration E[y - p | p] = 0, so the weighted residuals of a cluster have mean zero whatever their
correlation and whatever the weights. A draw multiplies all residuals of a cluster by one random sign and
recomputes the statistic; no variance is modeled. The test is exact where the residuals of every cluster are
distributed as their negatives, and otherwise approximate in the number of clusters.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from calibrant.clusters import Clusters
from calibrant.errors import InvalidInputError, TooFewClustersError, sentence
from calibrant.forecasts import Forecasts
from calibrant.formatting import pluralize
from calibrant.inference.null import has_equal_weights
from calibrant.parallel import in_blocks
from calibrant.results import Array

MIN_CLUSTERS = 10.0  # effective number below which neither tests nor intervals keep their promise
MIN_EITHER_SIDE = 5  # clusters with a record above its prediction, and with one below it
MIN_SINGLE_SIDE = 20  # the same where every record is a cluster: signs ignore the skewness of rare events
NOTICEABLE = 1.1  # design effect from which rows are called correlated
MAMMEN = (-(math.sqrt(5) - 1) / 2, (math.sqrt(5) + 1) / 2)  # mean 0, variance 1, third moment 1
MAMMEN_LOW = (math.sqrt(5) + 1) / (2 * math.sqrt(5))  # probability of the first of the two points


def draw_signs(generator: np.random.Generator, clusters: int, draws: int) -> Array:
    """Draw one sign per cluster (rows) for every draw (columns)."""
    size = clusters * draws
    bits = np.unpackbits(np.frombuffer(generator.bytes(-(-size // 8)), dtype=np.uint8), count=size)
    return np.asarray(2.0 * bits.reshape(clusters, draws) - 1.0)


def draw_mammen(generator: np.random.Generator, clusters: int, draws: int) -> Array:
    """Draw Mammen's two-point weights, which preserve skewness as well."""
    return np.where(generator.random((clusters, draws)) < MAMMEN_LOW, *MAMMEN)


class SignNull:
    """Draws the residuals of all levels with one random sign per cluster.

    It replaces NullOutcomes wherever a statistic is a function of the residuals. Records without
    clusters get a sign each. Outcomes may also be drawn around `rates` other than the predictions: signs
    then multiply what each outcome differs from `fit`, its estimated mean, times `scale`.
    """

    kind = "signs"
    exact = False

    def __init__(
        self,
        forecasts: Forecasts,
        *,
        rates: Array | None = None,
        fit: Array | None = None,
        scale: float = 1.0,
    ) -> None:
        self.forecasts = forecasts
        self.clusters = clusters_of(forecasts)
        self._level_of = np.repeat(np.arange(forecasts.levels), forecasts.counts)
        self._rates = forecasts.values if rates is None else rates
        means = forecasts.values if fit is None else fit
        self._around = scale * (record_outcomes(forecasts) - means[self._level_of])
        self.record_residuals = record_weights(forecasts) * self._around
        self._matrix = self.clusters.matrix(self.record_residuals, self._level_of, forecasts.levels)
        self._drift = None if rates is None else forecasts.weights * (rates - forecasts.values)
        self.width = max(self.clusters.number, forecasts.levels)

    def check_enough(self) -> ClusterSummary:
        """Return what the clusters tell, or refuse if they are too few."""
        found = cluster_summary(self.forecasts)
        check_enough(found, self.clusters, self.record_residuals)
        return found

    def is_unchanged_by_signs(self) -> bool:
        """Return whether every level lies in one cluster: signs then never change a level's absolute sum."""
        filled = self._matrix.indptr[1:] - self._matrix.indptr[:-1]
        return bool(np.all(filled <= 1))

    def residuals(self, generator: np.random.Generator, rows: int) -> Array:
        """Draw `rows` sets of residuals."""
        signs = draw_signs(generator, self.clusters.number, rows)
        if self.forecasts.levels == self.forecasts.n:
            drawn = np.take(np.ascontiguousarray(signs.T), self.clusters.codes, axis=1)
            drawn *= self.record_residuals
        else:
            drawn = np.ascontiguousarray((self._matrix @ signs).T)
        return drawn if self._drift is None else drawn + self._drift

    def outcomes(self, generator: np.random.Generator, rows: int) -> Array:
        """Draw `rows` sets of outcomes, as the weight of y per level; they may leave [0, weight]."""
        return self.residuals(generator, rows) + self.forecasts.weights * self.forecasts.values

    def forecasts_of(self, generator: np.random.Generator, rows: int) -> Iterator[Forecasts]:
        """Draw `rows` sets of outcomes as Forecasts that know their records."""
        signs = draw_signs(generator, self.clusters.number, rows)[self.clusters.codes]
        for sign in signs.T:
            yield self.forecasts.with_record_outcomes(self._rates[self._level_of] + sign * self._around)

    def score_draws(self, leverage: Array, draws: int, seed: int, threads: int | None = None) -> Array:
        """Return the standardized score of each row of `leverage`: of the data, then of the draws.

        A score sums the residuals times the leverage of their levels. It is divided by its centered standard
        error over clusters, and draws use Mammen's weights: plain signs are too liberal for few clusters
        and skewed scores.
        """
        terms = (self.record_residuals * one[self._level_of] for one in leverage)
        by_cluster = np.stack([self.clusters.total(term) for term in terms])

        def work(generator: np.random.Generator, rows: int) -> Array:
            return _standardized(by_cluster, draw_mammen(generator, self.clusters.number, rows))

        drawn = in_blocks(work, draws, width=self.clusters.number, seed=seed, threads=threads)
        return np.concatenate([_standardized(by_cluster, np.ones((self.clusters.number, 1))), drawn])


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
    """How much the clusters tell: their number, how many equal ones they amount to, and the design effect.

    `design_effect` is the variance of the mean residual by clusters over that by single rows.
    """

    name: str
    number: int
    effective: float
    design_effect: float
    rows: int

    @classmethod
    def of(cls, clusters: Clusters, residuals: Array, deviations: Array) -> ClusterSummary:
        """Summarize clusters from weighted residuals, and from the standard deviation expected of each.

        The effective number is that of clusters with equal expected variance. A cluster's sum has the
        variance (1 - c) sum d^2 + c (sum d)^2, with the correlation c that the data show: squares of the
        observed sums would report a third of the clusters even where all are alike.
        """
        sums = clusters.total(residuals)
        own, whole = clusters.total(deviations**2), clusters.total(deviations) ** 2
        by_rows, pairs = float(residuals @ residuals), float((whole - own).sum())
        scale = by_rows / max(float(own.sum()), 1e-300)
        shared = (float(sums @ sums) - by_rows) / scale / pairs if pairs > 0 and scale > 0 else 0.0
        shared = min(1.0, max(0.0, shared))
        expected = (1 - shared) * own + shared * whole
        total, squares = float(expected.sum()), float(expected @ expected)
        effective = total**2 / squares if squares > 0 else float(clusters.number)
        effect = float(sums @ sums) / by_rows if by_rows > 0 else 1.0
        return cls(clusters.name, clusters.number, effective, effect, len(residuals))

    def widening(self, confidence: float) -> float:
        """Return the factor by which deviations of resampled clusters are too small for an interval.

        Few clusters underestimate the variance, and their quantiles are Student's, not normal ones.
        """
        from scipy.special import ndtri, stdtrit

        share = (1 + confidence) / 2
        quantiles = float(stdtrit(max(1.0, self.effective - 1), share)) / float(ndtri(share))
        return quantiles * math.sqrt(self.number / max(1, self.number - 1))

    def __str__(self) -> str:
        if self.number == self.rows:
            return ""
        many = f"{pluralize(self.rows, 'row')} in {self.number:,} clusters ({self.name})"
        if self.design_effect < NOTICEABLE:
            return f"{many}: rows are not noticeably correlated within {self.name}."
        worth = _rounded(self.rows / self.design_effect)
        return (
            f"Rows are correlated within {self.name}: {self.rows:,} rows in {self.number:,} clusters carry "
            f"as much information as about {worth:,}."
        )


def cluster_summary(forecasts: Forecasts) -> ClusterSummary:
    """Summarize the clusters of forecasts, with residuals centered at their mean."""
    weights, level_of = record_weights(forecasts), np.repeat(np.arange(forecasts.levels), forecasts.counts)
    residuals = weights * (record_outcomes(forecasts) - forecasts.values[level_of])
    deviations = weights * np.sqrt(forecasts.values * (1 - forecasts.values))[level_of]
    if not deviations.any():
        deviations = weights
    return ClusterSummary.of(clusters_of(forecasts), residuals - weights * residuals.sum(), deviations)


def check_enough(found: ClusterSummary, clusters: Clusters, residuals: Array) -> None:
    """Refuse clusters too few, or too few of them on one side, for signs or resampling to mean anything."""
    above, below = (len(np.unique(clusters.codes[side])) for side in (residuals > 0, residuals < 0))
    single = min(MIN_SINGLE_SIDE, -(-clusters.number // 5))  # few records are fine where sides are balanced
    noun, least = ("record", single) if clusters.all_single else ("cluster", MIN_EITHER_SIDE)
    if found.effective < MIN_CLUSTERS:
        rule = f"must amount to at least {MIN_CLUSTERS:g} of equal weight"
        got = f"got {found.number:,}, worth about {found.effective:.1f}"
        raise TooFewClustersError(sentence(f"{noun}s", rule, got, "too little data to say; collect more"))
    if min(above, below) < least and (above or below):
        side = "above" if above < below else "below"
        rule = f"must include at least {least} with an outcome {side} its prediction"
        raise TooFewClustersError(
            sentence(f"{noun}s", rule, f"got {min(above, below)} of {found.number:,}", "collect more data")
        )


def is_clustered(forecasts: Forecasts) -> bool:
    """Return whether some rows belong together."""
    return forecasts.clusters is not None and not forecasts.clusters.all_single


def clusters_of(forecasts: Forecasts) -> Clusters:
    """Return the clusters of the records; every record is one where none were given."""
    return Clusters.of_single_records(forecasts.n) if forecasts.clusters is None else forecasts.clusters


def record_weights(forecasts: Forecasts) -> Array:
    """Return the normalized weight of every record, in the order of the levels."""
    weights = forecasts.record_weights
    return np.full(forecasts.n, 1 / forecasts.n) if weights is None else weights


def record_outcomes(forecasts: Forecasts) -> Array:
    """Return the outcome of every record, in the order of the levels."""
    if forecasts.record_outcomes is not None:
        return forecasts.record_outcomes
    if forecasts.cells is not None or not has_equal_weights(forecasts):
        hint = "pass the rows themselves"
        if forecasts.binary:
            raise InvalidInputError(sentence("random signs", "need single rows", "got a sketch", hint))
        rule, why = "cannot be tested from this sketch", "it keeps their sums, not how they vary"
        hint = f"{hint}, or sketch outcomes of 0 and 1"
        raise InvalidInputError(sentence("fractional outcomes", rule, why, hint))
    ones = np.rint(forecasts.outcomes * forecasts.n).astype(np.int64)
    alternating = np.column_stack([ones, forecasts.counts - ones]).ravel()
    return np.repeat(np.tile([1.0, 0.0], forecasts.levels), alternating)


def _rounded(number: float) -> int:
    """Round to two digits.

    >>> _rounded(3421.7), _rounded(57.4)
    (3400, 57)
    """
    unit = 10.0 ** max(0, math.floor(math.log10(max(number, 1.0))) - 1)
    return int(round(number / unit) * unit)
