"""evaluate: how far from calibrated, whether that is real, where, for whom and at what cost."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from calibrant.errors import InvalidInputError, reject_name
from calibrant.evaluation import tables
from calibrant.evaluation.repair_preview import Preview, group_differences, preview, propose, why_absent
from calibrant.evaluation.rows import (
    LOCATION_MEASURE,
    SIZE_MEASURE,
    NullReference,
    NullSample,
    ResultRow,
    measure_rows,
    select_measures,
)
from calibrant.evaluation.tables import Facts
from calibrant.evaluation.verdict import Verdict, verdict
from calibrant.files import atomic_write, check_target
from calibrant.forecasts import Forecasts
from calibrant.frames import frame_columns, resolve_inputs
from calibrant.groups.audit_result import group_table
from calibrant.inputs import confidence_or_none
from calibrant.metrics.calling import ARRAYS, CLUSTERS, COLUMNS, as_forecasts, shares_parameters
from calibrant.metrics.distance.summary import Distances, distances_beside, distances_over
from calibrant.metrics.lookup import ALIASES, HasStrata
from calibrant.parallel import DRAWS, checked_draws, recorded_seed
from calibrant.records import Missing, Records, check_records, warn_if_swapped
from calibrant.results import Measurement, frame_of, html_paragraphs, json_object

if TYPE_CHECKING:
    from calibrant.groups.audit_result import Audit

SCHEMA = "calibrant-evaluation"
SCHEMA_VERSION = 2  # see docs/report-schema.md; raised when a key changes its meaning or goes away
T = TypeVar("T")


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """How far from calibrated, whether that is real, where, for whom and at what cost.

    Print it for a table; `to_html` writes the report, `to_dict` the versioned JSON, `charts` the pictures.
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
        width = tables.PAGE_WIDTH

        def filled(*texts: str) -> str:
            return "\n".join(textwrap.fill(text, width) for text in texts if text)

        parts = [filled(self.verdict.what, self.verdict.whom)]
        parts.append(tables.first_table(self.rows, self.confidence).as_text(width))
        if self.audit is not None:
            groups = group_table(tables.leading_groups(self.audit)).as_text(width)
            parts.append(f"{groups}\n{tables.more_groups(self.audit)}")
        parts += [filled(*tables.notes(self)), filled(f"Next: {self.verdict.next_step}")]
        return "\n\n".join(filter(None, parts))

    def _repr_html_(self) -> str:
        shown = html_paragraphs(self.verdict.what, self.verdict.whom)
        shown += tables.first_table(self.rows, self.confidence).as_html()
        if self.audit is not None:
            shown += group_table(tables.leading_groups(self.audit)).as_html()
            shown += html_paragraphs(tables.more_groups(self.audit))
        return shown + html_paragraphs(f"Next: {self.verdict.next_step}", " ".join(tables.notes(self)))

    @property
    def charts(self) -> Mapping[str, Any]:
        """The Altair charts by name; each can be shown in a notebook or saved on its own."""
        from calibrant.evaluation.report import specifications
        from calibrant.report.charts.canvas import as_charts

        proposal = propose(self.forecasts, seed=self.seed)
        return as_charts(specifications(self, proposal, group_differences(self)))

    def to_html(self, path: str | Path) -> Path:
        """Write the report, one file complete in itself, and return its path."""
        from calibrant.evaluation.report import page

        check_target(path)
        return atomic_write(path, page(self))

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
            "measures": [row.to_dict() for row in self.rows],
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
        rows = [row.to_dict() for row in self.rows]
        plain = ("name", "value", "by_chance", "pvalue", "low", "high", "meaning", "note", "citation")
        columns = {key: [row[key] for row in rows] for key in (*plain, "pvalue_is_bound")}
        return frame_of(columns, backend)


@shares_parameters(ARRAYS + COLUMNS + CLUSTERS)
def evaluate(
    y_true: Any,
    y_prob: Any = None,
    *,
    sample_weight: Any = None,
    clusters: Any = None,
    groups: Any = None,
    ids: Any = None,
    measures: Sequence[str] | None = None,
    confidence: float = 0.95,
    draws: int = DRAWS,
    seed: int | None = 0,
    missing: Missing = "error",
    pos_label: Any = None,
    outcome: str | None = None,
    prediction: str | None = None,
    weight: str | None = None,
    title: str = "Calibration report",
    subtitle: str = "",
    progress: Callable[[float], object] | None = None,
) -> Evaluation:
    """Evaluate predictions: how far from calibrated, is that real, where, for whom and at what cost?

    In place of arrays, pass Forecasts or a Sketch alone, or a frame (any that narwhals knows, or a mapping of
    names to arrays) with the names of its columns.

    Parameters
    ----------
    groups
        A mapping of names to boolean masks, or columns whose values are groups (a frame, a mapping, a named
        series, or names of columns of the frame); adds an audit of them. Those that a Sketch was made
        by are audited without being asked for, and names choose some of them.
    ids
        The point behind each record (a column or its name): records with equal features share one, and it
        has one prediction. Adds the distance to calibration itself, which predictions alone only bracket.
    measures
        Measures to show; by default the headline ones.
    confidence
        Of the intervals, 0 for none.
    title, subtitle
        Heading of the report, and the line below it.
    progress
        Called with the share of the work that is done.

    Examples
    --------
    >>> frame = {"won": [0, 1, 1, 0] * 50, "chance": [0.2, 0.7, 0.6, 0.3] * 50, "team": ["a", "b"] * 100}
    >>> found = evaluate(frame, outcome="won", prediction="chance", groups=["team"], draws=19, seed=1)
    >>> sorted(group.rule for group in found.audit.groups)
    ['everyone', 'team = a', 'team = b']
    """
    sketch, asked = None, groups
    alone = outcome is None and y_prob is None and sample_weight is None
    if alone and isinstance(y_true, HasStrata):  # a Sketch
        sketch, y_true, groups = y_true, y_true.forecasts(), None
    given = resolve_inputs(
        y_true, y_prob, sample_weight, outcome=outcome, prediction=prediction, weight=weight, groups=groups,
        ids=ids, clusters=clusters,
    )  # fmt: skip
    groups = given.extra["groups"]
    points = frame_columns(given.extra["ids"], [ids])[0] if outcome and isinstance(ids, str) else ids
    given_rows = given.y_true, given.y_prob, given.sample_weight
    if groups is None or given.y_prob is None or isinstance(given.y_true, Forecasts):
        forecasts = as_forecasts(*given_rows, missing, pos_label)
    else:  # which will cut the rows: sort them once
        checked = check_records(*given_rows, missing, pos_label=pos_label)
        warn_if_swapped(checked, y_true=given.y_true, y_prob=given.y_prob)
        forecasts = Forecasts.of_records(Records.of(checked))
    if given.extra["clusters"] is not None:
        forecasts = forecasts.with_clusters(given.extra["clusters"], missing)
    checked_draws(draws)
    confidence_or_none("confidence", confidence)
    seed = recorded_seed(seed)
    wanted = select_measures(measures)
    if not wanted:
        raise InvalidInputError("measures", "must name a measure or more", "got none")
    null = NullReference(forecasts, draws=draws, confidence=confidence, seed=seed)
    every = {entry.name: entry for entry in (*wanted, *select_measures([SIZE_MEASURE, LOCATION_MEASURE]))}
    steps, taken = 2 * len(every) + 2, itertools.count(1)

    def done(result: T) -> T:
        if progress is not None:
            progress(next(taken) / steps)
        return result

    rows = {row.about.name: done(null.judged(row)) for row in measure_rows(forecasts, every.values(), done)}
    audited = done(_audited(forecasts, sketch, groups if sketch is None else asked, rows, draws, seed))
    found = Evaluation(
        title=title,
        subtitle=subtitle,
        forecasts=forecasts,
        verdict=verdict(rows, null, audited),
        facts=Facts.of(forecasts),
        rows=tuple(rows[about.name] for about in wanted),
        measured={name: row.measurement for name, row in rows.items() if row.measurement is not None},
        null=done(null.sample(rows[SIZE_MEASURE])),
        audit=audited,
        ids=points,
        confidence=confidence,
        draws=draws,
        cells=null.cells,
        seed=seed,
        groups=groups,
        columns={} if outcome is None else _recorded(
            outcome=outcome, prediction=prediction, weight=weight, groups=asked, ids=ids, clusters=clusters,
            missing=missing, pos_label=pos_label,
        ),
    )  # fmt: skip
    if points is not None:
        _ = found.distances  # ids that are wrong are refused at once
    return found


def _audited(
    forecasts: Forecasts, sketch: Any, groups: Any, rows: Mapping[str, ResultRow], draws: int, seed: int
) -> Audit | None:
    """Audit the groups; everyone gets the interval of the row that measures the same difference."""
    made_by = sketch is not None and sketch.by and forecasts.binary
    if groups is None and not made_by:
        return None
    from calibrant.groups.audit import AUDIT_DRAWS, audit

    data, plain = (forecasts, forecasts.binary) if sketch is None else (sketch, True)
    variant: Literal["plain", "real"] = "plain" if plain else "real"
    found = audit(data, groups=groups, draws=min(draws, AUDIT_DRAWS), seed=seed, variant=variant)
    whole = rows.get(tables.WHOLE)
    if whole is None or whole.low is None or whole.high is None:
        return found
    everyone = replace(found.everyone, interval=(whole.low, whole.high))
    return replace(found, groups=tuple(everyone if g is found.everyone else g for g in found.groups))


def _recorded(*, groups: Any, **given: Any) -> dict[str, Any]:
    """Return the names of the columns of a frame, and how they were read; None for anything else."""
    names = [groups] if isinstance(groups, str) else groups
    by_name = isinstance(names, list | tuple) and all(isinstance(name, str) for name in names)
    known = {role: item if isinstance(item, str | int | float) else None for role, item in given.items()}
    return {**known, "groups": list(names) if by_name else None}
