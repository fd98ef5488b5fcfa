"""Censored times: turn time, event and horizon into outcomes and weights that every function takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from calibrant.columns import code_labels, first_codes
from calibrant.errors import DROP_MISSING, InvalidInputError, reject_rows
from calibrant.formatting import format_value, pluralize
from calibrant.inputs import (
    check_aligned,
    check_missing,
    check_same_length,
    numeric_vector,
    positive_number,
    row_labels,
    subject_of,
    to_array,
)
from calibrant.results import Array


@dataclass(frozen=True, eq=False, repr=False)
class Censored:
    """Outcomes at a horizon with the weights that make up for censoring; pass it as `y_true`.

    `outcome` is 1 where the event was observed by the `horizon`, else 0. `weight` is 0 where the record was
    censored before the horizon, and elsewhere the inverse of the probability of not being censored until
    then, by Kaplan and Meier: the inverse probability of censoring weights (IPCW). All arrays have one
    number per row.
    """

    outcome: Array
    weight: Array
    time: Array
    event: npt.NDArray[np.int64]
    horizon: float
    strata: npt.NDArray[np.intp]
    labels: Any = None

    def __len__(self) -> int:
        return len(self.time)

    @property
    def censored(self) -> int:
        """How many records were censored before the horizon."""
        return int(np.count_nonzero((self.weight == 0) & (self.outcome == 0)))

    @property
    def largest_weight(self) -> float:
        """The weight of the heaviest record, in records."""
        return float(self.weight.max())

    @property
    def effective(self) -> float:
        """How many equally weighted records carry as much information."""
        return float(self.weight.sum() ** 2 / np.sum(self.weight**2))

    @property
    def event_rate(self) -> float:
        """Estimated probability of the event by the horizon: the Aalen-Johansen estimate (without strata)."""
        return float(self.weight[self.outcome == 1].sum() / self.weight.sum())

    def outcome_and_weight(self, sample_weight: Any = None) -> tuple[Any, Any]:
        """Return outcomes and weights per row, the weights as they were given if nothing was censored."""
        weight = sample_weight
        if self.censored:
            weight = self.weight
            if sample_weight is not None:
                check_aligned(sample_weight, self.labels, ("sample_weight", "time"))
                given = numeric_vector(sample_weight, "sample_weight")
                check_same_length(given, weight, ("sample_weight", "time"))
                weight = weight * given
        if self.labels is None:
            return self.outcome, weight
        import pandas

        return pandas.Series(self.outcome, self.labels), weight

    def reweighted(self, counts: npt.ArrayLike) -> Array:
        """Return count times inverse probability, estimated again after each row was drawn `counts` times."""
        drawn, result = np.asarray(counts, dtype=np.float64), np.zeros(len(self))
        kept = (self.time >= self.horizon) | (self.event > 0)
        for rows, times, places in self._by_stratum:
            inverse = _inverse_before(places, drawn[rows], self.event[rows] == 0)
            until = np.minimum(places, np.searchsorted(times, self.horizon))
            result[rows] = np.where(kept[rows], inverse[until], 0.0)
        return drawn * np.where((drawn > 0) | np.isfinite(result), result, 1.0)

    @cached_property
    def _by_stratum(self) -> list[tuple[npt.NDArray[np.intp], Array, npt.NDArray[np.intp]]]:
        """Rows and distinct times of each stratum, and which each row has; rows with a gap belong to none."""
        codes = [np.flatnonzero(self.strata == code) for code in range(int(self.strata.max()) + 1)]
        return [(rows, *np.unique(self.time[rows], return_inverse=True)) for rows in codes if len(rows)]

    def __repr__(self) -> str:
        return (
            f"Censored({pluralize(len(self), 'record')}, horizon {self.horizon:g}, event rate "
            f"{self.event_rate:.4g}, {self.censored:,} censored before)"
        )

    def __str__(self) -> str:
        number, when = pluralize(len(self), "record"), f"censored before {self.horizon:g}"
        if not self.censored:
            return f"None of {number} was {when}: outcomes count as they are."
        inside = " within strata" if self.strata.max() > 0 else ""
        return (
            f"{self.censored:,} of {number} were {when}; the others are weighted up to "
            f"{format_value(self.largest_weight)} times in their place and carry as much information as "
            f"about {round(self.effective):,} records. This assumes that censoring does not depend on the "
            f"prediction{inside}."
        )


def censored(
    time: Any,
    event: Any,
    horizon: float,
    *,
    strata: Any = None,
    missing: Literal["error", "drop"] = "error",
) -> Censored:
    """Turn censored times into outcomes at a horizon, to be passed as `y_true` to any function.

    A record is 1 if its event was observed by the horizon and 0 if it was still followed then. Records
    censored before the horizon have weight 0; the others are weighted by 1 / G(min(time, horizon)-), where G
    is the Kaplan-Meier estimate of the censoring times (at ties, events come before censorings). Without
    censoring before the horizon all weights are 1.

    Censoring must not depend on the prediction, or only through `strata`.

    Parameters
    ----------
    time
        Time of the event or of the end of follow-up, per record.
    event
        1 if the event was observed then, 0 if the record was censored; numbers above 1 are other causes,
        after which the event cannot happen any more (competing risks).
    horizon
        The predictions are probabilities of the event by this time.
    strata
        Groups with censoring of their own, one label per record.
    missing
        Refuse rows without a time or an event ("error"), or mark them as missing outcomes ("drop").

    Returns
    -------
    Censored

    Examples
    --------
    >>> y = censored([1, 2, 3, 4], [1, 0, 1, 0], 3.5)
    >>> y.outcome.tolist(), y.weight.tolist()
    ([1.0, 0.0, 1.0, 0.0], [1.0, 0.0, 1.5, 1.5])
    """
    check_missing(missing=missing)
    end = positive_number("horizon", horizon)
    when, what = subject_of(time, "time"), subject_of(event, "event")
    times = numeric_vector(time, when).astype(np.float64)
    causes = numeric_vector(event, what).astype(np.float64)
    check_same_length(times, causes, (when, what))
    check_aligned(event, row_labels(time), (what, when))
    absent = np.isnan(times) | np.isnan(causes)
    codes = np.zeros(len(times), dtype=np.intp) if strata is None else _codes(strata, time)
    absent |= codes < 0
    if missing == "error":
        reject_rows(when, "must not be missing", times, np.isnan(times), DROP_MISSING)
        reject_rows(what, "must not be missing", causes, np.isnan(causes), DROP_MISSING)
        reject_rows("strata", "must not be missing", codes, codes < 0, DROP_MISSING)
    if absent.all():
        raise InvalidInputError(when, "must have a row without missing values", "got none")
    known = np.where(absent, 0.0, causes)
    wrong = ~absent & ~(np.isfinite(times) & (times >= 0))
    reject_rows(when, "must be finite and not negative", times, wrong)
    whole = "must be 0 for censored, 1 for the event, or 2, 3, ... for other causes"
    reject_rows(what, whole, causes, (known < 0) | (known != np.floor(known)) | (known > 2**31))
    times, codes = np.where(absent, 0.0, times), np.where(absent, -1, codes)
    outcome = np.where(absent, np.nan, (times <= end) & (known == 1))
    made = Censored(outcome, np.zeros(0), times, known.astype(np.int64), end, codes, row_labels(time))
    _check_horizon(made)
    return replace(made, weight=made.reweighted(~absent))


def _codes(strata: Any, time: Any) -> npt.NDArray[np.intp]:
    """Return the number of each row's stratum, -1 where it is missing."""
    labels = to_array(strata, "strata")
    if labels.ndim != 1:
        raise InvalidInputError("strata", "must be one-dimensional", f"got shape {labels.shape}")
    check_aligned(strata, row_labels(time), ("strata", "time"))
    check_same_length(labels, to_array(time, "time"), ("strata", "time"))
    coded = code_labels("strata", *first_codes("strata", labels.tolist()), nominal=True)
    return np.asarray(coded.codes, dtype=np.intp) - coded.missing


def content_order(
    made: Censored,
    rows: npt.NDArray[Any],
    keys: Sequence[npt.NDArray[Any]],
    clusters: npt.NDArray[np.intp] | None = None,
) -> npt.NDArray[np.intp]:
    """Return all rows in the order of their content: `rows` by `keys` (the last first), then others."""
    others = np.ones(len(made), dtype=bool)
    others[rows] = False
    known = [spread_out(key, rows, len(made)) for key in keys]
    ties = [] if clusters is None else [clusters]
    return np.lexsort([*ties, made.strata, made.event, made.time, *known, others])


def reordered(made: Censored, order: npt.NDArray[np.intp]) -> Censored:
    names = ("outcome", "weight", "time", "event", "strata")
    return replace(made, **{name: getattr(made, name)[order] for name in names}, labels=None)


def spread_out(column: npt.NDArray[Any], rows: npt.NDArray[Any], length: int) -> Array:
    full = np.zeros(length)
    full[rows] = column
    return full


def _inverse_before(places: npt.NDArray[np.intp], counts: Array, is_censored: npt.NDArray[np.bool_]) -> Array:
    """Return 1 / G just before each distinct time, and after all; G is the Kaplan-Meier estimate."""
    losses = np.bincount(places, weights=counts * is_censored)
    events = np.bincount(places, weights=counts * ~is_censored)
    at_risk = np.cumsum((losses + events)[::-1])[::-1] - events  # who has an event is not censored then
    left = at_risk - losses
    ratio = np.divide(at_risk, left, out=np.where(losses > 0, np.inf, 1.0), where=left > 0)
    return np.append(1.0, np.cumprod(ratio))


def _check_horizon(made: Censored) -> None:
    for rows, times, places in made._by_stratum:
        inverse = _inverse_before(places, np.ones(len(rows)), made.event[rows] == 0)
        if np.isinf(inverse[np.searchsorted(times, made.horizon)]):
            where = "" if made.strata.max() == 0 else f" of the stratum of row {rows[0]}"
            got = f"got {made.horizon:g}; the last record{where} is censored at {times[-1]:g}"
            hint = f"use a horizon of at most {times[-1]:g}"
            raise InvalidInputError("horizon", "must lie within the follow-up", got, hint)
