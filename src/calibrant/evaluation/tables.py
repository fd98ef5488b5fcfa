"""What an evaluation shows: facts about the data, tables of measures and groups, and notes below them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.evaluation.rows import ResultRow, select_measures
from calibrant.evaluation.verdict import disagreement_note
from calibrant.forecasts import Forecasts
from calibrant.formatting import (
    confidence_text,
    format_mean,
    format_pvalue,
    format_value,
    limits_text,
    p_equals,
    pluralize,
)
from calibrant.inference.null import cluster_summary, has_equal_weights, is_clustered
from calibrant.results import Table, TableCell, number_cell, sort_key, text_cell

if TYPE_CHECKING:
    from calibrant.evaluation.evaluate import Evaluation
    from calibrant.groups.audit_result import Audit, Group

PAGE_WIDTH = 100  # characters
WHOLE = "in-the-large"  # mean outcome minus mean prediction of all records
MAX_GROUPS_IN_TEXT = 6
FIRST = {"ece": "ECE", "binned": "ECE", "smooth": "smooth", "brier": "Brier", "slope": "slope"}
FOOTNOTES = {
    "ECE": "mean error over 15 bins",
    "smooth": "error without bins",
    "Brier": "squared error, lower is better",
    "slope": "1 if calibrated, below 1 overconfident",
}
SQUARED = ("atb", "ubse", "kernel-squared")  # shown as roots, so that they compare with the others


@dataclass(frozen=True, slots=True)
class Facts:
    """Counts and means of the forecasts; `tied` records share their prediction with another record.

    `effective_records` is the number of equally weighted records of the same noise, 1 / sum w^2.
    `resolution` is the widest cell of a sketch, 0 for exact data. `fractional` counts outcomes other than 0
    and 1, None where there are such outcomes and their number is unknown (a sketch). `clusters` says how
    much information rows that belong together carry.

    >>> str(Facts.of(Forecasts([0, 1, 1], [0.2, 0.7, 0.7])))
    '3 records, 2 distinct predictions (2 records tied); mean prediction 0.5333, mean outcome 0.6667'
    """

    records: int
    levels: int
    tied: int
    dropped: int
    base_rate: float
    mean_prediction: float
    lowest: float
    highest: float
    weighted: bool
    effective_records: float
    binary: bool
    resolution: float
    fractional: int | None = 0
    clusters: str = ""

    @classmethod
    def of(cls, forecasts: Forecasts) -> Facts:
        fractional, outcomes = 0 if forecasts.binary else None, forecasts.record_outcomes
        if not forecasts.binary and outcomes is not None:
            fractional = int(np.count_nonzero((outcomes > 0) & (outcomes < 1)))
        return cls(
            records=forecasts.n,
            levels=forecasts.levels,
            tied=int(forecasts.counts[forecasts.counts > 1].sum()),
            dropped=forecasts.dropped,
            base_rate=forecasts.base_rate,
            mean_prediction=forecasts.mean_prediction,
            lowest=float(forecasts.values[0]),
            highest=float(forecasts.values[-1]),
            weighted=not has_equal_weights(forecasts),
            effective_records=float(1.0 / forecasts.squared_weights.sum()),
            binary=forecasts.binary,
            resolution=0.0 if forecasts.cells is None else float(forecasts.extents.max()),
            fractional=fractional,
            clusters=str(cluster_summary(forecasts)) if is_clustered(forecasts) else "",
        )

    def __str__(self) -> str:
        text = f"{pluralize(self.records, 'record')}, "
        if self.resolution:
            text += f"{pluralize(self.levels, 'cell')} of a sketch"
        else:
            text += pluralize(self.levels, "distinct prediction")
            text += f" ({pluralize(self.tied, 'record')} tied)" if self.tied else ""
        mean, rate = format_mean(self.mean_prediction), format_mean(self.base_rate)
        text += f"; mean prediction {mean}, mean outcome {rate}"
        if self.weighted:
            text += f"; weighted, worth {self.effective_records:,.0f} equal records"
        if self.dropped:
            missing = "" if self.resolution else " with missing values"  # a sketch may leave out others too
            text += f"; {pluralize(self.dropped, 'row')}{missing} left out"
        if self.resolution:
            text += f"; predictions up to {format_value(self.resolution, 2)} apart share a cell"
        return ". ".join(filter(None, (text, self._fractions(), self.clusters.rstrip("."))))

    def _fractions(self) -> str:
        """Say what fractional outcomes cost and what to do about them; nothing where there are none."""
        if self.binary:
            return ""
        if self.fractional is None:
            todo = "measure the rows themselves, or sketch outcomes of 0 and 1"
            return f"Outcomes are fractions, and there are no p-values: {todo}"
        are = "is a fraction" if self.fractional == 1 else "are fractions"
        who = f"{self.fractional:,} of {pluralize(self.records, 'outcome')} {are}"
        text = f"{who}, so that p-values come from random signs; measures that need 0 or 1 have none"
        few = self.fractional <= 0.05 * self.records
        return f"{text}: leave these rows out (ties, say) to have every p-value" if few else text


def first_rows(rows: Sequence[ResultRow]) -> list[ResultRow]:
    """Return the rows of the first table: ECE, smooth, Brier and slope, or those that a caller chose."""
    by_name = {row.about.name: row for row in rows}
    if list(by_name) != [about.name for about in select_measures(None)]:
        return list(rows)
    ece = "binned" if "binned" in by_name else "ece"
    return [by_name[name] for name in (ece, "smooth", "brier", "slope") if name in by_name]


def first_table(rows: Sequence[ResultRow], confidence: float) -> Table:
    """Return estimate, interval and p-value of a few measures, by their short names."""
    shown = first_rows(rows)
    return measure_table(shown, confidence, short=len(shown) < len(rows), by_chance=False)


def measure_table(
    rows: Sequence[ResultRow], confidence: float, *, short: bool = False, by_chance: bool = True
) -> Table:
    interval = f"{confidence_text(confidence)} interval" if confidence else "interval"
    columns = ("", "estimate", *(("by chance",) if by_chance else ()), interval, "p")
    return Table(columns, tuple(_line(row, short, by_chance) for row in rows))


def _line(row: ResultRow, short: bool, by_chance: bool) -> tuple[TableCell, ...]:
    shown, squared = row.shown, row.about.name in SQUARED
    value, low, high, chance = (
        math.sqrt(max(item, 0.0)) if squared and item is not None else item
        for item in (shown.value, shown.low, shown.high, row.chance)
    )
    interval = "" if low is None or high is None else f"{limits_text(low, high)} "
    interval = interval.rstrip() if row.inner is None else f"{interval}*"
    # a score has no value of its own if calibrated
    tested = row.about.complete or row.about.signed or by_chance
    pvalue = format_pvalue(shown.pvalue, shown.pvalue_is_bound) if tested else ""
    return (
        text_cell(FIRST[row.about.name] if short else _name(row)),
        *(
            number_cell(item, "" if item is None else format_value(item))
            for item in ((value, chance) if by_chance else (value,))
        ),
        number_cell(low, interval),
        TableCell(pvalue, sort_key(shown.pvalue), number=True),
    )


def _name(row: ResultRow) -> str:
    return f"root of {row.about.name}" if row.about.name in SQUARED else row.about.name


def measure_values(rows: Sequence[ResultRow]) -> list[dict[str, Any]]:
    """Return the measures as plain values, one row each, for a table that programs read."""
    names = ("value", "by_chance", "pvalue", "pvalue_is_bound", "low", "high", "meaning", "note")
    known = [(row.about, row.to_dict()) for row in rows]
    return [{"measure": about.words, "key": about.name, **{n: row[n] for n in names}} for about, row in known]


def footnotes(rows: Sequence[ResultRow]) -> list[str]:
    """Return what the rows of the first table mean, and what is special about them."""
    shown = first_rows(rows)
    if len(shown) < len(rows):
        names = dict.fromkeys(FIRST[row.about.name] for row in shown)
        meanings = [". ".join(f"{name}: {FOOTNOTES[name]}" for name in names) + "."]
    else:
        meanings = [f"{_name(row)}: {row.about.meaning}." for row in shown]
    stars = ((row, "* " if row.inner else "") for row in shown if row.note)
    notes = (f"{star}{row.about.name}: {row.note.rstrip('.')}." for row, star in stars)
    return [*meanings, *dict.fromkeys(notes)]


def leading_groups(audit: Audit, top: int = MAX_GROUPS_IN_TEXT) -> list[Group]:
    """Return everyone, the groups proven wrong, and the first of the others; combinations only if worst."""
    worst = (*audit.beyond_overall(), None)[0]
    wrong = {group.rule for group in audit.wrong_groups()}
    plain = [group for group in audit.by_error() if len(group.rule.conditions) < 2 or group is worst]
    shown = sum(group.rule in wrong for group in plain) + 1
    most = max(top // 2 + 1, min(shown, top))
    everyone, *leading = plain if len(plain) == len(audit.groups) == most + 1 else plain[:most]
    leading.sort(key=lambda group: (group is not worst, -abs(group.difference)))  # as a reader expects
    return [everyone, *leading]


def more_groups(audit: Audit) -> str:
    """Say how many groups the table leaves out, and what its p-values mean."""
    left = len(audit.groups) - len(leading_groups(audit))
    more = f"... {pluralize(left, 'more group')}. " if left > 0 else ""
    return f"{more}p: for errors anywhere along the scores, adjusted for all groups, also that of everyone"


def notes(found: Evaluation) -> list[str]:
    """Return what is printed below the tables: meanings, contradictions, data and test."""
    tested = [row for row in first_rows(found.rows) if row.about.complete or row.about.signed]
    odd = disagreement_note(found.verdict, tested)
    return [note for note in (*footnotes(found.rows), odd, *details(found)) if note]


def details(found: Evaluation) -> list[str]:
    """Return what the numbers are based on: the data, and the test behind the verdict."""
    tested, how = found.verdict, f"{pluralize(found.draws, 'draw')}, seed {found.seed}"
    if tested.pvalue is not None:
        shown = p_equals(format_pvalue(tested.pvalue, tested.pvalue_is_bound))
        how = f"Omnibus test of calibration: {shown} ({how})"
    return [f"{found.facts}.", f"{how[0].upper()}{how[1:]}."]
