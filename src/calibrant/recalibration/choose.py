"""auto: the simplest candidate within one standard error of the best, if a change is justified at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from calibrant.errors import CalibrantError, InvalidInputError, TooFewRecordsError, reject_name
from calibrant.fits.levels import Costs, Levels, costs, end_limit, joined_costs
from calibrant.fits.logistic import logistic
from calibrant.fits.spline import curvature_pvalue
from calibrant.kernels.isotonic import values_of_one_more
from calibrant.recalibration.maps.base import Map
from calibrant.recalibration.maps.piecewise import LogisticMap
from calibrant.recalibration.methods.groups import shifts_pvalue
from calibrant.recalibration.methods.table import find_method, recalibrations
from calibrant.recalibration.registry import Candidate, Fitted, Report
from calibrant.recalibration.samples import RowSample, Sample

FOLDS = 5
UNCHANGED = "No change is justified by these records."
LOSSES = ("log", "brier")
MAX_LOSS_SE = 1.0  # standard errors on held-out records by which a simpler candidate may fall behind the best
MIN_GAIN_SE = 2.5  # standard errors of a gain on held-out records that justify a change by themselves
TEST_LEVEL = 0.02  # of Cox's test, which justifies the line that it tests, and of the test for a bend
LINE, CURVE, SHIFTS = "platt", "spline", "hierarchical"
MIN_CURVE_RECORDS = 500  # records from which a curve is fitted well enough where only a test speaks for it
MAX_CHOICE = 20_000  # rows with covariates among which the method is chosen
MIN_COMPILED_LEVELS = 3_000  # levels from which the compiled kernels repay their start-up time in a choice


class Choice(NamedTuple):
    """What was chosen, the cross-fitted losses of the candidates, and why some could not be fitted."""

    candidate: Candidate
    losses: Mapping[str, float]
    failures: Mapping[str, str]


def choose(
    sample: Sample,
    candidates: Sequence[Candidate],
    *,
    loss: str,
    folds: int,
    seed: int,
    report: Report | None = None,
) -> Choice:
    """Cross-fit all candidates on the same folds; take the simplest as good as the best, or no change.

    The first candidate is no change; see `_chosen`. Candidates that cannot be fitted on some fold are left
    out, with the reason.
    """
    if loss not in LOSSES:
        raise reject_name("loss", str(loss), list(LOSSES))
    if isinstance(folds, bool) or not isinstance(folds, int) or folds < 2:
        raise InvalidInputError("folds", "must be a whole number from 2", f"got {folds!r}")
    if len(sample.levels) > MIN_COMPILED_LEVELS:
        values_of_one_more.compile_now()
    try:
        parts = sample.cut(folds, seed)
    except TooFewRecordsError as reason:
        return Choice(candidates[0], {}, {"all": str(reason)})
    collected: dict[str, Costs] = {}
    failures: dict[str, str] = {}
    for done, candidate in enumerate(candidates):
        if report is not None and done:
            report(done / len(candidates))
        try:
            fits = [(candidate.fit(rest, seed).map, part) for rest, part in parts]
            collected[candidate.name] = joined_costs([_held_out_costs(*pair, loss) for pair in fits])
        except CalibrantError as reason:
            failures[candidate.name] = str(reason)
    offered = [candidate for candidate in candidates if candidate.name in collected]
    chosen = _chosen(sample, offered, collected)
    return Choice(chosen, {name: cost.mean for name, cost in collected.items()}, failures)


def _chosen(sample: Sample, offered: Sequence[Candidate], costs_by_method: Mapping[str, Costs]) -> Candidate:
    """Return the simplest change as good as the best if its gain is sure, else what a test speaks for.

    Few held-out records cannot show a gain that the same records, all of them, show by a test: with 100
    records Cox's test found miscalibration that the cross-fitted gain did not show. It speaks for its own
    line alone; with 1,000 records a test for a bend found curves whose intercept and slope are right. A test
    of differences between groups likewise decides for shifts of groups that are better on held-out records,
    but by less than one standard error: such a margin alone changes with the folds.
    """
    unchanged, *changes = offered
    if not changes:
        return unchanged
    best = min((costs_by_method[c.name] for c in changes), key=lambda cost: cost.mean)
    simplest = next(c for c in changes if _gap(costs_by_method[c.name], best) <= MAX_LOSS_SE)
    shifts = next((c for c in changes if c.method.name == SHIFTS), None)
    if shifts is not None and not simplest.method.needs_covariates and isinstance(sample, RowSample):
        closer = costs_by_method[shifts.name].mean < costs_by_method[simplest.name].mean
        simplest = shifts if closer and shifts_pvalue(sample) < TEST_LEVEL else simplest
    gain = _gap(costs_by_method[unchanged.name], costs_by_method[simplest.name])
    if gain > MIN_GAIN_SE:
        return simplest
    named = {candidate.method.name: candidate for candidate in changes}
    if _cox_rejects(sample.levels):
        return named.get(LINE, simplest if gain > 0 else unchanged)
    bent = sample.levels.total >= MIN_CURVE_RECORDS and curvature_pvalue(sample.levels) < TEST_LEVEL
    return named.get(CURVE, unchanged) if bent else unchanged


def _gap(one: Costs, other: Costs) -> float:
    """Return how much more one costs than the other, in standard errors."""
    gap, error = one.mean - other.mean, one.standard_error_against(other)
    return gap / error if error > 0 else float(np.sign(gap)) * np.inf if gap else 0.0


def _cox_rejects(levels: Levels) -> bool:
    """Return whether the likelihood ratio of intercept and slope (Cox 1958) rejects no change."""
    if not levels.both_outcomes:
        return False
    fit = logistic(levels, "platt", shrink=None)
    before, after = (
        costs(levels, predictions, "log").mean * levels.total
        for predictions in (levels.values, LogisticMap.of(fit).predict(levels.values))
    )
    return bool(before - after > -np.log(TEST_LEVEL))  # half the quantile of chi squared with 2 degrees


def _held_out_costs(fitted: Map, part: Sample, loss: str) -> Costs:
    if isinstance(part, RowSample) and part.covariates is not None:
        return costs(part.unmerged, fitted.predict(part.predictions, part.covariates), loss)
    return costs(part.levels, fitted.predict(part.levels.values), loss)


def auto(
    sample: Sample,
    *,
    seed: int,
    candidates: Sequence[str] | None = None,
    loss: str = "log",
    folds: int = FOLDS,
    report: Report | None = None,
) -> Fitted:
    """Choose by cross-fitting, then fit the choice to all records.

    With covariates and many rows the choice is made on a random sample of them.
    """
    columns = isinstance(sample, RowSample) and bool(sample.covariates)
    if candidates is None:  # simplest first
        known = [row for row in recalibrations().values() if row.auto]
        offered = [Candidate(row) for row in known if columns or not row.needs_covariates]
    elif isinstance(candidates, str) or not all(isinstance(name, str) for name in candidates):
        raise InvalidInputError("candidates", "must be names of methods", f"got {candidates!r}")
    else:
        offered = [Candidate(find_method(name)) for name in dict.fromkeys(["identity", *candidates])]
    judged = sample.drawn(MAX_CHOICE, seed) if isinstance(sample, RowSample) and sample.covariates else sample
    choice = choose(judged, offered, loss=loss, folds=folds, seed=seed, report=report)
    chosen = choice.candidate
    if chosen.method.name == "identity" and candidates is None and end_limit(sample.levels) > 0:
        chosen = Candidate(find_method("limits"))
    fitted = chosen.fit(sample, seed)
    unchanged = chosen.method.name in ("identity", "limits")
    details: dict[str, Any] = {
        **fitted.details,
        "chosen": chosen.method.name,
        "chosen_options": dict(chosen.options),
        "losses": dict(choice.losses),
        "left_out": dict(choice.failures),
        **({"chosen_on": judged.n} if judged.n < sample.n else {}),
    }
    return Fitted(fitted.map, (*fitted.notes, *([UNCHANGED] if unchanged else [])), details)
