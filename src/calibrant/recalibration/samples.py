"""Records to fit on, in an order that does not depend on the user's rows, and how they are cut into folds."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, TooFewRecordsError, sentence
from calibrant.fits.levels import Levels, levels_of_sorted
from calibrant.forecasts import Forecasts
from calibrant.groups.rules import Rule
from calibrant.inference.merging import coarse
from calibrant.results import Array

Ints = npt.NDArray[np.int64]
MOST_EXACT = 10**9  # records that can be dealt without replacement
MOST_REPEATED = 2 * 10**6  # records that weights of frequency are written out to
MOST_DEALT = 2**19  # records that are dealt to folds one by one; more are dealt by cells
FOLD_CELLS = 2**16  # that neighbouring predictions are merged into for that


class Sample(Protocol):
    """What a method fits: levels, and a way to hold part of the records back."""

    @property
    def levels(self) -> Levels:
        """The records merged by prediction."""

    @property
    def n(self) -> int:
        """How many records there are."""

    @property
    def binary(self) -> bool:
        """Whether every outcome is 0 or 1."""

    @property
    def weighted(self) -> bool:
        """Whether records weigh differently."""

    @property
    def cuttable(self) -> str:
        """An empty text if the records can be cut into folds, else the reason why not."""

    def cut(self, folds: int, seed: int, stratified: bool = True) -> list[tuple[Sample, Sample]]:
        """Return pairs (all but one fold, that fold); `stratified` folds have the same share of outcomes."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Single records in canonical order: by prediction, outcome, weight, cluster, then covariates.

    The weights sum to the (effective) number of records. `covariates` are columns in the same order.
    """

    predictions: Array
    outcomes: Array
    weights: Array
    clusters: Ints | None = None
    covariates: Mapping[str, npt.NDArray[Any]] | None = None
    groups: tuple[str, ...] = ()  # which of the covariates are groups to repair
    rules: tuple[Rule, ...] = ()  # groups to repair that rules define
    binary: bool = True
    weighted: bool = False

    @property
    def n(self) -> int:
        """How many records there are."""
        return len(self.predictions)

    @property
    def cuttable(self) -> str:
        """An empty text: records can be dealt."""
        return ""

    @cached_property
    def levels(self) -> Levels:
        """The records merged by prediction."""
        return levels_of_sorted(self.predictions, self.outcomes, self.weights)

    @property
    def unmerged(self) -> Levels:
        """The records one by one, for maps that tell records of equal prediction apart."""
        return Levels(self.predictions, self.outcomes, self.weights)

    def where(self, chosen: npt.NDArray[Any]) -> Rows:
        """Return some of the records, by a mask or ascending places; the canonical order is kept."""
        columns = self.covariates
        return replace(
            self,
            predictions=self.predictions[chosen],
            outcomes=self.outcomes[chosen],
            weights=self.weights[chosen],
            clusters=None if self.clusters is None else self.clusters[chosen],
            covariates=None if columns is None else {name: c[chosen] for name, c in columns.items()},
        )

    def written_out(self) -> Rows:
        """Return a row for every record that weights of frequency count, where they are few enough.

        A row that stands for many records would be dealt to one fold whole, and be unknown to the others.
        """
        times = repetitions(self.weights)
        if times is None:
            return self
        rows = self.where(np.repeat(np.arange(self.n), times))
        return replace(rows, weights=np.ones(rows.n), weighted=False)

    def cut(self, folds: int, seed: int, stratified: bool = True) -> list[tuple[Sample, Sample]]:
        """Return pairs (all but one fold, that fold)."""
        fold = self.dealt(folds, seed, stratified)
        return [(self.where(fold != k), self.where(fold == k)) for k in range(folds)]

    def dealt(self, folds: int, seed: int, stratified: bool = True) -> Ints:
        """Return the fold of each record: stratified by outcome or not, or whole clusters at a time."""
        if self.clusters is not None:
            return _dealt_clusters(self.clusters, folds, seed)
        if self.n < folds:
            raise TooFewRecordsError(sentence("folds", f"need {folds} records", f"got {self.n}"))
        draws = np.random.default_rng(seed).random(self.n)
        order = np.lexsort((draws, self.outcomes)) if stratified else np.argsort(draws)
        fold = np.empty(self.n, dtype=np.int64)
        fold[order] = np.arange(self.n) % folds
        return fold


def _dealt_clusters(clusters: Ints, folds: int, seed: int) -> Ints:
    """Deal whole clusters, largest first, each to the fold that has the fewest records."""
    sizes = np.bincount(clusters)
    present = np.flatnonzero(sizes)
    if len(present) < folds:
        raise TooFewRecordsError(sentence("clusters", f"must be at least {folds}", f"got {len(present)}"))
    order = present[np.lexsort((np.random.default_rng(seed).random(len(present)), -sizes[present]))]
    piles = [(0, k) for k in range(folds)]
    fold = np.zeros(len(sizes), dtype=np.int64)
    for cluster in order:
        size, k = heapq.heappop(piles)
        fold[cluster] = k
        heapq.heappush(piles, (size + int(sizes[cluster]), k))
    return fold[clusters]


@dataclass(frozen=True, eq=False)
class CountedCells:
    """Unweighted 0/1 records known only by cell: how many of either outcome each cell holds."""

    values: Array
    ones: Ints
    zeros: Ints
    binary = True
    weighted = False

    @property
    def n(self) -> int:
        """How many records there are."""
        return int(self.ones.sum() + self.zeros.sum())

    @property
    def cuttable(self) -> str:
        """An empty text: the records of a cell can be dealt."""
        return ""

    @cached_property
    def levels(self) -> Levels:
        """One level per cell that holds a record."""
        counts = self.ones + self.zeros
        held = counts > 0
        return Levels(
            self.values[held], (self.ones / np.maximum(counts, 1))[held], counts[held].astype(float)
        )

    def cut(self, folds: int, seed: int, stratified: bool = True) -> list[tuple[Sample, Sample]]:
        """Deal the records of every cell at random."""
        if self.n < folds:
            raise TooFewRecordsError(sentence("folds", f"need {folds} records", f"got {self.n}"))
        draws = np.random.default_rng(seed)
        if stratified:
            hands = zip(*(_dealt_counts(one, folds, draws) for one in (self.ones, self.zeros)), strict=True)
        else:
            both = _dealt_counts(np.concatenate([self.ones, self.zeros]), folds, draws)
            hands = zip(*np.split(np.array(both), 2, axis=1), strict=True)
        return [
            (CountedCells(self.values, self.ones - a, self.zeros - b), CountedCells(self.values, a, b))
            for a, b in hands
        ]


def _dealt_counts(counts: Ints, folds: int, draws: np.random.Generator) -> list[Ints]:
    left, hands = counts.copy(), []
    for k in range(folds):
        rest = folds - k
        if left.sum() < MOST_EXACT:
            share = int(left.sum()) // rest
            hand = draws.multivariate_hypergeometric(left, share, method="marginals") if rest > 1 else left
        else:
            hand = draws.binomial(left, 1.0 / rest)
        hands.append(np.asarray(hand, dtype=np.int64))
        left = left - hands[-1]
    return hands


@dataclass(frozen=True, eq=False)
class Merged:
    """Levels whose single records are not known any more: a sketch of weighted records or of fractions."""

    levels: Levels
    n: int
    binary: bool
    weighted: bool = True

    @property
    def cuttable(self) -> str:
        """Why there are no folds."""
        what = "weighted records" if self.binary else "fractional outcomes"
        return f"{what} merged in a sketch cannot be cut into folds"

    def cut(self, folds: int, seed: int, stratified: bool = True) -> list[tuple[Sample, Sample]]:
        """Refuse."""
        hint = "name a method, or pass the rows"
        raise InvalidInputError(sentence("y_true", "must be single records", self.cuttable, hint))


@dataclass(frozen=True, eq=False)
class Behind:
    """The records behind exact forecasts: levels at once, single records only when they are to be dealt."""

    forecasts: Forecasts
    frequency: bool = False

    @property
    def n(self) -> int:
        """How many records there are."""
        return self.forecasts.n if self._repetitions is None else int(self._repetitions.sum())

    @property
    def binary(self) -> bool:
        """Whether every outcome is 0 or 1."""
        return self.forecasts.binary

    @property
    def weighted(self) -> bool:
        """Whether records weigh differently."""
        return self.forecasts.record_weights is not None and self._repetitions is None

    @property
    def cuttable(self) -> str:
        """An empty text: records can be dealt."""
        return ""

    @cached_property
    def levels(self) -> Levels:
        """The records merged by prediction."""
        return Levels.of(self.forecasts, frequency=self.frequency)

    def cut(self, folds: int, seed: int, stratified: bool = True) -> list[tuple[Sample, Sample]]:
        """Deal the single records; very many are known by their cell alone afterwards."""
        dealt = self._records if self.in_cells is None else self.in_cells
        return dealt.cut(folds, seed, stratified)

    @cached_property
    def in_cells(self) -> CountedCells | None:
        """Very many records of equal weight with neighbouring predictions merged, else None.

        What that changes of a loss is of second order in the width of a cell, 2^-15 at most.
        """
        if self.n <= MOST_DEALT or not self.binary or self.forecasts.record_weights is not None:
            return None
        return counted_cells(coarse(self.forecasts, FOLD_CELLS))

    @cached_property
    def _records(self) -> Rows:
        f = self.forecasts
        values = np.repeat(f.values, f.counts)
        weights = np.ones(f.n) if f.record_weights is None else f.record_weights
        outcomes = _record_outcomes(f)
        if f.record_outcomes is not None or f.record_weights is not None:
            order = np.lexsort((weights, outcomes, values))
            values, outcomes, weights = values[order], outcomes[order], weights[order]
        counted = weights * (self.levels.total / weights.sum())
        rows = Rows(values, outcomes, counted, binary=self.binary, weighted=f.record_weights is not None)
        return rows.written_out() if self.frequency else rows

    @cached_property
    def _repetitions(self) -> Ints | None:
        f = self.forecasts
        shares = np.full(f.n, 1.0 / f.n) if f.record_weights is None else f.record_weights
        return repetitions(shares * f.total_weight) if self.frequency else None


def sample_of(forecasts: Forecasts, *, frequency: bool = False) -> Sample:
    """Return the records behind forecasts, or what is known of them."""
    if frequency and (counted := _counted(forecasts)) is not None:
        return counted
    if forecasts.cells is None:
        return Behind(forecasts, frequency)
    if forecasts.binary and _unweighted(forecasts):
        return counted_cells(forecasts)
    return Merged(Levels.of(forecasts, frequency=frequency), forecasts.n, forecasts.binary)


def counted_cells(forecasts: Forecasts) -> CountedCells:
    """Return levels of unweighted 0/1 records as counts of either outcome."""
    ones = np.rint(forecasts.outcomes * forecasts.n).astype(np.int64)
    return CountedCells(forecasts.values, ones, forecasts.counts - ones)


def _counted(forecasts: Forecasts) -> CountedCells | None:
    """Return the 0/1 records that weights of frequency count, if those are whole numbers."""
    if not forecasts.binary:
        return None
    count = forecasts.total_weight
    ones, all_ = forecasts.outcomes * count, forecasts.weights * count
    if not (_whole(ones) and _whole(all_)):
        return None
    whole = np.rint(ones).astype(np.int64)
    return CountedCells(forecasts.values, whole, np.rint(all_).astype(np.int64) - whole)


def _whole(weights: Array) -> bool:
    """Return whether weights are whole numbers of records, but for rounding."""
    return bool(np.all((weights < 2.0**53) & (np.abs(weights - np.rint(weights)) <= 1e-11 * weights)))


def effective(weights: Array) -> Array:
    """Return weights of sampling rescaled to sum to Kish's effective number of records."""
    shares = weights / weights.max()  # squares of large weights would overflow
    return np.asarray(shares * (shares.sum() / (shares @ shares)))


def repetitions(weights: Array) -> Ints | None:
    """Return how often each row occurs by its weight of frequency; None if that cannot be written out."""
    if weights.sum() > MOST_REPEATED or not _whole(weights):
        return None
    return np.rint(weights).astype(np.int64)


def _unweighted(forecasts: Forecasts) -> bool:
    """Return whether every record of a sketch weighs the same: then weights are counts."""
    return bool(
        np.allclose(forecasts.weights * forecasts.n, forecasts.counts, rtol=1e-12, atol=0.0)
    ) and bool(np.isclose(forecasts.squared_weights.sum() * forecasts.n, 1.0, rtol=1e-9))


def _record_outcomes(forecasts: Forecasts) -> Array:
    """Return the outcome of each record, ascending within a level."""
    if forecasts.record_outcomes is not None:
        return forecasts.record_outcomes
    ones = np.rint(forecasts.outcomes * forecasts.n).astype(np.int64)
    first_one = np.cumsum(forecasts.counts) - ones
    return (np.arange(forecasts.n) >= np.repeat(first_one, forecasts.counts)).astype(np.float64)


def rows_of(
    y: npt.NDArray[Any],
    p: Array,
    w: Array | None,
    *,
    frequency: bool = False,
    clusters: npt.NDArray[Any] | None = None,
    covariates: Mapping[str, npt.NDArray[Any]] | None = None,
    groups: tuple[str, ...] = (),
) -> Rows:
    """Return checked rows in canonical order, with the clusters and covariates that belong to them."""
    outcomes = y.astype(np.float64)
    weights = np.ones(len(p)) if w is None else w
    codes = None if clusters is None else _codes(clusters)
    columns = covariates or {}
    keys = [_codes(column) for column in reversed(list(columns.values()))]
    order = np.lexsort((*keys, *([] if codes is None else [codes]), weights, outcomes, p))
    weights = weights[order]  # sums depend on the order of their terms
    rows = Rows(
        (p + 0.0)[order],
        outcomes[order],
        weights if frequency else effective(weights),
        None if codes is None else codes[order],
        {name: column[order] for name, column in columns.items()} if covariates is not None else None,
        groups,
        binary=not bool(np.any((outcomes > 0) & (outcomes < 1))),
        weighted=w is not None and bool(np.any(w != w[0])),
    )
    return rows.written_out() if frequency else rows


def _codes(column: npt.NDArray[Any]) -> Ints:
    """Return a whole number per value, in an order that does not depend on the rows."""
    plain = column.astype(str) if column.dtype.kind == "O" else column
    return np.unique(plain, return_inverse=True)[1].astype(np.int64).reshape(-1)
