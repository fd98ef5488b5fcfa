"""Records to fit on, in an order that does not depend on the rows given, and how they are cut into folds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from calibrant.columns import number_labels
from calibrant.errors import DROP_MISSING, InvalidInputError, TooFewRecordsError, reject_rows
from calibrant.fits.levels import LOSS_CLIP, Costs, Levels, costs, levels_of_sorted
from calibrant.forecasts import Forecasts
from calibrant.groups.rules import Rule
from calibrant.inference.bootstrap import coarse
from calibrant.inputs import InputNames, check_same_length, check_weights, numeric_vector, to_array, unwrap
from calibrant.metrics.multiclass import ClassColumns, checked_classes, columns_named
from calibrant.recalibration.maps.base import Map
from calibrant.records import Missing
from calibrant.results import NOTHING, Array

Ints = npt.NDArray[np.int64]
Columns = Mapping[str, npt.NDArray[Any]]
T = TypeVar("T")
R = TypeVar("R", "RowSample", "ClassRecords")
MAX_EXACT_RECORDS = 10**9  # records that can be dealt without replacement
MAX_REPEATED_RECORDS = 2 * 10**6  # records that weights of frequency are written out to
MAX_DEALT_RECORDS = 2**19  # records that are dealt to folds one by one; more are dealt by cells
FOLD_CELLS = 2**16  # that neighboring predictions are merged into for that


class Sample(ABC):
    """What a method fits: levels, and a way to hold part of the records back."""

    is_single = False  # whether records are known one by one
    binary: bool = True
    weighted: bool = False
    why_not_splittable: str = ""  # why the records cannot be cut into folds; empty where they can
    clusters: Ints | None = None
    covariates: Columns = NOTHING

    @property
    @abstractmethod
    def levels(self) -> Levels: ...

    @property
    @abstractmethod
    def n(self) -> int: ...

    def cached(self, key: str, make: Callable[[], T]) -> T:
        """Return what `make` returned for these records the first time: candidates share costly steps."""
        known: dict[str, T] = self.__dict__.setdefault("_cached", {})
        if key not in known:
            known[key] = make()
        return known[key]

    @abstractmethod
    def cut(self, folds: int, seed: int, stratified: bool = True) -> Sequence[tuple[Sample, Sample]]:
        """Return pairs (all but one fold, that fold); `stratified` folds have the same share of outcomes."""

    @property
    def unmerged(self) -> Levels:
        """The records one by one where they are known, for maps that tell equal predictions apart."""
        return self.levels

    @property
    def given(self) -> Array:
        """The predictions, one per unmerged record."""
        return self.unmerged.values

    @property
    def outcomes_seen(self) -> int:
        return 1 + self.levels.both_outcomes

    def recalibrated(self, fitted: Map) -> Array:
        return fitted.predict(self.given, self.covariates if fitted.needs_covariates else None)

    def under(self, predictions: Array) -> Levels:
        """Return the unmerged records with other predictions; of several classes, the predicted class."""
        return replace(self.unmerged, values=predictions)

    def costs(self, predictions: Array, loss: str, clip: float = LOSS_CLIP) -> Costs:
        return costs(self.unmerged, predictions, loss, clip)

    def ruled_out(self, predictions: Array) -> float:
        """Return how many records have an outcome that was given probability 0 exactly."""
        rates = self.unmerged.rates
        wrong = np.where(predictions <= 0, rates, np.where(predictions >= 1, 1.0 - rates, 0.0))
        return float(self.unmerged.weights @ wrong)


def _dealt(keys: npt.NDArray[Any], folds: int, seed: int, stratified: bool) -> Ints:
    """Return the fold of each record, drawn at random; stratified ones deal equal keys evenly."""
    if len(keys) < folds:
        raise TooFewRecordsError("folds", f"need {folds} records", f"got {len(keys)}")
    draws = np.random.default_rng(seed).random(len(keys))
    fold = np.empty(len(keys), dtype=np.int64)
    fold[np.lexsort((draws, keys)) if stratified else np.argsort(draws)] = np.arange(len(keys)) % folds
    return fold


@dataclass(frozen=True, eq=False)
class RowSample(Sample):
    """Single records in canonical order: by prediction, outcome, weight, cluster, then covariates."""

    predictions: Array
    outcomes: Array
    weights: Array  # their sum is the (effective) number of records
    clusters: Ints | None = None
    covariates: Columns = field(default_factory=lambda: NOTHING)
    groups: tuple[str, ...] = ()  # which of the covariates are groups to repair
    rules: tuple[Rule, ...] = ()  # groups to repair that rules define
    binary: bool = True
    weighted: bool = False
    is_single = True

    @property
    def n(self) -> int:
        return len(self.predictions)

    @cached_property
    def levels(self) -> Levels:
        return levels_of_sorted(self.predictions, self.outcomes, self.weights)

    @property
    def unmerged(self) -> Levels:
        return Levels(self.predictions, self.outcomes, self.weights)

    def where(self, chosen: npt.NDArray[Any]) -> RowSample:
        """Return some of the records, by a mask or ascending places; the canonical order is kept."""
        return replace(
            self,
            predictions=self.predictions[chosen],
            outcomes=self.outcomes[chosen],
            weights=self.weights[chosen],
            clusters=None if self.clusters is None else self.clusters[chosen],
            covariates={name: column[chosen] for name, column in self.covariates.items()},
        )

    def drawn(self, count: int, seed: int) -> RowSample:
        """Return about `count` records drawn at random, whole clusters at a time; all if there are fewer."""
        if self.n <= count:
            return self
        rng = np.random.default_rng(seed)
        if self.clusters is None:
            return self.where(np.sort(rng.choice(self.n, count, replace=False)))
        sizes = np.bincount(self.clusters)
        order = rng.permutation(np.flatnonzero(sizes))
        last = int(np.searchsorted(np.cumsum(sizes[order]), count)) + 1
        return self.where(np.isin(self.clusters, order[:last]))

    def cut(self, folds: int, seed: int, stratified: bool = True) -> list[tuple[RowSample, RowSample]]:
        fold = self.fold_of(folds, seed, stratified)
        return [(self.where(fold != k), self.where(fold == k)) for k in range(folds)]

    def fold_of(self, folds: int, seed: int, stratified: bool = True) -> Ints:
        """Return the fold of each record: stratified by outcome or not, or whole clusters at a time."""
        if self.clusters is None:
            return _dealt(self.outcomes, folds, seed, stratified)
        return _dealt_clusters(self.clusters, folds, seed)


def _dealt_clusters(clusters: Ints, folds: int, seed: int) -> Ints:
    sizes = np.bincount(clusters)
    present = np.flatnonzero(sizes)
    if len(present) < folds:
        raise TooFewRecordsError("clusters", f"must be at least {folds}", f"got {len(present)}")
    order = present[np.lexsort((np.random.default_rng(seed).random(len(present)), -sizes[present]))]
    fold, piles = np.zeros(len(sizes), dtype=np.int64), [0] * folds
    for cluster in order:  # to the smallest fold so far
        fold[cluster] = piles.index(min(piles))
        piles[fold[cluster]] += int(sizes[cluster])
    return fold[clusters]


@dataclass(frozen=True, eq=False)
class CellSample(Sample):
    """Unweighted 0/1 records known only by cell: how many of either outcome each cell holds."""

    values: Array
    ones: Ints
    zeros: Ints

    @property
    def n(self) -> int:
        return int(self.ones.sum() + self.zeros.sum())

    @cached_property
    def levels(self) -> Levels:
        counts = self.ones + self.zeros
        held = counts > 0
        return Levels(self.values[held], self.ones[held] / counts[held], counts[held].astype(float))

    def cut(self, folds: int, seed: int, stratified: bool = True) -> list[tuple[CellSample, CellSample]]:
        if self.n < folds:
            raise TooFewRecordsError("folds", f"need {folds} records", f"got {self.n}")
        draws = np.random.default_rng(seed)
        if stratified:
            ones, zeros = (_dealt_counts(counts, folds, draws) for counts in (self.ones, self.zeros))
        else:
            both = _dealt_counts(np.concatenate([self.ones, self.zeros]), folds, draws)
            ones, zeros = np.split(both, 2, axis=1)
        return [
            (CellSample(self.values, self.ones - a, self.zeros - b), CellSample(self.values, a, b))
            for a, b in zip(ones, zeros, strict=True)
        ]


def _dealt_counts(counts: Ints, folds: int, draws: np.random.Generator) -> Ints:
    left, hands = counts, np.empty((folds, len(counts)), dtype=np.int64)
    for k in range(folds):
        rest = folds - k
        if left.sum() < MAX_EXACT_RECORDS:
            share = int(left.sum()) // rest
            hands[k] = (
                draws.multivariate_hypergeometric(left, share, method="marginals") if rest > 1 else left
            )
        else:
            hands[k] = draws.binomial(left, 1.0 / rest)
        left = left - hands[k]
    return hands


@dataclass(frozen=True, eq=False)
class ForecastSample(Sample):
    """The records behind forecasts: levels at once, single records only when they are to be dealt."""

    forecasts: Forecasts
    frequency: bool = False

    @property
    def n(self) -> int:
        return self.forecasts.n

    @property
    def binary(self) -> bool:  # type: ignore[override]  # the forecasts know
        return self.forecasts.binary

    @property
    def weighted(self) -> bool:  # type: ignore[override]  # the forecasts know
        return self.forecasts.record_weights is not None or self.forecasts.cells is not None

    @cached_property
    def levels(self) -> Levels:
        return Levels.of(self.forecasts, frequency=self.frequency)

    @property
    def why_not_splittable(self) -> str:  # type: ignore[override]  # the forecasts know
        if self.forecasts.cells is None:
            return ""
        what = "weighted records" if self.binary else "fractional outcomes"
        return f"{what} merged in a sketch cannot be cut into folds"

    def cut(self, folds: int, seed: int, stratified: bool = True) -> Sequence[tuple[Sample, Sample]]:
        """Deal the single records; very many are known by their cell alone afterwards."""
        if self.why_not_splittable:
            hint = "name a method, or pass the rows"
            raise InvalidInputError("y_true", "must be single records", self.why_not_splittable, hint)
        dealt = self.rows if self.in_cells is None else self.in_cells
        return dealt.cut(folds, seed, stratified)

    @cached_property
    def in_cells(self) -> CellSample | None:
        """Very many records of equal weight with neighboring predictions merged, else None."""
        if self.n <= MAX_DEALT_RECORDS or not self.binary or self.forecasts.record_weights is not None:
            return None
        # losses change to second order only in the width of a cell, 2^-15 at most
        return counted_cells(coarse(self.forecasts, FOLD_CELLS), self.n)

    @cached_property
    def rows(self) -> RowSample:
        f = self.forecasts
        values = np.repeat(f.values, f.counts)
        weights = np.ones(f.n) if f.record_weights is None else f.record_weights
        outcomes = f.record_outcomes
        if outcomes is None:  # ascending within a level
            first_one = np.cumsum(f.counts) - np.rint(f.outcomes * f.n).astype(np.int64)
            outcomes = (np.arange(f.n) >= np.repeat(first_one, f.counts)).astype(np.float64)
        if f.record_outcomes is not None or f.record_weights is not None:
            order = np.lexsort((weights, outcomes, values))
            values, outcomes, weights = values[order], outcomes[order], weights[order]
        counted = weights * (self.levels.total / weights.sum())
        return RowSample(values, outcomes, counted, binary=self.binary, weighted=self.weighted)


def sample_of(forecasts: Forecasts, *, frequency: bool = False) -> Sample:
    if frequency and forecasts.binary:
        count = forecasts.total_weight
        if _whole(forecasts.outcomes * count) and _whole(forecasts.weights * count):
            return counted_cells(forecasts, count)
    sample = ForecastSample(forecasts, frequency)
    if forecasts.cells is None:
        return expanded(sample.rows) if frequency else sample
    counts = forecasts.weights * forecasts.n  # of a sketch, where every record weighs the same
    spread = forecasts.squared_weights.sum() * forecasts.n
    alike = np.allclose(counts, forecasts.counts, rtol=1e-12, atol=0.0) and np.isclose(spread, 1.0, rtol=1e-9)
    return counted_cells(forecasts, forecasts.n) if forecasts.binary and alike else sample


def counted_cells(forecasts: Forecasts, count: float) -> CellSample:
    """Return the cells of `count` records that weigh the same."""
    ones, both = (
        np.rint(shares * count).astype(np.int64) for shares in (forecasts.outcomes, forecasts.weights)
    )
    return CellSample(forecasts.values, ones, both - ones)


def _whole(weights: Array) -> bool:
    return bool(np.all((weights < 2.0**53) & (np.abs(weights - np.rint(weights)) <= 1e-11 * weights)))


def effective(weights: Array) -> Array:
    shares = weights / weights.max()  # squares of large weights would overflow
    return np.asarray(shares * (shares.sum() / (shares @ shares)))


def expanded(rows: R) -> R:
    """Write out weights of frequency: a row that counts many records would go to one fold whole."""
    if rows.weights.sum() > MAX_REPEATED_RECORDS or not _whole(rows.weights):
        return rows
    repeated = rows.where(np.repeat(np.arange(rows.n), np.rint(rows.weights).astype(np.int64)))
    equal: dict[str, Any] = {"weighted": False} if isinstance(rows, RowSample) else {}
    return replace(repeated, weights=np.ones(repeated.n), **equal)


def rows_of(
    y: npt.NDArray[Any],
    p: Array,
    w: Array | None,
    *,
    frequency: bool = False,
    clusters: npt.NDArray[Any] | None = None,
    covariates: Columns = NOTHING,
    groups: tuple[str, ...] = (),
) -> RowSample:
    outcomes = y.astype(np.float64)
    weights = np.ones(len(p)) if w is None else w
    codes = None if clusters is None else _codes(clusters)
    keys = [_codes(column) for column in reversed(list(covariates.values()))]
    order = np.lexsort((*keys, *([] if codes is None else [codes]), weights, outcomes, p))
    weights = weights[order]  # sums depend on the order of their terms
    rows = RowSample(
        (p + 0.0)[order],
        outcomes[order],
        weights if frequency else effective(weights),
        None if codes is None else codes[order],
        {name: column[order] for name, column in covariates.items()},
        groups,
        binary=not bool(np.any((outcomes > 0) & (outcomes < 1))),
        weighted=w is not None and bool(np.any(w != w[0])),
    )
    return expanded(rows) if frequency else rows


def _codes(column: npt.NDArray[Any]) -> Ints:
    """Return a whole number per value, in an order that does not depend on the rows."""
    return number_labels(column)[0].astype(np.int64, copy=False)


@dataclass(frozen=True, eq=False)
class ClassRecords(Sample):
    """Rows in canonical order; `labels` are columns of the table; weights sum to the effective number."""

    table: Array
    labels: Ints
    weights: Array
    ranks: Ints  # the place of each class in an order that does not depend on the order of the columns
    names: tuple[str, ...] = ()  # of the columns, where they are texts
    dropped: int = 0  # rows of the user that were left out for a gap
    is_single = True

    @property
    def n(self) -> int:
        return len(self.labels)

    @property
    def given(self) -> Array:
        return self.table

    @cached_property
    def levels(self) -> Levels:
        """The predicted class: how likely it was, and how often it was right."""
        top = self.under(self.table)
        order = np.argsort(top.values, kind="stable")
        return levels_of_sorted(top.values[order], top.rates[order], top.weights[order])

    @property
    def outcomes_seen(self) -> int:
        return len(np.unique(self.labels))

    @property
    def classes(self) -> int:
        return int(self.table.shape[1])

    def where(self, chosen: npt.NDArray[Any]) -> ClassRecords:
        table, labels, weights = (part[chosen] for part in (self.table, self.labels, self.weights))
        return replace(self, table=table, labels=labels, weights=weights)

    def cut(self, folds: int, seed: int, stratified: bool = True) -> list[tuple[ClassRecords, ClassRecords]]:
        fold = _dealt(self.ranks[self.labels], folds, seed, stratified)
        return [(self.where(fold != k), self.where(fold == k)) for k in range(folds)]

    def costs(self, predictions: Array, loss: str, clip: float = LOSS_CLIP) -> Costs:
        if loss == "brier":
            hit = np.arange(self.classes) == self.labels[:, None]
            lost = ((predictions - hit) ** 2).sum(axis=1)
        else:
            lost = -np.log(np.clip(self._of_outcomes(predictions), clip, 1.0))
        return Costs(lost, lost, np.ones(self.n), self.weights)

    def under(self, predictions: Array) -> Levels:
        top = predictions.argmax(axis=1)
        confidence = np.clip(predictions[np.arange(self.n), top], 0.0, 1.0)
        return Levels(confidence, (top == self.labels).astype(np.float64), self.weights)

    def ruled_out(self, predictions: Array) -> float:
        return float(self.weights[self._of_outcomes(predictions) <= 0].sum())

    def _of_outcomes(self, predictions: Array) -> Array:
        return np.asarray(predictions[np.arange(self.n), self.labels])


def probabilities_of_logits(logits: Any) -> Array:
    """Return probabilities from logits or log-probabilities: one column of logits, or one per class.

    >>> probabilities_of_logits([0.0]).tolist(), probabilities_of_logits([[1.0, 1.0]]).tolist()
    ([0.5], [[0.5, 0.5]])
    """
    from scipy.special import expit, softmax

    table = np.asarray(to_array(logits, "logits"))
    if table.dtype.kind not in "iuf" or table.ndim not in (1, 2) or (table.ndim == 2 and table.shape[1] < 2):
        rule = "must be numbers, one per row or one per row and class"
        raise InvalidInputError("logits", rule, f"got dtype {table.dtype} and shape {table.shape}")
    table = table.astype(np.float64)
    rows = table if table.ndim == 1 else table.max(axis=1)
    hint = "-inf is allowed for a class of probability 0"
    reject_rows("logits", "must be below infinity, one per row at least finite", rows, np.isinf(rows), hint)
    return np.asarray(expit(table) if table.ndim == 1 else softmax(table, axis=1))


def checked_table(probabilities: Any) -> Array:
    columns = ClassColumns.of(probabilities, "y_prob")
    table = np.asarray(columns.numbers(probabilities), dtype=np.float64)
    gaps = np.isnan(table)
    columns.reject_cells("must not be missing", table, gaps, "leave such rows out")
    columns.check_rows(table, np.asarray(~gaps.any(axis=1)))
    return table


def class_records(
    y_true: Any,
    y_prob: Any,
    sample_weight: Any,
    classes: Sequence[Any] | None,
    *,
    frequency: bool,
    missing: Missing = "error",
    columns: Sequence[str] = (),
) -> ClassRecords:
    names = InputNames().with_names_of(y_true, y_prob, sample_weight)
    y_true, sample_weight = unwrap(y_true), unwrap(sample_weight)
    columns = list(columns) or columns_named(y_prob)
    checked = checked_classes(y_prob, y_true, classes, missing, sample_weight, names, columns)
    table, labels, complete = np.asarray(checked.table, dtype=np.float64), checked.labels, checked.kept
    weights = np.ones(len(table))
    if sample_weight is not None:
        weights = np.asarray(numeric_vector(sample_weight, names.weight), dtype=np.float64)
    check_same_length(weights, table, (names.weight, names.prediction))
    if missing == "error":
        reject_rows(names.weight, "must not be missing", weights, np.isnan(weights), DROP_MISSING)
    complete = complete & ~np.isnan(weights)
    weights = check_weights(np.where(complete, weights, 0.0), names.weight)
    kept = weights > 0
    ranks = _content_ranks(table[kept], labels[kept], weights[kept], _ranks(checked.names))
    cells = table[kept][:, np.argsort(ranks)]
    order = np.flatnonzero(kept)[np.lexsort((weights[kept], ranks[labels[kept]], *cells.T))]
    texts = _texts(columns or ([] if classes is None else checked.names))
    records = ClassRecords(table[order], labels[order], weights[order], ranks, texts)
    made = expanded(records) if frequency else replace(records, weights=effective(records.weights))
    return replace(made, dropped=int(np.count_nonzero(~complete)))


def _texts(names: list[Any]) -> tuple[str, ...]:
    """Return names of text and whole numbers as texts, none where others or equal ones are among them."""
    texts = tuple(map(str, names)) if all(isinstance(name, (str, int, np.integer)) for name in names) else ()
    return texts if len(set(texts)) == len(texts) else ()


def _content_ranks(table: Array, labels: Ints, weights: Array, named: Ints) -> Ints:
    """Rank classes by frequency, mean, then name: permuting columns and labels only permutes the fit."""
    frequency = np.array([np.sort(weights[labels == k]).sum() for k in range(table.shape[1])])
    means = np.sort(table, axis=0).sum(axis=0)
    order = np.lexsort((named, means, frequency))
    return np.argsort(order).astype(np.int64)


def _ranks(names: list[Any]) -> Ints:
    """Return the place of each name among all in order; of names that cannot be compared, by their texts."""
    try:
        order = sorted(range(len(names)), key=lambda k: names[k])
    except TypeError:
        order = sorted(range(len(names)), key=lambda k: (type(names[k]).__name__, str(names[k])))
    return np.argsort(order)
