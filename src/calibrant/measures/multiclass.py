"""Several classes as one: reductions to Forecasts, so that every measure, test and chart applies."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, reject_name, reject_rows, sentence
from calibrant.forecasts import Forecasts
from calibrant.inputs import array_of, check_aligned, is_gap, row_labels
from calibrant.measures.class_columns import ClassColumns, class_names, classes_hint, columns_named
from calibrant.numerals import counted
from calibrant.records import Missing
from calibrant.results import Array


def top_label(
    y_true: Any,
    probabilities: Any,
    *,
    sample_weight: Any = None,
    classes: Any = None,
    missing: Missing = "error",
) -> Forecasts:
    """Reduce to the most probable class: prediction its probability, outcome whether it was right.

    Also called confidence calibration. Of several equally probable classes the first is taken.

    Parameters
    ----------
    y_true
        The class that occurred, per record.
    probabilities
        One column per class, rows summing to 1; or a frame whose columns name the classes.
    sample_weight
        Non-negative weights, one per record.
    classes
        Names of the columns, in order, where the labels are neither 0, 1, 2, ... nor columns of a frame.
    missing
        Refuse rows without a label or a probability ("error"), or leave them out and count them ("drop").

    Returns
    -------
    Forecasts
        Confidence per record and whether it was right.

    Examples
    --------
    >>> top_label([0, 2], [[0.7, 0.2, 0.1], [0.1, 0.6, 0.3]]).values.tolist()
    [0.6, 0.7]
    """
    rows = _checked(probabilities, y_true, classes, missing, sample_weight)
    top = np.argmax(rows.table, axis=1)
    confidence = rows.table[np.arange(len(rows.table)), top]
    return rows.forecasts(top == rows.labels, confidence, sample_weight)


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
    y_true
        The class that occurred, per record.
    probabilities
        One column per class, rows summing to 1; or a frame whose columns name the classes.
    label
        The class to look at.
    sample_weight
        Non-negative weights, one per record.
    classes
        Names of the columns, in order, where the labels are neither 0, 1, 2, ... nor columns of a frame.
    missing
        Refuse rows without a label or a probability ("error"), or leave them out and count them ("drop").

    Returns
    -------
    Forecasts
        Predictions and outcomes of that class.

    Examples
    --------
    >>> one_vs_rest(["a", "c"], [[0.7, 0.2, 0.1], [0.1, 0.6, 0.3]], "c", classes="abc").values.tolist()
    [0.1, 0.3]
    """
    rows = _checked(probabilities, y_true, classes, missing, sample_weight)
    place = _places([label], rows.names, "label")[0]
    return rows.forecasts(rows.labels == place, rows.table[:, place], sample_weight)


def class_wise(
    y_true: Any,
    probabilities: Any,
    *,
    sample_weight: Any = None,
    classes: Any = None,
    missing: Missing = "error",
) -> dict[Any, Forecasts]:
    """Return one_vs_rest for every class, by its name; average a measure over them for a class-wise error.

    Parameters
    ----------
    y_true
        The class that occurred, per record.
    probabilities
        One column per class, rows summing to 1; or a frame whose columns name the classes.
    sample_weight
        Non-negative weights, one per record.
    classes
        Names of the columns, in order, where the labels are neither 0, 1, 2, ... nor columns of a frame.
    missing
        Refuse rows without a label or a probability ("error"), or leave them out and count them ("drop").

    Returns
    -------
    dict
        Forecasts per class.

    Examples
    --------
    >>> sorted(class_wise([0, 2], [[0.7, 0.2, 0.1], [0.1, 0.6, 0.3]]))
    [0, 1, 2]
    """
    rows = _checked(probabilities, y_true, classes, missing, sample_weight)
    return {
        name: rows.forecasts(rows.labels == place, rows.table[:, place], sample_weight)
        for place, name in enumerate(rows.names)
    }


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Probabilities, names of the columns and the column of the class that occurred; all rows, gaps too."""

    table: Array
    names: list[Any]
    labels: npt.NDArray[np.intp]
    kept: npt.NDArray[np.bool_]
    missing: Missing

    def forecasts(self, outcome: npt.NDArray[np.bool_], prediction: Array, weights: Any) -> Forecasts:
        """Reduce to one question; rows that are left out are gaps, which Forecasts drops and counts."""
        y, p = (
            (outcome, prediction) if self.kept.all() else np.where(self.kept, (outcome, prediction), np.nan)
        )
        return Forecasts(y, p, sample_weight=weights, missing=self.missing)


def _checked(probabilities: Any, y_true: Any, classes: Any, missing: Missing, sample_weight: Any) -> _Rows:
    """Check the table of probabilities and find, for each row, the column of the class that occurred."""
    if missing not in ("error", "drop"):
        raise reject_name("missing", missing, ["error", "drop"])
    columns = ClassColumns.of(probabilities, "probabilities")
    table = columns.numbers(probabilities)
    labels = array_of(y_true, "y_true")
    if labels.shape != (len(table),):
        got = f"got shape {labels.shape} for {counted(len(table), 'row')}"
        raise InvalidInputError(sentence("y_true", "must be one class label per row", got))
    check_aligned(y_true, row_labels(probabilities), ("y_true", "probabilities"))
    check_aligned(sample_weight, row_labels(probabilities), ("sample_weight", "probabilities"))
    kept = _complete(table, labels, missing, columns)
    columns.check_rows(table, kept)
    known = _whole(labels, kept)
    names = class_names(classes, columns_named(probabilities), known, table.shape[1], "probabilities")
    places = _places([names[0] if label is None else label for label in known], names, "y_true")
    return _Rows(table, names, places, kept, missing)


def _complete(
    table: Array, labels: npt.NDArray[Any], missing: Missing, columns: ClassColumns
) -> npt.NDArray[np.bool_]:
    """Return the rows that have a label and every probability."""
    absent = np.array([is_gap(label) for label in labels.tolist()], dtype=bool)
    empty = np.isnan(table)
    gaps = np.asarray(empty.any(axis=1))
    if missing == "error":
        hint = 'pass missing="drop" to leave such rows out and have them counted'
        columns.reject_cells("must not be missing", table, empty, hint)
        reject_rows("y_true", "must not be missing", labels, absent, hint)
    kept = ~(gaps | absent)
    if not kept.any():
        rule, got = (
            "must have a row without missing values",
            f"got {counted(len(table), 'row')}, all with one",
        )
        raise InvalidInputError(sentence("probabilities", rule, got))
    return np.asarray(kept)


def _whole(labels: npt.NDArray[Any], kept: npt.NDArray[np.bool_]) -> list[Any]:
    """Return the labels, None for gaps; whole numbers as such again, which gaps had made fractions."""
    inside = labels[kept]
    if labels.dtype.kind == "f" and np.all(inside == np.round(inside)):
        labels = np.where(kept, labels, 0).astype(np.int64)
    return [label if is_kept else None for label, is_kept in zip(labels.tolist(), kept, strict=True)]


def _places(labels: list[Any], names: list[Any], subject: str) -> npt.NDArray[np.intp]:
    """Return the column of each label."""
    place = {name: k for k, name in enumerate(names)}
    result = np.array(
        [place.get(label, -1) if isinstance(label, Hashable) else -1 for label in labels], dtype=np.intp
    )
    shown = ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")
    rule = f"must be one of the classes {shown}"
    reject_rows(subject, rule, np.array(labels, dtype=object), result < 0, classes_hint(labels, names))
    return result
