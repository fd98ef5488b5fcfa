"""temperature, vector, dirichlet, one-vs-rest, top-label: methods for several classes."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from calibrant.errors import InvalidInputError, sentence
from calibrant.fits.softmax import Family, SoftmaxFit, softmax_fit, softmax_rates
from calibrant.forecasts import Forecasts
from calibrant.recalibration.class_records import ClassRecords
from calibrant.recalibration.maps.classes import OneVsRestMap, SoftmaxMap, TopLabelMap
from calibrant.recalibration.maps.form import Map
from calibrant.recalibration.maps.identity import IdentityMap
from calibrant.recalibration.procedure import Candidate
from calibrant.recalibration.registry import Fitted, Method
from calibrant.recalibration.samples import sample_of

PENALTIES = tuple(10.0**k for k in range(1, -5, -1))  # from strong to weak: each fit starts the next
FOLDS = 3
Penalty = Literal["auto"] | float


def temperature(records: ClassRecords, *, seed: int) -> Fitted:
    """Divide all logarithms by one temperature."""
    return _fitted(records, "temperature", 0.0)


def vector(records: ClassRecords, *, seed: int, penalty: Penalty = "auto") -> Fitted:
    """Give each class a slope and an intercept, shrunk toward one temperature."""
    return _fitted(records, "vector", _settled(records, "vector", penalty, seed))


def dirichlet(records: ClassRecords, *, seed: int, penalty: Penalty = "auto") -> Fitted:
    """Fit a full matrix of the logarithms, shrunk toward one temperature."""
    return _fitted(records, "dirichlet", _settled(records, "dirichlet", penalty, seed))


def _fitted(records: ClassRecords, family: Family, penalty: float) -> Fitted:
    fit = _fit(records, family, penalty)
    return Fitted(SoftmaxMap(fit.matrix, fit.intercepts), unseen(records), {"penalty": penalty})


def _fit(
    records: ClassRecords, family: Family, penalty: float, start: SoftmaxFit | None = None
) -> SoftmaxFit:
    return softmax_fit(records.table, records.labels, records.weights, family, penalty, start)


def unseen(records: ClassRecords) -> tuple[str, ...]:
    """Return a note on classes that never occur."""
    absent = np.flatnonzero(np.bincount(records.labels, minlength=records.classes) == 0)
    if len(absent) == 0:
        return ()
    shown = ", ".join(map(str, absent[:5]))
    return (f"Columns {shown} never occur among the outcomes: nothing is known of them.",)


def _settled(records: ClassRecords, family: Family, penalty: Penalty, seed: int) -> float:
    """Return the penalty: as given, or the one with the least cross-fitted log loss."""
    if penalty != "auto":
        if isinstance(penalty, bool) or not isinstance(penalty, (int, float)) or not 0 <= penalty < np.inf:
            rule = 'must be "auto" or a number from 0'
            raise InvalidInputError(sentence("penalty", rule, f"got {penalty!r}"))
        return float(penalty)
    if records.n < FOLDS:
        return PENALTIES[0]
    losses = np.zeros(len(PENALTIES))
    for rest, part in records.cut(FOLDS, seed):
        fit: SoftmaxFit | None = None
        for k, each in enumerate(PENALTIES):
            fit = _fit(rest, family, each, fit)
            losses[k] += part.weights @ part.losses(softmax_rates(part.table, fit.matrix, fit.intercepts))
    return PENALTIES[int(np.argmin(losses))]


def one_vs_rest(records: ClassRecords, inner: Method, *, seed: int) -> Fitted:
    """Fit each class against the rest by a method for two, and normalise."""
    maps = [
        _inner(records, records.labels == k, records.table[:, k], inner, seed) for k in range(records.classes)
    ]
    return Fitted(OneVsRestMap(tuple(maps)), unseen(records), {"inner": inner.name})


def _inner(records: ClassRecords, outcome: Any, prediction: Any, row: Method, seed: int) -> Map:
    """Fit one binary map; a class that never or always occurs is left as it is."""
    forecasts = Forecasts(outcome, prediction, sample_weight=records.weights)
    sample = sample_of(forecasts)
    if row.needs_both_outcomes and not sample.levels.both_outcomes:
        return IdentityMap()
    return Candidate(row).fit(sample, seed).map


def top_label(records: ClassRecords, inner: Method, platt: Method, *, seed: int) -> Fitted:
    """Fit the probability of the predicted class: one map for all, then one per class shrunk to no change."""
    top = records.table.argmax(axis=1)
    confidence = records.table[np.arange(records.n), top]
    right = (top == records.labels).astype(np.float64)
    pooled = _inner(records, right, confidence, inner, seed)
    maps: list[Map] = []
    for k in range(records.classes):
        chosen = top == k
        part = records.where(chosen)
        if not chosen.any():
            maps.append(IdentityMap())
            continue
        maps.append(_inner(part, right[chosen], pooled.predict(confidence[chosen]), platt, seed))
    return Fitted(TopLabelMap(pooled, tuple(maps)), unseen(records), {"inner": inner.name})
