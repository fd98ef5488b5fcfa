"""The report of an evaluation: which question each section answers, with which texts, charts and tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple
from typing import TYPE_CHECKING, Any

from calibrant.evaluation.repair_preview import (
    GroupRepair,
    cost_by_chance,
    group_differences,
    group_repair,
    propose,
    why_absent,
)
from calibrant.evaluation.tables import details, first_table, footnotes, leading_groups, measure_table
from calibrant.evaluation.verdict import disagreement_note
from calibrant.formatting import format_pvalue, format_value, pluralize
from calibrant.groups.audit_result import group_table
from calibrant.groups.classification_rates import TRADE_OFF, audited_error_rates
from calibrant.recalibration.assess_groups import WORDS_OF_CHANGE, change_table
from calibrant.report import charts
from calibrant.report.charts.canvas import Spec
from calibrant.report.rendering import GROUPS_SHOWN, Overview, PageVerdict, Section, rendered

if TYPE_CHECKING:
    from calibrant.evaluation.evaluate import Evaluation
    from calibrant.evaluation.repair_preview import Proposal
    from calibrant.groups.compare_groups_result import GroupComparison
    from calibrant.report.answers import Answers

TONES = {"calibrated": "good", "miscalibrated": "bad", "groups": "bad"}  # else "unknown"
MAX_ERROR_RATES = 10  # groups
NEGLIGIBLE_LOSS = 5e-4  # per 1,000 decisions


def page(evaluation: Evaluation, answers: Answers | None = None, facts: Sequence[str] = ()) -> str:
    """Return the report as HTML: the same bytes for the same evaluation, `answers` and further `facts`."""
    proposal = propose(evaluation.forecasts, seed=evaluation.seed)
    differences, repaired = group_differences(evaluation), group_repair(evaluation)
    said = evaluation.verdict
    after = repair_sentence(repaired) if said.whom and isinstance(repaired, GroupRepair) else ""
    parts = sections(evaluation, proposal, repaired, differences, decisions=answers is None)
    drawn, numbers = specifications(evaluation, proposal, differences), evaluation.to_dict()
    if answers is not None:
        parts = [*answers.sections(), *parts]
        drawn = {**answers.specifications(evaluation.forecasts), **drawn}
        drawn.pop("threshold", None)
        numbers["answers"] = answers.to_dict()
    tables = [("", first_table(evaluation.rows, evaluation.confidence))]
    if evaluation.audit is not None:
        leading = group_table(leading_groups(evaluation.audit))
        tables.append(("For whom?", leading.without("95% interval")))
    return rendered(
        title=evaluation.title,
        subtitle=evaluation.subtitle,
        verdict=PageVerdict(said.what, said.whom, f"{said.next_step} {after}".rstrip()),
        tone=TONES.get(said.status, "unknown"),
        facts=". ".join(str(text).rstrip(".") for text in (evaluation.facts, *facts)),
        overview=Overview(("reliability",), tuple(tables), tuple(footnotes(evaluation.rows)[:1])),
        parts=parts,
        drawn=drawn,
        numbers=numbers,
        verifiable=True,
    )


def specifications(
    evaluation: Evaluation, proposal: Proposal | str, differences: Sequence[GroupComparison] = ()
) -> dict[str, Spec]:
    """Return the specification of every chart that the evaluation has data for."""
    forecasts, null = evaluation.forecasts, evaluation.null
    drawn = {
        "reliability": charts.reliability_diagram.spec(forecasts, seed=evaluation.seed),
        "cumulative": charts.cumulative_differences.spec(forecasts),
        "witness": charts.smooth_witness.spec(forecasts),
    }
    if null is not None:
        drawn["null"] = charts.null_histogram.spec(null.values, null.observed, null.pvalue, null.measure)
    if evaluation.audit is not None:
        drawn["groups"] = charts.forest.spec(evaluation.audit, shown=6)
        drawn["group-curves"] = charts.group_curves.spec(evaluation.audit)
    for compared in [one for one in differences if one.trend is not None][:1]:
        drawn["groups-in-order"] = charts.groups_in_order.spec(compared)
    if evaluation.recalibration is not None:
        drawn["threshold"] = charts.threshold_loss.spec(evaluation.recalibration.curve)
    if not isinstance(proposal, str):
        drawn["recalibration"] = charts.recalibration_map.spec(*proposal)
    return drawn


def sections(
    evaluation: Evaluation,
    proposal: Proposal | str,
    repaired: GroupRepair | str | None = None,
    differences: Sequence[GroupComparison] = (),
    decisions: bool = True,
) -> list[Section]:
    """Return what is folded below the first screen; `decisions` adds who is selected and what errors cost."""
    repair = _repair(evaluation, proposal, decisions)
    return [
        *_groups(evaluation, decisions),
        *_repair_by_group(repaired),
        *_differences(differences),
        *([repair] if decisions else ()),
        _evidence(evaluation),
        _measures(evaluation),
        *(() if decisions else [repair]),  # half as wide, so it goes next to the measures
        _method(evaluation),
    ]


def _folded(name: str, title: str, *texts: str, half: bool = True, **parts: Any) -> Section:
    return Section(name, title, texts, folded=True, half=half, **parts)


def _groups(evaluation: Evaluation, decisions: bool) -> list[Section]:
    """Show all groups, and next to calibration who is selected at a threshold and how often wrongly."""
    audit = evaluation.audit
    if audit is None:
        return []
    wrong = len(audit.wrong_groups())
    text = (
        f"{pluralize(audit.tested - 1, 'group was', 'groups were')} tested; {wrong:,} "
        f"{'is' if wrong == 1 else 'are'} wrong beyond chance. p-values allow for all groups together, "
        "intervals are for each group on its own, and differences are observed minus predicted, in points."
    )
    if audit.tested > GROUPS_SHOWN:
        text += f" The table shows the first {GROUPS_SHOWN}."
    notes = (f"Not tested: {audit.not_tested}.",) if any(astuple(audit.not_tested)) else ()
    sheets = (group_table(audit.by_error()[:GROUPS_SHOWN]),)
    figures = ("groups", "group-curves")
    shown = [_folded("whom", "All groups", text, half=False, figures=figures, sheets=sheets, notes=notes)]
    leading = leading_groups(audit, MAX_ERROR_RATES)
    rates = audited_error_rates(evaluation.forecasts, evaluation.groups, leading) if decisions else None
    if rates is not None:
        text = f"Selected: predictions of {rates.threshold:g} or more. {TRADE_OFF}"
        title, sheets = "Error rates by group", (rates.sheet(),)
        shown.append(_folded("error-rates", title, text, half=False, sheets=sheets))
    return shown


def _repair_by_group(repaired: GroupRepair | str | None) -> list[Section]:
    if repaired is None:
        return []
    title = "Groups before and after a repair"
    if isinstance(repaired, str):
        return [_folded("whom-after", title, f"Not tried: {repaired.rstrip('.')}.")]
    records = f"{repaired.of:,} records"
    if repaired.tried_on < repaired.of:
        records = f"a random sample of {repaired.tried_on:,} of the {records}"
    text = (
        f"A shift of {', '.join(repaired.columns) or 'the groups'} on the logit scale, cross-fitted on "
        f"{records}. {WORDS_OF_CHANGE}"
    )
    return [_folded("whom-after", title, text, sheets=(change_table(repaired.whom.changes),))]


def repair_sentence(repaired: GroupRepair) -> str:
    """Say for how many groups a repair brings predictions closer to the truth, and who moves away most."""
    changes = [one for one in repaired.whom.changes if one.rule != "everyone" and one.judged]
    if not changes:
        return "No group is large enough to judge the repair."
    closer = sum(abs(one.after.difference) <= abs(one.before.difference) for one in changes)
    who = "the one group judged is" if len(changes) == 1 else f"{closer:,} of {len(changes):,} groups are"
    said = f"After the repair, {who} closer to the truth." if closer or len(changes) > 1 else ""
    away = max(changes, key=lambda one: abs(one.after.difference) - abs(one.before.difference))
    if abs(away.after.difference) <= abs(away.before.difference):
        return said
    side = "high" if away.after.difference < 0 else "low"
    chance = "beyond chance" if away.effect == "worse" else "within chance"
    before, after = (f"{100 * abs(part.difference):.1f}" for part in (away.before, away.after))
    moves = f"moves from {before} to {after} points too {side} ({chance})"
    return f"{said} The group {away.rule} {moves}.".lstrip()


REPAIR_SENTENCES = {
    "helps": "A map for all records helps: held-out log loss falls by {gain} ({lower} to {upper}).",
    "harms": "A map for all records harms: the gain in held-out log loss is {gain} ({lower} to {upper}).",
    "no evidence that it helps": "There is no evidence that a map for all records helps: the gain in "
    "held-out log loss is {gain} ({lower} to {upper}).",
    "too little data to say": "There are too few records to say whether a map for all records helps.",
}


def _repair(evaluation: Evaluation, proposal: Proposal | str, decisions: bool) -> Section:
    if isinstance(proposal, str):
        text = f"No map was tried: {proposal.rstrip('.')}."
    else:
        found, method = proposal.fitted.assessment, proposal.fitted.chosen
        assert found is not None  # else there is no proposal
        numbers = {name: format_value(getattr(found, name)) for name in ("gain", "lower", "upper")}
        said = REPAIR_SENTENCES.get(found.verdict, f"A map for all records: {found.verdict}.")
        choice = "No change was chosen" if method == "identity" else f"The method chosen was {method}"
        text = f"{said.format(**numbers)} {choice}, among no change, Platt scaling and isotonic regression."
    if not decisions:
        return _folded("recalibration", "What a repair would change", text, figures=("recalibration",))
    title = "What a repair would change, and what the error costs"
    both, figures = f"{text} {_cost(evaluation)}", ("recalibration", "threshold")
    return _folded("recalibration", title, both, half=False, figures=figures)


def _cost(evaluation: Evaluation) -> str:
    result = evaluation.recalibration
    if result is None:
        return f"The cost was not estimated: {why_absent(evaluation.forecasts)}."
    threshold, loss = result.curve.worst
    if 1000 * loss < NEGLIGIBLE_LOSS:
        return "Decisions at a threshold lose nothing measurable by trusting the predictions."
    noise = cost_by_chance(evaluation.forecasts, evaluation.seed)
    by_chance = "" if noise is None else f" (chance alone: about {format_value(1000 * noise, 2)})"
    return (
        f"Acting above {format_value(threshold, 2)} loses most by trusting these predictions instead of "
        f"repaired ones: {format_value(1000 * loss, 2)} outcomes per 1,000 decisions{by_chance}."
    )


def _evidence(evaluation: Evaluation) -> Section:
    verdict, null, text = evaluation.verdict, evaluation.null, evaluation.verdict.sentence
    if verdict.pvalue is not None:
        rejected = verdict.pvalue <= verdict.alpha
        text = (
            "If the predictions were right, outcomes would differ from them at least this much with "
            f"probability {format_pvalue(verdict.pvalue, verdict.pvalue_is_bound)} (omnibus test: level, "
            "slope and shape). "
            f"{'Chance does not explain it.' if rejected else 'It does not cast doubt on the predictions.'}"
        )
        if null is not None and rejected != (null.pvalue <= verdict.alpha):
            text += " The smooth error in the histogram is " + (
                "less sensitive than the test to common shapes of error."
                if rejected
                else "unusual, but the test chosen in advance finds nothing."
            )
    figures = ("cumulative", "null", "witness")
    return _folded("real", "Is it real, and where?", text, half=False, figures=figures)


def _differences(differences: Sequence[GroupComparison]) -> list[Section]:
    if not differences:
        return []
    figures = ("groups-in-order",) if any(found.trend is not None for found in differences) else ()
    texts = (
        one.sentence() + ("" if one.trend is None else f" Along {one.column}, {one.trend_phrase()}.")
        for one in differences
    )
    return [_folded("differences", "Do groups differ, and is there a trend?", *texts, figures=figures)]


def _measures(evaluation: Evaluation) -> Section:
    distances = evaluation.distances
    text = (
        "0 is perfect for errors, 1 for the slope. “By chance” is the average if these predictions were "
        f"calibrated. The distance to calibration is {format_value(distances.lower)} to "
        f"{format_value(distances.upper)}. {disagreement_note(evaluation.verdict, evaluation.rows)}"
    )
    known = {"ece", "smooth", "brier", "slope"}  # explained on the first screen
    rows = [row for row in evaluation.rows if row.about.name not in known]
    meanings = " · ".join(f"{row.about.name}: {row.about.meaning}" for row in rows)
    notes = (meanings, *(f"{row.about.name}: {row.note}" for row in evaluation.rows if row.note))
    sheet = measure_table(evaluation.rows, evaluation.confidence)
    return _folded("measures", "All measures", text, sheets=(sheet,), notes=notes)


def _method(evaluation: Evaluation) -> Section:
    from calibrant import __version__

    text = (
        f"calibrant {__version__}. {' '.join(details(evaluation))} Intervals have confidence "
        f"{evaluation.confidence:g}. The same data and seed give the same file, byte for byte."
    )
    if evaluation.cells is not None:
        text += (
            f" Simulations merged the {evaluation.facts.levels:,} distinct predictions into about "
            f"{pluralize(evaluation.cells, 'cell')}; estimates did not."
        )
    sources = " · ".join(dict.fromkeys(f"{row.about.name}: {row.about.citation}" for row in evaluation.rows))
    return _folded("method", "How this was computed", text, notes=(sources,))
