"""Would recalibration help, and what does trusting the predictions cost? Judged on records not fitted to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.evaluation.rows import value_of
from calibrant.fits.crossfit import Responses, held_out, joined_folds
from calibrant.fits.dealing import why_not_dealt
from calibrant.forecasts import Forecasts
from calibrant.inference.merging import coarse
from calibrant.measures.decisions.thresholds import ThresholdLossCurve, curve_of
from calibrant.measures.decisions.u_calibration import u_calibration_error
from calibrant.measures.decisions.worst_task import WorstTask, worst_task_of
from calibrant.measures.registry.row import Measure
from calibrant.records import check_records
from calibrant.results import Array

FOLDS = 5
FEWEST = 50  # records; below that a fold says nothing
MANY_LEVELS = 2**20  # from which neighbouring predictions are merged first,
CELLS = 2**16  # into so many: cells of some 1e-5, far below what noise blurs


@dataclass(frozen=True, slots=True)
class PreviewedChange:
    """One measure of the predictions as they are, and of the recalibrated ones, both as means over folds."""

    name: str
    meaning: str
    before: float
    after: float


@dataclass(frozen=True, slots=True, eq=False)
class Preview:
    """Isotonic recalibration, fitted on all folds but one and judged on that one, in turn.

    `curve` is what acting above a threshold loses by trusting the predictions instead, per record, in units
    of an outcome 1 that was not acted on. `task` is the decision that suffers most, over payoffs in [0, 1].
    """

    changes: tuple[PreviewedChange, ...]
    curve: ThresholdLossCurve
    task: WorstTask
    folds: int
    seed: int
    base_rate_regret: float  # U-calibration error: the base rate in place of the recalibrated predictions

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers, ready for JSON (not the curve)."""
        rows = [{"name": c.name, "before": c.before, "after": c.after} for c in self.changes]
        return {
            "method": "isotonic, cross-fitted",
            "folds": self.folds,
            "seed": self.seed,
            "measures": rows,
            "decision_loss": self.task.loss,
            "worst_thresholds": self.task.thresholds.tolist(),
            "u_calibration": self.base_rate_regret,
        }


def why_absent(forecasts: Forecasts) -> str:
    """Say why there is no preview; nothing where there is one."""
    if forecasts.n < FEWEST:
        return f"fewer than {FEWEST} records say nothing about it"
    return why_not_dealt(forecasts)


def preview(forecasts: Forecasts, wanted: Sequence[Measure], *, seed: int) -> Preview | None:
    """Recalibrate by cross-fitting and measure again; None where `why_absent` says why."""
    if why_absent(forecasts):
        return None
    fitted = _in_cells(forecasts)
    parts = held_out(fitted, "isotonic", FOLDS, seed)
    curve = curve_of(joined_folds(parts))
    regret = float(u_calibration_error.core(fitted))
    return Preview(tuple(_changes(parts, wanted)), curve, worst_task_of(curve), FOLDS, seed, regret)


def _in_cells(forecasts: Forecasts) -> Forecasts:
    """Merge very many levels, if the records of a cell are alike and can be dealt by their numbers."""
    if forecasts.levels < MANY_LEVELS:
        return forecasts
    merged = coarse(forecasts, CELLS)
    return forecasts if why_not_dealt(merged) else merged


def _changes(parts: Sequence[Responses], wanted: Sequence[Measure]) -> list[PreviewedChange]:
    """Measure every fold before and after; a measure that some fold cannot support is left out."""
    before = [_judged(part, part.trusted) for part in parts]
    after = [_judged(part, part.rates) for part in parts]
    share = np.array([part.weights.sum() for part in parts])
    changes = []
    for about in (row for row in wanted if not row.signed):
        old, new = ([value_of(f, about) for f in side] for side in (before, after))
        if None not in old and None not in new:
            means = (float(np.average(np.array(side, float), weights=share)) for side in (old, new))
            changes.append(PreviewedChange(about.name, about.meaning, *means))
    return changes


def _judged(part: Responses, predictions: Array) -> Forecasts:
    rates = np.clip(part.outcomes / part.weights, 0.0, 1.0)
    return Forecasts.of_checked(check_records(rates, predictions, part.weights))
