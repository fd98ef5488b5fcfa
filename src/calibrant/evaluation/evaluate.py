"""Compute an evaluation: every row, test, distance, group and preview, once."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from calibrant.errors import InvalidInputError, sentence
from calibrant.evaluation.facts import facts
from calibrant.evaluation.findings import Findings
from calibrant.evaluation.later import Later
from calibrant.evaluation.null_reference import Chance
from calibrant.evaluation.recalibration_preview import preview
from calibrant.evaluation.rows import SIZE, WHERE, Row, chosen, take_all
from calibrant.evaluation.verdict import ALPHA, verdict
from calibrant.forecasts import Forecasts
from calibrant.frames import Given, frame_columns, inputs_of
from calibrant.measures.distances.sandwich import Distances, distances_beside, distances_over
from calibrant.measures.registry.calling import as_forecasts
from calibrant.options import confidence_or_none
from calibrant.records import Missing, Records, check_records, warn_if_swapped
from calibrant.results import Measurement
from calibrant.seeds import checked_draws, recorded_seed

if TYPE_CHECKING:
    from calibrant.groups.audit_result import Audit

T = TypeVar("T")
F = TypeVar("F", bound=Findings)


def find(
    kind: type[F],
    y_true: Any,
    y_prob: Any = None,
    *,
    sample_weight: Any = None,
    groups: Any = None,
    ids: Any = None,
    measures: Sequence[str] | None = None,
    confidence: float = 0.95,
    draws: int = 199,
    seed: int | None = None,
    missing: Missing = "error",
    pos_label: Any = None,
    outcome: str | None = None,
    prediction: str | None = None,
    weight: str | None = None,
    title: str = "Calibration report",
    progress: Callable[[float], object] | None = None,
) -> F:
    """Compute the findings on some forecasts, as the kind that the caller can draw."""
    sketch = None
    if hasattr(type(y_true), "strata") and y_prob is None and sample_weight is None:  # a Sketch
        y_true, sketch, groups = y_true.forecasts(), _sketch_audit(y_true, groups), None
    given = inputs_of(
        y_true, y_prob, sample_weight, outcome=outcome, prediction=prediction, weight=weight, groups=groups,
        ids=ids,
    )  # fmt: skip
    groups = given.beside["groups"]
    points = frame_columns(given.beside["ids"], [ids])[0] if outcome and isinstance(ids, str) else ids
    forecasts = _forecasts(given, missing, pos_label)
    checked_draws(draws)
    confidence_or_none("confidence", confidence)
    seed = recorded_seed(seed)
    wanted = chosen(measures)
    if not wanted:
        raise InvalidInputError(sentence("measures", "must name a measure or more", "got none"))
    luck = Chance(forecasts, draws=draws, confidence=confidence, seed=seed)
    every = {row.name: row for row in (*wanted, *chosen([SIZE, WHERE]))}
    done = _steps(progress, 2 * len(every) + 4)
    rows = {row.about.name: done(luck.judged(row)) for row in take_all(forecasts, every.values(), done)}
    groups_found = done(_audit(forecasts, groups, draws, seed) if sketch is None else sketch(draws, seed))
    return kind(
        title=title,
        forecasts=forecasts,
        verdict=verdict(rows, luck, forecasts, groups_found, ALPHA),
        facts=facts(forecasts),
        rows=tuple(rows[about.name] for about in wanted),
        later_distances=done(_distances(forecasts, rows.values(), points)),
        null=done(luck.sample(rows[SIZE])),
        audit=groups_found,
        later_recalibration=done(Later(lambda: preview(forecasts, wanted, seed=seed))),
        confidence=confidence,
        draws=draws,
        cells=luck.cells,
        seed=seed,
        groups=groups,
    )


def _distances(forecasts: Forecasts, rows: Iterable[Row], ids: Any) -> Later[Distances]:
    """Return the distances; where points are given they are measured at once, as their ids may be refused."""
    taken = _taken(rows)
    if ids is None:
        return Later(lambda: distances_beside(forecasts, taken))
    view = Later(lambda: distances_over(distances_beside(forecasts, taken), forecasts.records, ids))
    view.get()
    return view


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


def _forecasts(given: Given, missing: Missing, pos_label: Any) -> Forecasts:
    """Check the rows once; where groups will cut them, put them in order once too."""
    y_true, y_prob, sample_weight = given.y_true, given.y_prob, given.sample_weight
    if isinstance(y_true, Forecasts) or y_prob is None or given.beside["groups"] is None:
        return as_forecasts(y_true, y_prob, sample_weight, missing, pos_label)
    checked = check_records(y_true, y_prob, sample_weight, missing, pos_label=pos_label)
    warn_if_swapped(checked, y_true=y_true, y_prob=y_prob)
    return Forecasts.of_records(Records.of(checked))


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
