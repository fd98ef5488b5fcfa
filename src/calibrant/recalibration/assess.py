"""Did it help? The whole procedure is cross-fitted, and its gain reported with an interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from calibrant.columns import joined_column
from calibrant.errors import CalibrantError
from calibrant.fits.levels import Costs, Levels, joined_costs
from calibrant.forecasts import Forecasts
from calibrant.formatting import confidence_text, format_value, pluralize
from calibrant.groups.audit_result import NOTEBOOK_GROUPS
from calibrant.metrics.decisions.worst_case import u_calibration_error
from calibrant.metrics.scores import CLIP
from calibrant.metrics.smooth import smooth_calibration_error
from calibrant.recalibration.assess_groups import (
    HELD_OUT,
    GroupAssessment,
    change_table,
    for_whom,
    score_sheet,
)
from calibrant.recalibration.maps.base import IdentityMap, Map
from calibrant.recalibration.registry import Fitted, Report, silent
from calibrant.recalibration.samples import CellSample, ClassRecords, RowSample, Sample
from calibrant.results import Array, Result, Table, html_paragraphs, number_cell, text_cell

Verdict = Literal["helps", "no evidence that it helps", "harms", "too little data to say"]
Procedure = Callable[[Sample], Fitted]

CONFIDENCE = 0.95
MIN_DEGREES = 1.0  # of freedom of Student's t
MIN_RECORDS, MIN_EACH = 20, 5  # records, and records of either outcome, below which there is no verdict
NEAR_ZERO = 0.3  # of the half-width: limits this close to 0 are checked by another split
WITHOUT_INTERVAL = {"smooth", "u_calibration"}
BORDERLINE = "borderline: another split of the records says otherwise"


@dataclass(frozen=True, slots=True, repr=False)
class Change(Result):
    """One measure of held-out records before and after, and the gain (before - after) with its interval."""

    before: float
    after: float
    gain: float
    lower: float = math.nan
    upper: float = math.nan

    @property
    def interval(self) -> str:
        return "–" if math.isnan(self.lower) else f"{format_value(self.lower)} to {format_value(self.upper)}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Assessment(Result):
    """What recalibration gains on records it was not fitted to.

    `gain`, `lower`, `upper`, `before` and `after` are mean log losses, in nats, as `log_loss` computes them;
    `changes` has them for the log loss, the Brier score, the smooth calibration error and the U-calibration
    error. The records are split into `folds`, `splits` times, and the whole procedure is repeated without
    each fold. The interval of a loss combines the variance over records with the optimism of the fit (the
    gain on its own records less the held-out gain). Predictions of exactly 0 or 1 that were never wrong raise
    its upper limit by what they may still cost. The other two measures are means over folds and have no
    interval: the noise of so few records hides the gain over all of them. If splits disagree on the verdict,
    it is `borderline`.

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

    approximate: ClassVar[tuple[str, ...]] = ("lower", "upper")  # here and of the changes
    DERIVED: ClassVar[tuple[str, ...]] = ("approximate",)

    def sheet(self) -> Table:
        """Return held-out measures before and after recalibration, and the gain with its interval."""
        columns = (
            "held-out measure", "as they are", "recalibrated", "gain",
            f"{confidence_text(self.confidence)} interval, approx.",
        )  # fmt: skip
        lines = (
            (text_cell(name.replace("_", " ")), number_cell(c.before), number_cell(c.after),
             number_cell(c.gain), number_cell(c.lower, c.interval))
            for name, c in self.changes.items()
        )  # fmt: skip
        return Table(columns, tuple(lines))

    def _repr_html_(self) -> str:
        verdict = f"On held-out folds of {pluralize(self.n, 'record')}: {self.finding}. {self.certain_note}"
        shown = html_paragraphs(verdict.strip()) + self.sheet().as_html()
        if self.for_whom is None:
            return shown
        changes = self.for_whom.changes[:NOTEBOOK_GROUPS]
        every = change_table(changes).as_html() + score_sheet(changes).as_html()
        left = len(self.for_whom.changes) - len(changes)
        more = (
            [f"{pluralize(left, 'more group is', 'more groups are')} in .for_whom.changes."] if left else []
        )
        whom = html_paragraphs(*(f"{line[0].upper()}{line[1:]}." for line in str(self.for_whom).splitlines()))
        return shown + whom + every + html_paragraphs(*more, HELD_OUT)

    def to_dict(self) -> dict[str, Any]:
        """Return all figures, ready for JSON."""
        stored = Result.to_dict(self)
        return {name: item for name, item in stored.items() if item is not None or name == "for_whom"}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """Rebuild from what `to_dict` returned, in this version or an earlier one."""
        changes = {
            name: {**change, "lower": None, "upper": None} if name in WITHOUT_INTERVAL else change
            for name, change in stored["changes"].items()
        }  # version 0.2.0 had intervals of all measures
        found = super(Assessment, cls).from_dict({**stored, "changes": changes})
        return replace(found, changes=MappingProxyType(dict(found.changes)))


@dataclass(frozen=True, slots=True, eq=False)
class Gains(Costs):
    """Loss before minus loss after, per record or per cell, for either outcome; dependent in `clusters`."""

    clusters: npt.NDArray[np.int64] | None = None
    single: bool = True
    rarer: float | None = None  # records of the rarer outcome, where `rates` does not say

    @property
    def design_effect(self) -> float:
        """How much clusters or unequal weights inflate the variance of the mean; at least 1."""
        plain = self.variance * self.total
        if plain <= 0 or not self.single:
            return 1.0
        if self.clusters is None:
            return max(1.0, float(self.weights**2 @ self.squares) / plain)
        sums = np.bincount(self.clusters, self.weights * (self.expected - self.mean))
        groups = len(np.unique(self.clusters))
        return max(1.0, float(sums @ sums) / plain * groups / max(groups - 1, 1))

    @property
    def degrees(self) -> float:
        """Degrees of freedom: records of the rarer outcome, or clusters, less one."""
        ones = float(self.weights @ self.rates)
        rarer = min(ones, self.total - ones) if self.rarer is None else self.rarer
        if self.clusters is not None:
            rarer = min(rarer, float(len(np.unique(self.clusters))))
        return max(rarer - 1.0, MIN_DEGREES)


def gain_interval(
    splits: Sequence[Gains], own: Gains, *, folds: int, confidence: float, chosen: bool = False,
    unchanged: bool = False, variance: float | None = None, more_records: bool = False,
) -> tuple[float, float, float]:  # fmt: skip
    """Return the mean held-out gain and the limits of the delivered map's gain."""
    from scipy.special import stdtrit

    mean = float(np.mean([one.mean for one in splits]))
    spread = float(np.mean([one.variance for one in splits]))
    # Near a gain of 0, with k parameters, the held-out gain misses the true one by about (chi2_k - k) / n,
    # which the variance over records does not show; the optimism of the fit measures k / n.
    optimism = own.mean - mean
    if variance is None:
        spread = max(spread, own.variance) + abs(optimism)
    else:
        spread += 2.0 * variance * abs(optimism)  # Brier: the mean variance of an outcome under the map
    squared_error = spread * float(np.mean([one.design_effect for one in splits])) / own.total
    if chosen:
        squared_error += (optimism / 2.0) ** 2
    half = float(stdtrit(own.degrees, (1.0 + confidence) / 2.0)) * squared_error**0.5
    missing = max(optimism, 0.0) / (2 * folds - 1)  # held-out fits saw (K - 1) / K of the records
    lower, upper = mean - half, mean + half + missing
    if more_records:
        upper = max(upper, own.mean + half)
    if unchanged:
        lower, upper = min(lower, 0.0), max(upper, 0.0)
    return mean, lower, upper


@dataclass(frozen=True, eq=False)
class Folds:
    """A procedure cross-fitted once: the records of each fold, and their recalibrated predictions."""

    held_out: tuple[Sample, ...]
    predictions: tuple[Array, ...]

    def __len__(self) -> int:
        return len(self.held_out)

    @property
    def sides(self) -> list[tuple[tuple[Sample, Array], ...]]:
        given = tuple((part, part.given) for part in self.held_out)
        return [given, tuple(zip(self.held_out, self.predictions, strict=True))]

    @property
    def pairs(self) -> list[tuple[Levels, Levels]]:
        before, after = ([part.under(q) for part, q in side] for side in self.sides)
        return list(zip(before, after, strict=True))

    def gains(self, loss: str) -> tuple[Gains, float, float]:
        before, after = (joined_costs([part.costs(q, loss, CLIP) for part, q in side]) for side in self.sides)
        clusters = [part.clusters for part in self.held_out if part.clusters is not None]
        rarer = None
        if isinstance(self.held_out[0], ClassRecords):
            right = sum(float(top.ones.sum()) for top, _ in self.pairs)
            rarer = min(right, before.total - right)
        gains = Gains(
            before.if_one - after.if_one, before.if_zero - after.if_zero, before.rates, before.weights,
            np.concatenate(clusters) if clusters else None, self.held_out[0].is_single, rarer,
        )  # fmt: skip
        return gains, before.mean, after.mean

    def wrong_certain(self) -> tuple[float, float]:
        before, after = (sum(part.ruled_out(q) for part, q in side) for side in self.sides)
        return round(before, 6), round(after, 6)


class SplitPlan(NamedTuple):
    """How many folds, and how many splits at least and, if the verdict is close, at most."""

    folds: int
    splits: int
    max_splits: int


FAST = SplitPlan(10, 2, 4)  # maps of the prediction alone
SLOW = SplitPlan(5, 1, 2)  # auto and maps of covariates


@dataclass(frozen=True, eq=False)
class Assessor:
    """The procedure, the map it delivered, and the records to judge it on: maybe a sample of `n_records`."""

    procedure: Procedure
    delivered: Map
    seed: int
    plan: SplitPlan
    chosen: bool  # whether the method was chosen from the records
    records: Sample
    n_records: int

    @cached_property
    def folds(self) -> Folds | str:
        return self.cross_fit(0)

    @cached_property
    def _own(self) -> Folds:
        return Folds((self.records,), (self.records.recalibrated(self.delivered),))

    def cross_fit(self, split: int, report: Report = silent) -> Folds | str:
        """Fit the procedure without each fold; return the reason as text if the records cannot be split."""
        records = self.records
        if records.why_not_splittable:
            return records.why_not_splittable
        seed = self.seed
        if split:
            seed = int(np.random.SeedSequence([seed, split]).generate_state(1)[0])
        try:
            units = records.n if records.clusters is None else len(np.unique(records.clusters))
            folds = max(2, min(self.plan.folds, units))
            # stratified folds agree on the base rate better than new records do, which overstates the gain
            parts = records.cut(folds, seed, stratified=False)
            if any(rest.outcomes_seen < records.outcomes_seen for rest, _ in parts):
                parts = records.cut(folds, seed)
            predictions: list[Array] = []
            for rest, part in parts:
                predictions.append(part.recalibrated(self.procedure(rest).map))
                report((split + len(predictions) / folds) / self.plan.max_splits)
        except CalibrantError as reason:
            return str(reason)
        return Folds(tuple(part for _, part in parts), tuple(predictions))

    def assess(self, report: Report = silent) -> Assessment | str:
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
        return self._summary(splits)

    def change(self, splits: Sequence[Folds], loss: str) -> Change:
        found = [one.gains(loss) for one in splits]
        own, variance = self._own.gains(loss)[0], None
        if loss == "brier":
            q = self._own.predictions[0]
            spread = q * (1.0 - q)
            spread = spread.sum(axis=1) if isinstance(self.records, ClassRecords) else spread
            variance = float(own.weights @ spread) / own.total
        limits = gain_interval(
            [gains for gains, _, _ in found], own, folds=len(splits[0]), confidence=CONFIDENCE,
            chosen=self.chosen, unchanged=isinstance(self.delivered, IdentityMap), variance=variance,
            more_records=self.n_records > self.records.n,
        )  # fmt: skip
        before, after = (float(np.mean([one[k] for one in found])) for k in (1, 2))
        gain, lower, upper = limits
        return Change(before, after, gain, lower, upper + (self._unseen(own) if loss == "log" else 0.0))

    def _unseen(self, own: Gains) -> float:
        """Return what the map could gain on predictions of 0 or 1, never wrong here: a miss costs 36 nats."""
        if isinstance(self.records, ClassRecords):
            return 0.0
        p = self.records.given
        certain = (p <= 0) | (p >= 1)
        count = float(own.weights[certain].sum())
        if count == 0 or self.records.ruled_out(p) > 0:
            return 0.0
        if_wrong = np.where(p <= 0, own.if_one, own.if_zero)[certain]
        rate: float = 1.0 - ((1.0 - CONFIDENCE) / 2.0) ** (1.0 / count)
        return max(0.0, rate * float(own.weights[certain] @ if_wrong) / own.total)

    def _summary(self, splits: Sequence[Folds]) -> Assessment:
        first, records = splits[0], self.records
        measures: dict[str, Callable[..., float]] = {"smooth": smooth_calibration_error}
        if not isinstance(records, ClassRecords):
            measures["u_calibration"] = u_calibration_error
        changes = {"log_loss": self.change(splits, "log"), "brier_score": self.change(splits, "brier")}
        pairs = [pair for one in splits for pair in one.pairs]
        shares = [before.total for before, _ in pairs]
        for name, measure in measures.items():
            figures = [[measure(Forecasts(x.rates, x.values, sample_weight=x.weights)) for x in pair]
                       for pair in pairs]  # fmt: skip
            before, after = np.average(figures, axis=0, weights=shares).tolist()
            changes[name] = Change(before, after, before - after)
        main, enough = changes["log_loss"], records.n >= MIN_RECORDS
        levels = (records.n, records.n)
        whom, cells = None, None
        if not isinstance(records, ClassRecords):
            ones = float(records.levels.ones.sum())
            enough = enough and min(ones, records.levels.total - ones) >= MIN_EACH
            before, after = np.sum([[len(np.unique(x.values)) for x in pair] for pair in first.pairs], axis=0)
            levels = (int(before), int(after))
            whom = _for_whom(first, self.seed) if records.binary else None
            cells = next((len(part.values) for part in first.held_out if isinstance(part, CellSample)), None)
        verdicts = {verdict_of(self.change([one], "log")) for one in splits}
        return Assessment(
            **asdict(main),
            verdict=verdict_of(main) if enough else "too little data to say",
            n=records.n,
            folds=len(first),
            confidence=CONFIDENCE,
            seed=self.seed,
            changes=MappingProxyType(changes),
            levels_before=levels[0],
            levels_after=levels[1],
            for_whom=whom,
            cells=cells,
            splits=len(splits),
            borderline=enough and len(verdicts) > 1,
            wrong_certain=first.wrong_certain(),
            n_records=None if self.n_records == records.n else self.n_records,
        )


def verdict_of(main: Change) -> Verdict:
    if main.lower > 0:
        return "helps"
    return "harms" if main.upper < 0 else "no evidence that it helps"


def _for_whom(crossed: Folds, seed: int) -> GroupAssessment | None:
    parts = [part for part in crossed.held_out if isinstance(part, RowSample) and part.covariates]
    if not parts:
        return None
    columns = [part.covariates for part in parts]
    covariates = {name: joined_column([one[name] for one in columns]) for name in columns[0]}
    names = ("outcomes", "predictions", "weights")
    outcome, before, weight = (np.concatenate([getattr(part, name) for part in parts]) for name in names)
    after = np.concatenate(crossed.predictions)
    return for_whom(outcome, before, after, weight, covariates, groups=parts[0].groups, seed=seed)
