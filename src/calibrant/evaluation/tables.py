"""The tables of an evaluation, and what its charts draw: bands of calibrated curves, thinned curves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.evaluation.rows import ResultRow, select_measures
from calibrant.forecasts import Forecasts
from calibrant.formatting import confidence_text, format_pvalue, format_value, limits_text
from calibrant.inference.bootstrap import coarse
from calibrant.metrics.scores import isotonic_curve
from calibrant.results import Array, Table, TableCell, number_cell, sort_key, text_cell

if TYPE_CHECKING:
    from calibrant.groups.audit_result import Audit, Group


GROUPS_SHOWN = 50  # lines of the table of groups on a page
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
POINTS = 400  # a curve on the page has about as many points as a screen can show
BAND_DRAWS = 200
BAND_LEVEL = 0.95
MAX_BAND_CELLS = 512


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
    return _table(shown, confidence, short=len(shown) < len(rows), by_chance=False)


def measure_table(rows: Sequence[ResultRow], confidence: float) -> Table:
    """Return every measure with what chance alone would give."""
    return _table(rows, confidence, short=False, by_chance=True)


def _table(rows: Sequence[ResultRow], confidence: float, *, short: bool, by_chance: bool) -> Table:
    interval = f"{confidence_text(confidence)} interval" if confidence else "interval"
    columns = ("", "estimate", *(("by chance",) if by_chance else ()), interval, "p")
    return Table(columns, tuple(_line(row, short, by_chance) for row in rows))


def _line(row: ResultRow, short: bool, by_chance: bool) -> tuple[TableCell, ...]:
    value, low, high, chance = (_scaled(row, item) for item in (row.value, row.low, row.high, row.chance))
    star = ""
    if row.inner is not None and row.inner.low is not None:
        value, low, high, star = row.inner.value, row.inner.low, row.inner.high, " *"
    interval = "" if low is None or high is None else f"{limits_text(low, high)}{star}"
    # a score has no value of its own if calibrated
    tested = row.about.complete or row.about.signed or by_chance
    pvalue = format_pvalue(row.pvalue, row.pvalue_is_bound) if tested else ""
    return (
        text_cell(FIRST[row.about.name] if short else _name(row)),
        number_cell(value, _written(value)),
        *((number_cell(chance, _written(chance)),) if by_chance else ()),
        number_cell(low, interval),
        TableCell(pvalue, sort_key(row.log_pvalue), number=True),
    )


def _name(row: ResultRow) -> str:
    return f"root of {row.about.name}" if row.about.name in SQUARED else row.about.name


def _scaled(row: ResultRow, value: float | None) -> float | None:
    return value if value is None or row.about.name not in SQUARED else math.sqrt(max(value, 0.0))


def _written(value: float | None) -> str:
    text = "" if value is None else format_value(value)
    return "<0.0000001" if "e-" in text else text


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
    return plain[: max(top // 2 + 1, min(shown, top))]


class Band(NamedTuple):
    """Pointwise limits of a curve at `x`."""

    x: Array
    lower: Array
    upper: Array


def consistency_band(forecasts: Forecasts, *, seed: int) -> Band:
    """Draw outcomes from the predictions, fit the isotonic curve to each draw, and take 95% limits.

    Consistency band of Dimitriadis, Gneiting & Jordan (2021), section 3. It is drawn around the diagonal:
    a fitted curve inside it is what chance alone would give. Many levels are merged into cells first, and
    a cell of weighted records is drawn as the binomial of the same mean and variance.
    """
    cells = coarse(forecasts, MAX_BAND_CELLS)
    rng = np.random.default_rng(seed)
    with np.errstate(divide="ignore", invalid="ignore"):  # squares of the smallest weights are 0
        alike = np.nan_to_num(cells.weights**2 / cells.squared_weights, nan=1.0)
    size = np.rint(np.clip(alike, 1, cells.counts)).astype(np.int64)
    x = np.unique(np.interp(np.linspace(0, 1, 101), np.linspace(0, 1, cells.levels), cells.values))
    fits = np.empty((BAND_DRAWS, len(x)))
    sums: dict[str, Any] = {"squared_weights": cells.squared_weights, "counts": cells.counts}
    for row in fits:
        outcomes = cells.weights * rng.binomial(size, cells.values) / size
        drawn = Forecasts.from_levels(
            cells.values, cells.weights, outcomes, **sums, total_weight=cells.total_weight
        )
        row[:] = np.interp(x, cells.values, isotonic_curve(drawn))
    tail = (1 - BAND_LEVEL) / 2
    return Band(x, *np.quantile(fits, [tail, 1 - tail], axis=0))


def points_to_draw(height: Array, points: int = POINTS) -> npt.NDArray[np.intp]:
    """Return which points of a curve to draw: both ends, and the lowest and highest of every stretch.

    Extremes are kept because they are what the eye and the measures look for.

    >>> points_to_draw(np.array([0.0, 3.0, 1.0, -2.0, 0.5, 0.0]), points=4).tolist()
    [0, 1, 3, 5]
    """
    if len(height) <= points:
        return np.arange(len(height))
    edges = np.linspace(0, len(height), max(2, points // 2), dtype=np.int64)[:-1]
    kept = {0, len(height) - 1}
    for start, stop in zip(edges, np.append(edges[1:], len(height)), strict=True):
        piece = height[start:stop]
        kept.update((int(start + np.argmin(piece)), int(start + np.argmax(piece))))
    return np.array(sorted(kept), dtype=np.intp)


def density(values: Array, weights: Array, low: float, high: float, bins: int = 50) -> tuple[Array, Array]:
    """Return the edges of equal bins over [low, high] and the share of the weight in each."""
    edges = np.linspace(low, high, bins + 1)
    place = np.clip(((values - low) / (high - low) * bins).astype(np.int64), 0, bins - 1)
    return edges, np.bincount(place, weights=weights, minlength=bins).astype(np.float64)
