"""The page of an audit: for whom the predictions are wrong, as one HTML file complete in itself."""

from __future__ import annotations

from dataclasses import dataclass

from calibrant.evaluation.sheets import group_sheet
from calibrant.groups.result import AUDITED, Audit, is_bound
from calibrant.groups.search import Search
from calibrant.numerals import chance
from calibrant.report.charts.groups import forest, group_curves
from calibrant.report.page import rendered
from calibrant.report.sections import Section

LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class AuditVerdict:
    """What the head of the page says."""

    lead: str
    sentence: str
    next_step: str


def audit_page(found: Audit, *, title: str, confirmed: Search | None = None) -> str:
    """Return one HTML file about an audit, and about the search that confirmed it if there was one."""
    rejected = found.pvalue is not None and found.pvalue <= LEVEL
    tone = "unknown" if found.pvalue is None else "bad" if rejected else "good"
    numbers = found.to_dict()
    if confirmed is not None:
        numbers["search"] = confirmed.to_dict()
    return rendered(
        title=title,
        verdict=_verdict(found, rejected),
        tone=tone,
        facts=f"{AUDITED[found.statistic]} audit of {found.n:,} rows in {found.tested:,} subpopulations",
        parts=[_whom(found), *([] if confirmed is None else [_confirmed(confirmed)]), _how(found)],
        drawn={"groups": forest(found), "group-curves": group_curves(found)},
        numbers=numbers,
    )


def _verdict(found: Audit, rejected: bool) -> AuditVerdict:
    if found.pvalue is None:
        return AuditVerdict("Not tested.", "No data sets were simulated.", "Ask for draws.")
    shown = chance(found.pvalue, floor=is_bound(found.pvalue, found.draws))
    if not rejected:
        sentence = (
            f"A gap as large as the worst found here is no surprise among so many groups (p = {shown})."
        )
        return AuditVerdict("No group is off beyond chance.", sentence, "Nothing needs to be repaired.")
    sentence = f"{found.worst.sentence(found.statistic)} (p-value over all groups {shown})."
    step = "Repair with calibrant recalibrate --covariates, then audit held-out predictions again."
    return AuditVerdict("Wrong for some.", sentence, step)


def _whom(found: Audit) -> Section:
    text = (
        "p-values are adjusted: a false alarm anywhere among the groups has probability 5%. z is the error "
        "of a group in units of what chance gives a group of its size."
    )
    notes = (f"Not tested: {found.not_tested}.",)
    return Section("whom", "For whom?", (text,), ("groups", "group-curves"), (group_sheet(found),), notes)


def _confirmed(confirmed: Search) -> Section:
    texts = [one.group.sentence(confirmed.statistic) for one in confirmed.findings]
    head = (
        f"A search over {confirmed.examined:,} subpopulations of {confirmed.searched:,} rows took "
        f"{confirmed.taken:,} rules to {confirmed.confirming:,} rows that it had not seen:"
    )
    return Section("search", "What a directed search found", (head, *texts))


def _how(found: Audit) -> Section:
    text = (
        f"M = {found.metric:.6g}, M / sigma_0 = {found.ratio:.4g}; the largest statistic not divided by its "
        f"deviation is {found.ablated:.4g} ({found.ablated_group.rule}), of which chance alone gives "
        f"{found.ablated_group.expected:.4g}. Variant {found.variant}, {found.draws:,} draws, "
        f"seed {found.seed}."
    )
    return Section("how", "How it was computed", (text,), folded=True)
