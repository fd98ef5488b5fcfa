"""Paired resamples of very many rows by their cells: what compare draws where that adds little or nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.cores import on_all_cores
from calibrant.forecasts import Forecasts
from calibrant.inference.interval import around
from calibrant.inference.merging import MERGED_ABOVE, Resolved, resolved
from calibrant.inference.null_outcomes import batched, measured
from calibrant.inference.resample import seminorm_power
from calibrant.inference.stand_ins import alike
from calibrant.kernels.counted_codes import CountedCodes
from calibrant.kernels.tallies import resampled_tallies, tally_picked, tally_poisson
from calibrant.measures.registry.row import Measure
from calibrant.progress import Progress
from calibrant.results import Array
from calibrant.seeds import BLOCK, in_blocks

AT_ONCE = 16  # resamples that share one pass over the rows


@dataclass(frozen=True, slots=True, eq=False)
class CellModel:
    """A model on cells, which are its levels or merged levels: where they start, and what merging may add."""

    cells: Forecasts
    starts: Array  # the smallest prediction of each cell
    merged: bool
    widening: float
    shift: float  # its error on the levels minus its error on the cells

    def codes(self, outcomes: Array, predictions: Array) -> npt.NDArray[np.int64]:
        """Return a number per row that stands for its cell and its outcome."""
        cell = np.searchsorted(self.starts, predictions, side="right") - 1
        return np.asarray(2 * cell + (outcomes > 0), dtype=np.int64)

    def values(self, counts: npt.NDArray[np.int32], n: int, row: Measure, settings: dict[str, Any]) -> Array:
        """Return the measure of resamples, from how often each code was drawn (one column per resample)."""
        zeros, ones = counts[: 2 * self.cells.levels].reshape(self.cells.levels, 2, -1).transpose(1, 2, 0)
        residuals = (ones - (zeros + ones) * self.cells.values) / n
        return np.asarray(row.null.batch(self.cells, residuals, settings)) + self.shift  # type: ignore[misc]


def on_cells(
    forecasts: Mapping[str, Forecasts],
    row: Measure,
    settings: dict[str, Any],
    values: Mapping[str, float],
    confidence: float,
) -> list[CellModel]:
    """Return the models on cells; none unless all of them can be counted there."""
    models = on_all_cores(
        lambda name: _on_cells(forecasts[name], row, settings, values[name], confidence),
        forecasts,
        size=min(f.levels for f in forecasts.values()),
    )
    possible = [model for model in models if model is not None]
    return possible if len(possible) == len(models) else []


def _on_cells(
    forecasts: Forecasts, row: Measure, settings: dict[str, Any], value: float, confidence: float
) -> CellModel | None:
    """Take few levels as they are and merge many; None where that would widen an interval by 1 % or more."""
    grid = resolved(forecasts, row, settings, confidence)
    if grid.starts is not None:
        return _merged(forecasts, grid, row, settings, value)
    counted = forecasts.binary and forecasts.record_outcomes is None and alike(forecasts)
    few = forecasts.levels < MERGED_ABOVE <= forecasts.n
    if not (few and counted and row.null.residuals_only and batched(forecasts, row, settings)):
        return None
    return CellModel(forecasts, forecasts.values, merged=False, widening=0.0, shift=0.0)


def _merged(
    forecasts: Forecasts, grid: Resolved, row: Measure, settings: dict[str, Any], value: float
) -> CellModel:
    power = seminorm_power(grid.forecasts, row, settings)
    return CellModel(
        grid.forecasts,
        forecasts.values[grid.starts],
        merged=True,
        widening=around(value, grid.added, power)[1] - value,
        shift=value - measured(grid.forecasts, row, settings),
    )


def resampled_cells(
    models: Sequence[CellModel],
    outcomes: Array,
    predictions: Sequence[Array],
    row: Measure,
    settings: dict[str, Any],
    *,
    draws: int,
    seed: int,
    threads: int | None,
    progress: Progress | None,
) -> Array:
    """Return the measure of every model (columns) on resampled rows, moved to the scale of the levels."""
    n, size = len(outcomes), 2 * max(model.cells.levels for model in models)
    columns = on_all_cores(
        lambda pair: pair[0].codes(outcomes, pair[1]), zip(models, predictions, strict=True), size=n
    )
    codes = CountedCodes.of(columns, size)
    tally_poisson.expect_much()
    tally_picked.expect_much()

    def work(generator: np.random.Generator, rows: int) -> Array:
        counts = resampled_tallies(generator, codes, rows)
        parts = [model.values(counts[j], n, row, settings) for j, model in enumerate(models)]
        return np.stack(parts, axis=1)

    return in_blocks(work, draws, width=BLOCK // AT_ONCE, seed=seed, threads=threads, progress=progress)
