"""Records of several classes: a table of probabilities, the class that occurred, and weights."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, TooFewRecordsError, reject_name, reject_rows, sentence
from calibrant.inputs import (
    Names,
    array_of,
    check_aligned,
    check_weights,
    is_gap,
    numeric_vector,
    row_labels,
    values_of,
)
from calibrant.measures.class_columns import ClassColumns, class_names, classes_hint, columns_named
from calibrant.numerals import counted
from calibrant.recalibration.level_losses import SAFE
from calibrant.recalibration.samples import effective, repetitions
from calibrant.records import Missing
from calibrant.results import Array

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class ClassRecords:
    """Rows in canonical order; `labels` are columns of the table; weights sum to the effective number."""

    table: Array
    labels: Ints
    weights: Array
    ranks: Ints  # the place of each column in the order of the names, on which no user's order has a bearing
    names: tuple[str, ...] = ()  # of the columns, where they are texts
    dropped: int = 0  # rows of the user that were left out for a gap

    @property
    def n(self) -> int:
        """How many records there are."""
        return len(self.labels)

    @property
    def classes(self) -> int:
        """How many columns there are."""
        return int(self.table.shape[1])

    def where(self, chosen: npt.NDArray[Any]) -> ClassRecords:
        """Return some of the records."""
        table, labels, weights = (part[chosen] for part in (self.table, self.labels, self.weights))
        return replace(self, table=table, labels=labels, weights=weights)

    def written_out(self) -> ClassRecords:
        """Return a row for every record that weights of frequency count, where they are few enough."""
        times = repetitions(self.weights)
        if times is None:
            return self
        rows = self.where(np.repeat(np.arange(self.n), times))
        return replace(rows, weights=np.ones(rows.n))

    def cut(self, folds: int, seed: int) -> list[tuple[ClassRecords, ClassRecords]]:
        """Return pairs (all but one fold, that fold), stratified by class."""
        if self.n < folds:
            raise TooFewRecordsError(sentence("folds", f"need {folds} records", f"got {self.n}"))
        order = np.lexsort((np.random.default_rng(seed).random(self.n), self.ranks[self.labels]))
        fold = np.empty(self.n, dtype=np.int64)
        fold[order] = np.arange(self.n) % folds
        return [(self.where(fold != k), self.where(fold == k)) for k in range(folds)]

    def losses(self, table: Array) -> Array:
        """Return the log loss of each record under other probabilities."""
        chosen = table[np.arange(self.n), self.labels]
        return np.asarray(-np.log(np.clip(chosen, SAFE, 1.0)))


def checked_table(probabilities: Any) -> Array:
    """Return a table of probabilities, a row per record and a column per class, or say what is wrong."""
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
    """Return checked records in an order that depends on the user's neither of rows nor of named columns."""
    if missing not in ("error", "drop"):
        raise reject_name("missing", missing, ["error", "drop"])
    names = Names().told_by(y_true, y_prob, sample_weight)
    y_true, sample_weight = values_of(y_true), values_of(sample_weight)
    check_aligned(y_true, row_labels(y_prob), (names.outcome, names.prediction))
    check_aligned(sample_weight, row_labels(y_prob), (names.weight, names.prediction))
    called = ClassColumns.of(y_prob, names.prediction)
    columns = list(columns) or columns_named(y_prob)
    table = np.asarray(called.numbers(y_prob), dtype=np.float64)
    given, weights = _labels(y_true, len(table), names), _weights(sample_weight, len(table), names)
    complete = _complete(table, given, weights, missing, names, called)
    called.check_rows(table, complete)
    known = class_names(classes, columns, given[complete].tolist(), table.shape[1], names.prediction)
    labels, ranks = _places(given, known, complete, names), _ranks(known)
    weights = check_weights(np.where(complete, weights, 0.0), names.weight)
    kept = weights > 0
    cells = table[kept][:, np.argsort(ranks)]
    order = np.flatnonzero(kept)[np.lexsort((weights[kept], ranks[labels[kept]], *cells.T))]
    told = _texts(columns or ([] if classes is None else known))
    records = ClassRecords(table[order], labels[order], weights[order], ranks, told)
    made = records.written_out() if frequency else replace(records, weights=effective(records.weights))
    return replace(made, dropped=int(np.count_nonzero(~complete)))


def _labels(y_true: Any, rows: int, names: Names) -> npt.NDArray[Any]:
    labels = array_of(y_true, names.outcome)
    if labels.shape != (rows,):
        got = f"got shape {labels.shape} for {counted(rows, 'row')}"
        raise InvalidInputError(sentence(names.outcome, "must be one class label per row", got))
    return labels


def _weights(sample_weight: Any, rows: int, names: Names) -> Array:
    if sample_weight is None:
        return np.ones(rows)
    weights = numeric_vector(sample_weight, names.weight)
    if len(weights) != rows:
        got = f"got {len(weights):,} and {counted(rows, 'row')}"
        subject = f"{names.weight} and {names.prediction}"
        raise InvalidInputError(sentence(subject, "must have the same length", got))
    return np.asarray(weights, dtype=np.float64)


def _complete(
    table: Array,
    labels: npt.NDArray[Any],
    weights: Array,
    missing: Missing,
    names: Names,
    columns: ClassColumns,
) -> Mask:
    """Return the rows without a gap, or refuse those with one."""
    empty = np.isnan(table)
    told = {
        names.outcome: (labels, np.array([is_gap(label) for label in labels.tolist()], dtype=bool)),
        names.weight: (weights, np.isnan(weights)),
    }
    if missing == "error":
        hint = 'pass missing="drop" to leave such rows out and have them counted'
        columns.reject_cells("must not be missing", table, empty, hint)
        for name, (values, gaps) in told.items():
            reject_rows(name, "must not be missing", values, gaps, hint)
    complete = ~np.logical_or.reduce([empty.any(axis=1), *(gaps for _, gaps in told.values())])
    if not complete.any():
        got = f"got {counted(len(table), 'row')}, all with one"
        raise InvalidInputError(sentence(names.prediction, "must have a row without missing values", got))
    return np.asarray(complete)


def _texts(names: list[Any]) -> tuple[str, ...]:
    """Return names of text and whole numbers as texts, none where others or equal ones are among them."""
    texts = tuple(map(str, names)) if all(isinstance(name, (str, int, np.integer)) for name in names) else ()
    return texts if len(set(texts)) == len(texts) else ()


def _ranks(names: list[Any]) -> Ints:
    """Return the place of each name among all in order; of names that cannot be compared, by their texts."""
    try:
        order = sorted(range(len(names)), key=lambda k: names[k])
    except TypeError:
        order = sorted(range(len(names)), key=lambda k: (type(names[k]).__name__, str(names[k])))
    return np.argsort(order)


def _places(labels: npt.NDArray[Any], columns: list[Any], complete: Mask, names: Names) -> Ints:
    """Return the column of the class that occurred; 0 in rows with a gap."""
    place = {name: k for k, name in enumerate(columns)}
    places = np.zeros(len(labels), dtype=np.int64)
    given = labels[complete].tolist()
    places[complete] = [place.get(label, -1) if isinstance(label, Hashable) else -1 for label in given]
    shown = ", ".join(map(repr, columns[:5])) + (", ..." if len(columns) > 5 else "")
    hint = classes_hint(given, columns)
    reject_rows(names.outcome, f"must be one of the classes {shown}", labels, places < 0, hint)
    return places
