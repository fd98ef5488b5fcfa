"""The page of an audit: for whom the predictions are wrong, as one HTML file complete in itself."""

from __future__ import annotations

from calibrant.groups.audit_result import AUDITED, EACH_BY_ITSELF, Z_MEANS, Audit
from calibrant.groups.group import LEVEL
from calibrant.groups.no_evidence import left_open
from calibrant.groups.search_result import Search
from calibrant.numerals import counted, pvalue_phrase
from calibrant.report.charts.group_curves import group_curves
from calibrant.report.charts.groups import forest
from calibrant.report.page import PageVerdict, rendered
from calibrant.report.section import Section

MOST = 500  # groups in the table


def audit_page(audited: Audit, *, title: str, confirmed: Search | None = None) -> str:
    """Return one HTML file about an audit, and about the search that confirmed it if there was one."""
    rejected = audited.pvalue is not None and audited.pvalue <= LEVEL
    tone = "unknown" if audited.pvalue is None else "bad" if rejected else "good"
    numbers = audited.to_dict()
    if confirmed is not None:
        numbers["search"] = confirmed.to_dict()
    return rendered(
        title=title,
        verdict=_verdict(audited, rejected),
        tone=tone,
        facts=f"{AUDITED[audited.statistic]} audit of {counted(audited.n, 'row')}, {audited.looked_at}",
        parts=[_whom(audited), *([] if confirmed is None else [_confirmed(confirmed)]), _how(audited)],
        drawn={"groups": forest.spec(audited), "group-curves": group_curves.spec(audited)},
        numbers=numbers,
    )


def _verdict(audited: Audit, rejected: bool) -> PageVerdict:
    if audited.pvalue is None:
        return PageVerdict("Not tested.", "No data sets were simulated.", "Ask for draws.")
    shown = pvalue_phrase(audited.pvalue, audited.draws)
    if not rejected:
        sentence = (
            f"The worst gap found here is no surprise among so many groups ({shown}). {left_open(audited)}"
        )
        return PageVerdict("No group is off beyond chance.", sentence, "Audit new data as it comes.")
    sentence = f"{audited.verdict} Over all groups together {shown}."
    step = (
        "Repair with calibrant recalibrate --groups (--covariates for columns that were split at random): it "
        "shows every group before and after on held-out records."
    )
    return PageVerdict("Wrong for some.", sentence, step)


def _whom(audited: Audit) -> Section:
    text = (
        "Each line of the table compares what was predicted for a group with what happened. Its p-value "
        "answers whether that is more than chance; a false alarm anywhere among the groups has probability "
        f"5%. {Z_MEANS[audited.statistic]} {EACH_BY_ITSELF}"
    )
    notes = [f"Not tested: {audited.not_tested}."]
    if len(audited.groups) > MOST:
        notes.append(
            f"The table shows the first {MOST} of {len(audited.groups):,} by z, of which "
            f"{len(audited.significant()):,} are off beyond chance; the raw numbers below hold all."
        )
    sheets = (audited.sheet(MOST),)
    return Section("whom", "For whom?", (text,), ("groups", "group-curves"), sheets, tuple(notes))


def _confirmed(confirmed: Search) -> Section:
    texts = [str(one.group) for one in confirmed.findings]
    head = (
        f"A search over {counted(confirmed.examined, 'subpopulation')} of "
        f"{counted(confirmed.searched, 'row')} took {counted(confirmed.taken, 'rule')} to "
        f"{counted(confirmed.confirming, 'row')} that it had not seen:"
    )
    return Section("search", "What a directed search found", (head, *texts))


def _how(audited: Audit) -> Section:
    text = (
        f"M = {audited.metric:.6g}, M / sigma_0 = {audited.ratio:.4g}; the largest statistic not divided by "
        f"its deviation is {audited.ablated:.4g} ({audited.ablated_group.rule}), of which chance alone gives "
        f"{audited.ablated_group.expected:.4g}. Variant {audited.variant}, {counted(audited.draws, 'draw')}, "
        f"seed {audited.seed}."
    )
    return Section("how", "How it was computed", (text,), folded=True)
