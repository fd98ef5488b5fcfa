"""For whom, after the fix: what the report says of a repair by group, and every group before and after."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calibrant.evaluation.sheets import whom_sheet
from calibrant.groups.rules import EVERYONE
from calibrant.numerals import counted
from calibrant.recalibration.change_sheets import HELD_OUT, change_sheet, score_sheet
from calibrant.recalibration.group_changes import farther_in_short
from calibrant.report.section import Section

if TYPE_CHECKING:
    from calibrant.evaluation.group_repair import GroupRepair

TITLE = "For whom, after the fix?"
MANY = 25  # groups from which the table is folded


def whom_after(repaired: GroupRepair | str | None) -> list[Section]:
    """Return what a repair by the groups would do, and the table of every group; nothing without groups."""
    if repaired is None:
        return []
    if isinstance(repaired, str):
        return [Section("whom-after", TITLE, (f"Not said: {repaired.rstrip('.')}.",))]
    return [_finding(repaired), _every_group(repaired)]


def in_short(repaired: GroupRepair | str | None) -> str:
    """Return what a repair by group would do, for the head of the page; nothing where nobody is wrong."""
    if repaired is None or isinstance(repaired, str):
        return ""
    groups = [one for one in repaired.whom.changes if one.rule != EVERYONE]
    before, after = sum(one.before.wrong for one in groups), sum(one.after.wrong for one in groups)
    if not before:
        return ""
    judged = [one for one in groups if one.judged]
    pays = f"; {farther_in_short(judged)}" if judged else ""
    drawn = "" if repaired.draws is None else f", with {repaired.draws:,} draws"
    return (
        f"After a shift per group, tried on held-out parts of {_records(repaired)}, the audit finds "
        f"{after:,} of {counted(len(groups), 'group')} wrong at the 5 % level ({before:,} before{drawn})"
        f"{pays}: see “{TITLE}”."
    )


def _finding(repaired: GroupRepair) -> Section:
    whom = repaired.whom
    how = (
        "One shift of the logit per value of every group column, shrunk toward none, was fitted to four "
        f"fifths of {_records(repaired)} and judged on the fifth left out, in turn. Audited before and "
        f"after: {whom.audited}. M / sigma is the largest z of all groups.{_other_draws(repaired)}"
    )
    pays = [f"Who pays, {one}." for one in whom.who_pays]
    limits = (
        "“Beyond noise” means that limits which hold for all groups at once (95%, approximate) lie on one "
        f"side of no change. Judged are groups with at least {counted(repaired.smallest, 'record')}; by "
        "log loss, single values without combinations."
    )
    said = "tests all of them" if repaired.sampled else "says the same of them"
    notes = [f"after it, by evidence: {one}" for one in whom.after.worst]
    notes.append(
        f"calibrant recalibrate FILE ... --groups {','.join(repaired.columns)} --method hierarchical --seed "
        f"{repaired.assessment.seed} fits it to all records, {said} and saves the map."
    )
    texts = (_said(repaired), *pays, limits, how)
    return Section("whom-after", TITLE, texts, sheets=(whom_sheet(whom),), notes=tuple(notes))


def _other_draws(repaired: GroupRepair) -> str:
    """Say why p-values and counts may differ from those of the audit above, where they may."""
    if repaired.draws is None:
        return ""
    return (
        f" Both audits draw {repaired.draws:,} data sets, as calibrant recalibrate does, and that under “For "
        f"whom?” drew {repaired.drawn:,}: p-values differ a little, and so may the number of groups."
    )


def _records(repaired: GroupRepair) -> str:
    if repaired.sampled:
        return f"a random sample of {repaired.tried_on:,} of the {repaired.of:,} records"
    return f"all {counted(repaired.tried_on, 'record')}"


def _said(repaired: GroupRepair) -> str:
    """Return the sentence that `recalibrate` prints too; of a sample, what it leaves open."""
    finding = repaired.whom.finding
    if not repaired.sampled:
        return f"{finding[0].upper()}{finding[1:]}."
    return (
        f"On this sample of {repaired.tried_on:,} records: {finding}. All {repaired.of:,} records may show "
        "errors that a sample does not: calibrant recalibrate --groups tests all of them, and its answer "
        "counts."
    )


def _every_group(repaired: GroupRepair) -> Section:
    changes = repaired.whom.changes
    shown = (
        f"All {len(changes):,} lines of the audit, everyone among them, on {_records(repaired)}. {HELD_OUT} "
        "Intervals (95%) are of each group by itself, p-values are adjusted for all groups. “Closer” and "
        "“farther” say whether the mean prediction moved toward what happened; “within noise” that the "
        "records leave open which. The second table has the tests and the Brier scores of the same groups."
    )
    sheets = (change_sheet(changes), score_sheet(changes))
    return Section(
        "changes", "Every group before and after", (shown,), sheets=sheets, folded=len(changes) > MANY
    )
