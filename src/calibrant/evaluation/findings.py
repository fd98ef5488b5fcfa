"""What an evaluation found: facts, rows, verdict and groups, as text, as JSON and as a frame."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.errors import reject_name
from calibrant.evaluation.repair_preview import Preview, preview, why_absent
from calibrant.evaluation.rows import NullSample, ResultRow
from calibrant.evaluation.tables import first_table, footnotes, leading_groups
from calibrant.evaluation.verdict import Verdict, disagreement_note
from calibrant.forecasts import Forecasts
from calibrant.formatting import format_mean, format_pvalue, format_value, pluralize
from calibrant.groups.audit_result import group_table
from calibrant.inference.null import cluster_summary, has_equal_weights, is_clustered
from calibrant.metrics.distance.summary import Distances, distances_beside, distances_over
from calibrant.metrics.lookup import ALIASES
from calibrant.results import Measurement, frame_of, json_object

if TYPE_CHECKING:
    from calibrant.groups.audit_result import Audit

PAGE_WIDTH = 100  # characters
SCHEMA = "calibrant-evaluation"
SCHEMA_VERSION = 2  # see docs/report-schema.md; raised when a key changes its meaning or goes away


@dataclass(frozen=True, slots=True)
class Facts:
    """Counts and means of the forecasts; `tied` records share their prediction with another record.

    `effective_records` is the number of equally weighted records of the same noise, 1 / sum w^2.
    `resolution` is the widest cell of a sketch, 0 for exact data. `fractional` counts outcomes other than 0
    and 1, None where there are such outcomes and their number is unknown (a sketch).
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
    clusters: str = ""  # how much rows that belong together tell


def facts(forecasts: Forecasts) -> Facts:
    """Gather the facts."""
    fractional, outcomes = 0 if forecasts.binary else None, forecasts.record_outcomes
    if not forecasts.binary and outcomes is not None:
        fractional = int(np.count_nonzero((outcomes > 0) & (outcomes < 1)))
    return Facts(
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


def fractions_note(result: Facts) -> str:
    """Say once what fractional outcomes cost and what to do about them; nothing where there are none.

    >>> fractions_note(facts(Forecasts([0, 1, 0.5], [0.2, 0.7, 0.4])))[:57]
    '1 of 3 outcomes is a fraction, so that calibrated outcome'
    """
    if result.binary:
        return ""
    who, lost = "Outcomes are fractions", "there are no p-values"
    todo = "measure the rows themselves, or sketch outcomes of 0 and 1"
    if result.fractional is not None:
        are = "is a fraction" if result.fractional == 1 else "are fractions"
        lost = "most p-values are missing"
        who = f"{result.fractional:,} of {pluralize(result.records, 'outcome')} {are}"
        todo = "tests that need no simulation (kuiper, in-the-large) still have theirs"
        if result.fractional <= 0.05 * result.records:
            todo = "leave these rows out (ties, say) to have every p-value"
    return f"{who}, so that calibrated outcomes cannot be simulated and {lost}: {todo}"


def facts_sentence(result: Facts) -> str:
    """Say the facts in one line.

    >>> facts_sentence(facts(Forecasts([0, 1, 1], [0.2, 0.7, 0.7])))
    '3 records, 2 distinct predictions (2 records tied); mean prediction 0.5333, mean outcome 0.6667'
    """
    mean, rate = format_mean(result.mean_prediction), format_mean(result.base_rate)
    text = f"{pluralize(result.records, 'record')}, "
    if result.resolution:
        text += f"{pluralize(result.levels, 'cell')} of a sketch"
    else:
        text += pluralize(result.levels, "distinct prediction")
        text += f" ({pluralize(result.tied, 'record')} tied)" if result.tied else ""
    text += f"; mean prediction {mean}, mean outcome {rate}"
    if result.weighted:
        text += f"; weighted, worth {result.effective_records:,.0f} equal records"
    if result.dropped:
        missing = "" if result.resolution else " with missing values"  # a sketch may leave out others too
        text += f"; {pluralize(result.dropped, 'row')}{missing} left out"
    if result.resolution:
        text += f"; predictions up to {format_value(result.resolution, 2)} apart share a cell"
    return ". ".join(filter(None, (text, fractions_note(result), result.clusters.rstrip("."))))


@dataclass(frozen=True, eq=False)
class Findings:
    """How far from calibrated, whether that is real, where, for whom and at what cost.

    Print it for a table; `to_dict` gives the versioned JSON. The report adds what draws them.
    """

    title: str
    forecasts: Forecasts
    verdict: Verdict
    facts: Facts
    rows: tuple[ResultRow, ...]
    measured: Mapping[str, Measurement]
    null: NullSample | None
    audit: Audit | None
    confidence: float
    draws: int
    cells: int | None
    seed: int
    groups: Any = None  # as given, for what the report tries on them
    ids: Any = None  # the point behind each record
    subtitle: str = ""
    columns: Mapping[str, Any] = field(default_factory=dict)  # where the rows came from, for `verify`

    @cached_property
    def distances(self) -> Distances:
        view = distances_beside(self.forecasts, self.measured)
        return view if self.ids is None else distances_over(view, self.forecasts.records, self.ids)

    @property
    def over_points(self) -> Measurement | None:
        """The distance to calibration over points, where they were given."""
        return None if self.ids is None else self.distances.over_points

    @cached_property
    def recalibration(self) -> Preview | None:
        """What isotonic recalibration would change."""
        return preview(self.forecasts, [row.about for row in self.rows], seed=self.seed)

    def __getitem__(self, name: str) -> ResultRow:
        """Return the row of a measure by its name."""
        rows = {row.about.name: row for row in self.rows}
        name = ALIASES.get(name, name) if name not in rows else name
        if name not in rows:
            raise reject_name("measure of this evaluation", name, list(rows))
        return rows[name]

    def __repr__(self) -> str:
        verdict = self.verdict
        parts = ["\n".join(textwrap.fill(text, PAGE_WIDTH) for text in (verdict.what, verdict.whom) if text)]
        parts.append(first_table(self.rows, self.confidence).as_text(PAGE_WIDTH))
        if self.audit is not None:
            groups = group_table(leading_groups(self.audit)).as_text(PAGE_WIDTH)
            parts.append(f"{groups}\n{more_groups(self)}")
        parts.append("\n".join(line for note in notes(self) for line in textwrap.wrap(note, PAGE_WIDTH)))
        parts.append(textwrap.fill(f"Next: {verdict.next_step}", PAGE_WIDTH))
        return "\n\n".join(filter(None, parts))

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers, ready for JSON; the keys are documented in docs/report-schema.md."""
        from calibrant import __version__

        return json_object({
            "schema": SCHEMA,
            "schema_version": SCHEMA_VERSION,
            "calibrant_version": __version__,
            "title": self.title,
            "verdict": self.verdict.to_dict(),
            "facts": asdict(self.facts),
            "measures": [_row_dict(row) for row in self.rows],
            "distances": self.distances.to_dict(),
            "groups": None if self.audit is None else self.audit.to_dict(),
            "recalibration": None if self.recalibration is None else self.recalibration.to_dict(),
            "recalibration_absent": why_absent(self.forecasts) or None,
            "options": {
                "confidence": self.confidence,
                "draws": self.draws,
                "cells": self.cells,
                "seed": self.seed,
                "subtitle": self.subtitle,
                "columns": dict(self.columns),
            },
        })  # fmt: skip

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return the measures as a frame of the library named: "pandas", "polars" or "pyarrow"."""
        rows = [_row_dict(row) for row in self.rows]
        plain = ("name", "value", "by_chance", "pvalue", "low", "high", "meaning", "note", "citation")
        columns = {key: [row[key] for row in rows] for key in (*plain, "pvalue_is_bound")}
        return frame_of(columns, backend)


def more_groups(found: Findings) -> str:
    """Say how many groups were tested beyond those that the table shows, and how they are ranked."""
    assert found.audit is not None
    left = len(found.audit.groups) - len(leading_groups(found.audit))
    if left > 0:
        return f"... {pluralize(left, 'more group')}, p adjusted for all"
    return "p is adjusted for all groups"


def notes(found: Findings) -> list[str]:
    """Return what is printed below the tables: meanings, contradictions, data and test."""
    odd = disagreement_note(found.verdict, found.rows)
    return [note for note in (*footnotes(found.rows), odd, *details(found)) if note]


def details(found: Findings) -> list[str]:
    """Return what the numbers are based on: the data, and the test behind the verdict."""
    pvalue = format_pvalue(found.verdict.pvalue, found.verdict.pvalue_is_bound)
    shown = pvalue if pvalue[:1] in "<≤" else f"= {pvalue}"
    tested = f"Omnibus test of calibration: p {shown.replace('<', '< ').replace('≤', '≤ ')}" if pvalue else ""
    how = f"{pluralize(found.draws, 'draw')}, seed {found.seed}"
    how = f"{tested} ({how})." if tested else f"{how[0].upper()}{how[1:]}."
    return [f"{facts_sentence(found.facts)}.", how]


def measure_values(rows: Sequence[ResultRow]) -> list[dict[str, Any]]:
    """Return the measures as plain values, one row each, for a table that programs read."""
    names = ("value", "by_chance", "pvalue", "pvalue_is_bound", "low", "high", "meaning", "note")
    named = [({"measure": row.about.words, "key": row.about.name}, _row_dict(row)) for row in rows]
    return [{**first, **{name: known[name] for name in names}} for first, known in named]


def _row_dict(row: ResultRow) -> dict[str, Any]:
    about = row.about
    taken = row.measurement
    return {
        "name": about.name,
        "value": row.value,
        "lower": None if taken is None else taken.lower,
        "upper": None if taken is None else taken.upper,
        "exact": None if taken is None else taken.exact,
        "by_chance": row.chance,
        "pvalue": row.pvalue,
        "log_pvalue": row.log_pvalue,
        "pvalue_is_bound": row.pvalue_is_bound,
        "pvalue_method": row.pvalue_method,
        "interval_method": row.interval_method,
        "approximate": list(row.approximate),
        "low": row.low,
        "high": row.high,
        "meaning": about.meaning,
        "note": row.note,
        "citation": about.citation,
        "options": dict(taken.options) if taken else dict(about.options),
        "details": taken.to_dict()["details"] if taken else {},
        "without_certain": None if row.inner is None else asdict(row.inner),
    }
