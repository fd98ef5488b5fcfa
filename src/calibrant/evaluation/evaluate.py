"""Evaluation: everything one page says about some forecasts, computed once."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from calibrant.errors import InvalidInputError, reject_name, sentence
from calibrant.evaluation.facts import Facts, facts, facts_sentence
from calibrant.evaluation.null_reference import Chance, NullSample
from calibrant.evaluation.recalibration_preview import Preview, preview
from calibrant.evaluation.rows import Row, chosen, take
from calibrant.evaluation.verdict import SIZE, WHERE, Verdict, verdict
from calibrant.forecasts import Forecasts, Missing
from calibrant.inference.interval import check_confidence
from calibrant.measures.distances.sandwich import Distances, distances_beside
from calibrant.report.sheets import measure_sheet
from calibrant.results import Measurement
from calibrant.seeds import recorded_seed

if TYPE_CHECKING:
    from calibrant.groups.result import Audit

T = TypeVar("T")

SCHEMA = "calibrant-evaluation"
SCHEMA_VERSION = 1  # see docs/report-schema.md; raised when a key changes its meaning or goes away
ALPHA = 0.05


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """How far from calibrated, whether that is real, where, for whom and at what cost.

    Print it for a table; `to_html` writes the report, `to_dict` the versioned JSON, `charts` the pictures.
    """

    title: str
    forecasts: Forecasts
    verdict: Verdict
    facts: Facts
    rows: tuple[Row, ...]
    distances: Distances
    null: NullSample | None
    audit: Audit | None
    recalibration: Preview | None
    confidence: float
    draws: int
    cells: int | None
    seed: int

    @property
    def charts(self) -> Mapping[str, Any]:
        """The Altair charts by name; each can be shown in a notebook or saved on its own."""
        from calibrant.report.charts.all import charts

        return charts(self)

    def __getitem__(self, name: str) -> Row:
        """Return the row of a measure by its name."""
        rows = {row.about.name: row for row in self.rows}
        if name not in rows:
            raise reject_name("measure of this evaluation", name, list(rows))
        return rows[name]

    def __repr__(self) -> str:
        sheet = measure_sheet(self.rows, self.confidence)
        head = f"{self.title}\n{headline(self.verdict)}\n{facts_sentence(self.facts)}"
        return f"{head}\n\n{sheet.as_text()}\n\nseed {self.seed}"

    def _repr_html_(self) -> str:
        lines = (self.title, headline(self.verdict), facts_sentence(self.facts))
        return (
            "".join(f"<p>{escape(line)}</p>" for line in lines)
            + measure_sheet(self.rows, self.confidence).as_html()
        )

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers, ready for JSON; the keys are documented in docs/report-schema.md."""
        from calibrant import __version__

        return {
            "schema": SCHEMA,
            "schema_version": SCHEMA_VERSION,
            "calibrant_version": __version__,
            "title": self.title,
            "verdict": asdict(self.verdict),
            "facts": asdict(self.facts),
            "measures": [_row_dict(row) for row in self.rows],
            "distances": self.distances.to_dict(),
            "groups": None if self.audit is None else self.audit.to_dict(),
            "recalibration": None if self.recalibration is None else self.recalibration.to_dict(),
            "options": {
                "confidence": self.confidence,
                "draws": self.draws,
                "cells": self.cells,
                "seed": self.seed,
            },
        }

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return the measures as a frame of the library named: "pandas", "polars" or "pyarrow"."""
        import narwhals as nw

        rows = [_row_dict(row) for row in self.rows]
        plain = ("name", "value", "by_chance", "pvalue", "low", "high", "meaning", "note", "citation")
        columns = {key: [row[key] for row in rows] for key in plain}
        return nw.from_dict(columns, backend=backend).to_native()  # type: ignore[arg-type]

    def to_html(self, path: str | Path) -> Path:
        """Write the report, one file complete in itself, and return its path."""
        from calibrant.report.page import page

        target = Path(path)
        target.write_text(page(self), encoding="utf-8")
        return target


def evaluate(
    y_true: Any,
    y_prob: Any = None,
    *,
    sample_weight: Any = None,
    groups: Any = None,
    measures: Sequence[str] | None = None,
    confidence: float = 0.95,
    draws: int = 199,
    seed: int | None = None,
    missing: Missing = "error",
    title: str = "Calibration report",
    progress: Callable[[float], object] | None = None,
) -> Evaluation:
    """Evaluate predictions: pass outcomes and predictions, or Forecasts alone.

    `groups` (a mapping of names to boolean masks, or columns whose values are groups) adds an audit of them.
    `measures` names the rows to show; by default the headline rows of the registry. `confidence` is that of
    the intervals, 0 for none. Everything random comes from `seed`, which is drawn and recorded when it is
    not given. `progress` is called with the share of the work that is done.
    """
    forecasts = _forecasts(y_true, y_prob, sample_weight, missing)
    if confidence:
        check_confidence(confidence)
    seed = recorded_seed(seed)
    wanted = chosen(measures)
    luck = Chance(forecasts, draws=draws, confidence=confidence, seed=seed)
    every = {row.name: row for row in (*wanted, *chosen([SIZE, WHERE]))}
    done = _steps(progress, len(every) + 4)
    rows = {name: done(luck.judged(take(forecasts, about))) for name, about in every.items()}
    variant = "plain" if forecasts.binary else "real"
    options = {"missing": missing, "draws": draws, "seed": seed, "variant": variant}
    return Evaluation(
        title=title,
        forecasts=forecasts,
        verdict=verdict(rows, luck.verdict(), forecasts.n, ALPHA),
        facts=facts(forecasts),
        rows=tuple(rows[about.name] for about in wanted),
        distances=done(distances_beside(forecasts, _taken(rows.values()))),
        null=done(luck.sample(rows[SIZE])),
        audit=done(_audit(y_true, y_prob, groups, sample_weight=sample_weight, **options)),
        recalibration=done(preview(forecasts, wanted, seed=seed)),
        confidence=confidence,
        draws=draws,
        cells=luck.cells,
        seed=seed,
    )


def _taken(rows: Iterable[Row]) -> dict[str, Measurement]:
    return {row.about.name: row.measurement for row in rows if row.measurement is not None}


def _steps(progress: Callable[[float], object] | None, total: int) -> Callable[[T], T]:
    """Return a function that hands its argument on and reports one more step of `total` as done."""
    taken = itertools.count(1)

    def done(result: T) -> T:
        if progress is not None:
            progress(next(taken) / total)
        return result

    return done


def _forecasts(y_true: Any, y_prob: Any, sample_weight: Any, missing: Missing) -> Forecasts:
    from calibrant.measures.registry.calling import as_forecasts

    if isinstance(y_true, Forecasts):
        return as_forecasts(y_true, y_prob, sample_weight)
    return Forecasts(y_true, y_prob, sample_weight=sample_weight, missing=missing)


def _audit(y_true: Any, y_prob: Any, groups: Any, **options: Any) -> Audit | None:
    if groups is None:
        return None
    from calibrant.groups.audit import audit

    if isinstance(y_true, Forecasts):
        hint = "pass y_true and y_prob as arrays"
        raise InvalidInputError(
            sentence("groups", "need the rows, which Forecasts no longer have", hint=hint)
        )
    return audit(y_true, y_prob, groups=groups, **options)


def headline(found: Verdict) -> str:
    """Return the verdict with its first two words."""
    return ("Calibrated within noise. " if found.calibrated else "Not calibrated. ") + found.sentence


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
        "low": row.low,
        "high": row.high,
        "meaning": about.meaning,
        "note": row.note,
        "citation": about.citation,
        "options": dict(taken.options) if taken else dict(about.options),
        "details": taken.to_dict()["details"] if taken else {},
    }
