"""Findings: everything that one page says about some forecasts, as numbers and sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from calibrant.errors import reject_name
from calibrant.evaluation.facts import Facts, facts_sentence
from calibrant.evaluation.later import Later
from calibrant.evaluation.null_reference import NullSample
from calibrant.evaluation.recalibration_preview import Preview, why_absent
from calibrant.evaluation.row_tests import why_rows_differ
from calibrant.evaluation.rows import Row
from calibrant.evaluation.sheets import measure_sheet
from calibrant.evaluation.verdict import Verdict
from calibrant.forecasts import Forecasts
from calibrant.frames import frame_of
from calibrant.measures.distances.sandwich import Distances
from calibrant.results import Measurement, json_object

if TYPE_CHECKING:
    from calibrant.groups.audit_result import Audit

SCHEMA = "calibrant-evaluation"
SCHEMA_VERSION = 1  # see docs/report-schema.md; raised when a key changes its meaning or goes away


@dataclass(frozen=True, slots=True, eq=False)
class Findings:
    """How far from calibrated, whether that is real, where, for whom and at what cost.

    Print it for a table; `to_dict` gives the versioned JSON. The report adds what draws them.
    """

    title: str
    forecasts: Forecasts
    verdict: Verdict
    facts: Facts
    rows: tuple[Row, ...]
    later_distances: Later[Distances]
    null: NullSample | None
    audit: Audit | None
    later_recalibration: Later[Preview | None]
    confidence: float
    draws: int
    cells: int | None
    seed: int
    groups: Any = None  # as they were given, for what the report tries on them

    @property
    def distances(self) -> Distances:
        """The view of all distances, measured when it is first asked for."""
        return self.later_distances.get()

    @property
    def over_points(self) -> Measurement | None:
        """The distance to calibration over points, where they were given: it was measured at once."""
        return self.distances.over_points if self.later_distances.made else None

    @property
    def recalibration(self) -> Preview | None:
        """What isotonic recalibration would change, tried when it is first asked for."""
        return self.later_recalibration.get()

    def __getitem__(self, name: str) -> Row:
        """Return the row of a measure by its name."""
        rows = {row.about.name: row for row in self.rows}
        if name not in rows:
            raise reject_name("measure of this evaluation", name, list(rows))
        return rows[name]

    def __repr__(self) -> str:
        sheet = measure_sheet(self.rows, self.confidence, meanings=False)
        verdict = f"{headline(self.verdict)}\nWhat next: {self.verdict.next_step}"
        head = f"{self.title}\n{verdict}\n{facts_sentence(self.facts)}"
        differ = why_rows_differ(self.verdict, self.rows)
        notes = f"\n{differ}" if differ else ""
        notes += "".join(f"\n{row.about.words}: {row.note}" for row in self.rows if row.note)
        return f"{head}\n\n{sheet.as_text(120)}\n{notes}\nseed {self.seed}"

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers, ready for JSON; the keys are documented in docs/report-schema.md."""
        from calibrant import __version__

        return json_object({
            "schema": SCHEMA,
            "schema_version": SCHEMA_VERSION,
            "calibrant_version": __version__,
            "title": self.title,
            "verdict": {**asdict(self.verdict), "approximate": list(self.verdict.approximate)},
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
            },
        })  # fmt: skip

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return the measures as a frame of the library named: "pandas", "polars" or "pyarrow"."""
        rows = [_row_dict(row) for row in self.rows]
        plain = ("name", "value", "by_chance", "pvalue", "low", "high", "meaning", "note", "citation")
        columns = {key: [row[key] for row in rows] for key in (*plain, "pvalue_is_bound")}
        return frame_of(columns, backend)


def headline(verdict: Verdict) -> str:
    """Return the verdict with its first words."""
    return f"{verdict.lead} {verdict.sentence}"


def measure_values(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the measures as plain values, one row each, for a table that programs read."""
    wanted = ("value", "by_chance", "pvalue", "pvalue_is_bound", "low", "high", "meaning", "note")
    facts = [(row, _row_dict(row)) for row in rows]
    return [
        {"measure": row.about.words, "key": row.about.name, **{name: known[name] for name in wanted}}
        for row, known in facts
    ]


def _row_dict(row: Row) -> dict[str, Any]:
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
