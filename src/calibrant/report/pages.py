"""The pages of an audit, of a learned auditor and of a stream, each one self-contained HTML file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from calibrant.formatting import format_value, pluralize, pvalue_phrase
from calibrant.groups.audit_result import GROUP_INTERVALS_NOTE, TITLES, Z_MEANING, Audit, power_note
from calibrant.groups.distinguisher import Distinguisher
from calibrant.groups.search import Search
from calibrant.inference.pvalues import LEVEL
from calibrant.online.base import Run
from calibrant.report.charts.groups import carriers, forest, giveaways, group_curves
from calibrant.report.charts.online import (
    certificate_over_time,
    evidence_over_time,
    expert_weights,
    gain_over_time,
)
from calibrant.report.rendering import PageVerdict, Section, rendered
from calibrant.results import Array, Table, number_cell, text_cell

MAX_GROUPS = 500  # groups in the table


def audit_page(audited: Audit, *, title: str, subtitle: str = "", confirmed: Search | None = None) -> str:
    """Return one HTML file about an audit, and about the search that confirmed it if there was one."""
    shown = pvalue_phrase(audited.pvalue, audited.draws)
    if audited.pvalue is None:
        tone, step = "unknown", "Simulate data sets to test."
        verdict = PageVerdict("Not tested.", "No data sets were simulated.", step)
    elif audited.significant():
        tone, said = "bad", f"{audited.verdict} Over all groups together {shown}."
        step = "Recalibrate by these groups, on records the model was not trained on, and audit again."
        verdict = PageVerdict("Wrong for some.", said, step)
    elif audited.undecided:
        tone, step = "unknown", "Audit again with more draws, or on more records."
        verdict = PageVerdict("Undecided.", audited.verdict, step)
    else:
        tone, said = "good", f"The worst gap found here is to be expected among this many groups ({shown})."
        lead, step = "No group is off beyond chance.", "Audit new data as it comes."
        verdict = PageVerdict(lead, f"{said} {power_note(audited)}", step)
    text = (
        "The table compares what was predicted for each group with what was observed. A false alarm anywhere "
        f"among the groups has probability 5%. {Z_MEANING[audited.statistic]} {GROUP_INTERVALS_NOTE}"
    )
    notes = [f"Not tested: {audited.not_tested}."]
    if len(audited.groups) > MAX_GROUPS:
        notes.append(
            f"The table shows the first {MAX_GROUPS} of {len(audited.groups):,} by z, of which "
            f"{len(audited.significant()):,} are off beyond chance; the raw numbers below hold all."
        )
    figures, sheets = ("groups", "group-curves"), (audited.sheet(MAX_GROUPS),)
    parts = [Section("whom", "For whom?", (text,), figures, sheets, tuple(notes))]
    numbers = audited.to_dict()
    if confirmed is not None:
        numbers["search"] = confirmed.to_dict()
        head = (
            f"A search over {pluralize(confirmed.examined, 'subpopulation')} of "
            f"{pluralize(confirmed.searched, 'row')} took {pluralize(confirmed.taken, 'rule')} to "
            f"{pluralize(confirmed.confirming, 'row')} that it had not seen:"
        )
        texts = (str(one.group) for one in confirmed.findings)
        parts.append(Section("search", "What a directed search found", (head, *texts)))
    method = (
        f"M = {audited.metric:.6g}, M / sigma_0 = {audited.ratio:.4g}; the largest statistic not divided by "
        f"its deviation is {audited.ablated:.4g} ({audited.ablated_group.rule}), of which chance alone gives "
        f"{audited.ablated_group.expected:.4g}. Variant {audited.variant}, "
        f"{pluralize(audited.draws, 'draw')}, seed {audited.seed}."
    )
    return rendered(
        title=title,
        subtitle=subtitle,
        verdict=verdict,
        tone=tone,
        facts=f"{TITLES[audited.statistic]} audit of {pluralize(audited.n, 'row')}, {audited.looked_at}",
        parts=[*parts, Section("how", "How it was computed", (method,), folded=True)],
        drawn={"groups": forest.spec(audited), "group-curves": group_curves.spec(audited)},
        numbers=numbers,
    )


LEARNED = (
    "A model learned from one half of the rows where outcomes differ from predictions, and was tested on "
    "the other half, in turns. The question is more than calibration: whether the columns know anything "
    "that the predictions do not."
)


def distinguisher_page(given: Distinguisher, *, title: str, subtitle: str = "") -> str:
    drawn = {"carriers": carriers.spec(given)}
    if given.rules:
        drawn["giveaways"] = giveaways.spec(given)
    said = (
        f"The advantage of the auditor on records it has not seen is {format_value(given.advantage)} "
        f"({format_value(given.lower)} to {format_value(given.upper)}), "
        f"{pvalue_phrase(given.pvalue, given.draws, bound=given.pvalue_is_bound)}."
    )
    step = "Recalibrate with these columns as covariates, then look again at held-out predictions."
    tone, verdict = "bad", PageVerdict("The columns know more than the predictions.", said, step)
    if given.pvalue > LEVEL:
        said, step = f"{said} Absence of evidence is not proof.", "Look again at new data as it comes."
        tone, verdict = "good", PageVerdict("Nothing gives them away.", said, step)
    lines = (
        (
            text_cell(one.rule),
            number_cell(one.size, f"{one.size:,}"),
            number_cell(one.share, f"{one.share:.1%}"),
            number_cell(one.gap, f"{one.gap:+.4f}"),
            number_cell(one.carried, f"{one.carried:+.5f}"),
        )
        for one in given.rules
    )
    rules = Table(("group", "rows", "share", "mean residual", "carried"), tuple(lines))
    halves = "; ".join(
        f"{half.advantage:.4g} ({half.lower:.4g} to {half.upper:.4g}), "
        f"{pvalue_phrase(half.pvalue, given.draws)}, {pluralize(half.n, 'row')}"
        for half in given.halves
    )
    method = (
        f"Advantage on either half: {halves}. The p-value of both is twice the smaller one, by "
        f"{given.draws:,} simulated data sets each, exact given the fit. Seed {given.seed}."
    )
    return rendered(
        title=title,
        subtitle=subtitle,
        verdict=verdict,
        tone=tone,
        facts=f"Learned auditor of {pluralize(given.n, 'row')}",
        parts=[
            Section("what", "What gave them away?", (LEARNED,), ("giveaways", "carriers"), (rules,)),
            Section("how", "How it was computed", (method,), folded=True),
        ],
        drawn=drawn,
        numbers=given.to_dict(),
    )


PROMISE = (
    "The certificate is computed along the way and holds whatever the outcomes were. The bound was known "
    "beforehand. Without a guard, or with more late outcomes than were announced, one or both are missing."
)


def stream_page(
    outcomes: Array, raw: Array, run: Run, numbers: Mapping[str, Any], *, title: str, subtitle: str = ""
) -> str:
    """Return one HTML file, complete in itself, about a run of an OnlineCalibrator over these records."""
    drawn = {
        "gain": gain_over_time.spec(outcomes, raw, run),
        "evidence-raw": evidence_over_time.spec(outcomes, raw),
        "evidence-calibrated": evidence_over_time.spec(outcomes, run.predictions),
    }
    if run.certificate is not None:
        drawn["certificate"] = certificate_over_time.spec(run)
    if run.weights is not None:
        drawn["weights"] = expert_weights.spec(run)
    drawn["evidence-raw"]["title"]["text"] += ": raw"
    drawn["evidence-calibrated"]["title"]["text"] += ": calibrated"
    before, after = (float(np.mean((outcomes - p) ** 2)) for p in (raw, run.predictions))
    said = f"Brier score {format_value(before, 4)} raw, {format_value(after, 4)} calibrated."
    if run.certificate is not None:
        at_most = format_value(float(run.certificate[-1]) / int(run.rounds[-1]))
        since = ", counted from the first record ever" if run.learnt_before else ""
        said += f" Provably at most {at_most} from calibrated{since}."
    step = "Keep the state, and go on with the next records."
    if run.bound is None:
        step = "No bound is promised here; see the certificate, which holds."
    earlier = f", after {run.learnt_before:,} earlier ones" if run.learnt_before else ""
    steered = f"{int(run.steered.sum()):,} of them steered by the guard"
    watched = (
        "A monitor bets against calibration; it is run here over the raw and the calibrated predictions."
    )
    figures = {name: (name,) if name in drawn else () for name in ("weights", "certificate")}
    return rendered(
        title=title,
        subtitle=subtitle,
        verdict=PageVerdict("Calibrated as outcomes came in.", said, step),
        tone="good" if run.bound is not None else "unknown",
        facts=f"{pluralize(len(run), 'record')}{earlier}, {steered}",
        parts=[
            Section("gain", "Does calibrating help?", (), ("gain", *figures["weights"])),
            Section("promise", "What is certain?", (PROMISE,), figures["certificate"]),
            Section("alarms", "Was there an alarm?", (watched,), ("evidence-raw", "evidence-calibrated")),
        ],
        drawn=drawn,
        numbers=numbers,
    )
