"""Paired resamples of very many rows on merged levels: what compare draws where that adds little."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.forecasts import Forecasts
from calibrant.inference.interval import around
from calibrant.inference.merging import Resolved, resolved
from calibrant.inference.null_outcomes import measured
from calibrant.inference.resample import seminorm_power
from calibrant.kernels.tallies import tallies
from calibrant.measures.registry.row import Measure
from calibrant.results import Array
from calibrant.seeds import Progress, in_blocks


@dataclass(frozen=True, slots=True, eq=False)
class MergedModel:
    """A model on merged levels: the cell of each row, and what merging may add to its error."""

    grid: Resolved
    cell_of: npt.NDArray[np.intp]
    widening: float
    shift: float  # its error on the levels minus its error on the cells


def merged_model(
    forecasts: Forecasts,
    level_of: npt.NDArray[np.intp],
    row: Measure,
    settings: dict[str, Any],
    *,
    value: float,
    confidence: float,
) -> MergedModel | None:
    """Merge the levels of a model; None where that would add one per cent to an interval, or more."""
    grid = resolved(forecasts, row, settings, confidence)
    if grid.starts is None:
        return None
    power = seminorm_power(grid.forecasts, row, settings)
    widening = around(value, grid.added, power)[1] - value
    shift = value - measured(grid.forecasts, row, settings)
    return MergedModel(grid, np.searchsorted(grid.starts, level_of, side="right") - 1, widening, shift)


def resampled_cells(
    models: Sequence[MergedModel],
    outcomes: Array,
    row: Measure,
    settings: dict[str, Any],
    *,
    draws: int,
    seed: int,
    threads: int | None,
    progress: Progress | None,
) -> Array:
    """Return the measure of every model (columns) on resampled rows, moved to the scale of the levels."""
    n, batch = len(outcomes), row.null.batch
    size = 2 * max(model.grid.forecasts.levels for model in models)
    coded = [2 * model.cell_of + outcomes.astype(np.intp) for model in models]
    codes = np.stack(coded, axis=1).astype(np.int32)
    tallies.expect_much()

    def work(generator: np.random.Generator, rows: int) -> Array:
        values = np.empty((rows, len(models)))
        for k in range(rows):
            counts = tallies(generator.integers(0, n, size=n, dtype=np.uint32), codes, size)
            for j, model in enumerate(models):
                cells = model.grid.forecasts
                zeros, ones = counts[j, : 2 * cells.levels].reshape(-1, 2).T
                residuals = (ones - (zeros + ones) * cells.values) / n
                values[k, j] = batch(cells, residuals[None], settings)[0] + model.shift  # type: ignore[index, misc]
        return values

    return in_blocks(work, draws, width=n * len(models), seed=seed, threads=threads, progress=progress)
