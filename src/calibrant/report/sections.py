"""Sections of the report: which question each answers, and with which texts, charts and tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from calibrant.evaluation.sheets import (
    GROUPS_SHOWN,
    change_sheet,
    distance_sheet,
    group_sheet,
    measure_sheet,
)
from calibrant.numerals import chance, short
from calibrant.sheets import Sheet

if TYPE_CHECKING:
    from calibrant.evaluation.findings import Findings


@dataclass(frozen=True, slots=True)
class Section:
    """One question of the report; everything in it is text, never markup."""

    id: str
    title: str
    texts: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()
    sheets: tuple[Sheet, ...] = ()
    notes: tuple[str, ...] = ()


def sections(evaluation: Findings) -> list[Section]:
    """Return the sections in the order in which a reader asks."""
    return [
        _how_far(evaluation),
        _real(evaluation),
        _where(),
        _whom(evaluation),
        _cost(evaluation),
        _recalibration(evaluation),
        _done(evaluation),
    ]


def _how_far(evaluation: Findings) -> Section:
    texts = (
        "Each line is one way to measure the error; 0 is perfect unless the meaning says otherwise. “By "
        "chance” is what the measure would show on average if these predictions were calibrated: a value "
        "near it is noise.",
    )
    found = evaluation.distances
    notes = (
        "The distance to calibration is how far the predictions must move, on average, to be calibrated: at "
        f"least {short(found.lower)} whatever the features behind them, and {short(found.upper)} is enough. "
        "The last table shows what else is tied to it, and by which theorem.",
    )
    sheets = measure_sheet(evaluation.rows, evaluation.confidence), distance_sheet(found)
    return Section("how-far", "How far from calibrated?", texts, sheets=sheets, notes=notes)


def _real(evaluation: Findings) -> Section:
    found = evaluation.verdict
    text = (
        "If the predictions were calibrated, outcomes would differ from them as much as they do with "
        f"probability {chance(found.pvalue, None, found.pvalue_is_bound)} (the omnibus test: Kuiper's range "
        "and Cox's score together). "
    )
    text += (
        "So the data give no reason to doubt them." if found.calibrated else "So chance does not explain it."
    )
    return Section("real", "Is it real or noise?", (text,), ("null",))


def _where() -> Section:
    text = "Three views of the same residuals, from the most familiar to the sharpest."
    return Section("where", "Where?", (text,), ("reliability", "cumulative", "witness"))


def _whom(evaluation: Findings) -> Section:
    audit = evaluation.audit
    if audit is None:
        text = "No groups were given. Name columns with --groups, or pass groups= to evaluate()."
        return Section("whom", "For whom?", (text,))
    sure = len(audit.significant())
    text = (
        f"{audit.tested:,} groups were looked at, everyone among them; {sure:,} "
        f"{'is' if sure == 1 else 'are'} off beyond chance (p-values are adjusted: a false alarm anywhere "
        "among the groups has probability 5%). "
        f"The worst is “{audit.worst.rule}”, z = {audit.worst.z:.2f}."
    )
    notes = [f"Not tested: {audit.not_tested}."]
    if audit.tested > GROUPS_SHOWN:
        notes.append(f"The table shows the worst {GROUPS_SHOWN} groups; the raw numbers below hold all.")
    charts, sheets = ("groups", "group-curves"), (group_sheet(audit),)
    return Section("whom", "For whom?", (text,), charts, sheets, tuple(notes))


def _cost(evaluation: Findings) -> Section:
    found = evaluation.recalibration
    if found is None:
        return Section("cost", "What does it cost?", ("Too few records to say.",))
    worst = " and ".join(short(float(mu)) for mu in found.task.thresholds if 0 < mu < 1)
    text = (
        "Decisions suffer where the prediction falls on the wrong side of a threshold. In the worst decision "
        f"with payoffs between 0 and 1, trusting the predictions loses {short(found.task.loss)} per record "
        "compared with acting on recalibrated ones."
    )
    if worst:
        text += f" That decision changes at {worst}."
    return Section("cost", "What does it cost?", (text,), ("threshold",))


def _recalibration(evaluation: Findings) -> Section:
    found, title = evaluation.recalibration, "Would recalibration help?"
    if found is None:
        return Section("recalibration", title, ("Too few records to say.",))
    text = (
        f"Isotonic recalibration, fitted on {found.folds - 1} of {found.folds} parts of the records and "
        "judged on the part left out, in turn; both columns are means over those parts, which are smaller "
        "than the whole and so show more noise. If the error does not fall clearly, do not recalibrate."
    )
    return Section("recalibration", title, (text,), sheets=(change_sheet(found),))


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
            f"{evaluation.cells:,} cells."
        )
    citations = tuple(dict.fromkeys(f"{row.about.name}: {row.about.citation}" for row in evaluation.rows))
    return Section("done", "What was done", (text,), notes=citations)
