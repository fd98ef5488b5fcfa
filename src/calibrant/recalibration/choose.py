"""auto: the simplest candidate within one standard error of the best, if a change is justified at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from calibrant.errors import CalibrantError, InvalidInputError, TooFewRecordsError, reject_name
from calibrant.fits.levels import Costs, Levels, costs, end_limit, joined_costs
from calibrant.fits.logistic import logistic
from calibrant.fits.softmax import Family
from calibrant.fits.spline import curvature_pvalue
from calibrant.inputs import whole_number
from calibrant.kernels.fits import values_of_one_more
from calibrant.recalibration.maps.base import IdentityMap, Map
from calibrant.recalibration.maps.piecewise import LogisticMap
from calibrant.recalibration.methods.classes import held_out_path
from calibrant.recalibration.methods.groups import shifts_pvalue
from calibrant.recalibration.methods.table import find_method, recalibrations
from calibrant.recalibration.registry import Fitted, Method, Report, silent, step_of
from calibrant.recalibration.samples import ClassRecords, RowSample, Sample
from calibrant.results import NOTHING

FOLDS = 5
UNCHANGED = "No change is justified by these records."
LOSSES = ("log", "brier")
CLASS_CANDIDATES: tuple[Family, ...] = ("temperature", "vector", "dirichlet")
MAX_LOSS_SE = 1.0  # standard errors on held-out records by which a simpler candidate may fall behind the best
MIN_GAIN_SE = 2.5  # standard errors of a gain on held-out records that justify a change by themselves
TEST_LEVEL = 0.02  # of Cox's test, which justifies the line that it tests, and of the test for a bend
LINE, CURVE, SHIFTS = "platt", "spline", "hierarchical"
MIN_CURVE_RECORDS = 500  # records from which a curve is fitted well enough where only a test supports it
MAX_CHOICE = 20_000  # rows with covariates among which the method is chosen
MIN_COMPILED_LEVELS = 3_000  # levels from which compiling the kernels pays off in a choice


def _chosen(sample: Sample, offered: Sequence[Method], costs_by_method: Mapping[str, Costs]) -> Method:
    """Return the simplest change as good as the best if its gain is sure, else what a test supports."""
    unchanged, *changes = offered
    if not changes:
        return unchanged
    best = min((costs_by_method[c.name] for c in changes), key=lambda cost: cost.mean)
    simplest = next(c for c in changes if _gap(costs_by_method[c.name], best) <= MAX_LOSS_SE)
    # a lead of less than one standard error changes with the folds: shifts of groups then need a test
    shifts = next((c for c in changes if c.name == SHIFTS), None)
    if shifts is not None and not simplest.needs_covariates and isinstance(sample, RowSample):
        closer = costs_by_method[shifts.name].mean < costs_by_method[simplest.name].mean
        simplest = shifts if closer and shifts_pvalue(sample) < TEST_LEVEL else simplest
    gain = _gap(costs_by_method[unchanged.name], costs_by_method[simplest.name])
    if gain > MIN_GAIN_SE:
        return simplest
    named = {method.name: method for method in changes}
    # Few held-out records cannot show what a test on all can: with 100, Cox's test found miscalibration; it
    # supports its own line only. With 1,000, one for a bend found curves whose intercept and slope are right.
    if _cox_rejects(sample.levels):
        return named.get(LINE, simplest if gain > 0 else unchanged)
    bent = sample.levels.total >= MIN_CURVE_RECORDS and curvature_pvalue(sample.levels) < TEST_LEVEL
    return named.get(CURVE, unchanged) if bent else unchanged


def _gap(one: Costs, other: Costs) -> float:
    gap, error = one.mean - other.mean, one.standard_error_against(other)
    return gap / error if error > 0 else float(np.sign(gap)) * np.inf if gap else 0.0


def _cox_rejects(levels: Levels) -> bool:
    if not levels.both_outcomes:
        return False
    fit = logistic(levels, "platt", shrink=None)
    before, after = (
        costs(levels, predictions, "log").mean * levels.total
        for predictions in (levels.values, LogisticMap.of(fit).predict(levels.values))
    )
    return bool(before - after > -np.log(TEST_LEVEL))  # half the quantile of chi squared with 2 degrees


def _held_out_costs(fitted: Map, part: Sample, loss: str) -> Costs:
    if isinstance(part, RowSample) and part.covariates:
        return costs(part.unmerged, fitted.predict(part.predictions, part.covariates), loss)
    return costs(part.levels, fitted.predict(part.levels.values), loss)


def auto(
    sample: Sample,
    *,
    seed: int,
    candidates: Sequence[str] | None = None,
    loss: str = "log",
    folds: int = FOLDS,
    report: Report = silent,
) -> Fitted:
    """Cross-fit all candidates on the same folds; fit the simplest as good as the best to all records."""
    if candidates is None:  # simplest first
        known = [row for row in recalibrations().values() if row.auto]
        offered = [row for row in known if sample.covariates or not row.needs_covariates]
    elif isinstance(candidates, str) or not all(isinstance(name, str) for name in candidates):
        raise InvalidInputError("candidates", "must be names of methods", f"got {candidates!r}")
    else:
        offered = [find_method(name) for name in dict.fromkeys(["identity", *candidates])]
    if loss not in LOSSES:
        raise reject_name("loss", str(loss), list(LOSSES))
    whole_number("folds", folds, 2)
    judged = sample.drawn(MAX_CHOICE, seed) if isinstance(sample, RowSample) and sample.covariates else sample
    if len(judged.levels) > MIN_COMPILED_LEVELS:
        values_of_one_more.compile_now()
    collected: dict[str, Costs] = {}
    left_out: dict[str, str] = {}
    chosen = offered[0]
    try:
        parts = judged.cut(folds, seed)
        for done, method in enumerate(offered):
            report(done / len(offered))
            try:
                fits = [(method.fit_to(rest, seed=seed).map, part) for rest, part in parts]
                collected[method.name] = joined_costs([_held_out_costs(*pair, loss) for pair in fits])
            except CalibrantError as reason:
                left_out[method.name] = str(reason)
        chosen = _chosen(judged, [one for one in offered if one.name in collected], collected)
    except TooFewRecordsError as reason:
        left_out["all"] = str(reason)
    if chosen.name == "identity" and candidates is None and end_limit(sample.levels) > 0:
        chosen = find_method("limits")
    fitted = chosen.fit_to(sample, seed=seed)
    details: dict[str, Any] = {
        **fitted.details,
        "chosen": chosen.name,
        "losses": {name: cost.mean for name, cost in collected.items()},
        "left_out": left_out,
        **({"chosen_on": judged.n} if judged.n < sample.n else {}),
    }
    unchanged = (UNCHANGED,) if chosen.name in ("identity", "limits") else ()
    return Fitted(fitted.map, (*fitted.notes, *unchanged), details)


def auto_classes(records: ClassRecords, *, seed: int, report: Report = silent) -> Fitted:
    """Return the simplest of no change and the softmax maps within one standard error of the best."""
    parts = records.cut(FOLDS, seed)
    collected = {"identity": joined_costs([part.costs(part.table, "log") for _, part in parts])}
    penalties: dict[str, float] = {}
    for name in CLASS_CANDIDATES:
        step = step_of(report, len(penalties), len(CLASS_CANDIDATES) + 1)
        collected[name], penalties[name] = held_out_path(parts, name, step)
    best = min(collected.values(), key=lambda cost: cost.mean)
    chosen = next(name for name, cost in collected.items() if _gap(cost, best) <= MAX_LOSS_SE)
    options = {"penalty": penalties[chosen]} if penalties.get(chosen) else NOTHING
    fitted = Fitted(IdentityMap(), (UNCHANGED,))
    if chosen != "identity":
        fitted = find_method(chosen).fit_to(records, options, seed=seed)
    losses = {name: cost.mean for name, cost in collected.items()}
    return Fitted(fitted.map, fitted.notes, {**fitted.details, "chosen": chosen, "losses": losses})


AUTO = Method(
    name="auto",
    fit=auto,
    fit_classes=auto_classes,
    meaning="the simplest method within one standard error of the best, if a change is justified at all",
    citation="Breiman et al. 1984 (one-standard-error rule)",
)
