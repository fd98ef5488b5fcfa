"""hierarchical: a readable table of shifts per level of every covariate, shrunk by evidence."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.errors import InvalidInputError, sentence
from calibrant.fits.hierarchical import Block, HierarchicalFit
from calibrant.fits.hierarchical import hierarchical as fit_shifts
from calibrant.fits.logistic import Clip
from calibrant.fits.logits import logit
from calibrant.groups.features import Features
from calibrant.recalibration.levels_of_columns import LeveledColumn, coded, met
from calibrant.recalibration.maps.boost import CLIP
from calibrant.recalibration.maps.hierarchical import ColumnShifts, HierarchicalMap
from calibrant.recalibration.methods.checks import at_least_two
from calibrant.recalibration.methods.spline import FEW, spline
from calibrant.recalibration.registry import Fitted
from calibrant.recalibration.samples import Rows

ROUNDING = 1e-9  # relative: a deviation below it is none
MOST_LEVELS = 2_000  # the work grows with their third power


def hierarchical(
    sample: Rows, *, seed: int, bins: int = 8, slopes: bool = False, clip: Clip = "auto"
) -> Fitted:
    """Fit the spline, then intercept, slope and one shift per level of every covariate.

    Where nothing speaks for a change, intercept, slope and shifts are shrunk to those of no change; numbers
    are cut at `bins` quantiles.
    """
    at_least_two("bins", bins)
    assert sample.covariates is not None  # the registry row says so
    columns = coded(sample.covariates)
    features = Features.of(columns)
    given = met(features, columns)
    leveled = [
        LeveledColumn.of(one, given.encoded.rows[:, j], bins) for j, one in enumerate(features.features)
    ]
    _refuse_many(leveled)
    codes = [one.codes(given.encoded.rows[:, j], given.missing[j]) for j, one in enumerate(leveled)]
    start = spline(sample, seed=seed, clip=clip)
    x = logit(start.map.predict(sample.predictions), CLIP)
    centre = float(np.average(x, weights=sample.weights))
    deviation = float(np.sqrt(np.average((x - centre) ** 2, weights=sample.weights)))
    deviation = deviation if deviation > ROUNDING * max(1.0, abs(centre)) else 1.0  # all logits are equal
    blocks = [Block(c, one.count) for c, one in zip(codes, leveled, strict=True)]
    if slopes:
        scaled = (x - centre) / deviation
        blocks += [Block(c, one.count, scaled) for c, one in zip(codes, leveled, strict=True)]
    fit = fit_shifts(x, sample.outcomes, sample.weights, blocks)
    counts = [np.bincount(c, sample.weights, one.count) for c, one in zip(codes, leveled, strict=True)]
    tables = tuple(_tables(fit, leveled, counts, slopes))
    fitted = HierarchicalMap(fit.intercept, fit.slope, CLIP, centre, deviation, tables, start.map)
    notes = tuple(note for note in start.notes if note != FEW)
    return Fitted(fitted, notes, {"start": dict(start.details), "shifts": _readable(tables)})


def _refuse_many(leveled: list[LeveledColumn]) -> None:
    """Refuse more levels than a table can be read of; an identifier among the columns is the usual reason."""
    count = sum(one.count for one in leveled)
    if count > MOST_LEVELS:
        widest = max(leveled, key=lambda one: one.count)
        got = f"got {count:,}, of which column {widest.feature.name!r} has {widest.count:,}"
        hint = "leave such a column out, or group its values"
        rule = f"must have at most {MOST_LEVELS:,} levels in all"
        raise InvalidInputError(sentence("covariates", rule, got, hint))


def _tables(
    fit: HierarchicalFit, leveled: list[LeveledColumn], counts: list[Any], slopes: bool
) -> list[ColumnShifts]:
    collected = []
    for j, (column, records) in enumerate(zip(leveled, counts, strict=True)):
        shifts = fit.blocks[j]
        steep = fit.blocks[len(leveled) + j].values if slopes else None
        collected.append(ColumnShifts(column, shifts.values, shifts.errors, records, steep))
    return collected


def _readable(tables: tuple[ColumnShifts, ...]) -> list[dict[str, Any]]:
    """Return the table of shifts: who, by how much on the logit, with standard error and records."""
    rows = []
    for one in tables:
        for k, words in enumerate(one.column.words()):
            if one.records[k] > 0:
                row = {"group": words, "shift": float(one.shifts[k]), "error": float(one.errors[k])}
                rows.append({**row, "records": float(one.records[k])})
    return rows
