"""Records of several classes: a table of probabilities, the class that occurred, and weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, TooFewRecordsError, reject_rows, sentence
from calibrant.inputs import (
    ROW_SUM,
    array_of,
    check_aligned,
    check_weights,
    numeric_vector,
    row_labels,
    values_of,
)
from calibrant.numerals import counted
from calibrant.recalibration.level_losses import SAFE
from calibrant.recalibration.samples import effective, repetitions
from calibrant.results import Array

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class ClassRecords:
    """Rows in canonical order; `labels` are columns of the table; weights sum to the effective number."""

    table: Array
    labels: Ints
    weights: Array

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
        return ClassRecords(self.table[chosen], self.labels[chosen], self.weights[chosen])

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
        order = np.lexsort((np.random.default_rng(seed).random(self.n), self.labels))
        fold = np.empty(self.n, dtype=np.int64)
        fold[order] = np.arange(self.n) % folds
        return [(self.where(fold != k), self.where(fold == k)) for k in range(folds)]

    def losses(self, table: Array) -> Array:
        """Return the log loss of each record under other probabilities."""
        chosen = table[np.arange(self.n), self.labels]
        return np.asarray(-np.log(np.clip(chosen, SAFE, 1.0)))


def checked_table(probabilities: Any) -> Array:
    """Return a table of probabilities, a row per record and a column per class, or say what is wrong."""
    table = array_of(probabilities, "y_prob")
    if table.ndim != 2 or table.shape[1] < 2 or table.dtype.kind not in "fiu" or len(table) == 0:
        rule = "must be numbers, a row for each record and a column for each class"
        raise InvalidInputError(sentence("y_prob", rule, f"got shape {table.shape}, dtype {table.dtype}"))
    with np.errstate(invalid="ignore"):
        outside = ~np.all((table >= 0) & (table <= 1), axis=1)
    hint = "pass softmax of logits, not logits"
    reject_rows("y_prob", "must lie in [0, 1]", table, outside, hint)
    sums = table.sum(axis=1, dtype=np.float64)
    reject_rows("y_prob", "must sum to 1 in each row", sums, np.abs(sums - 1) > ROW_SUM)
    return np.asarray(table, dtype=np.float64)


def class_records(
    y_true: Any, y_prob: Any, sample_weight: Any, classes: Sequence[Any] | None, *, frequency: bool
) -> ClassRecords:
    """Return checked records in an order that does not depend on the user's rows."""
    y_true, sample_weight = values_of(y_true), values_of(sample_weight)
    check_aligned(y_true, row_labels(y_prob), ("y_true", "y_prob"))
    check_aligned(sample_weight, row_labels(y_prob), ("sample_weight", "y_prob"))
    table = checked_table(y_prob)
    labels = _places(y_true, class_names(classes, table.shape[1]), len(table))
    weights = np.ones(len(table))
    if sample_weight is not None:
        weights = check_weights(numeric_vector(sample_weight, "sample_weight"), "sample_weight")
        if len(weights) != len(table):
            got = f"got {len(weights):,} and {counted(len(table), 'row')}"
            raise InvalidInputError(sentence("sample_weight and y_prob", "must have the same length", got))
    kept = weights > 0
    order = np.flatnonzero(kept)[np.lexsort((weights[kept], labels[kept], *table[kept].T))]
    records = ClassRecords(table[order], labels[order], weights[order])
    return records.written_out() if frequency else replace(records, weights=effective(records.weights))


def class_names(classes: Sequence[Any] | None, count: int) -> list[Any]:
    """Return the name of each column; 0, 1, ... where none are given."""
    names = list(range(count)) if classes is None else list(classes)
    if len(names) != count or len(set(names)) != count:
        got = f"got {names!r} for {counted(count, 'column')}"
        raise InvalidInputError(sentence("classes", "must name each column of y_prob once", got))
    return names


def _places(y_true: Any, names: list[Any], rows: int) -> Ints:
    labels = array_of(y_true, "y_true")
    if labels.shape != (rows,):
        got = f"got shape {labels.shape} for {counted(rows, 'row')}"
        raise InvalidInputError(sentence("y_true", "must be one class label per row", got))
    place = {name: k for k, name in enumerate(names)}
    columns = np.array([place.get(label, -1) for label in labels.tolist()], dtype=np.int64)
    shown = ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")
    hint = "name the columns with classes="
    reject_rows("y_true", f"must be one of the classes {shown}", labels, columns < 0, hint)
    return columns
