"""The page of a learned auditor: does anything tell the outcomes from draws with the predictions?"""

from __future__ import annotations

from calibrant.groups.distinguisher import Distinguisher
from calibrant.groups.group import LEVEL
from calibrant.numerals import counted, pvalue_phrase, short
from calibrant.report.charts.distinguisher import carriers, giveaways
from calibrant.report.page import PageVerdict, rendered
from calibrant.report.section import Section
from calibrant.sheets import Sheet, number_cell, text_cell


def distinguisher_page(given: Distinguisher, *, title: str) -> str:
    """Return one HTML file, complete in itself."""
    rejected = given.pvalue <= LEVEL
    drawn = {"carriers": carriers.spec(given)}
    if given.rules:
        drawn["giveaways"] = giveaways.spec(given)
    return rendered(
        title=title,
        verdict=_verdict(given, rejected),
        tone="bad" if rejected else "good",
        facts=f"Learned auditor of {counted(given.n, 'row')}",
        parts=[_what(given), _how(given)],
        drawn=drawn,
        numbers=given.to_dict(),
    )


def _verdict(given: Distinguisher, rejected: bool) -> PageVerdict:
    shown = pvalue_phrase(given.pvalue, given.draws, bound=given.pvalue_is_bound)
    sentence = (
        f"The advantage of the auditor on records it has not seen is {short(given.advantage)} "
        f"({short(given.lower)} to {short(given.upper)}), {shown}."
    )
    if not rejected:
        return PageVerdict(
            "Nothing gives them away.",
            f"{sentence} No evidence is no proof.",
            "Look again at new data as it comes.",
        )
    step = "Repair with calibrant recalibrate --covariates, then look again at held-out predictions."
    return PageVerdict("The columns know more than the predictions.", sentence, step)


def _what(given: Distinguisher) -> Section:
    words = (
        "A model learnt from one half of the rows where outcomes differ from predictions, and was tested on "
        "the other half, in turns. The question is more than calibration: whether the columns know anything "
        "that the predictions do not."
    )
    return Section("what", "What told them apart?", (words,), ("giveaways", "carriers"), (_rules(given),))


def _rules(given: Distinguisher) -> Sheet:
    columns = ("group", "rows", "share", "mean residual", "carried")
    return Sheet(
        columns,
        tuple(
            (text_cell(one.rule), number_cell(one.size, f"{one.size:,}"),
             number_cell(one.share, f"{one.share:.1%}"), number_cell(one.gap, f"{one.gap:+.4f}"),
             number_cell(one.carried, f"{one.carried:+.5f}"))
            for one in given.rules
        ),
    )  # fmt: skip


def _how(given: Distinguisher) -> Section:
    halves = "; ".join(
        f"{half.advantage:.4g} ({half.lower:.4g} to {half.upper:.4g}), "
        f"{pvalue_phrase(half.pvalue, given.draws)}, {counted(half.n, 'row')}"
        for half in given.halves
    )
    words = (
        f"Advantage on either half: {halves}. The p-value of both is twice the smaller one, by "
        f"{given.draws:,} simulated data sets each, exact given the fit. Seed {given.seed}."
    )
    return Section("how", "How it was computed", (words,), folded=True)
