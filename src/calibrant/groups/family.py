"""The subpopulations that an audit tests together, and the law of their largest z if calibrated.

All of them see the same simulated outcomes: maxima carry their overlap, and p-values are exact.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from calibrant.clusters import Clusters
from calibrant.groups.audit_result import CONFIDENCE, Group, GroupCurve, NotTested
from calibrant.groups.rules import Rule
from calibrant.groups.statistics import MIN_THREADED_MEMBERS, Curves, Terms, Variant
from calibrant.groups.stratified import OverallCurve
from calibrant.groups.subpopulations import Batch, Lists, Partition
from calibrant.inference.group_interval import binary_moments, difference_interval, row_interval
from calibrant.inference.null import SKEWNESS_ALLOWANCE, skewness_of_mean
from calibrant.inference.pvalues import (
    LEVEL,
    MORE_DRAWS,
    could_flip,
    stepdown_counts,
    stepdown_pvalues,
)
from calibrant.kernels.groups import (
    ALL_BITS,
    LANES,
    NO_BITS,
    Words,
    null_ranges,
    partition_curves,
    segment_curves,
    settle_coins,
    thinned_curve,
)
from calibrant.parallel import WORKERS, Progress, map_threads, report_progress
from calibrant.records import Records
from calibrant.results import Array

VECTOR = 8  # curves that one instruction advances
NULL_BLOCK = 1 << 12  # records drawn at a time, so that the work stays in the cache
DIGITS_PER_LOOK = 5  # binary digits between looks at which records are done
MIN_COMPILED_STEPS = 5_000_000  # steps of simulated curves below which numpy is quicker than starting numba
MIN_BITS_AHEAD, WORDS_AHEAD = 1 << 24, 1 << 18  # bits from which another thread pays, and its words at a time


class RandomWords:
    """The 64-bit words of a generator, in their order; for many bits, drawn ahead on another thread."""

    def __init__(self, rng: np.random.Generator, bits: int = 0) -> None:
        self._rng = rng
        self._blocks = None if bits < MIN_BITS_AHEAD else self._ahead()
        self._left = np.empty(0, dtype=np.uint64)
        self.steps = 0  # of the curves simulated from them, also for earlier draws of the same audit

    def _draw(self, *shape: int) -> Words:
        return self._rng.integers(0, 2**64, shape, dtype=np.uint64)

    def _ahead(self) -> Iterator[Words]:
        with ThreadPoolExecutor(1) as pool:
            block = pool.submit(self._draw, WORDS_AHEAD)
            while True:
                ready, block = block.result(), pool.submit(self._draw, WORDS_AHEAD)
                yield ready

    def __call__(self, *shape: int) -> Words:
        if self._blocks is None:
            return self._draw(*shape)
        size = math.prod(shape)
        while len(self._left) < size:
            self._left = np.concatenate((self._left, next(self._blocks)))
        taken, self._left = self._left[:size], self._left[size:]
        return taken.reshape(shape)


class FamilyNull:
    """Simulated outcomes, one bit per record and draw; with `clusters`, a fair sign for each of them."""

    def __init__(
        self,
        records: Records,
        variant: Variant,
        draws: int,
        random_words: RandomWords,
        clusters: Clusters | None = None,
    ) -> None:
        self.records, self.variant, self.draws = records, variant, draws
        self.words, self.clusters = random_words, clusters
        p, n, words = records.prediction, len(records), -(-draws // LANES)
        weight = variant.weights(p, records.outcome, records.weight)
        if clusters is not None:
            self.bits = random_words(clusters.number, words)[clusters.codes]
            up = weight * (records.outcome - p)
            down = -up
        else:
            up, down = weight * (1.0 - p), -weight * p
            self.bits = np.empty((n, words), dtype=np.uint64)
            settle = _worth_compiling(settle_coins, n * draws) or _settle_by_numpy
            for start in range(0, n, NULL_BLOCK):
                part = slice(start, start + NULL_BLOCK)
                self.bits[part] = bernoulli_words(p[part], words, random_words, settle)
        # what outcomes 1 and 0 add to a curve; at equal predictions its range is how far from 0 it ends
        self.steps = np.column_stack((np.zeros(n) if variant.statistic == "mean" else p, up, down))

    @property
    def skewness(self) -> float:
        """The skewness of a residual, from the sums of clusters (signs have none); 0 without clusters."""
        if self.clusters is None:
            return 0.0
        residuals = self.records.weight * (self.records.outcome - self.records.prediction)
        return skewness_of_mean(self.clusters.total(residuals)) * math.sqrt(self.records.n)

    def z(self, batch: Batch, deviation: Array) -> Array:
        """Return the simulated z, one row per subpopulation, one column per draw."""
        if not (self.clusters or self.variant.weights_fixed):
            return self._z_draw_by_draw(batch)
        lists = batch.lists
        self.words.steps += len(lists.members) * self.draws
        kernel = _worth_compiling(null_ranges, self.words.steps)
        ranges = self._ranges_by_numpy(lists) if kernel is None else self._compiled_ranges(lists, kernel)
        return ranges / np.where(deviation == 0, 1.0, deviation)[:, None]  # deviation 0: every curve is flat

    def _compiled_ranges(self, batch: Lists, kernel: Any) -> Array:
        """Advance many curves at once, the subpopulations or the draws shared out among the cores."""
        draws = -(-self.draws // VECTOR) * VECTOR
        ranges = np.empty((len(batch), draws))

        def run(part: slice, first: int = 0, words: int = self.bits.shape[1]) -> None:
            some = np.empty((part.stop - part.start, min(LANES * words, draws - LANES * first)))
            offsets = batch.offsets[part.start : part.stop + 1]
            kernel(batch.members, offsets, self.steps, self.bits, first, some)
            ranges[part, LANES * first : LANES * first + some.shape[1]] = some

        if len(batch) < 4 * WORKERS and len(batch.members) >= MIN_THREADED_MEMBERS:
            words = -(-self.bits.shape[1] // WORKERS)
            starts = range(0, self.bits.shape[1], words)
            map_threads(lambda first: run(slice(0, len(batch)), first, words), starts)
        else:
            batch.share_out(run)
        return ranges[:, : self.draws]

    def _ranges_by_numpy(self, batch: Lists) -> Array:
        """Compute the same ranges with whole arrays: quick for small work, and where numba is absent."""
        ranges = np.empty((len(batch), self.draws))
        for k in range(len(batch)):
            members = batch.members_of(k)
            value, high, low = self.steps[members].T
            last = np.flatnonzero(np.append(value[1:] != value[:-1], True))
            for word in range(self.bits.shape[1]):
                lanes = slice(LANES * word, min(LANES * (word + 1), self.draws))
                ones = unpacked(self.bits[members, word], lanes.stop - lanes.start)
                curve = np.cumsum(np.where(ones, high[:, None], low[:, None]), axis=0)[last]
                top, bottom = curve.max(axis=0), curve.min(axis=0)
                ranges[k, lanes] = np.maximum(top, 0.0) - np.minimum(bottom, 0.0)
        return ranges

    def _z_draw_by_draw(self, batch: Batch) -> Array:
        """Recompute weights and variances from every draw, where they depend on the outcomes."""
        self.words.steps += len(self.records) * self.draws
        if self.words.steps >= MIN_COMPILED_STEPS // 10:  # these steps are taken one by one
            for kernel in (segment_curves, partition_curves):
                kernel.compile_now()
        records, out = self.records, np.empty((len(batch), self.draws))
        for draw in range(self.draws):
            word, lane = divmod(draw, LANES)
            one = ((self.bits[:, word] >> np.uint64(lane)) & np.uint64(1)).astype(np.float64)
            terms = self.variant.terms(records.prediction, one, records.weight)
            out[:, draw] = batch.measure(terms).z
        return out


def _worth_compiling(kernel: Any, steps: int) -> Callable[..., Any] | None:
    """Return machine code where that many steps repay starting numba; None where numpy is quicker."""
    if steps < MIN_COMPILED_STEPS:
        return None
    code: Callable[..., Any] = kernel.machine_code()
    return code


def _settle_by_numpy(coins: Words, rows: Any, rest: Array, undecided: Words, out: Words) -> int:
    ones = np.zeros_like(undecided)
    for fallen in coins:
        rest += rest
        digit = rest >= 1.0
        rest -= digit
        fallen &= undecided
        undecided ^= fallen
        fallen &= np.where(digit, ALL_BITS, NO_BITS)[:, None]
        ones |= fallen
    out[rows] |= ones
    alive = (rest > 0.0) & undecided.any(axis=1)
    count = int(np.count_nonzero(alive))
    for array in (rows, rest, undecided):
        array[:count] = array[alive]
    return count


def bernoulli_words(
    chance: Array, words: int, random_words: RandomWords, settle: Callable[..., Any] = _settle_by_numpy
) -> Words:
    """Return one row of `words` words for each chance; every bit is 1 with exactly that chance.

    A uniform number is below a chance that has the 1 in the first binary digit where they differ. Fair coins
    say for 64 lanes at once which digit that is: a lane whose coin falls takes the digit of the chance.
    Doubling a float64 is exact, and so is the result, however small the chance.
    """
    out = np.zeros((len(chance), words), dtype=np.uint64)
    out[chance >= 1.0] = ALL_BITS
    rows = np.flatnonzero((chance > 0.0) & (chance < 1.0))
    rest = chance[rows]
    undecided = np.full((len(rows), words), ALL_BITS)
    while len(rows):
        coins = random_words(DIGITS_PER_LOOK, *undecided.shape)
        alive = settle(coins, rows, rest, undecided, out)
        rows, rest, undecided = rows[:alive], rest[:alive], undecided[:alive]
    return out


def unpacked(words: Words, draws: int) -> Any:
    """Return the first bits of each row of words, one column per draw."""
    octets = np.ascontiguousarray(words, dtype="<u8").view(np.uint8).reshape(len(words), -1)
    return np.unpackbits(octets, axis=1, bitorder="little")[:, :draws]


def null_sums(prediction: Array, loads: Array, draws: int, rng: np.random.Generator) -> Array:
    """Return the sum of load (y - v) for each row of `loads` and each draw, y being 1 with probability v."""
    sums, random_words = np.zeros((len(loads), draws)), RandomWords(rng)
    for start in range(0, len(prediction), NULL_BLOCK):
        part = slice(start, start + NULL_BLOCK)
        ones = unpacked(bernoulli_words(prediction[part], -(-draws // LANES), random_words), draws)
        sums += loads[:, part] @ (ones - prediction[part, None])
    return sums


MAX_CURVES = 5  # worst subpopulations whose curves are kept
MAX_INTERVALS = 50  # worst subpopulations whose rows are looked at for an interval: as many as tables show
CHART_POINTS = 512
MIN_EVIDENCE = 3.0  # z from which a subpopulation may prove wrong among many
NULL_MEANS = {"kuiper": math.sqrt(8.0 / math.pi), "mean": math.sqrt(2.0 / math.pi)}  # null means, in sigmas
DRAWS_GROWTH = 2  # times as many draws at each attempt to decide which groups are wrong
MAX_STEPS = 4 * 10**9  # of simulated curves, about a second, for more than MORE_DRAWS times the draws
MAX_BITS = 1 << 31  # of simulated outcomes in memory at a time


class AgainstOthers:
    """P-values of groups against all others at equal predictions: slow, so computed when first read."""

    def __init__(self, family: TestFamily, groups: dict[Rule, Batch]) -> None:
        self._records, self._clusters, self._groups = family.records, family.clusters, groups
        self._tests = len(family.rules)

    @cached_property
    def pvalues(self) -> dict[Rule, float]:
        """By rule, Bonferroni-adjusted for all subpopulations tested."""
        records, groups = self._records, self._groups
        if not groups:
            single = {}
        elif isinstance(records, Records):
            weight = records.weight if records.weighted else None
            clusters = None if self._clusters is None else self._clusters.codes
            rates = _are_rates(records)
            overall = OverallCurve(records.prediction, records.outcome, weight, clusters, rates=rates)
            single = {rule: overall.pvalue(batch.members_of(0)) for rule, batch in groups.items()}
        else:
            single = {rule: records.against_others(batch) for rule, batch in groups.items()}
        del self._records, self._groups  # what is large
        return {rule: min(1.0, self._tests * pvalue) for rule, pvalue in single.items()}

    def __getstate__(self) -> dict[str, Any]:
        return {"pvalues": self.pvalues}


@dataclass(slots=True, eq=False)
class TestFamily:
    """Take batches of subpopulations; test each distinct one that is large enough."""

    records: Any  # Records, or the Strata of a sketch
    terms: Terms
    null: Any  # FamilyNull, or what simulates a sketch; None without draws
    min_size: int
    min_variance: float = 0.0
    progress: Progress | None = None
    plain: Terms | None = None  # by the records' own weights, where `terms` has others
    clusters: Clusters | None = None
    expected: int = 0
    rules: list[Rule] = field(default_factory=list)
    parts: list[Curves] = field(default_factory=list)
    described: list[Curves] = field(default_factory=list)
    simulated: list[Array] = field(default_factory=list)
    exceeded: Any = 0.0  # number of draws in which each step of the step-down test was exceeded,
    drawn: int = 0  # among this many
    seen: set[tuple[int, float]] = field(default_factory=set)
    worst: list[tuple[float, Batch]] = field(default_factory=list)  # these and the next keep members
    largest: list[tuple[float, Batch]] = field(default_factory=list)
    too_small: int = 0
    duplicates: int = 0
    over_limit: int = 0

    def take_all(self, batches: Iterable[Batch], limit: int, offered: int) -> None:
        """Test up to `limit` new subpopulations of some batches, measured on all cores, a few ahead."""
        with ThreadPoolExecutor(WORKERS) as pool:
            for batch, curves in self._measured(batches, pool):
                offered -= batch.offered
                limit -= self.take(batch, limit, curves)
                if limit == 0:
                    break
        self.over_limit += offered

    def _measured(self, batches: Iterable[Batch], pool: ThreadPoolExecutor) -> Iterator[tuple[Batch, Curves]]:
        ahead: deque[tuple[Batch, Future[Curves]]] = deque()
        for batch in batches:
            ahead.append((batch, pool.submit(self._measure, batch)))
            if len(ahead) > 2 * WORKERS:
                first, curves = ahead.popleft()
                yield first, curves.result()
        for batch, curves in ahead:
            yield batch, curves.result()

    def _measure(self, batch: Batch) -> Curves:
        if self.null is not None:
            batch.lists  # noqa: B018 - kept for the simulation
        return batch.measure(self.terms)

    def take(self, batch: Batch, limit: int, curves: Curves | None = None) -> int:
        """Test up to `limit` new subpopulations of the batch; return how many were."""
        curves = batch.measure(self.terms) if curves is None else curves
        least = self.min_size if self.rules else 1
        small = curves.size < least
        if isinstance(batch, Partition):
            small &= curves.size > 0  # an empty combination does not count
        self.too_small += int(np.count_nonzero(small))
        large = np.flatnonzero(curves.size >= least).tolist()
        batch, curves = batch.select(large), curves.take(large)
        fresh = []
        for k, mark in enumerate(zip(curves.size.tolist(), curves.mark.tolist(), strict=True)):
            if mark not in self.seen:  # else the same members as another
                self.seen.add(mark)
                fresh.append(k)
        self.duplicates += len(large) - len(fresh)
        if self.rules:
            doubtful = (curves.sigma * curves.weight) ** 2 >= self.min_variance
            self.too_small += sum(not doubtful[k] for k in fresh)
            fresh = [k for k in fresh if doubtful[k]]
        self.over_limit += max(0, len(fresh) - limit)
        batch, curves = batch.select(fresh[:limit]), curves.take(fresh[:limit])
        if len(batch) == 0:
            return 0
        self.parts.append(curves)
        self.described.append(curves if self.plain is None else batch.measure(self.plain))
        self.rules.extend(batch.rules)
        if self.null is not None:
            self.simulated.append(self.null.z(batch, curves.deviation))
        self._remember(batch, curves)
        report_progress(self.progress, len(self.rules), max(self.expected, len(self.rules)))
        return len(batch)

    def _remember(self, batch: Batch, curves: Curves) -> None:
        """Keep the subpopulations with the most evidence, and of those with some the largest errors."""
        error = np.where(curves.z >= MIN_EVIDENCE, np.maximum(np.abs(curves.gap), curves.kuiper), 0.0)
        for kept, score in ((self.worst, curves.z), (self.largest, error)):
            least = kept[-1][0] if len(kept) == MAX_INTERVALS else -1.0 if kept is self.worst else 0.0
            best = np.argsort(-score, kind="stable")[:MAX_INTERVALS].tolist()
            kept += [(float(score[k]), batch.select([k])) for k in best if score[k] > least]
            kept.sort(key=lambda one: -one[0])
            del kept[MAX_INTERVALS:]

    def _remembered(self) -> dict[Rule, Batch]:
        return {batch.rules[0]: batch for _, batch in self.worst + self.largest}

    @property
    def not_tested(self) -> NotTested:
        return NotTested(self.too_small, self.duplicates, self.over_limit)

    def _column(self, name: str, described: bool = False) -> Array:
        return np.concatenate([getattr(part, name) for part in (self.described if described else self.parts)])

    def pvalues(self) -> Array | None:
        if self.null is None:
            return None
        skewness = self.null.skewness  # its allowance is explained in `SignNull.allowance`
        against = self._column("direction") * skewness < 0
        allowance = SKEWNESS_ALLOWANCE * abs(skewness) / np.sqrt(self._column("size"))
        tested = np.maximum(self._column("tested") - np.where(against, allowance, 0.0), 0.0)
        if self.simulated:
            simulated = np.concatenate(self.simulated)
            self.exceeded = self.exceeded + stepdown_counts(tested, simulated)
            self.drawn += simulated.shape[1]
            self.simulated.clear()
        return stepdown_pvalues(tested, self.exceeded, self.drawn)

    def draw_until_decided(self, again: Callable[[int], TestFamily], draws: int) -> None:
        """Draw more while that could change which subpopulations are wrong; `again` tests the same ones."""
        steps = MORE_DRAWS**2 * draws * float(self._column("size").sum())
        fixed = not isinstance(self.null, FamilyNull) or self.null.variant.weights_fixed
        # up to MORE_DRAWS times as many; where they are quick, up to the square of that
        most = draws * MORE_DRAWS ** (2 if fixed and steps <= MAX_STEPS else 1)
        while (pvalues := self.pvalues()) is not None and self.drawn < most:
            if not any(could_flip(pvalue, self.drawn) for pvalue in pvalues.tolist()):
                break
            block = max(draws, MAX_BITS // self.records.n)
            self.simulated = again(min((DRAWS_GROWTH - 1) * self.drawn, most - self.drawn, block)).simulated

    def ranked(self) -> tuple[Group, ...]:
        """Return all subpopulations, largest z first; larger gaps and sizes first among equals."""
        pvalue, value = self.pvalues(), self.records.prediction
        columns = {
            name: self._column(name) for name in ("size", "kuiper", "gap", "sigma", "z", "lower", "upper")
        }
        columns |= {name: self._column(name, True) for name in ("mean_prediction", "mean_outcome")}
        z, sigma, weight = columns["z"], columns["sigma"], self._column("weight", described=True)
        first, last = self._column("first"), self._column("last")
        statistic = np.abs(columns["gap"]) if self.terms.statistic == "mean" else columns["kuiper"]
        columns |= {
            "share": weight / weight[0],
            "expected": sigma * NULL_MEANS[self.terms.statistic],
            "metric": z * sigma[0] if sigma[0] > 0 else statistic,
            "predictions": np.array(["none", "too low", "too high"])[self._column("direction")],
            "start": np.where(first >= 0, value[first], value[0]),
            "stop": np.where(last >= 0, value[last], value[-1]),
        }
        lists = {name: column.tolist() for name, column in columns.items()}
        lists["pvalue"] = [None] * len(z) if pvalue is None else pvalue.tolist()
        lists["interval"] = self._intervals()
        wrong = [] if pvalue is None else np.flatnonzero(pvalue <= LEVEL).tolist()
        rules = {self.rules[k] for k in wrong if self.rules[k].conditions}
        others = AgainstOthers(self, {r: batch for r, batch in self._remembered().items() if r in rules})
        order = sorted(range(len(z)), key=lambda k: (-z[k], -statistic[k], -lists["size"][k], self.rules[k]))
        return tuple(
            Group(
                name=str(self.rules[k]),
                rule=self.rules[k],
                draws=self.drawn,
                tested_by=self.terms.statistic,
                against_others=others,
                **{name: values[k] for name, values in lists.items()},
            )
            for k in order
        )

    def _intervals(self) -> list[tuple[float, float] | None]:
        """Return the interval of each difference: of all groups if sums suffice, else of the worst few."""
        records = self.records
        sums_suffice = not isinstance(records, Records) or (
            not records.weighted
            and self.clusters is None
            and bool(np.all((records.outcome == 0) | (records.outcome == 1)))
        )
        if sums_suffice:
            names = ("effective", "mean_prediction", "mean_outcome", "squares")
            moments = binary_moments(*(self._column(name, described=True) for name in names))
            low, high = difference_interval(moments, CONFIDENCE)
            return list(zip(low.tolist(), high.tolist(), strict=True))
        rates, place = _are_rates(records), {rule: k for k, rule in enumerate(self.rules)}
        intervals: list[tuple[float, float] | None] = [None] * len(self.rules)
        for rule, batch in self._remembered().items():
            members = batch.members_of(0)
            y, p = records.outcome[members], records.prediction[members]
            weight = records.weight[members] if records.weighted else None
            clusters = None if self.clusters is None else self.clusters.codes[members]
            ends = row_interval(p, y, weight, clusters, CONFIDENCE, rates=rates)
            intervals[place[rule]] = None if math.isnan(ends[0]) else ends
        return intervals

    def curves(self) -> tuple[GroupCurve, ...]:
        return tuple(map_threads(self._curve, (batch for _, batch in self.worst[:MAX_CURVES])))

    def _curve(self, batch: Batch) -> GroupCurve:
        members = batch.members_of(0)
        stretch = -(-2 * len(members) // CHART_POINTS)
        points = thinned_curve(members, self.terms.rows, stretch)
        weight, prediction, curve = np.vstack((points[:1], points)).T
        weight[0] = curve[0] = 0.0  # the curve starts at 0
        return GroupCurve(batch.rules[0], weight / weight[-1], prediction, curve / weight[-1])


def _are_rates(records: Records) -> bool:
    """Return whether predictions and outcomes lie in [0, 1]; responses of any size need not."""
    return all(array.min() >= 0 and array.max() <= 1 for array in (records.prediction, records.outcome))
