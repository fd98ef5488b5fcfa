"""Records: the rows of the user, checked once and put in one order that does not depend on row order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from calibrant import inputs
from calibrant.censoring import Censored
from calibrant.errors import (
    DROP_MISSING,
    Hint,
    InvalidInputError,
    SwappedArgumentsWarning,
    reject_rows,
    sentence,
    warn_user,
)
from calibrant.formatting import pluralize
from calibrant.inputs import InputNames, any_fraction, row_labels, unwrap
from calibrant.kernels.ordering import RowIndex, canonical, ties_ordered
from calibrant.results import Array

Missing = Literal["error", "drop"]
OutcomeKind = Literal["shares", "labels", "plain", "real"]  # in [0, 1]; 0 or 1; 0 or 1 unless "real"; any
LABEL_HINTS = {
    "labels": "leave rows with other outcomes out (ties, say)",
    "plain": Hint("pass {} for responses that are not 0 or 1", variant="real"),
}

ARGUMENTS = InputNames()


@dataclass(frozen=True, slots=True, eq=False)
class ValidRows:
    """The user's rows after checking, still in their own order."""

    outcome: npt.NDArray[Any]
    prediction: Array
    weight: Array | None  # None: all weigh the same
    largest: float  # weight
    rows: RowIndex | None  # where each came from; None: all rows are here
    length: int  # of the user's columns
    dropped: int  # rows with a missing value
    labels: Any = None  # the index of the rows, if pandas gave them one
    censoring: Censored | None = None  # of some rows before the horizon: weights then follow the outcome

    def __len__(self) -> int:
        return len(self.prediction)

    @property
    def binary(self) -> bool:
        return self.outcome.dtype.kind in "bui" or not any_fraction(self.outcome)


@dataclass(frozen=True, slots=True, eq=False)
class Records(ValidRows):
    """Prediction, outcome and weight of every kept row, in the canonical order."""

    # by prediction; ties by a hash of all else that is known, so that rows which change places are the same
    rows: RowIndex
    weight: Array  # in units of the largest
    weighted: bool = False  # else all weigh the same

    @classmethod
    def of(cls, checked: ValidRows, columns: Sequence[npt.NDArray[Any]] = ()) -> Records:
        """Put checked rows in order; `columns` (codes, masks) belong to the rows of the user."""
        outcome, weight = checked.outcome, checked.weight
        weight = None if weight is None else weight / checked.largest
        extra = [column if checked.rows is None else column[checked.rows] for column in columns]
        order, ordered = canonical(checked.prediction, outcome, weight, extra)
        return cls(
            outcome.take(order).astype(np.float64, copy=False),
            ordered,
            _ones(len(order)) if weight is None else weight.take(order),
            checked.largest,
            order if checked.rows is None else checked.rows[order],
            checked.length,
            checked.dropped,
            checked.labels,
            checked.censoring,
            weight is not None,
        )

    @property
    def n(self) -> int:
        return len(self.rows)

    def take(self, which: npt.NDArray[Any]) -> Records:
        rows = self.rows[which]
        return replace(
            self,
            rows=rows,
            prediction=self.prediction[which],
            outcome=self.outcome[which],
            weight=self.weight[which] if self.weighted else _ones(len(rows)),
        )

    def break_ties(self, columns: Sequence[npt.NDArray[Any]]) -> Records:
        """Break ties by weight, outcome and `columns`, which are given for the rows of the user."""
        if np.all(self.prediction[1:] > self.prediction[:-1]):
            return self
        weight = self.weight if self.weighted else None
        extra = [column[self.rows] for column in columns]
        order = ties_ordered(np.arange(len(self)), self.prediction, self.outcome, weight, extra)
        return self.take(order)


def check_records(
    y_true: Any,
    y_prob: Any,
    sample_weight: Any = None,
    missing: Missing = "error",
    names: InputNames = ARGUMENTS,
    kind: OutcomeKind = "shares",
    pos_label: Any = None,
) -> ValidRows:
    """Check outcome, prediction and weight; leave out rows of weight 0 and, if asked, rows with a gap."""
    inputs.check_missing(missing=missing)
    censoring = y_true if isinstance(y_true, Censored) else None
    if censoring is not None:
        y_true, sample_weight = censoring.outcome_and_weight(sample_weight)
    names = names.with_names_of(y_true, y_prob, sample_weight)
    y_true, y_prob, sample_weight = unwrap(y_true), unwrap(y_prob), unwrap(sample_weight)
    y = inputs.outcomes_of(y_true, names.outcome, pos_label)
    p = inputs.positive_column(y_prob, names.prediction, y_true, pos_label)
    w = None if sample_weight is None else inputs.numeric_vector(sample_weight, names.weight)
    inputs.check_same_length(y, p, (names.outcome, names.prediction))
    if w is not None:
        inputs.check_same_length(w, p, (names.weight, names.prediction))
    labels = row_labels(y_prob)
    for data, name in ((y_true, names.outcome), (sample_weight, names.weight)):
        inputs.check_aligned(data, labels, (name, names.prediction))
        labels = row_labels(data) if labels is None else labels
    length, kept = len(p), _complete(y, p, w, missing, names)
    if kept is not None:
        y, p, w = y[kept], p[kept], None if w is None else w[kept]
    dropped = length - len(p)
    _check_ranges(y, p, names, kind)
    largest = 1.0
    if w is not None:
        w = inputs.check_weights(w, names.weight)
        largest = float(w.max())
        if not w.all():
            positive = np.flatnonzero(w)
            kept = positive if kept is None else kept[positive]
            y, p, w = y[positive], p[positive], w[positive]
        w = None if np.all(w == largest) else w
    if censoring is not None and not censoring.censored:
        censoring = None
    return ValidRows(y, np.asarray(p, dtype=np.float64), w, largest, kept, length, dropped, labels, censoring)


def _complete(
    y: npt.NDArray[Any], p: npt.NDArray[Any], w: npt.NDArray[Any] | None, missing: Missing, names: InputNames
) -> RowIndex | None:
    absent = inputs.missing_rows(y, p, w)
    if absent is None:
        return None
    given = [(y, names.outcome), (p, names.prediction), *([] if w is None else [(w, names.weight)])]
    if missing == "error":
        for array, name in given:
            reject_rows(name, "must not be missing", array, array != array, DROP_MISSING)
    if absent.all():
        got = f"got {pluralize(len(p), 'row')}, all with one"
        empty = (name for array, name in given if name != names.prediction and np.all(array != array))
        whose = next(empty, names.prediction)
        raise InvalidInputError(whose, "must have a row without missing values", got)
    return np.flatnonzero(~absent)


def _check_ranges(y: npt.NDArray[Any], p: npt.NDArray[Any], names: InputNames, kind: OutcomeKind) -> None:
    if kind == "real":
        reject_rows(names.outcome, "must be finite", y, ~np.isfinite(y))
        reject_rows(names.prediction, "must be finite", p, ~np.isfinite(p))
        return
    inputs.check_unit_interval(y, names.outcome)
    inputs.check_unit_interval(p, names.prediction)
    if kind in LABEL_HINTS and y.dtype.kind == "f":
        reject_rows(names.outcome, "must be 0 or 1", y, (y != 0) & (y != 1), LABEL_HINTS[kind])


def swapped(checked: ValidRows) -> bool:
    return not any_fraction(checked.prediction) and not checked.binary


def warn_if_swapped(
    checked: ValidRows, names: InputNames = ARGUMENTS, y_true: Any = None, y_prob: Any = None
) -> None:
    """Warn where the two arguments look swapped; known probabilities as outcomes are legitimate."""
    if swapped(checked):
        names = names.with_names_of(y_true, y_prob, None)
        both, got = f"{names.outcome} and {names.prediction}", "got fractions as outcomes, and predictions of"
        text = sentence(both, "may be swapped", f"{got} 0 and 1 alone", "the outcomes come first")
        warn_user(text, SwappedArgumentsWarning)


def _ones(count: int) -> Array:
    """Return equal weights without memory for each."""
    return np.broadcast_to(1.0, count)
