"""auto: the simplest candidate whose cross-fitted loss is within one standard error of the best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calibrant.errors import CalibrantError, InvalidInputError, TooFewRecordsError, reject_name, sentence
from calibrant.recalibration.losses import Costs, costs, joined
from calibrant.recalibration.procedure import Candidate
from calibrant.recalibration.registry import Fitted
from calibrant.recalibration.samples import Rows, Sample
from calibrant.recalibration.table import find_method, recalibrations

FOLDS = 5
UNCHANGED = "No change is justified by these records."
LOSSES = ("log", "brier")
MANY = 3_000  # levels from which the compiled kernels repay their start-up time in a choice


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """What was chosen, and the cross-fitted loss of every candidate that could be fitted."""

    candidate: Candidate
    losses: Mapping[str, float]
    failures: Mapping[str, str]


def default_candidates(sample: Sample) -> list[Candidate]:
    """Return the candidates of auto, simplest first; those that need covariates only where there are some."""
    columns = isinstance(sample, Rows) and bool(sample.covariates)
    return [
        Candidate(row, options)
        for row in recalibrations().values()
        for options in row.auto_options
        if row.fit is not None and (columns or not row.needs_covariates)
    ]


def named_candidates(names: Sequence[str]) -> list[Candidate]:
    """Return candidates named by the user, identity first whether it was named or not."""
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise InvalidInputError(sentence("candidates", "must be names of methods", f"got {names!r}"))
    return [Candidate(find_method(name)) for name in dict.fromkeys(["identity", *names])]


def choose(sample: Sample, candidates: Sequence[Candidate], *, loss: str, folds: int, seed: int) -> Choice:
    """Cross-fit all candidates on the same folds, and take the simplest that is as good as the best.

    "As good" is within one standard error of the paired difference. Candidates that cannot be fitted on
    some fold are left out, with the reason.
    """
    if loss not in LOSSES:
        raise reject_name("loss", str(loss), list(LOSSES))
    if isinstance(folds, bool) or not isinstance(folds, int) or folds < 2:
        raise InvalidInputError(sentence("folds", "must be a whole number from 2", f"got {folds!r}"))
    if len(sample.levels) > MANY:
        _expect_much()
    try:
        parts = sample.cut(folds, seed)
    except TooFewRecordsError as reason:
        return Choice(candidates[0], {}, {"all": str(reason)})
    found: dict[str, Costs] = {}
    failures: dict[str, str] = {}
    for candidate in candidates:
        try:
            found[candidate.name] = _cross_fitted(candidate, parts, loss, seed)
        except CalibrantError as reason:
            failures[candidate.name] = str(reason)
    best = min(found.values(), key=lambda c: c.mean)
    usable = [candidate for candidate in candidates if candidate.name in found]
    chosen = next(c for c in usable if _as_good(found[c.name], best))
    return Choice(chosen, {name: cost.mean for name, cost in found.items()}, failures)


def _cross_fitted(candidate: Candidate, parts: list[tuple[Sample, Sample]], loss: str, seed: int) -> Costs:
    return joined([held_out_costs(candidate.fit(rest, seed), part, loss) for rest, part in parts])


def held_out_costs(fitted: Fitted, part: Sample, loss: str) -> Costs:
    """Return what a fitted map costs on records that it was not fitted to."""
    if isinstance(part, Rows) and part.covariates is not None:
        return costs(part.unmerged, fitted.map.predict(part.predictions, part.covariates), loss)
    return costs(part.levels, fitted.map.predict(part.levels.values), loss)


def _as_good(one: Costs, best: Costs) -> bool:
    return one.mean - best.mean <= one.standard_error_against(best)


def _expect_much() -> None:
    from calibrant.kernels.venn_abers import values_of_one_more

    values_of_one_more.expect_much()


def auto(
    sample: Sample,
    *,
    seed: int,
    candidates: Sequence[str] | None = None,
    loss: str = "log",
    folds: int = FOLDS,
) -> Fitted:
    """Choose by cross-fitting, then fit the choice to all records."""
    offered = default_candidates(sample) if candidates is None else named_candidates(candidates)
    choice = choose(sample, offered, loss=loss, folds=folds, seed=seed)
    fitted = choice.candidate.fit(sample, seed)
    details: dict[str, Any] = {
        **fitted.details,
        "chosen": choice.candidate.method.name,
        "chosen_options": dict(choice.candidate.options),
        "losses": dict(choice.losses),
        "left_out": dict(choice.failures),
    }
    unchanged = choice.candidate.method.name == "identity"
    note = (UNCHANGED,) if unchanged else ()
    return Fitted(fitted.map, (*fitted.notes, *note), details)
