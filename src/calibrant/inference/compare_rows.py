"""Paired resamples row by row: what compare draws of few rows, of weighted ones and of fractions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.forecasts import Forecasts
from calibrant.inference.null_outcomes import batched
from calibrant.inference.paired_rows import PairedRows
from calibrant.inference.resample import DrawnRecords, Resamples, tallied, values_of_resamples
from calibrant.measures.registry.row import Measure
from calibrant.progress import Progress
from calibrant.results import Array
from calibrant.seeds import in_blocks


@dataclass(frozen=True, slots=True, eq=False)
class _Model:
    forecasts: Forecasts
    level_of: npt.NDArray[np.intp]  # of each row, in their common order
    by_level: npt.NDArray[np.intp]  # the rows in the order of the levels


def resampled_rows(
    forecasts: Mapping[str, Forecasts],
    paired: PairedRows,
    row: Measure,
    settings: dict[str, Any],
    *,
    draws: int,
    seed: int,
    threads: int | None,
    progress: Progress | None,
) -> Array:
    """Return the measure of every model (columns) on resampled rows, the same rows for all models."""
    n, weights = len(paired.outcomes), paired.weights
    models = [_model(f, paired.models[name]) for name, f in forecasts.items()]
    quick = row.null.residuals_only and batched(models[0].forecasts, row, settings)

    def work(generator: np.random.Generator, rows: int) -> Array:
        times = tallied(generator.integers(0, n, size=(rows, n)), n).astype(np.float64)
        mass = times if weights is None else times * weights
        total = mass.sum(axis=1, keepdims=True)
        mass = mass / total  # in place it would normalise the counts as well
        squares = mass * (1.0 if weights is None else weights) / total  # a record drawn twice is two records
        columns = []
        for model in models:
            levels = _levels(model, mass, squares, paired.outcomes, times)
            columns.append(values_of_resamples(model.forecasts, row, settings, levels, quick))
        return np.stack(columns, axis=1)

    return in_blocks(
        work, draws, width=n * len(models), seed=seed, threads=threads if quick else 1, progress=progress
    )


def _levels(model: _Model, mass: Array, squares: Array, outcomes: Array, times: Array) -> Resamples:
    m, order = model.forecasts.levels, model.by_level
    events = mass * outcomes

    def summed(terms: Array) -> Array:
        return np.stack([np.bincount(model.level_of, weights=term, minlength=m) for term in terms])

    known = model.forecasts.record_outcomes is not None
    records = DrawnRecords(times[:, order], mass[:, order], events[:, order]) if known else None
    return Resamples(summed(mass), summed(events), summed(squares), summed(times), records)


def _model(forecasts: Forecasts, predictions: Array) -> _Model:
    level_of = np.searchsorted(forecasts.values, predictions)
    return _Model(forecasts, level_of, np.argsort(level_of, kind="stable"))
