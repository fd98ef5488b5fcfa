"""The pages of an audit, of a learned auditor and of a stream, each one self-contained HTML file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from calibrant.formatting import format_value, pluralize, pvalue_phrase
from calibrant.groups.audit_result import AUDITED, EACH_BY_ITSELF, Z_MEANS, Audit, power_note
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
from calibrant.report.page import PageVerdict, Section, rendered
from calibrant.results import Array, Table, number_cell, text_cell

MOST = 500  # groups in the table


def audit_page(audited: Audit, *, title: str, confirmed: Search | None = None) -> str:
    """Return one HTML file about an audit, and about the search that confirmed it if there was one."""
    rejected = bool(audited.significant())
    open_ = audited.pvalue is None or bool(audited.undecided)
    tone = "bad" if rejected else "unknown" if open_ else "good"
    numbers = audited.to_dict()
    if confirmed is not None:
        numbers["search"] = confirmed.to_dict()
    return rendered(
        title=title,
        verdict=_audit_verdict(audited, rejected),
        tone=tone,
        facts=f"{AUDITED[audited.statistic]} audit of {pluralize(audited.n, 'row')}, {audited.looked_at}",
        parts=[
            _whom(audited),
            *([] if confirmed is None else [_confirmed(confirmed)]),
            _audit_method(audited),
        ],
        drawn={"groups": forest.spec(audited), "group-curves": group_curves.spec(audited)},
        numbers=numbers,
    )


def _audit_verdict(audited: Audit, rejected: bool) -> PageVerdict:
    if audited.pvalue is None:
        return PageVerdict("Not tested.", "No data sets were simulated.", "Simulate data sets to test.")
    shown = pvalue_phrase(audited.pvalue, audited.draws)
    if not rejected and audited.undecided:
        return PageVerdict("Undecided.", audited.verdict, "Audit again with more draws, or on more records.")
    if not rejected:
        expected = f"The worst gap found here is to be expected among this many groups ({shown})."
        sentence = f"{expected} {power_note(audited)}"
        return PageVerdict("No group is off beyond chance.", sentence, "Audit new data as it comes.")
    step = "Recalibrate by these groups, on records the model was not trained on, and audit again."
    return PageVerdict("Wrong for some.", f"{audited.verdict} Over all groups together {shown}.", step)


def _whom(audited: Audit) -> Section:
    text = (
        "The table compares what was predicted for each group with what was observed. A false alarm anywhere "
        f"among the groups has probability 5%. {Z_MEANS[audited.statistic]} {EACH_BY_ITSELF}"
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
        f"A search over {pluralize(confirmed.examined, 'subpopulation')} of "
        f"{pluralize(confirmed.searched, 'row')} took {pluralize(confirmed.taken, 'rule')} to "
        f"{pluralize(confirmed.confirming, 'row')} that it had not seen:"
    )
    return Section("search", "What a directed search found", (head, *texts))


def _audit_method(audited: Audit) -> Section:
    text = (
        f"M = {audited.metric:.6g}, M / sigma_0 = {audited.ratio:.4g}; the largest statistic not divided by "
        f"its deviation is {audited.ablated:.4g} ({audited.ablated_group.rule}), of which chance alone gives "
        f"{audited.ablated_group.expected:.4g}. Variant {audited.variant}, "
        f"{pluralize(audited.draws, 'draw')}, "
        f"seed {audited.seed}."
    )
    return Section("how", "How it was computed", (text,), folded=True)


LEARNED = (
    "A model learned from one half of the rows where outcomes differ from predictions, and was tested on "
    "the other half, in turns. The question is more than calibration: whether the columns know anything "
    "that the predictions do not."
)


def distinguisher_page(given: Distinguisher, *, title: str) -> str:
    """Return one HTML file, complete in itself."""
    rejected = given.pvalue <= LEVEL
    drawn = {"carriers": carriers.spec(given)}
    if given.rules:
        drawn["giveaways"] = giveaways.spec(given)
    return rendered(
        title=title,
        verdict=_distinguisher_verdict(given, rejected),
        tone="bad" if rejected else "good",
        facts=f"Learned auditor of {pluralize(given.n, 'row')}",
        parts=[
            Section("what", "What gave them away?", (LEARNED,), ("giveaways", "carriers"), (_rules(given),)),
            _distinguisher_method(given),
        ],
        drawn=drawn,
        numbers=given.to_dict(),
    )


def _distinguisher_verdict(given: Distinguisher, rejected: bool) -> PageVerdict:
    shown = pvalue_phrase(given.pvalue, given.draws, bound=given.pvalue_is_bound)
    sentence = (
        f"The advantage of the auditor on records it has not seen is {format_value(given.advantage)} "
        f"({format_value(given.lower)} to {format_value(given.upper)}), {shown}."
    )
    if not rejected:
        sentence += " Absence of evidence is not proof."
        return PageVerdict("Nothing gives them away.", sentence, "Look again at new data as it comes.")
    step = "Recalibrate with these columns as covariates, then look again at held-out predictions."
    return PageVerdict("The columns know more than the predictions.", sentence, step)


def _rules(given: Distinguisher) -> Table:
    columns = ("group", "rows", "share", "mean residual", "carried")
    return Table(
        columns,
        tuple(
            (text_cell(one.rule), number_cell(one.size, f"{one.size:,}"),
             number_cell(one.share, f"{one.share:.1%}"), number_cell(one.gap, f"{one.gap:+.4f}"),
             number_cell(one.carried, f"{one.carried:+.5f}"))
            for one in given.rules
        ),
    )  # fmt: skip


def _distinguisher_method(given: Distinguisher) -> Section:
    halves = "; ".join(
        f"{half.advantage:.4g} ({half.lower:.4g} to {half.upper:.4g}), "
        f"{pvalue_phrase(half.pvalue, given.draws)}, {pluralize(half.n, 'row')}"
        for half in given.halves
    )
    words = (
        f"Advantage on either half: {halves}. The p-value of both is twice the smaller one, by "
        f"{given.draws:,} simulated data sets each, exact given the fit. Seed {given.seed}."
    )
    return Section("how", "How it was computed", (words,), folded=True)


PROMISE = (
    "The certificate is computed along the way and holds whatever the outcomes were. The bound was known "
    "beforehand. Without a guard, or with more late outcomes than were announced, one or both are missing."
)


def stream_page(
    outcomes: Array, raw: Array, run: Run, numbers: Mapping[str, Any], *, title: str, alpha: float = 0.05
) -> str:
    """Return one HTML file, complete in itself, about a run of an OnlineCalibrator over these records."""
    drawn = {
        "gain": gain_over_time.spec(outcomes, raw, run),
        "evidence-raw": evidence_over_time.spec(outcomes, raw, alpha=alpha),
        "evidence-calibrated": evidence_over_time.spec(outcomes, run.predictions, alpha=alpha),
    }
    if run.certificate is not None:
        drawn["certificate"] = certificate_over_time.spec(run)
    if run.weights is not None:
        drawn["weights"] = expert_weights.spec(run)
    records = pluralize(len(run), "record")
    if run.learnt_before:
        records += f", after {run.learnt_before:,} earlier ones"
    drawn["evidence-raw"]["title"]["text"] += ": raw"
    drawn["evidence-calibrated"]["title"]["text"] += ": calibrated"
    return rendered(
        title=title,
        verdict=_stream_verdict(outcomes, raw, run),
        tone="good" if run.bound is not None else "unknown",
        facts=f"{records}, {int(run.steered.sum()):,} of them steered by the guard",
        parts=_sections(run),
        drawn=drawn,
        numbers=numbers,
    )


def _stream_verdict(outcomes: Array, raw: Array, run: Run) -> PageVerdict:
    before, after = (float(np.mean((outcomes - p) ** 2)) for p in (raw, run.predictions))
    lead = "Calibrated as outcomes came in."
    sentence = f"Brier score {format_value(before, 4)} raw, {format_value(after, 4)} calibrated."
    if run.certificate is not None:
        at_most = format_value(float(run.certificate[-1]) / int(run.rounds[-1]))
        since = ", counted from the first record ever" if run.learnt_before else ""
        sentence += f" Provably at most {at_most} from calibrated{since}."
    if run.bound is None:
        return PageVerdict(lead, sentence, "No bound is promised here; see the certificate, which holds.")
    return PageVerdict(lead, sentence, "Keep the state, and go on with the next records.")


def _sections(run: Run) -> list[Section]:
    promise = ("certificate",) if run.certificate is not None else ()
    weights = ("weights",) if run.weights is not None else ()
    watched = (
        "A monitor bets against calibration; it is run here over the raw and the calibrated predictions."
    )
    return [
        Section("gain", "Does calibrating help?", (), ("gain", *weights)),
        Section("promise", "What is certain?", (PROMISE,), promise),
        Section("alarms", "Was there an alarm?", (watched,), ("evidence-raw", "evidence-calibrated")),
    ]
