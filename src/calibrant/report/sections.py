"""Sections of the report: which question each answers, and with which texts, charts and tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from calibrant.evaluation.error_rates import error_rate_table, usual_threshold
from calibrant.evaluation.findings import details
from calibrant.evaluation.repair_preview import cost_by_chance, why_absent
from calibrant.evaluation.standout import ranked, wrong_groups
from calibrant.evaluation.tables import (
    GROUPS_SHOWN,
    distance_sheet,
    group_table,
    leading_groups,
    measure_table,
)
from calibrant.evaluation.verdict import disagreement_note
from calibrant.evaluation.wording import percent_pair
from calibrant.formatting import format_points, format_pvalue, format_value, pluralize
from calibrant.groups.error_rates import TRADE_OFF
from calibrant.results import Table, TableCell, number_cell, text_cell

if TYPE_CHECKING:
    from calibrant.evaluation.findings import Findings
    from calibrant.evaluation.repair_preview import GroupRepair, Proposal
    from calibrant.groups.group_comparison import GroupComparison
    from calibrant.recalibration.assess_groups import GroupChange, GroupSide

MAX_ERROR_RATES = 10  # groups
NEGLIGIBLE_LOSS = 5e-4  # per 1,000 decisions


@dataclass(frozen=True, slots=True)
class Section:
    """One question of the report; everything in it is text, never markup."""

    id: str
    title: str
    texts: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()
    sheets: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    folded: bool = False


def sections(
    evaluation: Findings,
    proposal: Proposal | str,
    repaired: GroupRepair | str | None = None,
    differences: Sequence[GroupComparison] = (),
) -> list[Section]:
    """Return what is folded below the first screen, in the order in which a reader asks."""
    return [
        *_groups(evaluation),
        *_error_rates(evaluation),
        *_repair_by_group(repaired),
        _repair(evaluation, proposal),
        _evidence(evaluation),
        *_differences(differences),
        _measures(evaluation),
        _method(evaluation),
    ]


def _groups(evaluation: Findings) -> list[Section]:
    audit = evaluation.audit
    if audit is None:
        return []
    wrong = len(wrong_groups(audit))
    text = (
        f"{pluralize(audit.tested - 1, 'group was', 'groups were')} tested; {wrong:,} "
        f"{'is' if wrong == 1 else 'are'} wrong beyond chance. p-values allow for all groups together; "
        "intervals are for each group on its own. Differences are observed minus predicted, in points."
    )
    notes = [f"Not tested: {audit.not_tested}."]
    if audit.tested > GROUPS_SHOWN:
        notes.append(f"The table shows {GROUPS_SHOWN} groups; the raw numbers below hold all.")
    table = group_table(ranked(audit, evaluation.verdict.worst_group)[:GROUPS_SHOWN])
    return [
        Section(
            "whom", "All groups", (text,), ("groups", "group-curves"), (table,), tuple(notes), folded=True
        )
    ]


def _error_rates(evaluation: Findings) -> list[Section]:
    """Show who is selected at a threshold, and how often wrongly, next to calibration."""
    if evaluation.audit is None:
        return []
    threshold = usual_threshold(evaluation)
    shown = leading_groups(evaluation.audit, evaluation.verdict.worst_group, MAX_ERROR_RATES)
    table = error_rate_table(evaluation, shown, threshold)
    if table is None:
        return []
    text = f"Selected: predictions of {threshold:g} or more. {TRADE_OFF}"
    return [Section("error-rates", "Error rates by group", (text,), sheets=(table,), folded=True)]


def _repair_by_group(repaired: GroupRepair | str | None) -> list[Section]:
    title = "Groups before and after a repair"
    if repaired is None:
        return []
    if isinstance(repaired, str):
        return [Section("whom-after", title, (f"Not tried: {repaired.rstrip('.')}.",), folded=True)]
    text = (
        f"{repair_sentence(repaired)} The repair shifts each value of {_listed(repaired.columns)} on the "
        f"logit scale, fitted on four fifths of {_records(repaired)} and judged on the fifth left out."
    )
    words = (
        "fixed: wrong before, within chance after. better: closer to the truth. worse: farther from it, "
        "beyond chance. open: the records do not decide."
    )
    table = change_table(repaired.whom.changes)
    return [Section("whom-after", title, (text,), sheets=(table,), notes=(words,), folded=True)]


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
    chance = "beyond chance" if change_word(away) == "worse" else "within chance"
    return (
        f"{said} {away.rule} moves from {_off(away.before)} to {100 * abs(away.after.difference):.1f} points "
        f"too {side} ({chance})."
    ).lstrip()


def _off(side: GroupSide) -> str:
    return f"{100 * abs(side.difference):.1f}"


def change_table(changes: Sequence[GroupChange]) -> Table:
    """Return every group before and after a repair, with one word for the change."""
    columns = ("group", "records", "observed", "difference before", "difference after", "change")
    return Table(columns, tuple(_change_line(one) for one in changes))


def _change_line(one: GroupChange) -> tuple[TableCell, ...]:
    return (
        text_cell(one.rule),
        number_cell(one.size, f"{one.size:,}"),
        number_cell(one.happened, percent_pair(one.happened, one.before.predicted)[0]),
        number_cell(one.before.difference, _with_interval(one.before)),
        number_cell(one.after.difference, _with_interval(one.after)),
        text_cell(change_word(one)),
    )


def _with_interval(side: GroupSide) -> str:
    """Write a difference with its interval, in points.

    The sign is shown for the difference only: "+2.9 (1.8 to 4.1)".
    """
    width = side.high - side.low
    low, high = (format_points(end, width).lstrip("+") for end in (side.low, side.high))
    return f"{format_points(side.difference, width)} ({low} to {high})"


def change_word(one: GroupChange) -> str:
    """Return "fixed", "better", "worse" or "open" for what a repair does to a group."""
    if (one.before.low > 0 or one.before.high < 0) and one.after.low <= 0 <= one.after.high:
        return "fixed"
    if abs(one.after.difference) < abs(one.before.difference):
        return "better"
    return "worse" if one.farther.lower > 0 else "open"


def _listed(columns: Sequence[str]) -> str:
    return ", ".join(columns) or "the groups"


def _records(repaired: GroupRepair) -> str:
    if repaired.sampled:
        return f"a random sample of {repaired.tried_on:,} of the {repaired.of:,} records"
    return f"all {pluralize(repaired.tried_on, 'record')}"


REPAIR_SENTENCES = {
    "helps": "A map for all records helps: held-out log loss falls by {gain} ({lower} to {upper}).",
    "harms": "A map for all records harms: the gain in held-out log loss is {gain} ({lower} to {upper}).",
    "no evidence that it helps": "There is no evidence that a map for all records helps: the gain in "
    "held-out log loss is {gain} ({lower} to {upper}).",
    "too little data to say": "There are too few records to say whether a map for all records helps.",
}


def _repair(evaluation: Findings, proposal: Proposal | str) -> Section:
    texts = (*_map_texts(proposal), *_cost_texts(evaluation))
    title = "What a repair would change, and what the error costs"
    return Section("recalibration", title, texts, ("recalibration", "threshold"), folded=True)


def _map_texts(proposal: Proposal | str) -> tuple[str, ...]:
    if isinstance(proposal, str):
        return (f"No map was tried: {proposal.rstrip('.')}.",)
    found, method = proposal.assessment, proposal.fitted.chosen
    numbers = {"gain": found.gain, "lower": found.lower, "upper": found.upper}
    said = REPAIR_SENTENCES.get(found.verdict, f"A map for all records: {found.verdict}.")
    text = said.format(**{key: format_value(number) for key, number in numbers.items()})
    choice = "No change was chosen" if method == "identity" else f"The method chosen was {method}"
    return (f"{text} {choice}, among no change, Platt scaling and isotonic regression.",)


def _cost_texts(evaluation: Findings) -> tuple[str, ...]:
    result = evaluation.recalibration
    if result is None:
        return (f"The cost was not estimated: {why_absent(evaluation.forecasts)}.",)
    threshold, loss = result.curve.worst
    if 1000 * loss < NEGLIGIBLE_LOSS:
        return ("Decisions at a threshold lose nothing measurable by trusting the predictions.",)
    noise = cost_by_chance(evaluation.forecasts, evaluation.seed)
    by_chance = "" if noise is None else f" (chance alone: about {format_value(1000 * noise.threshold, 2)})"
    return (
        f"Acting above {format_value(threshold, 2)} loses most by trusting these predictions instead of "
        f"repaired ones: {format_value(1000 * loss, 2)} outcomes per 1,000 decisions{by_chance}.",
    )


def _evidence(evaluation: Findings) -> Section:
    verdict = evaluation.verdict
    title, figures = "Is it real, and where?", ("cumulative", "null", "witness")
    if verdict.pvalue is None:
        return Section("real", title, (verdict.sentence,), figures, folded=True)
    shown = format_pvalue(verdict.pvalue, verdict.pvalue_is_bound)
    rejected = verdict.pvalue <= verdict.alpha
    meaning = "Chance does not explain it." if rejected else "It does not cast doubt on the predictions."
    text = (
        "If the predictions were right, outcomes would differ from them at least this much with probability "
        f"{shown} (omnibus test: level, slope and shape). {meaning}"
    )
    return Section("real", title, (text, *_histogram_note(evaluation)), figures, folded=True)


def _histogram_note(evaluation: Findings) -> tuple[str, ...]:
    """Explain a histogram that seems to contradict the verdict."""
    null, verdict = evaluation.null, evaluation.verdict
    assert verdict.pvalue is not None
    if null is None or (null.pvalue <= verdict.alpha) == (verdict.pvalue <= verdict.alpha):
        return ()
    if null.pvalue > verdict.alpha:
        return (
            "The smooth error in the histogram is less sensitive than the test to common shapes of error.",
        )
    return ("The smooth error in the histogram is unusual, but the test chosen in advance finds nothing.",)


def _differences(differences: Sequence[GroupComparison]) -> list[Section]:
    """Compare groups with each other, those of an ordered column in their order."""
    if not differences:
        return []
    figures = ("groups-in-order",) if any(found.trend is not None for found in differences) else ()
    texts = tuple(str(found) for found in differences)
    return [Section("differences", "Do groups differ, and is there a trend?", texts, figures, folded=True)]


def _measures(evaluation: Findings) -> Section:
    how = (
        "0 is perfect for errors, 1 for the slope; scores also measure how much is known. “By chance” is the "
        "average if these predictions were calibrated."
    )
    note = disagreement_note(evaluation.verdict, evaluation.rows)
    distances = evaluation.distances
    far = (
        "To be calibrated, predictions must move by at least "
        f"{format_value(distances.lower)} on average; {format_value(distances.upper)} is enough."
    )
    meanings = tuple(f"{row.about.name}: {row.about.meaning}" for row in evaluation.rows)
    notes = tuple(f"{row.about.name}: {row.note}" for row in evaluation.rows if row.note)
    sheets = (measure_table(evaluation.rows, evaluation.confidence), distance_sheet(distances))
    texts = tuple(filter(None, (how, note, far)))
    return Section("measures", "All measures", texts, (), sheets, (" · ".join(meanings), *notes), folded=True)


def _method(evaluation: Findings) -> Section:
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
    citations = dict.fromkeys(f"{row.about.name}: {row.about.citation}" for row in evaluation.rows)
    return Section("method", "How this was computed", (text,), notes=tuple(citations), folded=True)
