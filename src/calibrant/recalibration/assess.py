"""Did it help? The whole procedure is cross-fitted, and its gain reported with an interval."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from calibrant.columns import joined_column
from calibrant.errors import CalibrantError
from calibrant.fits.levels import Levels
from calibrant.forecasts import Forecasts
from calibrant.formatting import confidence_text, format_value, pluralize
from calibrant.groups.audit_result import IN_NOTEBOOKS
from calibrant.metrics.decisions.worst_case import u_calibration_error
from calibrant.metrics.smooth import smooth_calibration_error
from calibrant.recalibration.assess_groups import (
    HELD_OUT,
    GroupAssessment,
    change_sheet,
    for_whom,
    score_sheet,
)
from calibrant.recalibration.gain import GainRule, Gains, gain_interval, join_gains, loss_if
from calibrant.recalibration.maps.base import IdentityMap, Map
from calibrant.recalibration.registry import Fitted, Report
from calibrant.recalibration.samples import CellSample, ClassRecords, RowSample, Sample
from calibrant.results import Array, Table, html_paragraphs, number_cell, text_cell

Verdict = Literal["helps", "no evidence that it helps", "harms", "too little data to say"]
Procedure = Callable[..., Fitted]  # (records, seed)

CONFIDENCE = 0.95
MIN_RECORDS, MIN_EACH = 20, 5  # records, and records of either outcome, below which there is no verdict
NEAR_ZERO = 0.3  # of the half-width: limits this close to 0 are checked by another split
BORDERLINE = "borderline: another split of the records says otherwise"


@dataclass(frozen=True, slots=True)
class Change:
    """One measure of held-out records before and after, and the gain (before - after) with its interval."""

    before: float
    after: float
    gain: float
    lower: float
    upper: float


@dataclass(frozen=True, slots=True, eq=False)
class Assessment:
    """What recalibration gains on records it was not fitted to.

    `gain`, `lower`, `upper`, `before` and `after` are mean log losses, in nats, as `log_loss` computes them;
    `changes` has them for the log loss, the Brier score, the smooth calibration error and the U-calibration
    error. The records are split into `folds`, `splits` times, and the whole procedure is repeated without
    each fold. The interval of a loss combines the variance over records with the optimism of the fit (the
    gain on its own records less the held-out gain); those of the other two measures are Nadeau and Bengio's
    (2003). If splits disagree on the verdict, it is `borderline`.

    `wrong_certain` counts predictions of exactly 0 or 1 that were wrong, before and after. Above 2^19 records
    without covariates, and for sketches, records are split by `cells` of neighboring predictions. With many
    rows and covariates, only `n` of `n_records` rows are used.
    """

    gain: float
    lower: float
    upper: float
    before: float
    after: float
    verdict: Verdict
    n: int
    folds: int
    confidence: float
    seed: int
    changes: Mapping[str, Change]
    levels_before: int  # distinct predictions
    levels_after: int  # distinct recalibrated predictions: fewer means that ties were created
    for_whom: GroupAssessment | None = None  # the audit by covariates, if there are any
    cells: int | None = None
    splits: int = 1
    borderline: bool = False
    wrong_certain: tuple[float, float] = (0.0, 0.0)
    n_records: int | None = None

    def __repr__(self) -> str:
        interval = f"[{self.lower:.3g}, {self.upper:.3g}]"
        return f"Assessment({self.finding}: log loss gain {self.gain:.3g} in {interval}, n = {self.n:,})"

    @property
    def finding(self) -> str:
        """The verdict, and whether it is borderline."""
        return f"{self.verdict} ({BORDERLINE})" if self.borderline else self.verdict

    @property
    def certain_note(self) -> str:
        """A sentence on predictions of exactly 0 or 1 that were wrong; empty if there are none."""
        before, after = self.wrong_certain
        if not before and not after:
            return ""
        return (
            f"Wrong predictions of exactly 0 or 1, which cost 36 nats each: {before:,.6g} before,"
            f" {after:,.6g} after."
        )

    @property
    def approximate(self) -> tuple[str, ...]:
        """The fields, here and of the changes, that hold only approximately."""
        return ("lower", "upper")

    def sheet(self) -> Table:
        """Return held-out measures before and after recalibration, and the gain with its interval."""
        columns = (
            "held-out measure", "as they are", "recalibrated", "gain",
            f"{confidence_text(self.confidence)} interval, approx.",
        )  # fmt: skip
        lines = (
            (text_cell(name.replace("_", " ")), number_cell(c.before), number_cell(c.after),
             number_cell(c.gain), number_cell(c.lower, f"{format_value(c.lower)} to {format_value(c.upper)}"))
            for name, c in self.changes.items()
        )  # fmt: skip
        return Table(columns, tuple(lines))

    def _repr_html_(self) -> str:
        said = f"On held-out folds of {pluralize(self.n, 'record')}: {self.finding}. {self.certain_note}"
        shown = html_paragraphs(said.strip()) + self.sheet().as_html()
        if self.for_whom is None:
            return shown
        changes, left = self.for_whom.changes[:IN_NOTEBOOKS], len(self.for_whom.changes) - IN_NOTEBOOKS
        every = change_sheet(changes).as_html() + score_sheet(changes).as_html()
        are = pluralize(left, "more group is", "more groups are")
        more = [f"{are} in .for_whom.changes."] if left > 0 else []
        told = html_paragraphs(*str(self.for_whom).splitlines())
        return shown + told + every + html_paragraphs(*more, HELD_OUT)

    def to_dict(self) -> dict[str, Any]:
        """Return all figures, ready for JSON."""
        plain = {name: getattr(self, name) for name in (*_PLAIN, *_OPTIONAL)}
        changes = {name: {k: getattr(c, k) for k in _CHANGE} for name, c in self.changes.items()}
        whom = None if self.for_whom is None else self.for_whom.to_dict()
        present = {name: value for name, value in plain.items() if value is not None}
        lists = {"wrong_certain": list(self.wrong_certain), "approximate": list(self.approximate)}
        return {**present, **lists, "changes": changes, "for_whom": whom}

    @classmethod
    def from_dict(cls, figures: Mapping[str, Any]) -> Assessment:
        """Rebuild from what `to_dict` returned, in this version or an earlier one."""
        changes = {name: Change(**c) for name, c in figures["changes"].items()}
        whom = figures.get("for_whom")
        before, after = figures.get("wrong_certain", (0.0, 0.0))
        return cls(
            **{name: figures[name] for name in _PLAIN},
            **{name: figures[name] for name in _OPTIONAL if name in figures},
            changes=MappingProxyType(changes),
            for_whom=None if whom is None else GroupAssessment.from_dict(whom),
            wrong_certain=(float(before), float(after)),
        )


_CHANGE = ("before", "after", "gain", "lower", "upper")
_PLAIN = (*("gain", "lower", "upper", "before", "after", "verdict", "n", "folds", "confidence", "seed"),
          *("levels_before", "levels_after"))  # fmt: skip
_OPTIONAL = ("cells", "splits", "borderline", "n_records")


@dataclass(frozen=True, eq=False)
class Folds:
    """A procedure cross-fitted once: the fit without each fold, and the records of that fold."""

    fitted: tuple[Fitted, ...]
    held_out: tuple[Sample, ...]

    def __len__(self) -> int:
        return len(self.fitted)

    @property
    def pairs(self) -> list[tuple[Levels, Levels]]:
        """The held-out records of each fold under their predictions, and under the recalibrated ones."""
        sides = zip(self.held_out, self._recalibrated, strict=True)
        return [(part.levels, levels.with_predictions(q)) for part, (levels, q) in sides]

    @cached_property
    def _recalibrated(self) -> list[tuple[Levels, Array]]:
        return [apply_to_sample(fit.map, part) for fit, part in zip(self.fitted, self.held_out, strict=True)]

    def gains(self, loss: str) -> Gains:
        sides = zip(self.held_out, self._recalibrated, strict=True)
        return join_gains([_gains(part, levels, q, loss) for part, (levels, q) in sides])

    def losses(self, loss: str) -> tuple[float, float]:
        totals = np.zeros(3)
        for levels, q in self._recalibrated:
            means = []
            for one, zero in (loss_if(side, loss) for side in (levels.values, q)):
                expected = levels.rates * one + (1.0 - levels.rates) * zero
                means.append(float(levels.weights @ expected) / levels.total)
            totals += np.array([*means, 1.0]) * levels.total
        return float(totals[0] / totals[2]), float(totals[1] / totals[2])

    def wrong_certain(self) -> tuple[float, float]:
        pairs = self._recalibrated
        before = sum(_wrong_certain(levels, levels.values) for levels, _ in pairs)
        return before, sum(_wrong_certain(levels, q) for levels, q in pairs)


def apply_to_sample(fitted: Map, part: Sample) -> tuple[Levels, Array]:
    """Return records (one by one if they are known that way) and what a map makes of their predictions."""
    if isinstance(part, RowSample):
        columns = part.covariates if fitted.needs_covariates else None
        return part.unmerged, fitted.predict(part.predictions, columns)
    return part.levels, fitted.predict(part.levels.values)


def _gains(part: Sample, levels: Levels, q: Array, loss: str) -> Gains:
    (one, zero), (new_one, new_zero) = loss_if(levels.values, loss), loss_if(q, loss)
    rows = isinstance(part, RowSample)
    clusters = part.clusters if isinstance(part, RowSample) else None
    return Gains(one - new_one, zero - new_zero, levels.rates, levels.weights, clusters, rows)


def _wrong_certain(levels: Levels, predictions: Array) -> float:
    """Return how many records were predicted 0 or 1 exactly and turned out otherwise."""
    wrong = np.where(predictions <= 0, levels.rates, np.where(predictions >= 1, 1.0 - levels.rates, 0.0))
    return round(float(levels.weights @ wrong), 6)


def cross_fit(
    sample: Sample,
    procedure: Procedure,
    *,
    seed: int,
    folds: int,
    split: int = 0,
    report: Report | None = None,
) -> Folds | str:
    """Fit a procedure without each fold; return the reason as text if the records cannot be split.

    Folds are random. Folds with equal shares of outcomes would overstate the gain: they agree on the base
    rate better than new records do. They are used only if a fit would lack an outcome otherwise.
    """
    if sample.why_not_splittable:
        return sample.why_not_splittable
    drawn = split_seed(seed, split)
    try:
        clusters = sample.clusters if isinstance(sample, RowSample) else None
        units = sample.n if clusters is None else len(np.unique(clusters))
        parts = sample.cut(max(2, min(folds, units)), drawn, stratified=False)
        both = sample.levels.both_outcomes
        if both and not all(rest.levels.both_outcomes for rest, _ in parts):
            parts = sample.cut(len(parts), drawn, stratified=True)
        fitted: list[Fitted] = []
        for rest, _ in parts:
            fitted.append(procedure(rest, seed))
            if report is not None:
                report(len(fitted) / len(parts))
    except CalibrantError as reason:
        return str(reason)
    return Folds(tuple(fitted), tuple(part for _, part in parts))


def split_seed(seed: int, split: int) -> int:
    return seed if split == 0 else int(np.random.SeedSequence([seed, split]).generate_state(1)[0])


@dataclass(frozen=True, slots=True)
class SplitPlan:
    """How many folds, and how many splits at least and, if the verdict is close, at most."""

    folds: int
    splits: int
    max_splits: int


FAST = SplitPlan(10, 2, 4)  # maps of the prediction alone
SLOW = SplitPlan(5, 1, 2)  # auto and maps of covariates


@dataclass(frozen=True, eq=False)
class Assessor(ABC):
    """Everything an assessment needs: the records, the procedure, and the map it delivered."""

    procedure: Procedure
    delivered: Map
    seed: int
    plan: SplitPlan
    chosen: bool  # whether the method was chosen from the records

    @property
    @abstractmethod
    def n(self) -> int:
        """How many records are assessed."""

    @abstractmethod
    def cross_fit(self, split: int, report: Report | None) -> Folds | ClassFolds | str:
        """Fit the procedure without each fold of one split, or return why that is not possible."""

    @abstractmethod
    def own(self, loss: str) -> tuple[Gains, float]:
        """Return the gains of the delivered map on its own records, and its mean variance of an outcome."""

    @abstractmethod
    def summary(self, splits: Sequence[Any]) -> Assessment:
        """Return the assessment from one or more splits."""

    @cached_property
    def folds(self) -> Any:
        return self.cross_fit(0, None)

    def assess(self, report: Report | None = None) -> Assessment | str:
        """Return the assessment, or why there is none; close verdicts are checked by further splits."""
        if "folds" not in self.__dict__:
            self.__dict__["folds"] = self.cross_fit(0, report)
        if isinstance(self.folds, str):
            return self.folds
        splits = [self.folds]
        while len(splits) < self.plan.max_splits:
            main = self.change(splits, "log")
            near = NEAR_ZERO * (main.upper - main.lower) / 2  # another split could turn the verdict
            if len(splits) >= self.plan.splits and min(abs(main.lower), abs(main.upper)) >= near:
                break
            more = self.cross_fit(len(splits), report)
            if isinstance(more, str):
                break
            splits.append(more)
        return self.summary(splits)

    def change(self, splits: Sequence[Any], loss: str) -> Change:
        before, after = np.mean([one.losses(loss) for one in splits], axis=0)
        own, variance = self.own(loss)
        rule = GainRule(
            folds=len(splits[0]),
            chosen=self.chosen,
            unchanged=isinstance(self.delivered, IdentityMap),
            curvature=1.0 if loss == "log" else 2.0 * variance,
            own_variance=loss == "log",
            more_records=self.n_records > self.n,
        )
        gain, lower, upper = gain_interval([one.gains(loss) for one in splits], own, rule, CONFIDENCE)
        return Change(float(before), float(after), gain, lower, upper)

    @property
    def n_records(self) -> int:
        return self.n

    def figures(self, splits: Sequence[Any], changes: Mapping[str, Change], enough: bool) -> dict[str, Any]:
        """Return the fields of an assessment that do not depend on the kind of records."""
        main, few = changes["log_loss"], "too little data to say"
        verdicts = {verdict_of(self.change([one], "log")) for one in splits}
        return {
            **{name: getattr(main, name) for name in _CHANGE},
            "verdict": verdict_of(main) if enough else few,
            "n": self.n,
            "folds": len(splits[0]),
            "confidence": CONFIDENCE,
            "seed": self.seed,
            "changes": MappingProxyType(dict(changes)),
            "splits": len(splits),
            "borderline": enough and len(verdicts) > 1,
            "wrong_certain": splits[0].wrong_certain(),
            "n_records": None if self.n_records == self.n else self.n_records,
        }


@dataclass(frozen=True, eq=False)
class BinaryAssessor(Assessor):
    """Assesses recalibrations of two classes; `n_fitted` rows were fitted, of which `sample` is assessed."""

    sample: Sample
    n_fitted: int

    @property
    def n(self) -> int:
        return self.sample.n

    @property
    def n_records(self) -> int:
        return self.n_fitted

    def cross_fit(self, split: int, report: Report | None) -> Folds | str:
        def part(share: float) -> None:
            if report is not None:
                report((split + share) / self.plan.max_splits)

        return cross_fit(
            self.sample, self.procedure, seed=self.seed, folds=self.plan.folds, split=split, report=part
        )

    def own(self, loss: str) -> tuple[Gains, float]:
        levels, q = self._own_predictions
        gains = _gains(self.sample, levels, q, loss)
        return gains, float(gains.weights @ (q * (1.0 - q))) / gains.total

    @cached_property
    def _own_predictions(self) -> tuple[Levels, Array]:
        return apply_to_sample(self.delivered, self.sample)

    def summary(self, splits: Sequence[Folds]) -> Assessment:
        first, levels = splits[0], self.sample.levels
        changes = {
            "log_loss": self.change(splits, "log"),
            "brier_score": self.change(splits, "brier"),
            "smooth": _fold_change(splits, smooth_calibration_error),
            "u_calibration": _fold_change(splits, u_calibration_error),
        }
        ones, held_out = float(levels.ones.sum()), first.held_out[0]
        enough = self.n >= MIN_RECORDS and min(ones, levels.total - ones) >= MIN_EACH
        return Assessment(
            **self.figures(splits, changes, enough),
            levels_before=sum(len(before) for before, _ in first.pairs),
            levels_after=sum(len(after) for _, after in first.pairs),
            for_whom=_for_whom(first, self.sample, self.seed),
            cells=len(held_out.values) if isinstance(held_out, CellSample) else None,
        )


def verdict_of(main: Change) -> Verdict:
    if main.lower > 0:
        return "helps"
    return "harms" if main.upper < 0 else "no evidence that it helps"


def _for_whom(crossed: Folds, sample: Sample, seed: int) -> GroupAssessment | None:
    """Return the audit of all held-out records by their covariates, if they have any and are 0 or 1."""
    held_out = [part for part in crossed.held_out if isinstance(part, RowSample) and part.covariates]
    if len(held_out) < len(crossed.held_out) or not sample.binary:
        return None
    after = [
        fit.map.predict(part.predictions, part.covariates)
        for fit, part in zip(crossed.fitted, held_out, strict=True)
    ]
    first = held_out[0].covariates or {}
    covariates = {name: joined_column([(part.covariates or {})[name] for part in held_out]) for name in first}
    return for_whom(
        np.concatenate([part.outcomes for part in held_out]),
        np.concatenate([part.predictions for part in held_out]),
        np.concatenate(after),
        np.concatenate([part.weights for part in held_out]),
        covariates,
        groups=held_out[0].groups,
        seed=seed,
    )


def _fold_change(splits: Sequence[Folds], measure: Callable[..., float]) -> Change:
    figures = [[_measured(pair, measure) for pair in one.pairs] for one in splits]
    shares = [[before.total for before, _ in one.pairs] for one in splits]
    return fold_change(np.array(figures), np.array(shares))


def _measured(pair: tuple[Levels, Levels], measure: Callable[..., float]) -> tuple[float, float]:
    before, after = (Forecasts(side.rates, side.values, sample_weight=side.weights) for side in pair)
    return float(measure(before)), float(measure(after))


def fold_change(figures: Array, shares: Array) -> Change:
    """Return means over folds, and Nadeau and Bengio's interval of the gain.

    `figures` has one (before, after) pair per split and fold, `shares` the weight of the fold.
    """
    from scipy.special import stdtrit

    splits, folds = shares.shape
    before, after = (float(np.average(figures[:, :, side], weights=shares)) for side in (0, 1))
    gains = figures[:, :, 0] - figures[:, :, 1]
    variance = float(np.var(gains, axis=1, ddof=1).mean()) * (1 / (folds * splits) + 1 / (folds - 1))
    half = float(stdtrit(folds - 1, (1 + CONFIDENCE) / 2)) * variance**0.5
    gain = before - after
    return Change(before, after, gain, gain - half, gain + half)


@dataclass(frozen=True, eq=False)
class ClassFolds:
    """Held-out records of every fold, and their recalibrated probabilities."""

    held_out: tuple[ClassRecords, ...]
    tables: tuple[Array, ...]

    def __len__(self) -> int:
        return len(self.tables)

    def gains(self, loss: str) -> Gains:
        sides = zip(self.held_out, self.tables, strict=True)
        return join_gains([_class_gains(part, table, loss) for part, table in sides])

    def losses(self, loss: str) -> tuple[float, float]:
        sides = list(zip(self.held_out, self.tables, strict=True))
        total = sum(float(part.weights.sum()) for part, _ in sides)
        before = sum(float(part.weights @ _class_losses(part, part.table, loss)) for part, _ in sides)
        after = sum(float(part.weights @ _class_losses(part, table, loss)) for part, table in sides)
        return before / total, after / total

    def wrong_certain(self) -> tuple[float, float]:
        counts = [
            [float(part.weights[side[np.arange(part.n), part.labels] <= 0].sum()) for side in pair]
            for part, pair in (
                (part, (part.table, table)) for part, table in zip(self.held_out, self.tables, strict=True)
            )
        ]
        before, after = np.round(np.sum(counts, axis=0), 6)
        return float(before), float(after)

    def smooth_errors(self) -> list[tuple[float, float]]:
        sides = zip(self.held_out, self.tables, strict=True)
        return [(_top_label_error(part, part.table), _top_label_error(part, table)) for part, table in sides]


def _class_losses(part: ClassRecords, table: Array, loss: str) -> Array:
    if loss == "log":
        return part.log_losses(table)
    hit = np.zeros_like(table)
    hit[np.arange(part.n), part.labels] = 1.0
    return np.asarray(((table - hit) ** 2).sum(axis=1))


def _class_gains(part: ClassRecords, table: Array, loss: str) -> Gains:
    gain = _class_losses(part, part.table, loss) - _class_losses(part, table, loss)
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
class ClassAssessor(Assessor):
    """Assesses recalibrations of several classes."""

    records: ClassRecords

    @property
    def n(self) -> int:
        return self.records.n

    def cross_fit(self, split: int, report: Report | None) -> ClassFolds | str:
        seed, tables = split_seed(self.seed, split), list[Array]()
        folds = max(2, min(self.plan.folds, self.n))
        try:
            parts = self.records.cut(folds, seed, stratified=False)
            present = len(np.unique(self.records.labels))
            if any(len(np.unique(rest.labels)) < present for rest, _ in parts):
                parts = self.records.cut(folds, seed)
            for rest, part in parts:
                tables.append(self.procedure(rest, self.seed).map.predict(part.table))
                if report is not None:
                    report((split + len(tables) / folds) / self.plan.max_splits)
        except CalibrantError as reason:
            return str(reason)
        return ClassFolds(tuple(part for _, part in parts), tuple(tables))

    def own(self, loss: str) -> tuple[Gains, float]:
        table = self._own_table
        gains = _class_gains(self.records, table, loss)
        return gains, float(gains.weights @ (table * (1.0 - table)).sum(axis=1)) / gains.total

    @cached_property
    def _own_table(self) -> Array:
        return self.delivered.predict(self.records.table)

    def summary(self, splits: Sequence[ClassFolds]) -> Assessment:
        shares = np.array([[float(part.weights.sum()) for part in one.held_out] for one in splits])
        changes = {
            "log_loss": self.change(splits, "log"),
            "brier_score": self.change(splits, "brier"),
            "smooth": fold_change(np.array([one.smooth_errors() for one in splits]), shares),
        }
        figures = self.figures(splits, changes, self.n >= MIN_RECORDS)
        return Assessment(**figures, levels_before=self.n, levels_after=self.n)
