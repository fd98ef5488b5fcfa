"""The tables of an evaluation: measures, distances, recalibration and groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from calibrant.evaluation.rows import Row
from calibrant.measures.distances.sandwich import Distances
from calibrant.measures.registry.lookup import find_measure
from calibrant.numerals import confidence_text, limits_text, short
from calibrant.sheets import Cell, Sheet, number_cell, sort_key, text_cell

if TYPE_CHECKING:
    from calibrant.groups.audit_result import Audit
    from calibrant.recalibration.for_whom import ForWhom

GROUPS_SHOWN = 50
WHOLE = "in-the-large"  # mean outcome minus mean prediction of everyone


def measure_sheet(rows: Sequence[Row], confidence: float, meanings: bool = True) -> Sheet:
    """Return the table of the measures taken, with what each means unless space is short."""
    # all intervals are approximate; a confidence of 0 asks for none
    interval = f"{confidence_text(confidence)} interval, approx." if confidence else "interval"
    columns = ("measure", "key", "value", "by chance", "p-value", interval, "meaning")
    lines = tuple(_line(row) for row in rows)
    if meanings:
        return Sheet(columns, lines)
    return Sheet(columns[:-1], tuple(line[:-1] for line in lines))


def _line(row: Row) -> tuple[Cell, ...]:
    limits = "–" if row.low is None or row.high is None else limits_text(row.low, row.high)
    if row.inner is not None and row.inner.span:
        limits = f"{short(row.inner.value)} ({row.inner.span}) without 0 and 1"
    return (
        text_cell(row.about.words),
        text_cell(row.about.name),
        number_cell(row.value),
        number_cell(row.chance),
        Cell(_marked_pvalue(row), sort_key(row.log_pvalue), number=True),
        number_cell(row.low, limits),
        text_cell(row.about.meaning + (f" ({row.note})" if row.note else "")),
    )


def _marked_pvalue(row: Row) -> str:
    """Write the p-value, and that it is approximate unless calibrated outcomes were simulated exactly."""
    return f"{row.written_pvalue} approx." if "pvalue" in row.approximate else row.written_pvalue


def distance_sheet(bracket: Distances) -> Sheet:
    """Return the measures that are tied to the distance to calibration, each with its theorem."""
    lines = []
    for row in bracket.related:
        taken = row.measurement
        proven = "exact" if taken.exact else f"{short(taken.lower)} to {short(taken.upper)}"
        lines.append(
            (
                text_cell(find_measure(taken.name).words),
                text_cell(taken.name),
                number_cell(taken.value),
                text_cell(proven),
                text_cell(f"{row.theorem} ({row.source})"),
            )
        )
    return Sheet(("measure", "key", "value", "proven to lie in", "tied to the distance dCE by"), tuple(lines))


def whom_sheet(given: ForWhom) -> Sheet:
    """Return the audits of held-out records before and after a repair."""
    columns = ("held-out audit", "M", "M / sigma", "p-value", "worst group")
    sides = (("as they are", given.before), ("repaired", given.after))
    lines = (
        (
            text_cell(name),
            number_cell(side.metric),
            number_cell(side.ratio),
            number_cell(side.pvalue, side.written_pvalue),
            text_cell(side.worst[0]),
        )
        for name, side in sides
    )
    return Sheet(columns, tuple(lines))


def group_sheet(audit: Audit, beside: Sequence[Row] = ()) -> Sheet:
    """Return the table of the worst groups of an audit, `beside` the measures of everyone."""
    return audit.sheet(GROUPS_SHOWN, _of_everyone(beside))


def folded_group_sheet(audit: Audit, beside: Sequence[Row] = ()) -> Sheet:
    """Return the same, combinations folded under the worst of their parts."""
    from calibrant.groups.nesting import nested_sheet

    return nested_sheet(audit, GROUPS_SHOWN, _of_everyone(beside))


def _of_everyone(beside: Sequence[Row]) -> str:
    """Point to the row that has the interval of everyone's difference: one number, one interval."""
    there = any(row.about.name == WHOLE and row.low is not None for row in beside)
    return f"see {WHOLE}" if there else ""
