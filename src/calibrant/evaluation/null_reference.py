"""What chance alone would give: null means, p-values and intervals for the rows of an evaluation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from calibrant.errors import CalibrantError
from calibrant.evaluation.rows import Row
from calibrant.evaluation.without_certain import certain_count, certain_note, without_certain
from calibrant.forecasts import Forecasts
from calibrant.inference.engine import TestResult, law_serves, run_test
from calibrant.inference.interval import bounds
from calibrant.inference.interval_notes import NO_INTERVAL, boundless, outside_by_merging, why_outside
from calibrant.inference.kept import KeptOutcomes, KeptResampler
from calibrant.inference.merging import coarse
from calibrant.inference.null_outcomes import null_values
from calibrant.inference.statistics import DEFAULT_TEST, find_test
from calibrant.measures.registry.laws import null_deviation
from calibrant.measures.registry.row import Measure
from calibrant.results import Array

CELLS = 2048  # more levels than that are merged before anything is simulated
SLOW_CELLS = 1024  # for measures that take one simulated data set at a time
ISOTONIC = ("brier-mcb", "ici", "e50", "e90")  # whose intervals need the rows where outcomes are fractions
FEW_ROWS = 50_000  # distinct predictions up to which that takes seconds


@dataclass(frozen=True, slots=True, eq=False)
class NullSample:
    """The values of a measure on data sets that have these predictions and calibrated outcomes."""

    measure: str
    values: Array
    observed: float
    pvalue: float


class Chance:
    """Simulates for the rows of one evaluation, on cells where there are very many levels.

    A test on cells is a test of the statistic of the cells, so it remains valid; measured values are never
    taken from cells.
    """

    def __init__(self, forecasts: Forecasts, *, draws: int, confidence: float, seed: int) -> None:
        self.forecasts = forecasts
        self._draws, self._confidence, self._seed = draws, confidence, seed
        self._cells = {cells: coarse(forecasts, cells) for cells in (CELLS, SLOW_CELLS)}
        self._nulls: dict[int, KeptOutcomes] = {}
        self._resamplers: dict[int, KeptResampler] = {}

    @property
    def cells(self) -> int | None:
        """How many cells were simulated, None when that was done on the levels themselves."""
        return None if self._cells[CELLS] is self.forecasts else self._cells[CELLS].levels

    def verdict(self) -> TestResult | str:
        """Test calibration by the default test, or say why these data allow none."""
        try:
            return self._test(find_test(DEFAULT_TEST, self.forecasts))
        except CalibrantError as error:
            return str(error)

    def without_certain(self) -> Chance | None:
        """Return the same for the records whose predictions are neither 0 nor 1; None if there are none."""
        inside = (self.forecasts.values > 0) & (self.forecasts.values < 1)
        if not inside.any():
            return None
        inner = self.forecasts.between(*self.forecasts.values[inside][[0, -1]].tolist())
        return Chance(inner, draws=self._draws, confidence=self._confidence, seed=self._seed)

    def _test(self, about: Measure) -> TestResult:
        law = about.null.law
        by_law = not self.forecasts.binary or (law is not None and law_serves(self.forecasts, law))
        source = self.forecasts if by_law else self._simulated(about)
        method = "asymptotic" if by_law and self.forecasts.binary else "auto"  # not to be decided twice
        how: dict[str, Any] = {"method": method, "draws": self._draws, "seed": self._seed}
        return run_test(source, about, {}, null=None if by_law else self._null(about), **how)

    def judged(self, row: Row) -> Row:
        """Add null mean, p-value and interval, as far as the measure and the data allow."""
        return self._tried(self._with_interval, self._tried(self._with_test, row))

    def bounded(self, row: Row) -> Row:
        """Add the interval alone."""
        return self._tried(self._with_interval, row)

    def _tried(self, step: Callable[[Row], Row], row: Row) -> Row:
        if row.measurement is None:
            return row
        try:
            return step(row)
        except CalibrantError as error:  # too few records, or a measure without a value in most resamples
            return replace(row, note=row.note or str(error))

    def _with_test(self, row: Row) -> Row:
        if not self.forecasts.binary and not _tests_fractions(row.about):
            return row  # said once, with the facts
        tested = self._test(row.about)
        return replace(
            row,
            chance=tested.null_mean,
            pvalue=tested.pvalue,
            log_pvalue=tested.log_pvalue,
            pvalue_is_bound=tested.pvalue_is_bound,
            pvalue_method=tested.method,
        )

    def _with_interval(self, row: Row) -> Row:
        if certain_count(self.forecasts, row.about.name):
            return self._without_certain(row)
        if self._confidence == 0:
            return row
        source = self._resampled(row.about)
        settings = dict(row.about.options)
        # resamples are of these cells, so the value they are compared with is too
        value = float(row.about.function.core(source, **settings))
        interval = bounds(
            source,
            row.about,
            settings,
            value=value,
            confidence=self._confidence,
            draws=self._draws,
            seed=self._seed,
            pvalue=row.pvalue,
            resampler=None if source is self.forecasts else self._resampler(row.about),
        )
        low, high = interval.lower, interval.upper
        if boundless(low, high):
            return _noted(row, NO_INTERVAL)
        method = f"{interval.method} (approximate)"
        bounded = replace(row, low=low, high=high, interval_method=method)
        return _noted(bounded, _why_outside(row, value, source.levels, low, high))

    def _without_certain(self, row: Row) -> Row:
        """Add what the row is without predictions of 0 and 1: no sample bounds what these do."""
        inner = without_certain(self.forecasts, row.about.name, self._confidence)
        note = certain_note(self.forecasts, row.about.name, inner, self._confidence)
        return _noted(replace(row, inner=inner), note)

    def _resampled(self, about: Measure) -> Forecasts:
        """Return what intervals are taken on: the cells, or the rows where inverted tests need fractions."""
        needs_rows = not self.forecasts.binary and about.name in ISOTONIC
        few = self.forecasts.levels <= FEW_ROWS and self.forecasts.record_outcomes is not None
        return self.forecasts if needs_rows and few else self._simulated(about)

    def _simulated(self, about: Measure) -> Forecasts:
        return self._cells[_cells_for(about)]

    def _null(self, about: Measure) -> KeptOutcomes:
        """Return the calibrated outcomes that all measures of this kind share."""
        cells = _cells_for(about)
        if cells not in self._nulls:
            self._nulls[cells] = KeptOutcomes(self._cells[cells])
        return self._nulls[cells]

    def _resampler(self, about: Measure) -> KeptResampler:
        """Return the resamples that all measures of this kind share."""
        cells = _cells_for(about)
        if cells not in self._resamplers:
            self._resamplers[cells] = KeptResampler(self._cells[cells])
        return self._resamplers[cells]

    def sample(self, row: Row) -> NullSample | None:
        """Simulate one measure on calibrated outcomes, for the histogram; None where that cannot be done."""
        if row.value is None or row.pvalue is None or not self.forecasts.binary:
            return None
        source = self._simulated(row.about)
        values = null_values(
            source,
            row.about,
            dict(row.about.options),
            null=self._null(row.about),
            draws=self._draws,
            seed=self._seed,
        )
        return NullSample(row.about.name, values, row.value, row.pvalue)


def _noted(row: Row, note: str) -> Row:
    return replace(row, note="; ".join(text for text in (row.note, note) if text))


def _why_outside(row: Row, of_cells: float, cells: int, low: float, high: float) -> str:
    """Say why the value that is shown lies outside the interval, which is of the cells."""
    assert row.value is not None
    outside = why_outside(row.value, low, high, row.chance)
    if not outside or why_outside(of_cells, low, high, row.chance):
        return outside
    return outside_by_merging(row.value, of_cells, cells, low, high)


def _cells_for(about: Measure) -> int:
    """Return how many cells to simulate on: fewer for measures that fit something to every data set."""
    return SLOW_CELLS if about.null.batch is None else CELLS


def _tests_fractions(about: Measure) -> bool:
    """Return whether a limit law of this measure holds for outcomes that are neither 0 nor 1."""
    law = about.null.law
    return law is not None and (law.fractions or law.scale is null_deviation)
