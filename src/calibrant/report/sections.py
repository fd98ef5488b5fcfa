"""Sections of the report: which question each answers, and with which texts, charts and tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from calibrant.evaluation.cost_by_chance import cost_by_chance
from calibrant.evaluation.recalibration_preview import why_absent
from calibrant.evaluation.row_tests import why_rows_differ
from calibrant.evaluation.sheets import GROUPS_SHOWN, distance_sheet, folded_group_sheet, measure_sheet
from calibrant.evaluation.verdict import Verdict
from calibrant.groups.audit_result import EACH_BY_ITSELF, Z_MEANS
from calibrant.groups.no_evidence import left_open, none_wrong
from calibrant.numerals import counted, pvalue_phrase, pvalue_text, short
from calibrant.report.repair_sections import whom_after
from calibrant.report.section import Section

if TYPE_CHECKING:
    from calibrant.evaluation.findings import Findings
    from calibrant.evaluation.group_repair import GroupRepair
    from calibrant.evaluation.proposal import Proposal
    from calibrant.groups.audit_result import Audit
    from calibrant.groups.group_comparison import GroupComparison


def sections(
    evaluation: Findings,
    proposal: Proposal | str,
    repaired: GroupRepair | str | None = None,
    differences: Sequence[GroupComparison] = (),
) -> list[Section]:
    """Return the sections in the order in which a reader asks."""
    return [
        _where(),
        _whom(evaluation),
        *([_differences(differences)] if differences else []),
        _cost(evaluation),
        _recalibration(proposal),
        *whom_after(repaired),
        _real(evaluation),
        _how_far(evaluation),
        _proofs(evaluation),
        _done(evaluation),
    ]


def _where() -> Section:
    text = (
        "The curve shows how often the event happened for each prediction. On the diagonal predictions are "
        "right; below it they are too high, above it too low. The band is where the curve of calibrated "
        "predictions would lie."
    )
    return Section("where", "Where is it wrong?", (text,), ("reliability", "cumulative"))


def _real(evaluation: Findings) -> Section:
    verdict, title = evaluation.verdict, "Is it real or noise?"
    if verdict.pvalue is None:
        return Section("real", title, (verdict.sentence,))
    text = (
        "If the predictions were calibrated, outcomes would differ from them as much as they do with "
        f"probability {pvalue_text(verdict.pvalue, None, verdict.pvalue_is_bound)} (the omnibus test: "
        "Kuiper's range and Cox's score together). "
    )
    rejected = verdict.pvalue <= verdict.alpha
    text += "So chance does not explain it." if rejected else _not_rejected(verdict)
    return Section("real", title, (text, *_disagreement(evaluation)), ("null",))


def _not_rejected(verdict: Verdict) -> str:
    """Say what a test that found nothing allows to conclude: little where much would go unseen."""
    hidden = f"an error of up to {short(verdict.unseen, 2)} would go unseen"
    if verdict.status == "too little data":
        return f"That is no sign that they are right: with so little data {hidden}."
    whole = " on the whole" if verdict.status == "groups" else ""
    return f"So the data give no reason to doubt them{whole}, though {hidden}."


def _disagreement(evaluation: Findings) -> tuple[str, ...]:
    """Explain a histogram that seems to say otherwise than the verdict."""
    null, verdict = evaluation.null, evaluation.verdict
    if (
        null is None
        or verdict.pvalue is None
        or (null.pvalue <= verdict.alpha) == (verdict.pvalue <= verdict.alpha)
    ):
        return ()
    shown = pvalue_phrase(null.pvalue, len(null.values))
    if null.pvalue > verdict.alpha:
        return (
            f"The smooth calibration error, drawn below, does not show it by itself ({shown}): it adds up "
            "errors of every shape, and the test above looks for fewer, more common shapes with more power.",
        )
    return (
        f"The smooth calibration error, drawn below, is unusual by itself ({shown}), "
        "but the test above, which was chosen before looking at these data, finds nothing beyond chance.",
    )


def _how_far(evaluation: Findings) -> Section:
    how = (
        "Each line is one way to measure the error; 0 is perfect unless the meaning says otherwise. “By "
        "chance” is what the measure would show on average if these predictions were calibrated: a value "
        "near it is noise. An interval may leave out the value beside it: values of finite data are too "
        "large on average, and intervals are corrected for that. Scores, in the second table, are not 0 for "
        "calibrated predictions: they also measure how much is known."
    )
    texts = tuple(filter(None, (how, why_rows_differ(evaluation.verdict, evaluation.rows))))
    errors = [row for row in evaluation.rows if row.about.complete or row.about.signed]
    scores = [row for row in evaluation.rows if not (row.about.complete or row.about.signed)]
    sheets = [measure_sheet(rows, evaluation.confidence) for rows in (errors, scores) if rows]
    return Section("how-far", "All measures", texts, sheets=tuple(sheets), folded=True)


def _proofs(evaluation: Findings) -> Section:
    result = evaluation.distances
    whatever = "" if result.over_points else " whatever the features behind them"
    text = (
        "The distance to calibration is how far the predictions must move, on average, to be calibrated: at "
        f"least {short(result.lower)}{whatever}, and {short(result.upper)} is enough. "
        "The table shows what else is tied to it, and by which theorem; the chart is the weight function "
        "that proves the smooth error."
    )
    return Section(
        "proofs",
        "Distances, theorems and the witness",
        (text,),
        ("witness",),
        (distance_sheet(result),),
        folded=True,
    )


def _whom(evaluation: Findings) -> Section:
    audit = evaluation.audit
    if audit is None:
        text = "No groups were given. Name columns with --groups, or pass groups= to evaluate()."
        return Section("whom", "For whom?", (text,))
    sure = [group for group in audit.significant() if group is not audit.everyone]
    text = _looked_at(audit, len(sure))
    if sure:
        text += f"The worst by evidence (z) is “{sure[0].rule}”. "
    text += (
        f"{Z_MEANS[audit.statistic]} Combinations are folded under the worst of their parts. {EACH_BY_ITSELF}"
    )
    if audit.pvalue is not None and not audit.significant():
        text += f" {left_open(audit)}"
    notes = [f"Not tested: {audit.not_tested}."]
    if audit.tested > GROUPS_SHOWN:
        notes.append(f"The table shows the worst {GROUPS_SHOWN} groups; the raw numbers below hold all.")
    charts, sheets = ("groups", "group-curves"), (folded_group_sheet(audit, evaluation.rows),)
    return Section("whom", "For whom?", (text,), charts, sheets, tuple(notes))


def _looked_at(audit: Audit, wrong: int) -> str:
    """Say how many groups were tested and how many are off."""
    if audit.tested == 1:
        return f"{none_wrong(audit, 'off')}: the table shows everyone together. "
    return (
        f"{counted(audit.tested - 1, 'group was', 'groups were')} looked at, and everyone together; "
        f"{wrong:,} of the groups {'is' if wrong == 1 else 'are'} off beyond chance (p-values are adjusted: "
        "a false alarm anywhere among the groups has probability 5%). "
    )


def _differences(differences: Sequence[GroupComparison]) -> Section:
    """Compare groups with each other, those of an ordered column in their order."""
    texts = tuple(str(found) for found in differences)
    how = (
        "Differences are happened minus predicted, with the interval of each group by itself; who is off is "
        "decided by the p-values under “For whom?”, adjusted for all groups. The tests here ask whether "
        "groups differ from each other: whether the odds of the outcome, given the predictions, are off by "
        "the same factor in every group. Brier score and discrimination also depend on how hard the records "
        "of a group are."
    )
    sheets = tuple(found.group_sheet() for found in differences)
    figures = ("groups-in-order",) if any(found.trend is not None for found in differences) else ()
    title = "Do groups differ, and is there a trend?"
    return Section("differences", title, (*texts, how), figures, sheets)


NEGLIGIBLE = 5e-4  # per 1,000 decisions: less is rounding, or nothing that anybody would notice


def _cost(evaluation: Findings) -> Section:
    result = evaluation.recalibration
    if result is None:
        absent = f"Not said: {why_absent(evaluation.forecasts)}."
        return Section("cost", "What does it cost?", (absent,))
    threshold, loss = result.curve.worst
    noise = cost_by_chance(evaluation.forecasts, evaluation.seed)
    at_chance = "" if noise is None else f" (by chance alone about {short(1000 * noise.threshold, 2)})"
    for_all = "" if noise is None else f" (by chance alone about {short(1000 * noise.task, 2)})"
    text = "Decisions suffer where the prediction falls on the wrong side of a threshold. "
    if 1000 * loss >= NEGLIGIBLE:
        text += (
            f"Whoever acts above {short(threshold)} loses most by trusting the predictions instead of "
            f"recalibrated ones: {short(1000 * loss)} outcomes per 1,000 decisions{at_chance}. "
        )
    text += (
        "Over all decisions with payoffs between 0 and 1, also those with more than two actions, the most "
        f"that is lost is {short(1000 * result.task.loss)} units of payoff per 1,000 decisions{for_all}."
    )
    if noise is not None:
        text += " By chance alone means: if the predictions were calibrated. A loss near that is noise."
    regret = 1000 * result.base_rate_regret
    if regret >= NEGLIGIBLE:
        base = (
            "Always acting on the base rate would have served somebody better, by "
            f"{short(regret)} units of payoff per 1,000 decisions at most."
        )
    else:
        base = "Always acting on the base rate would have served nobody better."
    return Section("cost", "What does it cost?", (text, base), ("threshold",))


VERDICTS = {
    "helps": "Yes: it helps. The log loss of held-out records falls by {gain} ({lower} to {upper}).",
    "harms": "No: it harms. The log loss of held-out records rises by {loss} ({least} to {most}).",
    "no evidence that it helps": "There is no evidence that it helps: the gain in log loss on held-out "
    "records is {gain}, and may be anything from {lower} to {upper}.",
    "too little data to say": "There are too few records to say.",
}
NO_CHANGE = (
    "Nothing to repair was found on the whole: the gain in log loss on held-out records is {gain} "
    "({lower} to {upper})."
)


def _recalibration(proposal: Proposal | str) -> Section:
    title = "Would recalibration help?"
    if isinstance(proposal, str):
        return Section("recalibration", title, (f"Not said: {proposal.rstrip('.')}.",))
    found, chosen = proposal.assessment, proposal.fitted.chosen
    numbers = {"gain": found.gain, "lower": found.lower, "upper": found.upper}
    losses = {"loss": -found.gain, "least": -found.upper, "most": -found.lower}
    none = chosen == "identity" and found.verdict == "no evidence that it helps"
    said = (NO_CHANGE if none else VERDICTS[found.verdict]).format(
        **{key: short(n) for key, n in (numbers | losses).items()}
    )
    came_to = "no change" if chosen == "identity" else f"the method “{chosen}”"
    how = (
        "The automatic choice among no change, Platt's map and centered isotonic regression came to "
        f"{came_to} on all records. To judge it, choice and fit were repeated on four fifths of the records "
        "and applied to the fifth left out, in turn, with neighbouring predictions merged into coarse cells; "
        "the table shows means over the five parts, which are smaller than the whole and so show more noise. "
        "calibrant.recalibrate fits all records exactly, with more methods to choose from."
    )
    return Section("recalibration", title, (said, how), ("recalibration",), (found.sheet(),))


def _done(evaluation: Findings) -> Section:
    from calibrant import __version__

    text = (
        f"calibrant {__version__}, seed {evaluation.seed}, {evaluation.draws} simulated draws, intervals at "
        f"confidence {evaluation.confidence:g}. The same data and seed give the same file, byte for byte."
    )
    if evaluation.cells is not None:
        text += (
            f" Values are of all {evaluation.facts.levels:,} distinct predictions; what was simulated (by "
            "chance, p-values without a limit law, intervals, bands) merged them into about "
            f"{counted(evaluation.cells, 'cell')}."
        )
    citations = tuple(dict.fromkeys(f"{row.about.name}: {row.about.citation}" for row in evaluation.rows))
    return Section("done", "What was done", (text,), notes=citations, folded=True)
