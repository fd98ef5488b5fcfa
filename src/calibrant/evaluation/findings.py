"""Compute an evaluation: every row, test, distance, group and sentence that a page shows, each once."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from calibrant.errors import InvalidInputError, reject_name, sentence
from calibrant.evaluation.repair_preview import Preview, preview, why_absent
from calibrant.evaluation.rows import (
    LOCATION_MEASURE,
    SIZE_MEASURE,
    NullReference,
    NullSample,
    ResultRow,
    measure_rows,
    select_measures,
)
from calibrant.evaluation.tables import WHOLE, first_table, footnotes, leading_groups
from calibrant.evaluation.verdict import ALPHA, Verdict, disagreement_note, verdict
from calibrant.forecasts import Forecasts
from calibrant.formatting import format_mean, format_pvalue, format_value, pluralize
from calibrant.frames import Inputs, frame_columns, resolve_inputs
from calibrant.groups.audit_result import group_table
from calibrant.inference.null import cluster_summary, has_equal_weights, is_clustered
from calibrant.inputs import confidence_or_none
from calibrant.metrics.calling import as_forecasts
from calibrant.metrics.distance.summary import Distances, distances_beside, distances_over
from calibrant.metrics.lookup import ALIASES
from calibrant.parallel import checked_draws, recorded_seed
from calibrant.records import Missing, Records, check_records, warn_if_swapped
from calibrant.results import Measurement, Table, frame_of, json_object

if TYPE_CHECKING:
    from calibrant.groups.audit_result import Audit


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
        fractional=_fractional(forecasts),
        clusters=str(cluster_summary(forecasts)) if is_clustered(forecasts) else "",
    )


def _fractional(forecasts: Forecasts) -> int | None:
    """Count the outcomes that are neither 0 nor 1."""
    if forecasts.binary:
        return 0
    outcomes = forecasts.record_outcomes
    return None if outcomes is None else int(np.count_nonzero((outcomes > 0) & (outcomes < 1)))


def fractions_note(result: Facts) -> str:
    """Say once what fractional outcomes cost and what to do about them; nothing where there are none.

    >>> fractions_note(facts(Forecasts([0, 1, 0.5], [0.2, 0.7, 0.4])))[:57]
    '1 of 3 outcomes is a fraction, so that calibrated outcome'
    """
    if result.binary:
        return ""
    few = result.fractional is not None and result.fractional <= 0.05 * result.records
    are = "is a fraction" if result.fractional == 1 else "are fractions"
    count = (
        "Outcomes"
        if result.fractional is None
        else f"{result.fractional:,} of {pluralize(result.records, 'outcome')}"
    )
    if result.fractional is None:
        lost, todo = "there are no p-values", "measure the rows themselves, or sketch outcomes of 0 and 1"
    elif few:
        lost, todo = "most p-values are missing", "leave these rows out (ties, say) to have every p-value"
    else:
        lost = "most p-values are missing"
        todo = "tests that need no simulation (kuiper, in-the-large) still have theirs"
    why = f"so that calibrated outcomes cannot be simulated and {lost}"
    return f"{count} {are}, {why}: {todo}"


def facts_sentence(result: Facts) -> str:
    """Say the facts in one line.

    >>> facts_sentence(facts(Forecasts([0, 1, 1], [0.2, 0.7, 0.7])))
    '3 records, 2 distinct predictions (2 records tied); mean prediction 0.5333, mean outcome 0.6667'
    """
    what = "cell" if result.resolution else "distinct prediction"
    text = f"{pluralize(result.records, 'record')}, {pluralize(result.levels, what)}"
    text += " of a sketch" if result.resolution else ""
    text += f" ({pluralize(result.tied, 'record')} tied)" if result.tied and not result.resolution else ""
    text += (
        f"; mean prediction {format_mean(result.mean_prediction)}, mean outcome "
        f"{format_mean(result.base_rate)}"
    )
    if result.weighted:
        text += f"; weighted, worth {result.effective_records:,.0f} equal records"
    if result.dropped:
        missing = "" if result.resolution else " with missing values"  # a sketch may leave out others too
        text += f"; {pluralize(result.dropped, 'row')}{missing} left out"
    if result.resolution:
        text += f"; predictions up to {format_value(result.resolution, 2)} apart share a cell"
    notes = [note for note in (fractions_note(result), result.clusters.rstrip(".")) if note]
    return ". ".join([text, *notes])


PAGE_WIDTH = 100  # characters
SCHEMA = "calibrant-evaluation"
SCHEMA_VERSION = 2  # see docs/report-schema.md; raised when a key changes its meaning or goes away


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
        """The view of all distances."""
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
        return summary(self)

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


def summary(found: Findings, next_step: str | None = None, table: Table | None = None) -> str:
    """Return the verdict, a small table, the groups and the next step, as text for one screen."""
    verdict = found.verdict
    said = filter(None, (verdict.what, verdict.whom))
    parts = ["\n".join(textwrap.fill(text, PAGE_WIDTH) for text in said)]
    parts.append((table or first_table(found.rows, found.confidence)).as_text(PAGE_WIDTH))
    if found.audit is not None:
        parts.append(group_table(leading_groups(found.audit)).as_text(PAGE_WIDTH))
        parts[-1] += f"\n{more_groups(found)}"
    notes = [*footnotes(found.rows), disagreement_note(verdict, found.rows), *details(found)]
    parts.append("\n".join(line for note in notes if note for line in textwrap.wrap(note, PAGE_WIDTH)))
    parts.append(textwrap.fill(f"Next: {next_step or verdict.next_step}", PAGE_WIDTH))
    return "\n\n".join(filter(None, parts))


def more_groups(found: Findings) -> str:
    """Say how many groups were tested beyond those that the table shows, and how they are ranked."""
    assert found.audit is not None
    left = len(found.audit.groups) - len(leading_groups(found.audit))
    return (
        f"... {pluralize(left, 'more group')}, p adjusted for all"
        if left > 0
        else "p is adjusted for all groups"
    )


def details(found: Findings) -> list[str]:
    """Return what the numbers are based on: the data, and the test behind the verdict."""
    pvalue = format_pvalue(found.verdict.pvalue, found.verdict.pvalue_is_bound)
    shown = pvalue if pvalue[:1] in "<≤" else f"= {pvalue}"
    tested = f"Omnibus test of calibration: p {shown.replace('<', '< ').replace('≤', '≤ ')}" if pvalue else ""
    how = f"{pluralize(found.draws, 'draw')}, seed {found.seed}"
    return [
        f"{facts_sentence(found.facts)}.",
        f"{tested} ({how})." if tested else f"{how[0].upper()}{how[1:]}.",
    ]


def measure_values(rows: Sequence[ResultRow]) -> list[dict[str, Any]]:
    """Return the measures as plain values, one row each, for a table that programs read."""
    wanted = ("value", "by_chance", "pvalue", "pvalue_is_bound", "low", "high", "meaning", "note")
    facts = [(row, _row_dict(row)) for row in rows]
    return [
        {"measure": row.about.words, "key": row.about.name, **{name: known[name] for name in wanted}}
        for row, known in facts
    ]


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


T = TypeVar("T")
F = TypeVar("F", bound=Findings)


def compute_findings(
    kind: type[F],
    y_true: Any,
    y_prob: Any = None,
    *,
    sample_weight: Any = None,
    clusters: Any = None,
    groups: Any = None,
    ids: Any = None,
    measures: Sequence[str] | None = None,
    confidence: float = 0.95,
    draws: int = 199,
    seed: int | None = 0,
    missing: Missing = "error",
    pos_label: Any = None,
    outcome: str | None = None,
    prediction: str | None = None,
    weight: str | None = None,
    title: str = "Calibration report",
    subtitle: str = "",
    progress: Callable[[float], object] | None = None,
) -> F:
    """Compute the findings on some forecasts, as the kind that the caller can draw."""
    sketch, asked = None, groups
    if hasattr(type(y_true), "strata") and y_prob is None and sample_weight is None:  # a Sketch
        y_true, sketch, groups = y_true.forecasts(), _sketch_audit(y_true, groups), None
    given = resolve_inputs(
        y_true, y_prob, sample_weight, outcome=outcome, prediction=prediction, weight=weight, groups=groups,
        ids=ids, clusters=clusters,
    )  # fmt: skip
    groups = given.extra["groups"]
    points = frame_columns(given.extra["ids"], [ids])[0] if outcome and isinstance(ids, str) else ids
    forecasts = _forecasts(given, missing, pos_label)
    if given.extra["clusters"] is not None:
        forecasts = forecasts.with_clusters(given.extra["clusters"], missing)
    checked_draws(draws)
    confidence_or_none("confidence", confidence)
    seed = recorded_seed(seed)
    wanted = select_measures(measures)
    if not wanted:
        raise InvalidInputError(sentence("measures", "must name a measure or more", "got none"))
    null = NullReference(forecasts, draws=draws, confidence=confidence, seed=seed)
    every = {row.name: row for row in (*wanted, *select_measures([SIZE_MEASURE, LOCATION_MEASURE]))}
    done = _steps(progress, 2 * len(every) + 2)
    rows = {row.about.name: done(null.judged(row)) for row in measure_rows(forecasts, every.values(), done)}
    groups_found = done(_audit(forecasts, groups, draws, seed) if sketch is None else sketch(draws, seed))
    groups_found = _with_one_interval(groups_found, rows.get(WHOLE))
    found = kind(
        title=title,
        subtitle=subtitle,
        forecasts=forecasts,
        verdict=verdict(rows, null, forecasts, groups_found, ALPHA),
        facts=facts(forecasts),
        rows=tuple(rows[about.name] for about in wanted),
        measured={name: row.measurement for name, row in rows.items() if row.measurement is not None},
        null=done(null.sample(rows[SIZE_MEASURE])),
        audit=groups_found,
        ids=points,
        confidence=confidence,
        draws=draws,
        cells=null.cells,
        seed=seed,
        groups=groups,
        columns=_recorded(outcome, prediction, weight, asked, ids, missing, pos_label),
    )
    if points is not None:
        _ = found.distances  # ids that are wrong are refused at once
    return found


def _recorded(
    outcome: str | None, prediction: str | None, weight: str | None, groups: Any, ids: Any, missing: Missing,
    pos_label: Any,
) -> dict[str, Any]:  # fmt: skip
    """Return the names of the columns of a frame, and how they were read; nothing for arrays."""
    if outcome is None:
        return {}
    names = [groups] if isinstance(groups, str) else groups
    by_name = isinstance(names, list | tuple) and all(isinstance(name, str) for name in names)
    found: dict[str, Any] = {"outcome": outcome, "prediction": prediction, "weight": weight}
    found |= {"groups": list(names) if by_name else None, "ids": ids if isinstance(ids, str) else None}
    return {
        **found,
        "missing": missing,
        "pos_label": pos_label if isinstance(pos_label, str | int | float) else None,
    }


def _steps(progress: Callable[[float], object] | None, total: int) -> Callable[[T], T]:
    """Return a function that hands its argument on and reports one more step of `total` as done."""
    taken = itertools.count(1)

    def done(result: T) -> T:
        if progress is not None:
            progress(next(taken) / total)
        return result

    return done


def _forecasts(given: Inputs, missing: Missing, pos_label: Any) -> Forecasts:
    """Check the rows once; where groups will cut them, put them in order once too."""
    y_true, y_prob, sample_weight = given.y_true, given.y_prob, given.sample_weight
    if isinstance(y_true, Forecasts) or y_prob is None or given.extra["groups"] is None:
        return as_forecasts(y_true, y_prob, sample_weight, missing, pos_label)
    checked = check_records(y_true, y_prob, sample_weight, missing, pos_label=pos_label)
    warn_if_swapped(checked, y_true=y_true, y_prob=y_prob)
    return Forecasts.of_records(Records.of(checked))


def _with_one_interval(audit: Audit | None, whole: ResultRow | None) -> Audit | None:
    """Give everyone in the audit the interval of the row that measures the same difference."""
    if audit is None or whole is None or whole.low is None or whole.high is None:
        return audit
    everyone, interval = audit.everyone, (whole.low, whole.high)
    changed = (replace(group, interval=interval) if group is everyone else group for group in audit.groups)
    return replace(audit, groups=tuple(changed))


def _sketch_audit(sketch: Any, groups: Any) -> Callable[[int, int], Audit | None]:
    """Return what audits the groups that a sketch was made by, or those among them that are named."""

    def run(draws: int, seed: int) -> Audit | None:
        if groups is None and not (sketch.by and sketch.forecasts().binary):
            return None
        from calibrant.groups.audit import audit

        return audit(sketch, groups=groups, draws=draws, seed=seed)

    return run


def _audit(forecasts: Forecasts, groups: Any, draws: int, seed: int) -> Audit | None:
    if groups is None:
        return None
    from calibrant.groups.audit import audit

    return audit(
        forecasts, groups=groups, draws=draws, seed=seed, variant="plain" if forecasts.binary else "real"
    )
