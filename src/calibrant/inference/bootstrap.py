"""The bootstrap: records are resampled without sorting again; levels stay, their weights change."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from calibrant.censoring import Censored, content_order, reordered
from calibrant.forecasts import Forecasts
from calibrant.inference.null import (
    MIN_BINOMIAL_RECORDS,
    ClusterSummary,
    Drawing,
    TwoPointWeights,
    batched,
    cluster_summary,
    has_equal_weights,
    is_clustered,
    measured,
    record_clusters,
    record_outcomes,
    record_weights,
    values_of_residuals,
)
from calibrant.metrics.distance.lower import deviation_applies
from calibrant.metrics.registry import Measure
from calibrant.results import Array

MIXED_IN_RECORDS = 2.0  # records of either outcome that are mixed into what is resampled


@dataclass(frozen=True, slots=True, eq=False)
class Resamples:
    weights: Array  # of every level, one row per resample
    outcomes: Array  # weights of y
    squared_weights: Array | None = None  # these are left out where the measure does without them
    counts: Array | None = None
    times: Array | None = None  # how often each record was drawn; None where counts say it all
    record_weights: Array | None = None
    record_outcomes: Array | None = None  # weights of y

    @property
    def size(self) -> int:
        return 4 * self.weights.size + (0 if self.times is None else 3 * self.times.size)


class Resampler:
    """Resamples the n records with replacement, and gives the effect on each level."""

    def __init__(self, forecasts: Forecasts) -> None:
        self.forecasts = forecasts
        self.exact, self.width = forecasts.exact, forecasts.n
        self._summary: ClusterSummary | None = None
        self._independent = 1 / float(forecasts.squared_weights.sum())  # equal records with as much noise
        self._starts = np.concatenate(([0], np.cumsum(forecasts.counts)[:-1]))
        self._cell_of: npt.NDArray[np.intp] | None = None
        self._sample: Censored | None = None  # all rows, censored ones included
        if is_clustered(forecasts):
            self._draw_method = Resampler._by_clusters
            self._clusters = clusters = record_clusters(forecasts)
            self._summary = cluster_summary(forecasts, checked=True)
            self._independent /= max(1.0, self._summary.design_effect)
            weight, level_of = (
                record_weights(forecasts),
                np.repeat(np.arange(forecasts.levels), forecasts.counts),
            )
            terms = (weight, weight * record_outcomes(forecasts), weight**2, np.ones(forecasts.n))
            self._tables = [clusters.matrix(term, level_of, forecasts.levels) for term in terms]
            self._cluster_weights = clusters.total(weight)
            self.width = max(clusters.number, 4 * forecasts.levels)
        elif forecasts.record_outcomes is not None:
            many = forecasts.binary and forecasts.n >= MIN_BINOMIAL_RECORDS * 4 * forecasts.levels
            self._draw_method = Resampler._by_kinds if many else Resampler._by_records
            if forecasts.censoring is not None and forecasts.record_weights is not None:
                self._draw_method = Resampler._by_records
                self._sample = _censored_sample(forecasts)
                self.width = len(self._sample)
        elif has_equal_weights(forecasts) and forecasts.binary:
            self._draw_method = Resampler._by_counts
            if forecasts.n >= MIN_BINOMIAL_RECORDS * 2 * forecasts.levels:
                self.width = 2 * forecasts.levels
            else:
                ones = np.rint(forecasts.outcomes * forecasts.n).astype(np.int64)
                cells = np.concatenate([ones, forecasts.counts - ones])
                self._cell_of = np.repeat(np.arange(len(cells)), cells)
        else:
            self._draw_method = Resampler._by_kinds
            self.exact = False
        # data without events would stay so: mix in records of either outcome, as Agresti and Coull do
        share = 2 * MIXED_IN_RECORDS / self._independent  # the noise is that of independent records
        self.mixed = share / (1 + share)
        self.center = self.center_of(forecasts)  # mean of all resamples
        if self._draw_method is Resampler._by_kinds:
            self._kinds, self.width = _kinds(forecasts, self.mixed), 4 * forecasts.levels

    def center_of(self, forecasts: Forecasts) -> Array:
        return np.asarray((1 - self.mixed) * forecasts.outcomes + self.mixed / 2 * forecasts.weights)

    def widening(self, confidence: float) -> float:
        return 1.0 if self._summary is None else self._summary.widening(confidence)

    def draw(self, generator: np.random.Generator, rows: int) -> Resamples:
        return self._draw_method(self, generator, rows)

    def _by_counts(self, generator: np.random.Generator, rows: int) -> Resamples:
        f = self.forecasts
        if self._cell_of is None:
            chances = np.concatenate([self.center, f.weights - self.center])
            drawn = generator.multinomial(f.n, chances / chances.sum(), size=rows)
        else:
            picked = self._cell_of[generator.integers(0, f.n, size=(rows, f.n))]
            row, column, coin = self._added(generator, rows, f.n)
            picked[row, column] = picked[row, column] % f.levels + f.levels * coin
            drawn = tallied(picked, 2 * f.levels)
        ones, zeros = drawn[:, : f.levels], drawn[:, f.levels :]
        counts = (ones + zeros).astype(np.float64)
        return Resamples(counts / f.n, ones / f.n, counts / f.n**2, counts)

    def _added(self, generator: np.random.Generator, rows: int, n: int) -> tuple[Any, Any, Any]:
        """Return which of n picks (row, column) are added records (the first), and a coin for each."""
        many = generator.binomial(n, self.mixed, size=rows)
        row, column = np.nonzero(np.arange(many.max(initial=0)) < many[:, None])
        return row, column, generator.integers(0, 2, size=len(row))

    def _by_records(self, generator: np.random.Generator, rows: int) -> Resamples:
        f, sample, outcomes = self.forecasts, self._sample, self.forecasts.record_outcomes
        assert outcomes is not None
        picked = generator.integers(0, self.width, size=(rows, self.width))
        row, column, coin = self._added(generator, rows, f.n)
        changed = picked[row, column]
        known = changed < f.n  # the others were censored
        row, changed, coin = row[known], changed[known], coin[known]
        drawn = tallied(picked, self.width)
        times, each = weighted_draws(sample, np.arange(f.n), f.record_weights, drawn)
        mass = times * each
        total = mass.sum(axis=1, keepdims=True)
        total[total == 0] = np.nan  # only censored rows were drawn
        mass = mass / total
        events = mass * outcomes
        moved = each[row, changed] * (coin - outcomes[changed]) / total[row, 0]
        np.add.at(events, (row, changed), moved)
        terms = (mass, events, mass * (each / total), times)
        weights, ones, squares, counts = (np.add.reduceat(term, self._starts, axis=1) for term in terms)
        return Resamples(weights, ones, squares, counts, times, mass, events)

    def _by_clusters(self, generator: np.random.Generator, rows: int) -> Resamples:
        f, number = self.forecasts, self._clusters.number
        times = tallied(generator.integers(0, number, size=(rows, number)), number).T.astype(np.float64)
        total = (self._cluster_weights @ times)[:, None]
        weights, outcomes, squares, counts = ((table @ times).T for table in self._tables)
        many = generator.binomial(max(1, round(self._independent)), self.mixed, size=rows)
        row = np.repeat(np.arange(rows), many)
        level = np.searchsorted(np.cumsum(f.weights), generator.random(len(row)))
        level = np.minimum(level, f.levels - 1)
        share = np.minimum(many / self._independent, 1.0)
        weights, outcomes = ((1 - share[:, None]) * (part / total) for part in (weights, outcomes))
        each = (share / np.maximum(many, 1))[row]
        np.add.at(weights, (row, level), each)
        np.add.at(outcomes, (row, level), each * generator.integers(0, 2, size=len(row)))
        counts[row, level] += 1
        return Resamples(weights, outcomes, squares / total**2, counts)

    def _by_kinds(self, generator: np.random.Generator, rows: int) -> Resamples:
        """Draw how many records of each kind there are, and how many of them have the event."""
        f, (numbers, each, rates) = self.forecasts, self._kinds
        drawn = generator.multinomial(f.n, numbers.ravel() / numbers.sum(), size=rows)
        events = generator.binomial(drawn, rates.ravel())
        total = (drawn * each.ravel()).sum(axis=1, keepdims=True)
        share = each.ravel() / np.where(total > 0, total, 1.0)
        terms = (drawn * share, events * share, drawn * share**2, drawn * 1.0)
        return Resamples(*(term.reshape(rows, *numbers.shape).sum(axis=1) for term in terms))


def _kinds(forecasts: Forecasts, mixed: float) -> tuple[Array, Array, Array]:
    """Return number, weight and rate of heavy and light records per level: of events and others, if known."""
    f, outcomes = forecasts, forecasts.record_outcomes
    if outcomes is None:
        parts = TwoPointWeights.of(f)
        rates = np.clip((1 - mixed) * f.outcomes / f.weights + mixed / 2, 0.0, 1.0)
        return (
            np.stack([parts.heavy, parts.light]),
            np.stack([parts.heavy_weight, parts.light_weight]),
            np.stack([rates, rates]),
        )
    level_of, weights = np.repeat(np.arange(f.levels), f.counts), record_weights(f)
    numbers, each, chances = [], [], []
    for outcome, rate in ((1.0, 1 - mixed / 2), (0.0, mixed / 2)):  # weights may follow the outcome
        chosen = outcomes == outcome
        terms = (np.ones(f.n), weights, weights**2)
        sums = [np.bincount(level_of[chosen], term[chosen], f.levels) for term in terms]
        there = sums[0] > 0
        count, *masses = (np.where(there, one, 1.0) for one in sums)
        parts = TwoPointWeights.of_sums(count.astype(np.int64), *masses)
        numbers += [parts.heavy * there, parts.light * there]
        each += [parts.heavy_weight, parts.light_weight]
        chances += [np.full(f.levels, rate)] * 2
    return np.stack(numbers), np.stack(each), np.stack(chances)


def _censored_sample(forecasts: Forecasts) -> Censored:
    """Return all rows, the records first, by content: records that tie may differ in their times."""
    censoring, records = forecasts.censoring, forecasts.records
    assert censoring is not None
    columns = records.prediction, records.outcome, records.weight
    changes = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    runs = np.append(0, np.cumsum(changes))
    return reordered(censoring, content_order(censoring, records.rows, [runs]))


def weighted_draws(
    censoring: Censored | None, places: npt.NDArray[Any], weights: Array | None, drawn: Any
) -> tuple[Array, Array]:
    """Return how often each record was drawn, and its weight; those of censoring are estimated again."""
    if censoring is None or weights is None:
        return drawn.astype(np.float64), np.broadcast_to(1.0 if weights is None else weights, drawn.shape)
    factor = weights / censoring.weight[places]  # weights that were given on top
    mass = np.array([censoring.reweighted(times)[places] for times in drawn]) * factor
    times = drawn[:, places].astype(np.float64)
    return times, mass / np.maximum(times, 1.0)


def tallied(picked: Any, choices: int) -> Any:
    """Count how often each of the choices was picked in every row; changes `picked`."""
    rows = len(picked)
    picked += np.arange(rows)[:, None] * choices
    return np.bincount(picked.ravel(), minlength=rows * choices).reshape(rows, choices)


def resampled_values(entry: Measure, resampler: Resampler, drawing: Drawing) -> Array:
    """Return the measure of resamples of the records; NaN where it has no value."""
    forecasts = resampler.forecasts
    quick = entry.null.residuals_only and batched(forecasts, entry)

    def work(generator: np.random.Generator, rows: int) -> Array:
        return values_of_resamples(forecasts, entry, resampler.draw(generator, rows), quick)

    return drawing.run(work, resampler.width, alone=not quick)


def resampled_deviations(entry: Measure, resampler: Resampler, drawing: Drawing) -> Array | None:
    """Return how far resampling moves the value (its `power`-th root) from the center; None if unbounded."""
    forecasts, null = resampler.forecasts, entry.null
    power = seminorm_power(forecasts, entry)
    if not power and (null.deviation is None or not deviation_applies(entry.settings())):
        return None

    def work(generator: np.random.Generator, rows: int) -> Array:
        drawn = resampler.draw(generator, rows)
        weights, outcomes = drawn.weights - forecasts.weights, drawn.outcomes - resampler.center
        if not power:
            return null.deviation(forecasts, weights, outcomes)  # type: ignore[misc]
        residuals = outcomes - weights * forecasts.values
        return values_of_residuals(forecasts, entry, residuals) ** (1 / power)

    return drawing.run(work, resampler.width)


def seminorm_power(forecasts: Forecasts, entry: Measure) -> int:
    """Return k where the measure is, under its options, the k-th power of a seminorm of residuals, else 0."""
    if entry.null.batch is None:
        return entry.null.power
    if not entry.null.power or not batched(forecasts, entry):
        return 0
    once, twice = values_of_residuals(forecasts, entry, np.outer([1.0, 2.0], forecasts.weights))
    return round(float(np.log2(twice / once)))


def values_of_resamples(forecasts: Forecasts, entry: Measure, drawn: Resamples, quick: bool) -> Array:
    """Take the measure of every resample: all at once where residuals are all it needs."""
    if quick:
        return values_of_residuals(forecasts, entry, drawn.outcomes - drawn.weights * forecasts.values)
    tables = entry.null.tables
    values: Any = None if tables is None else tables(forecasts, drawn.outcomes, drawn.weights, entry.options)
    if values is None:
        known = drawn.weights.sum(axis=1) > 0  # a resample of censored rows alone has no weight
        values = [
            measured(_rebuilt(forecasts, drawn, k), entry) if known[k] else np.nan for k in range(len(known))
        ]
    return np.where(np.isfinite(values), values, np.nan)


def _rebuilt(forecasts: Forecasts, drawn: Resamples, k: int) -> Forecasts:
    assert drawn.squared_weights is not None
    assert drawn.counts is not None
    kept, weight, outcome = drawn.weights[k] > 0, None, None
    if drawn.times is not None and drawn.record_weights is not None and drawn.record_outcomes is not None:
        times = drawn.times[k].astype(np.int64)
        record = np.repeat(np.arange(len(times)), times)  # the same one as often as it was drawn
        mass = drawn.record_weights[k][record]
        weight, outcome = mass / times[record], np.clip(drawn.record_outcomes[k][record] / mass, 0.0, 1.0)
    return Forecasts.from_levels(
        forecasts.values[kept],
        drawn.weights[k][kept],
        drawn.outcomes[k][kept],
        squared_weights=drawn.squared_weights[k][kept],
        counts=drawn.counts[k][kept].astype(np.int64),
        total_weight=forecasts.total_weight,
        binary=forecasts.binary and (outcome is None or not np.any((outcome > 0) & (outcome < 1))),
        record_weights=None if forecasts.record_weights is None else weight,
        record_outcomes=outcome,
    )


def upper_quantile(values: Array, share: float) -> float:
    """Return the share (m + 1)-th of m draws: a further one exceeds it with chance 1 - share at most."""
    rank = math.ceil(share * (len(values) + 1) - 1e-9)
    place = min(max(rank, 1), len(values)) - 1  # the first or the last where draws are too few
    return float(np.partition(values, place)[place])


def lower_quantile(values: Array, share: float) -> float:
    return -upper_quantile(-values, 1 - share)


MAX_SIMULATED_LEVELS = 1024  # distinct predictions that are simulated as they are
SIMULATED_CELLS = 512
MAX_UNMERGED_LEVELS = 16_384  # the same where a limit law takes over soon
MAX_RESAMPLED_FRACTIONS = 50_000  # records; of more, merged, an interval is wider than it need be


def cell_starts(forecasts: Forecasts, cells: int) -> npt.NDArray[np.intp]:
    """Return where about `cells` cells start: half even in weight, half in prediction, 0 and 1 alone."""
    values, share = forecasts.values, np.arange(1, cells // 2 + 1) / (cells / 2)
    below = np.cumsum(forecasts.weights)
    # the level whose middle first reaches a share is the one that holds the share, or the next
    by_weight = np.searchsorted(below, share)
    held = np.minimum(by_weight, len(below) - 1)
    by_weight += (by_weight < len(below)) & (below[held] - forecasts.weights[held] / 2 < share)
    by_value = np.searchsorted(values, values[0] + share * (values[-1] - values[0]))
    ends = np.searchsorted(values, [np.nextafter(0.0, 1.0), 1.0])
    starts = np.unique(np.concatenate([[0], by_weight, by_value, ends]))
    return np.asarray(starts[starts < forecasts.levels], dtype=np.intp)


def levels_to_simulate(forecasts: Forecasts, entry: Measure, most: int | None = None) -> Forecasts:
    """Merge more levels than draws need; it sees predictions alone, so that tests stay exact."""
    fractions = not forecasts.binary and forecasts.n <= MAX_RESAMPLED_FRACTIONS
    if entry.needs_level_sets or fractions or forecasts.levels <= (most or MAX_SIMULATED_LEVELS):
        return forecasts
    if "_merged" not in forecasts.__dict__:  # once, whatever is simulated
        forecasts.__dict__["_merged"] = coarse(forecasts, SIMULATED_CELLS)
    return cast("Forecasts", forecasts.__dict__["_merged"])


def coarse(forecasts: Forecasts, cells: int = 512) -> Forecasts:
    if forecasts.levels <= cells:
        return forecasts
    return merged_levels(forecasts, cell_starts(forecasts, cells))


def merged_levels(forecasts: Forecasts, starts: npt.NDArray[np.intp]) -> Forecasts:
    weights = np.add.reduceat(forecasts.weights, starts)
    mean = np.add.reduceat(forecasts.weights * forecasts.values, starts) / weights
    last = np.append(starts[1:], forecasts.levels) - 1
    # a mean may round out of its cell
    values = np.clip(mean, forecasts.values[starts], forecasts.values[last])
    related = forecasts.clusters is not None or forecasts.censoring is not None
    made = Forecasts.from_levels(
        values,
        weights,
        np.add.reduceat(forecasts.outcomes, starts),
        squared_weights=np.add.reduceat(forecasts.squared_weights, starts),
        counts=np.add.reduceat(forecasts.counts, starts),
        total_weight=forecasts.total_weight,
        binary=forecasts.binary,
        record_weights=forecasts.record_weights,
        record_outcomes=forecasts.record_outcomes if related or forecasts.binary else None,
        clusters=forecasts.clusters,
        censoring=forecasts.censoring,
    )
    if forecasts.censoring is not None:  # resamples estimate the censoring again, from all rows
        made.__dict__["records"] = forecasts.records
    return made
