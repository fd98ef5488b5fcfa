"""recalibrate for several classes: the choice among softmax maps, and whether it helped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from calibrant.errors import CalibrantError, InvalidInputError, reject_name, sentence, warn_user
from calibrant.forecasts import Forecasts
from calibrant.measures.smooth import smooth_calibration_error
from calibrant.recalibration.assess import CONFIDENCE, FEWEST, FOLDS, Assessment, Verdict, change_of
from calibrant.recalibration.choose import UNCHANGED
from calibrant.recalibration.class_records import ClassRecords
from calibrant.recalibration.fit_facts import FitFacts, counted_out
from calibrant.recalibration.fit_progress import fitted_once
from calibrant.recalibration.maps.identity import IdentityMap
from calibrant.recalibration.registry import Fitted, Method, all_options
from calibrant.recalibration.result import Recalibration, RecalibrationWarning
from calibrant.recalibration.table import recalibrations
from calibrant.results import NOTHING, Array

CANDIDATES = ("temperature", "vector", "dirichlet")


@dataclass(frozen=True, slots=True, eq=False)
class ClassCandidate:
    """A method for several classes and its options; None is the identity."""

    method: Method | None
    options: Mapping[str, Any] = field(default_factory=lambda: NOTHING)

    def fit(self, records: ClassRecords, seed: int) -> Fitted:
        """Fit to records."""
        if self.method is None:
            return Fitted(IdentityMap())
        fit = self.method.fit_classes
        if fit is None:
            hint = f"use {', '.join(name for name, row in recalibrations().items() if row.fit_classes)}"
            raise InvalidInputError(
                sentence(f"method {self.method.name!r}", "takes two classes only", "got several", hint)
            )
        fitted = fit(records, seed=seed, **all_options(self.method, fit, self.options))
        fitted_once()
        return fitted


def fit_classes(
    records: ClassRecords, row: Method, options: Mapping[str, Any], weights: str, seed: int
) -> Recalibration:
    """Fit a method, or the choice of auto, to records of several classes that are checked already."""
    auto, named = row.name == "auto", MappingProxyType(dict(options))
    if auto and options:
        raise reject_name("option of auto for several classes", next(iter(options)), ["none"])

    def procedure(part: ClassRecords, seed: int) -> Fitted:
        return choose_classes(part, seed) if auto else ClassCandidate(row, named).fit(part, seed)

    fitted = procedure(records, seed)
    for note in fitted.notes:
        if note != UNCHANGED:
            warn_user(note, RecalibrationWarning)
    return Recalibration(
        method=row.name,
        chosen=str(fitted.details.get("chosen", row.name)),
        options=named,
        map=fitted.map,
        fit=_facts(records, weights, seed),
        notes=fitted.notes,
        details=counted_out(fitted.details, records.dropped),
        judge=lambda: assess_classes(records, procedure, seed),
        columns=records.classes,
        classes=records.names,
    )


def expected_class_fits(row: Method, records: ClassRecords) -> int:
    """Return how many fits there will be: of every candidate and fold, or of every class."""
    inside = {"one-vs-rest": records.classes, "top-label": records.classes + 1}
    return FOLDS * len(CANDIDATES) + 1 if row.name == "auto" else 1 + inside.get(row.name, 0)


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


def choose_classes(records: ClassRecords, seed: int) -> Fitted:
    """Return the simplest of no change and the softmax maps within one standard error of the best."""
    candidates = {"identity": ClassCandidate(None)}
    candidates |= {name: ClassCandidate(recalibrations()[name]) for name in CANDIDATES}
    losses: dict[str, Array] = {}
    parts = records.cut(FOLDS, seed)
    for name, candidate in candidates.items():
        losses[name] = np.concatenate(
            [part.losses(candidate.fit(rest, seed).map.predict(part.table)) for rest, part in parts]
        )
    weights = np.concatenate([part.weights for _, part in parts])
    means = {name: float(weights @ loss / weights.sum()) for name, loss in losses.items()}
    best = losses[min(means, key=lambda name: means[name])]
    chosen = next(name for name in candidates if _as_good(losses[name] - best, weights))
    fitted = candidates[chosen].fit(records, seed)
    note = (UNCHANGED,) if chosen == "identity" else ()
    details = {**fitted.details, "chosen": chosen, "losses": means}
    return Fitted(fitted.map, (*fitted.notes, *note), MappingProxyType(details))


def _as_good(excess: Array, weights: Array) -> bool:
    mean, error = _mean_and_error(excess, weights)
    return mean <= error


def _mean_and_error(values: Array, weights: Array) -> tuple[float, float]:
    """Return the mean of values of records, and its standard error."""
    total = weights.sum()
    mean = float(weights @ values / total)
    return mean, float(np.sqrt(weights @ (values - mean) ** 2 / total / total))


def assess_classes(records: ClassRecords, procedure: Any, seed: int) -> Assessment | str:
    """Cross-fit a procedure for several classes and judge it, its smooth error by the top label."""
    try:
        parts = records.cut(FOLDS, seed)
        tables = [procedure(rest, seed).map.predict(part.table) for rest, part in parts]
    except CalibrantError as reason:
        return str(reason)
    held = [part for _, part in parts]
    share = np.array([part.weights.sum() for part in held])
    figures = [
        [_figures(part, side) for side in (part.table, new)] for part, new in zip(held, tables, strict=True)
    ]
    errors = (_error(held, tables), 0.0, 0.0)
    changes = {
        name: change_of([(before[k], after[k]) for before, after in figures], share, errors[k])
        for k, name in enumerate(("log_loss", "brier_score", "smooth"))
    }
    main = changes["log_loss"]
    verdict: Verdict = "no evidence that it helps"
    if records.n < FEWEST:
        verdict = "too little data to say"
    elif main.lower > 0 or main.upper < 0:
        verdict = "helps" if main.lower > 0 else "harms"
    return Assessment(
        main.gain, main.lower, main.upper, main.before, main.after,
        verdict,
        records.n, FOLDS, CONFIDENCE, seed, MappingProxyType(changes), records.n, records.n,
    )  # fmt: skip


def _error(held: list[ClassRecords], tables: list[Array]) -> float:
    """Return the standard error of the mean gain in log loss, record by record."""
    gains = [part.losses(part.table) - part.losses(new) for part, new in zip(held, tables, strict=True)]
    return _mean_and_error(np.concatenate(gains), np.concatenate([part.weights for part in held]))[1]


def _figures(part: ClassRecords, table: Array) -> tuple[float, float, float]:
    """Return mean log loss, mean Brier score and the smooth error of the top label."""
    share = part.weights / part.weights.sum()
    hit = np.zeros_like(table)
    hit[np.arange(part.n), part.labels] = 1.0
    top = table.argmax(axis=1)
    confidence = np.clip(table[np.arange(part.n), top], 0.0, 1.0)
    smooth = smooth_calibration_error(Forecasts(top == part.labels, confidence, sample_weight=part.weights))
    return float(share @ part.losses(table)), float(share @ ((table - hit) ** 2).sum(axis=1)), float(smooth)
