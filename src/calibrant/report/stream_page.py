"""The page of a stream: what was promised, what calibrating brought, and whether alarms were raised."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from calibrant.numerals import counted, short
from calibrant.online.run import Run
from calibrant.report.charts.evidence import evidence_over_time
from calibrant.report.charts.online import certificate_over_time, expert_weights, gain_over_time
from calibrant.report.page import PageVerdict, rendered
from calibrant.report.section import Section
from calibrant.results import Array

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
    drawn["evidence-raw"]["title"]["text"] += ": raw"
    drawn["evidence-calibrated"]["title"]["text"] += ": calibrated"
    return rendered(
        title=title,
        verdict=_verdict(outcomes, raw, run),
        tone="good" if run.bound is not None else "unknown",
        facts=_facts(run),
        parts=_sections(run),
        drawn=drawn,
        numbers=numbers,
    )


def _facts(run: Run) -> str:
    earlier = f", after {run.learnt_before:,} earlier ones" if run.learnt_before else ""
    return f"{counted(len(run), 'record')}{earlier}, {int(run.steered.sum()):,} of them steered by the guard"


def _verdict(outcomes: Array, raw: Array, run: Run) -> PageVerdict:
    before, after = (float(np.mean((outcomes - p) ** 2)) for p in (raw, run.predictions))
    lead = "Calibrated as outcomes came in."
    sentence = f"Brier score {short(before, 4)} raw, {short(after, 4)} calibrated."
    if run.certificate is not None:
        at_most = short(float(run.certificate[-1]) / int(run.rounds[-1]))
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
