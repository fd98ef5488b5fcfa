"""Did it help? The assessment of recalibrations of several classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

import numpy as np

from calibrant.errors import CalibrantError
from calibrant.forecasts import Forecasts
from calibrant.metrics.smooth import smooth_calibration_error
from calibrant.recalibration.assess import (
    CONFIDENCE,
    MIN_RECORDS,
    Assessment,
    Change,
    SplitPlan,
    Verdict,
    fold_change,
    is_close,
    split_seed,
    verdict_of,
)
from calibrant.recalibration.gain import GainRule, Gains, gain_interval, join_gains
from calibrant.recalibration.maps.base import IdentityMap, Map
from calibrant.recalibration.registry import Fitted, Report
from calibrant.recalibration.samples import ClassRecords
from calibrant.results import Array

ClassProcedure = Callable[..., Fitted]  # (records, seed)


@dataclass(frozen=True, eq=False)
class ClassFolds:
    """Held-out records of every fold, and their recalibrated probabilities."""

    held_out: tuple[ClassRecords, ...]
    tables: tuple[Array, ...]

    def gains(self, loss: str) -> Gains:
        """Return the gain of every held-out record."""
        sides = zip(self.held_out, self.tables, strict=True)
        return join_gains([_gains(part, table, loss) for part, table in sides])

    def losses(self, loss: str) -> tuple[float, float]:
        """Return the mean loss of all held-out records before and after."""
        sides = list(zip(self.held_out, self.tables, strict=True))
        total = sum(float(part.weights.sum()) for part, _ in sides)
        before = sum(float(part.weights @ _losses(part, part.table, loss)) for part, _ in sides)
        after = sum(float(part.weights @ _losses(part, table, loss)) for part, table in sides)
        return before / total, after / total

    def wrong_certain(self) -> tuple[float, float]:
        """Return how often the class that occurred had a probability of exactly 0, before and after."""
        counts = [
            [float(part.weights[side[np.arange(part.n), part.labels] <= 0].sum()) for side in pair]
            for part, pair in (
                (part, (part.table, table)) for part, table in zip(self.held_out, self.tables, strict=True)
            )
        ]
        before, after = np.round(np.sum(counts, axis=0), 6)
        return float(before), float(after)

    def smooth_errors(self) -> list[tuple[float, float]]:
        """Return the smooth error of the top label in every fold, before and after."""
        sides = zip(self.held_out, self.tables, strict=True)
        return [(_top_label_error(part, part.table), _top_label_error(part, table)) for part, table in sides]


def _losses(part: ClassRecords, table: Array, loss: str) -> Array:
    if loss == "log":
        return part.log_losses(table)
    hit = np.zeros_like(table)
    hit[np.arange(part.n), part.labels] = 1.0
    return np.asarray(((table - hit) ** 2).sum(axis=1))


def _gains(part: ClassRecords, table: Array, loss: str) -> Gains:
    gain = _losses(part, part.table, loss) - _losses(part, table, loss)
    right = float(part.weights[part.table.argmax(axis=1) == part.labels].sum())
    rarer = min(right, float(part.weights.sum()) - right)
    return Gains(gain, gain, np.ones(part.n), part.weights, rarer=rarer)


def _top_label_error(part: ClassRecords, table: Array) -> float:
    top = table.argmax(axis=1)
    confidence = np.clip(table[np.arange(part.n), top], 0.0, 1.0)
    return float(
        smooth_calibration_error(Forecasts(top == part.labels, confidence, sample_weight=part.weights))
    )


@dataclass(frozen=True, eq=False)
class ClassAssessor:
    """Everything an assessment needs: the records, the procedure, and the map it delivered."""

    records: ClassRecords
    procedure: ClassProcedure
    delivered: Map
    seed: int
    plan: SplitPlan
    chosen: bool  # whether the method was chosen from the records

    def assess(self, report: Report | None = None) -> Assessment | str:
        """Return the assessment, or why there is none."""
        splits: list[ClassFolds] = []
        try:
            while len(splits) < self.plan.max_splits:
                if len(splits) >= self.plan.splits and not is_close(self._change(splits, "log")):
                    break
                splits.append(self._cross_fit(len(splits), report))
        except CalibrantError as reason:
            return str(reason)
        return self._summary(splits)

    def _cross_fit(self, split: int, report: Report | None) -> ClassFolds:
        seed = split_seed(self.seed, split)
        folds = max(2, min(self.plan.folds, self.records.n))
        parts = self.records.cut(folds, seed, stratified=False)
        present = len(np.unique(self.records.labels))
        if any(len(np.unique(rest.labels)) < present for rest, _ in parts):
            parts = self.records.cut(folds, seed)
        tables: list[Array] = []
        for rest, part in parts:
            tables.append(self.procedure(rest, self.seed).map.predict(part.table))
            if report is not None:
                report((split + len(tables) / folds) / self.plan.max_splits)
        return ClassFolds(tuple(part for _, part in parts), tuple(tables))

    def _change(self, splits: Sequence[ClassFolds], loss: str) -> Change:
        before, after = np.mean([one.losses(loss) for one in splits], axis=0)
        own = _gains(self.records, self._own_table, loss)
        spread = (self._own_table * (1.0 - self._own_table)).sum(axis=1)
        rule = GainRule(
            folds=len(splits[0].tables),
            chosen=self.chosen,
            unchanged=isinstance(self.delivered, IdentityMap),
            curvature=1.0 if loss == "log" else 2.0 * float(own.weights @ spread) / own.total,
            own_variance=loss == "log",
        )
        gain, lower, upper = gain_interval([one.gains(loss) for one in splits], own, rule, CONFIDENCE)
        return Change(float(before), float(after), gain, lower, upper)

    @cached_property
    def _own_table(self) -> Array:
        return self.delivered.predict(self.records.table)

    def _summary(self, splits: Sequence[ClassFolds]) -> Assessment:
        shares = np.array([[float(part.weights.sum()) for part in one.held_out] for one in splits])
        changes = {
            "log_loss": self._change(splits, "log"),
            "brier_score": self._change(splits, "brier"),
            "smooth": fold_change(np.array([one.smooth_errors() for one in splits]), shares),
        }
        main = changes["log_loss"]
        few: Verdict | None = "too little data to say" if self.records.n < MIN_RECORDS else None
        verdicts = {verdict_of(self._change([one], "log")) for one in splits}
        return Assessment(
            main.gain, main.lower, main.upper, main.before, main.after,
            verdict=few or verdict_of(main),
            n=self.records.n,
            folds=len(splits[0].tables),
            confidence=CONFIDENCE,
            seed=self.seed,
            changes=MappingProxyType(changes),
            levels_before=self.records.n,
            levels_after=self.records.n,
            splits=len(splits),
            borderline=few is None and len(verdicts) > 1,
            wrong_certain=splits[0].wrong_certain(),
        )  # fmt: skip
