"""Rows of a file in the order of their stream: what `monitor` and `stream` read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, reject_rows, sentence
from calibrant.numerals import counted
from calibrant.results import Array
from calibrant.scale.files import FileNames, read_categories, read_columns

MONTHS = (
    "jan(uary|uar)?|feb(ruary|ruar)?|mar(ch)?|märz|apr(il)?|may|mai|june?|juni|july?|juli|aug(ust)?|"
    "sept?(ember)?|o[ck]t(ober)?|nov(ember)?|de[cz](ember)?"
)
# Dates as text that do not sort by time: 1.2.2024, 02/01/24, 2024-2-1, 1 Feb 2024, Feb 1, 2024
DATE = re.compile(
    r"\s*(\d{1,2}([./-])\d{1,2}\2\d{2,4}\b|\d{4}([./-])(\d\3\d{1,2}|\d\d\3\d)\b"
    rf"|(\w+,? )?(\d{{1,2}}[.]?[ -])?({MONTHS})[ .,-]+\d)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, eq=False)
class OrderedRows:
    """Outcomes (NaN where unknown), predictions and named columns, sorted; `place` is where in the file."""

    outcome: Array
    prediction: Array
    columns: Mapping[str, npt.NDArray[Any]]
    place: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.outcome)

    def after(self, count: int) -> OrderedRows:
        """Return the rows without the first `count`."""
        if count > len(self):
            rule = "must hold at least the records that the state has seen"
            raise InvalidInputError(
                sentence("FILE", rule, f"got {counted(len(self), 'row')} for {counted(count, 'record')}")
            )
        return self.taken(np.arange(count, len(self)))

    def taken(self, rows: npt.NDArray[Any]) -> OrderedRows:
        """Return some of the rows."""
        columns = {name: column[rows] for name, column in self.columns.items()}
        return OrderedRows(self.outcome[rows], self.prediction[rows], columns, self.place[rows])


def read_ordered(
    file: FileNames,
    *,
    outcome: str,
    prediction: str,
    order: str | None,
    others: list[str],
    unknown: bool,
    hint: str = "",
) -> OrderedRows:
    """Read the columns named and sort by `order`, rows that tie in the order of the file.

    Rows without outcome are refused, with `hint`, unless `unknown` lets them in.
    """
    if outcome == prediction:
        rule = "must be different columns"
        raise InvalidInputError(sentence("--outcome and --prediction", rule, f"got {outcome!r} twice"))
    numbers = read_columns(file, [outcome, prediction])
    y, p = (np.asarray(numbers[name], dtype=np.float64) for name in (outcome, prediction))
    names = list(dict.fromkeys([*([order] if order else []), *others]))
    columns = read_categories(file, names) if names else {}
    _check_numbers(y, p, outcome, prediction, unknown, hint)
    sorting = _sorting(columns[order], order) if order else np.arange(len(y))
    return OrderedRows(y, p, columns, np.arange(len(y))).taken(sorting)


def _check_numbers(y: Array, p: Array, outcome: str, prediction: str, unknown: bool, hint: str) -> None:
    column = f"column {prediction!r}"
    reject_rows(column, "must not be missing", p, np.isnan(p), "leave rows without a prediction out")
    reject_rows(column, "must lie in [0, 1]", p, ~((p >= 0) & (p <= 1)))
    column = f"column {outcome!r}"
    if not unknown:
        reject_rows(column, "must not be missing", y, np.isnan(y), hint)
    bad = ~np.isnan(y) & (y != 0) & (y != 1)
    reject_rows(column, "must be 0 or 1", y, bad, "leave ties and undecided records out")


def _sorting(column: npt.NDArray[Any], name: str) -> npt.NDArray[np.int64]:
    """Return how to sort the rows by one column, which must have no gaps."""
    missing = np.array([item is None or item != item for item in column.tolist()], dtype=bool)
    if column.dtype.kind in "mM":
        missing |= np.isnat(column)
    reject_rows(f"column {name!r}", "must not be missing where it orders the rows", column, missing)
    refuse_dates_as_text(column, name)
    try:
        return np.argsort(column, kind="stable")
    except TypeError:
        rule = "must hold values that can be ordered"
        raise InvalidInputError(sentence(f"column {name!r}", rule, "got several types")) from None


def refuse_dates_as_text(column: npt.NDArray[Any], name: str) -> None:
    """Refuse dates that would be sorted by their letters, unless there is nothing to sort."""
    cells = column.tolist()
    if column.dtype.kind not in "OU" or len(set(cells)) == 1:
        return
    dates = np.array([isinstance(cell, str) and DATE.match(cell) is not None for cell in cells], dtype=bool)
    rule, hint = "must hold dates that sort by time", "text is sorted by its letters; write 2024-02-01"
    reject_rows(f"column {name!r}", rule, column, dates, hint)
