"""temperature, vector, dirichlet, one-vs-rest, top-label: methods for several classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError
from calibrant.fits.levels import Costs, joined_costs
from calibrant.fits.softmax import Family, softmax_fit, softmax_path, softmax_rates
from calibrant.forecasts import Forecasts
from calibrant.recalibration.maps.base import IdentityMap
from calibrant.recalibration.maps.classes import OneVsRestMap, SoftmaxMap, TopLabelMap
from calibrant.recalibration.methods.curves import WRONG_WAY, temperature_of
from calibrant.recalibration.registry import Fit, Fitted, Method, Report, silent
from calibrant.recalibration.samples import ClassRecords, sample_of
from calibrant.results import Array

PENALTIES = tuple(10.0**k for k in range(1, -5, -1))  # from strong to weak: each fit starts the next
FOLDS = 3
HELD_OUT_TOLERANCE = 1e-5  # gradient at which a held-out fit ends: probabilities then differ by about 1e-5
MAX_EXCESS_LOSS = 0.05  # nats per held-out record above the least, from which weaker penalties are not tried
Penalty = Literal["auto"] | float


def temperature(records: ClassRecords, *, seed: int) -> Fitted:
    return _fitted(records, "temperature", 0.0)


def _penalized_method(family: Family) -> Fit:
    def fit(
        records: ClassRecords, *, seed: int, penalty: Penalty = "auto", report: Report = silent
    ) -> Fitted:
        return _fitted(records, family, _settled(records, family, penalty, seed, report))

    return fit


vector, dirichlet = _penalized_method("vector"), _penalized_method("dirichlet")


def _fitted(records: ClassRecords, family: Family, penalty: float) -> Fitted:
    fit = softmax_fit(records.table, records.labels, records.weights, family, penalty)
    notes = (*wrong_way(fit.matrix), *unseen(records))
    details: dict[str, float | None] = {"penalty": penalty}
    if family == "temperature":
        details["temperature"] = temperature_of(float(fit.matrix[0, 0]))
    return Fitted(SoftmaxMap(fit.matrix, fit.intercepts), notes, details)


def wrong_way(matrix: Array) -> tuple[str, ...]:
    """Return a note on classes whose own logarithm lowers their probability more than that of the others."""
    own = np.diag(matrix)
    others = (matrix.sum(axis=0) - own) / (len(matrix) - 1)
    reversed_ = np.flatnonzero(own < others)
    if len(reversed_) == 0:
        return ()
    return (_turned("" if len(reversed_) == len(matrix) else f" of {_columns(reversed_)}"),)


def _turned(of: str) -> str:
    return (
        f"The fitted slope{of} is negative: larger predictions of a class went with fewer outcomes of it,"
        " so the scores rank the wrong way round; check the labels."
    )


def _columns(places: npt.NDArray[np.int64]) -> str:
    shown = ", ".join(map(str, places[:5])) + (", ..." if len(places) > 5 else "")
    return f"column{'s' if len(places) > 1 else ''} {shown}"


def unseen(records: ClassRecords) -> tuple[str, ...]:
    absent = np.flatnonzero(np.bincount(records.labels, minlength=records.classes) == 0)
    if len(absent) == 0:
        return ()
    shown = ", ".join(map(str, absent[:5]))
    return (f"Columns {shown} never occur among the outcomes: nothing is known of them.",)


def _settled(records: ClassRecords, family: Family, penalty: Penalty, seed: int, report: Report) -> float:
    if penalty != "auto":
        if isinstance(penalty, bool) or not isinstance(penalty, (int, float)) or not 0 <= penalty < np.inf:
            rule = 'must be "auto" or a number from 0'
            raise InvalidInputError("penalty", rule, f"got {penalty!r}")
        return float(penalty)
    if records.n < FOLDS:
        return PENALTIES[0]
    return held_out_path(records.cut(FOLDS, seed), family, report)[1]


def held_out_path(
    parts: Sequence[tuple[ClassRecords, ClassRecords]], family: Family, report: Report = silent
) -> tuple[Costs, float]:
    """Return the least held-out log loss, and its penalty; they are tried from strong to weak."""
    penalties = (0.0,) if family == "temperature" else PENALTIES
    paths = [
        softmax_path(rest.table, rest.labels, rest.weights, family, penalties, tolerance=HELD_OUT_TOLERANCE)
        for rest, _ in parts
    ]
    tried: list[tuple[Costs, float]] = []
    for fits in zip(*paths, strict=True):
        rates = [
            softmax_rates(part.table, fit.matrix, fit.intercepts)
            for (_, part), fit in zip(parts, fits, strict=True)
        ]
        costs = joined_costs([part.costs(q, "log") for (_, part), q in zip(parts, rates, strict=True)])
        tried.append((costs, fits[0].penalty))
        report(len(tried) / (len(penalties) + 1))
        if costs.mean > min(one.mean for one, _ in tried) + MAX_EXCESS_LOSS:
            break
    return min(tried, key=lambda one: one[0].mean)


def one_vs_rest(records: ClassRecords, inner: Method, *, seed: int, report: Report = silent) -> Fitted:
    fits: list[Fitted] = []
    for k in range(records.classes):
        fits.append(_inner(records, records.labels == k, records.table[:, k], inner, seed))
        report((k + 1) / (records.classes + 1))
    maps = tuple(one.map for one in fits)
    return Fitted(OneVsRestMap(maps), (*_turned_inside(fits), *unseen(records)), {"inner": inner.name})


def _inner(records: ClassRecords, outcome: Any, prediction: Any, row: Method, seed: int) -> Fitted:
    if not records.n:
        return Fitted(IdentityMap())
    forecasts = Forecasts(outcome, prediction, sample_weight=records.weights)
    sample = sample_of(forecasts)
    if row.needs_both_outcomes and not sample.levels.both_outcomes:
        return Fitted(IdentityMap())
    return row.fit_to(sample, seed=seed)


def _turned_inside(fits: Sequence[Fitted]) -> tuple[str, ...]:
    places = np.flatnonzero([WRONG_WAY in one.notes for one in fits])
    return (_turned(f" of {_columns(places)}"),) if len(places) else ()


def top_label(
    records: ClassRecords, inner: Method, platt: Method, *, seed: int, report: Report = silent
) -> Fitted:
    """Fit the probability of the predicted class: one map for all, then one per class shrunk to no change."""
    top = records.table.argmax(axis=1)
    confidence = records.table[np.arange(records.n), top]
    right = (top == records.labels).astype(np.float64)
    pooled = _inner(records, right, confidence, inner, seed)
    fits: list[Fitted] = []
    for k in range(records.classes):
        report((k + 1) / (records.classes + 1))
        chosen = top == k
        after = pooled.map.predict(confidence[chosen])
        fits.append(_inner(records.where(chosen), right[chosen], after, platt, seed))
    turned: tuple[str, ...] = (_turned(" of the predicted class"),) if WRONG_WAY in pooled.notes else ()
    if right.min() == right.max():  # no map is fitted to that
        seen = "always right" if right[0] else "never right"
        turned = (*turned, f"The predicted class was {seen}: its probability is left as it is.")
    notes = (*turned, *_turned_inside(fits), *unseen(records))
    return Fitted(TopLabelMap(pooled.map, tuple(one.map for one in fits)), notes, {"inner": inner.name})
