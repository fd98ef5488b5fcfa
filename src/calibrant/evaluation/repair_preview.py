"""What the report tries on held-out records: recalibration, its cost, a repair by group, differences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from calibrant.columns import code_columns, columns_of
from calibrant.errors import CalibrantError
from calibrant.evaluation.rows import measure_rows
from calibrant.fits.crossfit import Responses, held_out, joined_folds, why_not_dealt
from calibrant.forecasts import Forecasts
from calibrant.groups.compare_groups import MAX_PAIRED, compare_column
from calibrant.groups.subpopulations import as_masks
from calibrant.inference.bootstrap import coarse
from calibrant.inference.null import NullOutcomes
from calibrant.metrics.decisions.worst_case import (
    ThresholdLossCurve,
    WorstTask,
    curve_of,
    u_calibration_error,
    worst_task_of,
)
from calibrant.metrics.registry import Measure
from calibrant.parallel import DRAWS
from calibrant.recalibration.assess_groups import GroupAssessment
from calibrant.recalibration.choose import AUTO
from calibrant.recalibration.methods.table import find_method
from calibrant.recalibration.recalibrate import fit_sample
from calibrant.recalibration.result import Recalibration
from calibrant.recalibration.samples import RowSample, Sample, counted_cells, rows_of, sample_of
from calibrant.records import ValidRows, check_records
from calibrant.results import Array

if TYPE_CHECKING:
    from calibrant.evaluation.evaluate import Evaluation
    from calibrant.fits.levels import Levels
    from calibrant.groups.compare_groups_result import GroupComparison
    from calibrant.records import Records


FOLDS = 5
MIN_RECORDS = 50  # records; below that a fold says nothing
MIN_MERGED_LEVELS = 2**20  # from which neighboring predictions are merged first,
MAX_PREVIEW_CELLS = 2**16  # cells of about 1e-5, far below the noise
MAX_PROPOSAL_CELLS = 256
CANDIDATES = ("platt", "centered-isotonic")  # two numbers, or any increasing shape: quick to refit
COST_DRAWS = 19
MAX_COST_CELLS = 256  # a mean over 19 draws needs no more
METHOD = "hierarchical"
MAX_RECORDS = 60_000  # on all of which the repair is tried, in about three seconds; a million take a minute
SAMPLED = 20_000  # records tried of a larger file, so that its report stays quick
MAX_GROUP_VALUES = 300  # of all group columns together
MAX_PERMUTED = 100_000  # records: a report should not take minutes


@dataclass(frozen=True, slots=True, eq=False)
class Preview:
    """Isotonic recalibration, fitted on all folds but one and judged on that one, in turn."""

    changes: Mapping[str, tuple[float, float]]  # means over folds: predictions as they are, recalibrated
    curve: ThresholdLossCurve  # what is lost by trusting the predictions instead, in outcomes not acted on
    task: WorstTask  # the decision that suffers most, over payoffs in [0, 1]
    seed: int
    base_rate_regret: float  # U-calibration error: the base rate in place of the recalibrated predictions

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers, ready for JSON (not the curve)."""
        return {
            "method": "isotonic, cross-fitted",
            "folds": FOLDS,
            "seed": self.seed,
            "measures": [{"name": name, "before": a, "after": b} for name, (a, b) in self.changes.items()],
            "decision_loss": self.task.loss,
            "worst_thresholds": self.task.thresholds.tolist(),
            "u_calibration": self.base_rate_regret,
        }


def why_absent(forecasts: Forecasts) -> str:
    """Explain a missing preview; "" where there is one."""
    if forecasts.n < MIN_RECORDS:
        return f"fewer than {MIN_RECORDS} records say nothing about it"
    return why_not_dealt(forecasts)


def preview(forecasts: Forecasts, wanted: Sequence[Measure], *, seed: int) -> Preview | None:
    """Recalibrate by cross-fitting and measure again; None where `why_absent` says why."""
    if why_absent(forecasts):
        return None
    if forecasts.levels >= MIN_MERGED_LEVELS and forecasts.record_weights is None:
        merged = coarse(forecasts, MAX_PREVIEW_CELLS)
        forecasts = forecasts if why_not_dealt(merged) else merged
    parts = held_out(forecasts, "isotonic", FOLDS, seed)
    curve = curve_of(joined_folds(parts))
    regret = float(u_calibration_error.core(forecasts))
    return Preview(_changes(parts, wanted), curve, worst_task_of(curve), seed, regret)


def _changes(parts: Sequence[Responses], wanted: Sequence[Measure]) -> dict[str, tuple[float, float]]:
    """Measure every fold before and after; a measure that some fold cannot support is left out."""

    def judged(part: Responses, predictions: Array) -> Forecasts:
        rates = np.clip(part.outcomes / part.weights, 0.0, 1.0)
        return Forecasts.of_checked(check_records(rates, predictions, part.weights))

    sides = [judged(part, part.trusted) for part in parts], [judged(part, part.rates) for part in parts]
    share = np.array([part.weights.sum() for part in parts])
    errors = [entry for entry in wanted if not entry.signed]
    taken = ([[row.value for row in measure_rows(fold, errors)] for fold in side] for side in sides)
    before, after = (np.average(np.array(one, float), axis=0, weights=share).tolist() for one in taken)
    means = zip(errors, before, after, strict=True)
    return {about.name: (a, b) for about, a, b in means if not math.isnan(a + b)}


class Proposal(NamedTuple):
    """A recalibration, and its held-out records under the predictions and under the recalibrated ones."""

    fitted: Recalibration
    before: Forecasts
    after: Forecasts


def propose(forecasts: Forecasts, *, seed: int) -> Proposal | str:
    """Fit `auto` on coarse cells with few candidates and judge it; the reason as text where it cannot be."""
    absent = why_absent(forecasts)
    if absent:
        return absent
    try:
        fitted = fit_sample(coarse_sample(forecasts), AUTO, {"candidates": CANDIDATES}, seed=seed)
    except CalibrantError as reason:
        return str(reason)
    if isinstance(fitted.folds, str) or fitted.assessment is None:
        return fitted.why_not_assessed
    return Proposal(fitted, *(_joined(side) for side in zip(*fitted.folds.pairs, strict=True)))


def _joined(folds: Sequence[Levels]) -> Forecasts:
    names = ("rates", "values", "weights")
    rates, values, weights = (np.concatenate([getattr(fold, name) for fold in folds]) for name in names)
    return Forecasts(rates, values, sample_weight=weights)


def coarse_sample(forecasts: Forecasts) -> Sample:
    """Return the records with neighboring predictions merged, so that many can be refitted in no time."""
    merged = coarse(forecasts, MAX_PROPOSAL_CELLS)
    if merged is forecasts:
        return sample_of(forecasts)
    if forecasts.record_weights is None and forecasts.binary:
        return counted_cells(merged, merged.n)
    outcomes = forecasts.record_outcomes
    if outcomes is None:  # one record per level
        outcomes = np.clip(forecasts.outcomes / forecasts.weights, 0.0, 1.0)
    values = np.repeat(merged.values, merged.counts)
    return sample_of(Forecasts(outcomes, values, sample_weight=forecasts.record_weights))


def cost_by_chance(forecasts: Forecasts, seed: int) -> float | None:
    """Return the mean largest loss at a threshold over calibrated outcomes; None where none can be drawn."""
    cells = coarse(forecasts, MAX_COST_CELLS)
    if not cells.binary or why_not_dealt(cells):
        return None
    simulated = NullOutcomes(cells).forecasts_of(np.random.default_rng(seed), COST_DRAWS)
    curves = (curve_of(joined_folds(held_out(drawn, "isotonic", FOLDS, seed))) for drawn in simulated)
    return float(np.mean([curve.worst[1] for curve in curves]))


@dataclass(frozen=True, slots=True, eq=False)
class GroupRepair:
    """A repair by the groups that were named, and the audits before and after."""

    whom: GroupAssessment
    tried_on: int  # records,
    of: int  # records in all
    columns: tuple[str, ...]  # of groups


def group_repair(evaluation: Evaluation) -> GroupRepair | str | None:
    """Try a repair by the groups of an evaluation; the reason as text where it cannot be, None without."""
    if evaluation.audit is None:
        return None
    if evaluation.groups is None or evaluation.forecasts.cells is not None:
        return "the rows behind these forecasts are not known any more"
    if not evaluation.forecasts.binary:
        return "outcomes are fractions, and audits by group need 0 or 1"
    try:
        sample = _sample(evaluation)
        values = sum(len(np.unique(column.astype(str))) for column in sample.covariates.values())
        if values > MAX_GROUP_VALUES:
            return f"the groups have {values:,} values, and the report tries at most {MAX_GROUP_VALUES}"
        fitted = fit_sample(sample, find_method(METHOD), {}, seed=evaluation.seed)
        result = fitted.assessment
        if result is None or result.for_whom is None:
            return fitted.why_not_assessed
        return GroupRepair(
            result.for_whom, result.n, len(evaluation.forecasts.records), tuple(sample.covariates)
        )
    except CalibrantError as reason:
        return str(reason)


def _sample(evaluation: Evaluation) -> RowSample:
    """Return the records with the columns of groups; a random part of them where they are many."""
    records: Records = evaluation.forecasts.records
    columns = columns_of(evaluation.groups, records.length, "groups")
    if len(records) > MAX_RECORDS:
        coded = code_columns(evaluation.groups, records.length, "groups")
        records = records.break_ties([column.codes for column in coded])  # so that row order does not matter
        drawn = np.random.default_rng(evaluation.seed).choice(len(records), SAMPLED, replace=False)
        records = records.take(np.sort(drawn).astype(np.int32))
    return rows_of(
        records.outcome,
        records.prediction,
        np.array(records.weight),
        covariates={name: column[records.rows] for name, column in columns.items()},
        groups=tuple(columns),
    )


def group_differences(evaluation: Evaluation) -> tuple[GroupComparison, ...]:
    """Compare the values of every column of groups that has 2 to 30 of them; masks are not compared."""
    if evaluation.groups is None or evaluation.audit is None or evaluation.forecasts.cells is not None:
        return ()
    records: Records = evaluation.forecasts.records
    if as_masks(evaluation.groups, records.length, records.labels) is not None:
        return ()
    coded = code_columns(evaluation.groups, records.length, "groups", labels=records.labels)
    columns = [column.drop_unused_labels(records.rows).take(records.rows) for column in coded]
    weight = records.weight if records.weighted else None
    checked = ValidRows(
        records.outcome, records.prediction, weight, records.largest, None, len(records), records.dropped
    )
    options: dict[str, Any] = {"max_permuted": MAX_PERMUTED, "clusters": evaluation.forecasts.clusters}
    how = evaluation.confidence or 0.95, DRAWS, evaluation.seed
    return tuple(
        compare_column(column, checked, not column.nominal, *how, **options)
        for column in columns
        if 2 <= len(column.labels) <= MAX_PAIRED
    )
