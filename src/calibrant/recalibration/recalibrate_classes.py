"""recalibrate for several classes: the choice among softmax maps."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from calibrant.errors import InvalidInputError, reject_name, sentence, warn_user
from calibrant.fits.softmax import Family
from calibrant.recalibration.assess import FAST, SLOW, ClassAssessor
from calibrant.recalibration.choose import UNCHANGED
from calibrant.recalibration.maps.base import IdentityMap
from calibrant.recalibration.methods.classes import HeldOutPath, held_out_path
from calibrant.recalibration.methods.table import recalibrations
from calibrant.recalibration.registry import Fitted, Method, Report, call_fit
from calibrant.recalibration.result import Recalibration, RecalibrationWarning
from calibrant.recalibration.samples import ClassRecords
from calibrant.recalibration.storage import FitFacts, counted_out
from calibrant.results import NOTHING, Array

CANDIDATES: tuple[Family, ...] = ("temperature", "vector", "dirichlet")
FOLDS = 5


def fit_classes(
    records: ClassRecords,
    row: Method,
    options: Mapping[str, Any],
    weights: str,
    seed: int,
    report: Report | None = None,
) -> Recalibration:
    """Fit a method, or the choice of auto, to checked records of several classes."""
    auto, named = row.name == "auto", MappingProxyType(dict(options))
    if auto and options:
        raise reject_name("option of auto for several classes", next(iter(options)), ["none"])

    def procedure(part: ClassRecords, seed: int, report: Report | None = None) -> Fitted:
        return choose_classes(part, seed, report) if auto else _fit_method(part, row, named, seed, report)

    fitted = procedure(records, seed, report)
    for note in fitted.notes:
        if note != UNCHANGED:
            warn_user(note, RecalibrationWarning)
    plan = FAST if row.name == "temperature" else SLOW
    return Recalibration(
        method=row.name,
        chosen=str(fitted.details.get("chosen", row.name)),
        options=named,
        map=fitted.map,
        fit=_facts(records, weights, seed),
        notes=fitted.notes,
        details=counted_out(fitted.details, records.dropped),
        assessor=ClassAssessor(procedure, fitted.map, seed, plan, auto, records),
        columns=records.classes,
        classes=records.names,
    )


def _fit_method(
    records: ClassRecords, method: Method, options: Mapping[str, Any], seed: int, report: Report | None
) -> Fitted:
    if method.fit_classes is None:
        hint = f"use {', '.join(name for name, row in recalibrations().items() if row.fit_classes)}"
        rule = "takes two classes only"
        raise InvalidInputError(sentence(f"method {method.name!r}", rule, "got several", hint))
    return call_fit(method, method.fit_classes, records, options, seed, report)


def _facts(records: ClassRecords, weights: str, seed: int) -> FitFacts:
    top = records.table.max(axis=1)
    right = records.table.argmax(axis=1) == records.labels
    return FitFacts(
        n=records.n,
        effective_n=float(records.weights.sum()),
        base_rate=float((records.weights * right).sum() / records.weights.sum()),  # never above 1
        low=float(top.min()),
        high=float(top.max()),
        levels=len(np.unique(top)),
        at_ends=float(records.weights[top >= 1].sum()),
        weights=weights,
        seed=seed,
    )


def choose_classes(records: ClassRecords, seed: int, report: Report | None = None) -> Fitted:
    """Return the simplest of no change and the softmax maps within one standard error of the best.

    One set of folds serves the choice of a method and that of its penalty.
    """
    parts = records.cut(FOLDS, seed)
    weights = np.concatenate([part.weights for _, part in parts])
    losses = {"identity": np.concatenate([part.losses(part.table) for _, part in parts])}
    paths: dict[str, HeldOutPath] = {}
    for done, name in enumerate(CANDIDATES):
        paths[name] = held_out_path(parts, name, _step(report, done))
        losses[name] = paths[name].losses
    means = {name: float(weights @ loss / weights.sum()) for name, loss in losses.items()}
    best = losses[min(means, key=lambda name: means[name])]
    chosen = next(name for name in losses if _as_good(losses[name] - best, weights))
    fitted = Fitted(IdentityMap())
    if chosen != "identity":
        options = {} if chosen == "temperature" else {"penalty": paths[chosen].penalty}
        fitted = _fit_method(records, recalibrations()[chosen], options or NOTHING, seed, None)
    note = (UNCHANGED,) if chosen == "identity" else ()
    details = {**fitted.details, "chosen": chosen, "losses": means}
    return Fitted(fitted.map, (*fitted.notes, *note), MappingProxyType(details))


def _step(report: Report | None, done: int) -> Report | None:
    """Return how one of the candidates reports its share of the whole."""
    if report is None:
        return None
    return lambda share: report((done + share) / (len(CANDIDATES) + 1))


def _as_good(excess: Array, weights: Array) -> bool:
    """Return whether the mean excess is within one standard error of 0."""
    total = weights.sum()
    mean = float(weights @ excess / total)
    return mean <= float(np.sqrt(weights @ (excess - mean) ** 2 / total / total))
