"""Several classes as one: reductions to Forecasts, so that every measure, test and chart applies."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.errors import DROP_MISSING, InvalidInputError, reject_rows
from calibrant.forecasts import Forecasts
from calibrant.formatting import pluralize
from calibrant.inputs import (
    ROW_SUM,
    InputNames,
    check_aligned,
    check_missing,
    is_missing,
    numeric_vector,
    row_labels,
    to_array,
    whole_number,
)
from calibrant.metrics.calling import shares_parameters
from calibrant.records import Missing, check_records
from calibrant.results import Array

MAX_NAMES_SHOWN = 5  # names in a message
MAX_TERMS = 1_000_000  # of a polynomial in all probabilities, for all classes
Mask = npt.NDArray[np.bool_]
_NAMES = InputNames(prediction="probabilities")
CLASSES = """\
y_true
    The class that occurred, per record.
probabilities
    One column per class, rows summing to 1; or a frame whose columns name the classes.
sample_weight
    Non-negative weights, one per record.
classes
    Names of the columns, in order, where the labels are neither 0, 1, 2, ... nor columns of a frame.
missing
    Refuse rows without a label or a probability ("error"), or leave them out ("drop").
"""


@dataclass(frozen=True, slots=True)
class ClassColumns:
    """What a table of probabilities is called: its argument, and the columns of a frame by name."""

    argument: str
    columns: tuple[str, ...] = ()

    @classmethod
    def of(cls, probabilities: Any, argument: str) -> ClassColumns:
        """Return the names of a frame's columns, none unless they are text."""
        named = tuple(columns_named(probabilities))
        return cls(argument, named if all(isinstance(name, str) for name in named) else ())

    def __str__(self) -> str:
        return f"columns {_listed(self.columns)}" if self.columns else self.argument

    def numbers(self, probabilities: Any) -> npt.NDArray[Any]:
        """Return the table, objects such as pandas.NA as numbers."""
        table = to_array(probabilities, self.argument)
        if table.ndim == 2 and table.dtype.kind == "O" and table.size:
            columns = [numeric_vector(column, self._column(k)) for k, column in enumerate(table.T)]
            table = np.stack(columns, axis=1)
        if table.ndim != 2 or table.shape[1] < 2 or table.dtype.kind not in "fiu":
            rule = "must be numbers, a row for each record and a column for each class"
            got = f"got shape {table.shape}, dtype {table.dtype}"
            raise InvalidInputError(self.argument, rule, got)
        if len(table) == 0:
            raise InvalidInputError(self.argument, "must not be empty", "got no rows")
        return table

    def _column(self, place: int) -> str:
        return f"column {self.columns[place]!r}" if self.columns else self.argument

    def reject_cells(self, rule: str, table: npt.NDArray[Any], bad: Mask, hint: str) -> None:
        """Refuse cells, naming the column of the first one, or its whole row where columns have no names."""
        rows = np.asarray(bad.any(axis=1))
        if not rows.any():
            return
        if not self.columns:
            reject_rows(self.argument, rule, table, rows, hint)
        place = int(np.argmax(bad[np.argmax(rows)]))
        reject_rows(self._column(place), rule, table[:, place], bad[:, place], hint)

    def check_rows(self, table: npt.NDArray[Any], kept: Mask) -> None:
        """Refuse rows that are not class probabilities; dropped rows are not checked."""
        with np.errstate(invalid="ignore"):
            outside = kept[:, None] & ~((table >= 0) & (table <= 1))
        self.reject_cells("must lie in [0, 1]", table, outside, "pass softmax of logits, not logits")
        sums = table.sum(axis=1, dtype=np.float64)
        off = kept & (np.abs(sums - 1) > ROW_SUM)
        hint = "divide each row by its sum if it was rounded; else a class may be missing"
        reject_rows(str(self), "must sum to 1 in each row", sums, off, hint)


def class_names(
    classes: Any, columns: Sequence[Any], labels: Sequence[Any], count: int, argument: str
) -> list[Any]:
    """Return the classes as named, or the columns of a frame if labels are among them, or 0, 1, 2, ..."""
    if classes is None:
        named = [column for column in columns if isinstance(column, Hashable)]
        known = {label for label in labels if isinstance(label, Hashable) and label is not None}
        return named if len(set(named)) == count and known & set(named) else list(range(count))
    names = list(classes) if isinstance(classes, Iterable) else [classes]
    hashable = all(isinstance(name, Hashable) for name in names)
    if len(names) != count or not hashable or len(set(names)) < count:
        got = f"got {names!r} for {pluralize(count, 'column')}"
        raise InvalidInputError("classes", f"must name each column of {argument} once", got)
    return names


def columns_named(table: Any) -> list[Any]:
    """Return the names of a frame's columns, none if it is not a frame."""
    columns = getattr(table, "column_names", getattr(table, "columns", ()))
    return list(columns) if isinstance(columns, Sequence) or hasattr(columns, "tolist") else []


def check_column_order(columns: Any, known: Sequence[str], subject: str) -> None:
    """Refuse columns whose names show another order than the `known` ones."""
    place = {name: k for k, name in enumerate(known)}
    if isinstance(columns, Sequence) and any(place.get(str(name), k) != k for k, name in enumerate(columns)):
        rule = f"must be in the order of the fit, {_listed(known)}"
        raise InvalidInputError(subject, rule, f"got {_listed(columns)}", "select them in that order")


def classes_hint(labels: Sequence[Any], names: Sequence[Any]) -> str:
    """Say how the columns are to be named, by the labels that there are.

    >>> classes_hint(["cat", "dog", "cat"], [0, 1])
    "name the columns in their order with classes=, by the labels: 'cat' and 'dog'"
    >>> classes_hint(["cat", "dog", "owl"], [0, 1])
    'there are 3 labels and 2 columns: each label needs a column'
    """
    known: list[Any] = list(dict.fromkeys(label for label in labels if isinstance(label, Hashable)))
    if len(known) > len(names):
        return (
            f"there are {pluralize(len(known), 'label')} and {len(names)} columns: each label needs a column"
        )
    with suppress(TypeError):  # of several types
        known = sorted(known)
    return f"name the columns in their order with classes=, by the labels: {_listed(known)}"


def _listed(names: Sequence[Any]) -> str:
    shown = [repr(name) for name in names[:MAX_NAMES_SHOWN]]
    if len(names) > MAX_NAMES_SHOWN:
        return f"{', '.join(shown)}, ... ({len(names)} in all)"
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


@shares_parameters(CLASSES)
def top_label(
    y_true: Any,
    probabilities: Any,
    *,
    sample_weight: Any = None,
    classes: Any = None,
    missing: Missing = "error",
) -> Forecasts:
    """Reduce to the most probable class: prediction its probability, outcome whether it was right.

    Also called confidence calibration. Of several equally probable classes the first is taken. No measure of
    the top label is truthful: the report decides which class is asked about, so a forecaster may gain by
    naming an unlikely class. Rank models by the total of `class_table` with measure "atb" instead.

    Examples
    --------
    >>> top_label([0, 2], [[0.7, 0.2, 0.1], [0.1, 0.6, 0.3]]).values.tolist()
    [0.6, 0.7]
    """
    rows = checked_classes(probabilities, y_true, classes, missing, sample_weight)
    top = np.argmax(rows.table, axis=1)
    confidence = rows.table[np.arange(len(rows.table)), top]
    return rows.forecasts(top == rows.labels, confidence, sample_weight)


@shares_parameters(CLASSES)
def one_vs_rest(
    y_true: Any,
    probabilities: Any,
    label: Any,
    *,
    sample_weight: Any = None,
    classes: Any = None,
    missing: Missing = "error",
) -> Forecasts:
    """Reduce to one class against all others: prediction its probability, outcome whether it occurred.

    Parameters
    ----------
    label
        The class to look at.

    Examples
    --------
    >>> one_vs_rest(["a", "c"], [[0.7, 0.2, 0.1], [0.1, 0.6, 0.3]], "c", classes="abc").values.tolist()
    [0.1, 0.3]
    """
    rows = checked_classes(probabilities, y_true, classes, missing, sample_weight)
    place = _places([label], rows.names, "label")[0]
    return rows.forecasts(rows.labels == place, rows.table[:, place], sample_weight)


@shares_parameters(CLASSES)
def class_wise(
    y_true: Any,
    probabilities: Any,
    *,
    sample_weight: Any = None,
    classes: Any = None,
    missing: Missing = "error",
) -> dict[Any, Forecasts]:
    """Return one_vs_rest for every class, by its name; average a measure over them for a class-wise error.

    Returns
    -------
    dict
        Forecasts per class.

    Examples
    --------
    >>> sorted(class_wise([0, 2], [[0.7, 0.2, 0.1], [0.1, 0.6, 0.3]]))
    [0, 1, 2]
    """
    rows = checked_classes(probabilities, y_true, classes, missing, sample_weight)
    return {
        name: rows.forecasts(rows.labels == place, rows.table[:, place], sample_weight)
        for place, name in enumerate(rows.names)
    }


@shares_parameters(CLASSES)
def class_low_degree_error(
    y_true: Any,
    probabilities: Any,
    *,
    degree: int = 1,
    sample_weight: Any = None,
    classes: Any = None,
    missing: Missing = "error",
) -> float:
    """Measure the low-degree calibration error of several classes at once.

    Half the largest E[sum_k w_k(p) (y_k - p_k)] over weights w_k that are polynomials of all probabilities,
    of at most `degree`, with Bernstein coefficients on the simplex of size 1 at most; so |w_k| <= 1 (section
    3.3 of the survey). At degree 1 these are all affine weights bounded by 1. Of two classes it is
    `low_degree_error` at degrees 0 and 1. It sees errors that depend on several probabilities, which no class
    shows alone.

    Examples
    --------
    >>> class_low_degree_error([0, 1], [[0.75, 0.25], [0.25, 0.75]])
    0.125
    """
    rows = checked_classes(probabilities, y_true, classes, missing, sample_weight)
    count = rows.table.shape[1]
    terms = math.comb(whole_number("degree", degree, 0, 20) + count - 1, degree)
    if terms * count > MAX_TERMS:
        got = f"got {terms * count:,} for {count} classes at degree {degree}"
        raise InvalidInputError("degree", f"must give at most {MAX_TERMS:,} terms", got)
    gaps = np.where(rows.kept, 0.0, np.nan)
    checked = check_records(gaps, np.zeros(len(gaps)), sample_weight, missing, _NAMES)
    kept = slice(None) if checked.rows is None else checked.rows
    p, labels = rows.table[kept], rows.labels[kept]
    weight = np.ones(len(labels)) if checked.weight is None else checked.weight / checked.largest
    residuals = weight[:, None] / weight.sum() * ((labels[:, None] == np.arange(count)) - p)
    total = 0.0
    for chosen in itertools.combinations_with_replacement(range(count), degree):
        powers = np.bincount(chosen, minlength=count) if chosen else np.zeros(count, dtype=int)
        orders = math.factorial(degree) / math.prod(math.factorial(int(k)) for k in powers)
        basis = orders * np.prod(p**powers, axis=1)
        total += float(np.abs(basis @ residuals).sum())
    return total / 2


@dataclass(frozen=True, slots=True, eq=False)
class ClassRows:
    """Probabilities, names of the columns and the column of the class that occurred; all rows, gaps too."""

    table: Array
    names: list[Any]
    labels: npt.NDArray[np.intp]
    kept: npt.NDArray[np.bool_]
    missing: Missing

    def forecasts(self, outcome: npt.NDArray[np.bool_], prediction: Array, weights: Any) -> Forecasts:
        """Reduce to one question; rows that are left out are gaps, which Forecasts drops and counts."""
        pair = outcome, prediction
        y, p = pair if self.kept.all() else np.where(self.kept, pair, np.nan)
        return Forecasts(y, p, sample_weight=weights, missing=self.missing)


def checked_classes(
    probabilities: Any,
    y_true: Any,
    classes: Any,
    missing: Missing,
    sample_weight: Any,
    names: InputNames = _NAMES,
    columns: Sequence[Any] = (),
) -> ClassRows:
    check_missing(missing=missing)
    called = ClassColumns.of(probabilities, names.prediction)
    table = called.numbers(probabilities)
    labels = to_array(y_true, names.outcome)
    if labels.shape != (len(table),):
        got = f"got shape {labels.shape} for {pluralize(len(table), 'row')}"
        raise InvalidInputError(names.outcome, "must be one class label per row", got)
    check_aligned(y_true, row_labels(probabilities), (names.outcome, names.prediction))
    check_aligned(sample_weight, row_labels(probabilities), (names.weight, names.prediction))
    absent = np.array([is_missing(label) for label in labels.tolist()], dtype=bool)
    empty = np.isnan(table)
    if missing == "error":
        called.reject_cells("must not be missing", table, empty, DROP_MISSING)
        reject_rows(names.outcome, "must not be missing", labels, absent, DROP_MISSING)
    kept = np.asarray(~(empty.any(axis=1) | absent))
    if not kept.any():
        got = f"got {pluralize(len(table), 'row')}, all with one"
        raise InvalidInputError(names.prediction, "must have a row without missing values", got)
    called.check_rows(table, kept)
    if labels.dtype.kind == "f" and np.all(labels[kept] == np.round(labels[kept])):
        labels = np.where(kept, labels, 0).astype(np.int64)  # gaps had made fractions of them
    known = [label if is_kept else None for label, is_kept in zip(labels.tolist(), kept, strict=True)]
    columns = columns or columns_named(probabilities)
    classes = class_names(classes, columns, known, table.shape[1], names.prediction)
    places = _places([classes[0] if label is None else label for label in known], classes, names.outcome)
    return ClassRows(table, classes, places, kept, missing)


def _places(labels: list[Any], names: list[Any], subject: str) -> npt.NDArray[np.intp]:
    place = {name: k for k, name in enumerate(names)}
    found = [place.get(label, -1) if isinstance(label, Hashable) else -1 for label in labels]
    result = np.array(found, dtype=np.intp)
    shown = ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")
    rule = f"must be one of the classes {shown}"
    reject_rows(subject, rule, np.array(labels, dtype=object), result < 0, classes_hint(labels, names))
    return result
