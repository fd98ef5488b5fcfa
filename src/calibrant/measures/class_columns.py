"""Columns of class probabilities: what errors call them, and how labels are to be named."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, reject_rows, sentence
from calibrant.inputs import ROW_SUM, array_of, numeric_vector
from calibrant.numerals import counted

SHOWN = 5  # names in a message
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class ClassColumns:
    """What a table of probabilities is called: its argument, and the columns of a frame by name."""

    argument: str
    columns: tuple[str, ...] = ()

    @classmethod
    def of(cls, probabilities: Any, argument: str) -> ClassColumns:
        """Return the names of a frame's columns, none where they are no text."""
        named = tuple(columns_named(probabilities))
        return cls(argument, named if all(isinstance(name, str) for name in named) else ())

    def __str__(self) -> str:
        return f"columns {_listed(self.columns)}" if self.columns else self.argument

    def numbers(self, probabilities: Any) -> npt.NDArray[Any]:
        """Return the table, objects such as pandas.NA as numbers."""
        table = array_of(probabilities, self.argument)
        if table.ndim == 2 and table.dtype.kind == "O" and table.size:
            columns = [numeric_vector(column, self._column(k)) for k, column in enumerate(table.T)]
            table = np.stack(columns, axis=1)
        if table.ndim != 2 or table.shape[1] < 2 or table.dtype.kind not in "fiu":
            rule = "must be numbers, a row for each record and a column for each class"
            got = f"got shape {table.shape}, dtype {table.dtype}"
            raise InvalidInputError(sentence(self.argument, rule, got))
        if len(table) == 0:
            raise InvalidInputError(sentence(self.argument, "must not be empty", "got no rows"))
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
        """Refuse rows that are no probabilities of classes; those that are not kept are not looked at."""
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
    if (
        len(names) != count
        or not all(isinstance(name, Hashable) for name in names)
        or len(set(names)) < count
    ):
        got = f"got {names!r} for {counted(count, 'column')}"
        raise InvalidInputError(sentence("classes", f"must name each column of {argument} once", got))
    return names


def columns_named(table: Any) -> list[Any]:
    """Return the names of a frame's columns, none where it is no frame."""
    columns = getattr(table, "column_names", getattr(table, "columns", ()))
    return list(columns) if isinstance(columns, Sequence) or hasattr(columns, "tolist") else []


def check_column_order(columns: Any, known: Sequence[str], subject: str) -> None:
    """Refuse columns whose names say that they stand in another order than the `known` ones."""
    place = {name: k for k, name in enumerate(known)}
    if isinstance(columns, Sequence) and any(place.get(str(name), k) != k for k, name in enumerate(columns)):
        rule = f"must stand in the order of the fit, {_listed(known)}"
        raise InvalidInputError(
            sentence(subject, rule, f"got {_listed(columns)}", "select them in that order")
        )


def classes_hint(labels: Sequence[Any], names: Sequence[Any]) -> str:
    """Say how the columns are to be named, by the labels that there are.

    >>> classes_hint(["cat", "dog", "cat"], [0, 1])
    "name the columns in their order with classes=, by the labels: 'cat' and 'dog'"
    >>> classes_hint(["cat", "dog", "owl"], [0, 1])
    'there are 3 labels and 2 columns: each label needs a column'
    """
    known: list[Any] = list(dict.fromkeys(label for label in labels if isinstance(label, Hashable)))
    if len(known) > len(names):
        return f"there are {counted(len(known), 'label')} and {len(names)} columns: each label needs a column"
    with suppress(TypeError):  # of several types
        known = sorted(known)
    return f"name the columns in their order with classes=, by the labels: {_listed(known)}"


def _listed(names: Sequence[Any]) -> str:
    shown = [repr(name) for name in names[:SHOWN]]
    if len(names) > SHOWN:
        return f"{', '.join(shown)}, ... ({len(names)} in all)"
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)
