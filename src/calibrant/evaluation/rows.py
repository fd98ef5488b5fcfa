"""Rows of an evaluation: a measure with what chance alone would give, its p-value and its interval."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant.errors import CalibrantError, LevelSetWarning, reject_name
from calibrant.forecasts import Forecasts
from calibrant.formatting import confidence_text, format_value, limits_text, pluralize, pvalue_text
from calibrant.inference.bootstrap import Resampler, Resamples, coarse
from calibrant.inference.intervals import NO_INTERVAL, bounds, is_unbounded
from calibrant.inference.inversion import LOGISTIC, score_interval
from calibrant.inference.null import NullOutcomes, null_values
from calibrant.inference.testing import (
    DEFAULT_TEST,
    TestResult,
    by_signs,
    find_test,
    law_serves,
    run_test,
)
from calibrant.metrics.binned import mostly_distinct
from calibrant.metrics.lookup import measure, measures
from calibrant.metrics.null_laws import null_deviation
from calibrant.metrics.registry import Measure
from calibrant.parallel import map_threads
from calibrant.results import Array, Measurement

MAX_REMAINING_CELLS = 1024  # more levels than that are merged for the interval


@dataclass(frozen=True, slots=True)
class Inner:
    """The value without predictions of 0 and 1, with its interval where one exists."""

    certain: int
    records: int
    value: float
    low: float | None = None
    high: float | None = None

    @property
    def span(self) -> str:
        """The interval for people."""
        return "" if self.low is None or self.high is None else limits_text(self.low, self.high)


def certain_count(forecasts: Forecasts, name: str) -> int:
    """Return how many predictions are 0 or 1, where the measure is a logistic fit."""
    if name not in LOGISTIC:
        return 0
    return int(forecasts.counts[(forecasts.values == 0) | (forecasts.values == 1)].sum())


def without_certain(forecasts: Forecasts, name: str, confidence: float) -> Inner | None:
    """Take the measure and its interval without them; None where they do not matter or nothing is left."""
    certain = certain_count(forecasts, name)
    if certain == 0:
        return None
    try:
        inner = forecasts.between(float(np.nextafter(0, 1)), float(np.nextafter(1, 0)))
        value = measure(inner, name).value
    except CalibrantError:
        return None
    if confidence == 0:
        return Inner(certain, inner.n, value)
    try:
        cells = coarse(inner, MAX_REMAINING_CELLS)
        ends = score_interval(cells, name, value=measure(cells, name).value, confidence=confidence)
    except CalibrantError:  # predictions so near 0 or 1 that their logits are held
        return Inner(certain, inner.n, value)
    return Inner(certain, inner.n, value) if is_unbounded(*ends) else Inner(certain, inner.n, value, *ends)


def certain_note(
    forecasts: Forecasts, name: str, value: float | None, inner: Inner | None, confidence: float
) -> str:
    """Say how many predictions are 0 or 1, and what the measure is without them."""
    certain = certain_count(forecasts, name)
    if certain == 0:
        return ""
    are = pluralize(certain, "prediction is", "predictions are")
    if inner is None:
        return f"{are} exactly 0 or 1, so there is no interval"
    span = f", {confidence_text(confidence)} interval {inner.span}" if inner.span else ""
    those = "that record" if certain == 1 else "them"
    with_them = f"with {those} it is {format_value(value)} and has no interval"
    return f"{are} exactly 0 or 1; without {those} it is {format_value(inner.value)}{span}; {with_them}"


SIZE_MEASURE = "smooth"  # how far: within a factor 2 of the distance to calibration, in units of probability
LOCATION_MEASURE = "kuiper"  # where: it names an interval


@dataclass(frozen=True, slots=True, eq=False)
class ResultRow:
    """One measure of the evaluation; `about` is its registry row.

    `measurement` is None where the data cannot support the measure, and `note` says why. `chance` is the mean
    of the measure if the predictions were calibrated, `pvalue` how often chance alone gives as much, and
    `low` and `high` the confidence interval of the population value. The two methods say how p-value and
    interval were found, and whether they are exact or approximate.
    """

    about: Measure
    measurement: Measurement | None
    note: str = ""
    chance: float | None = None
    pvalue: float | None = None
    log_pvalue: float | None = None
    pvalue_is_bound: bool = False  # no draw reached the value: the p-value is this or less
    low: float | None = None
    high: float | None = None
    pvalue_method: str | None = None  # "exact", "asymptotic" or "approximate"
    interval_method: str | None = None
    inner: Inner | None = None  # of a slope or an intercept, without predictions of 0 and 1

    @property
    def approximate(self) -> tuple[str, ...]:
        """The fields that hold only approximately: every interval, and p-values that are not simulated."""
        rough = () if self.pvalue is None or self.pvalue_method == "exact" else ("pvalue",)
        return (*rough, *(() if self.low is None else ("low", "high")))

    @property
    def value(self) -> float | None:
        """The value on the data, None where it has none."""
        return None if self.measurement is None else self.measurement.value

    @property
    def written_pvalue(self) -> str:
        """The p-value for people."""
        return pvalue_text(self.pvalue, self.log_pvalue, self.pvalue_is_bound)


def select_measures(names: Sequence[str] | None) -> list[Measure]:
    """Return the registry rows of these names, or of one name; the headline rows when none are given."""
    table = measures()
    if names is None:
        return [row for row in table.values() if row.headline]
    names = [names] if isinstance(names, str) else names
    for name in names:
        if name not in table:
            raise reject_name("measure", name, list(table))
    return [table[name] for name in names]


def measure_row(forecasts: Forecasts, about: Measure) -> ResultRow:
    """Take one measure, or note why the data cannot support it."""
    return measure_rows(forecasts, [about])[0]


def measure_rows(
    forecasts: Forecasts, wanted: Iterable[Measure], done: Callable[[ResultRow], ResultRow] = lambda row: row
) -> list[ResultRow]:
    """Take measures, several at a time where there are very many levels, and hand each to `done`."""
    with warnings.catch_warnings():  # the filters belong to all threads, so they are set once, outside
        warnings.simplefilter("ignore", LevelSetWarning)
        return map_threads(lambda about: _taken(forecasts, about), wanted, size=forecasts.levels, done=done)


def _taken(forecasts: Forecasts, about: Measure) -> ResultRow:
    """Take one measure, or note why the data cannot support it."""
    if about.needs_level_sets and mostly_distinct(forecasts):
        return ResultRow(about, None, "needs predictions that repeat; here hardly any does")
    try:
        return ResultRow(about, measure(forecasts, about.name))
    except CalibrantError as error:
        return ResultRow(about, None, str(error))


def value_of(forecasts: Forecasts, about: Measure) -> float | None:
    """Take the value alone, without proof or note; None where the data cannot support the measure."""
    if about.needs_level_sets and mostly_distinct(forecasts):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LevelSetWarning)
        try:
            return about.function.value(forecasts, **about.options)
        except CalibrantError:
            return None


MOST_KEPT = 2**23  # numbers: 64 MB


class CachedNullOutcomes(NullOutcomes):
    """Calibrated outcomes that a second measure gets without drawing them again."""

    def __init__(self, forecasts: Forecasts) -> None:
        super().__init__(forecasts)
        self._kept: dict[Hashable, Array] = {}

    def outcomes(self, generator: np.random.Generator, rows: int) -> Array:
        """Draw `rows` sets of outcomes, or return those drawn before, read-only."""
        key = (_stream(generator), rows)
        if key in self._kept:
            return self._kept[key]
        drawn = super().outcomes(generator, rows)
        if (1 + len(self._kept)) * drawn.size <= MOST_KEPT:
            drawn.flags.writeable = False
            self._kept[key] = drawn
        return drawn

    def residuals(self, generator: np.random.Generator, rows: int) -> Array:
        """Draw `rows` sets of residuals: outcomes minus what was predicted."""
        return np.asarray(self.outcomes(generator, rows) - self._expected)


class CachedResampler(Resampler):
    """Resamples that a second measure gets without drawing them again."""

    def __init__(self, forecasts: Forecasts) -> None:
        super().__init__(forecasts)
        self._kept: dict[Hashable, Resamples] = {}

    def draw(self, generator: np.random.Generator, rows: int) -> Resamples:
        """Draw `rows` resamples, or return those drawn before."""
        key = (_stream(generator), rows)
        if key in self._kept:
            return self._kept[key]
        drawn = super().draw(generator, rows)
        if drawn.records is None and (1 + len(self._kept)) * 4 * drawn.weights.size <= MOST_KEPT:
            self._kept[key] = drawn
        return drawn


def _stream(generator: np.random.Generator) -> Hashable:
    """Return what a fresh generator will draw from: its seed and its number among the blocks."""
    seeds = generator.bit_generator.seed_seq
    assert isinstance(seeds, np.random.SeedSequence)
    return (str(seeds.entropy), seeds.spawn_key)


DECIDING_DRAWS = 1999  # of the omnibus test, where fewer leave the verdict to the seed
VERDICT_LEVEL = 0.05
MAX_NULL_CELLS = 2048  # more levels than that are merged before anything is simulated
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


class NullReference:
    """Simulates for the rows of one evaluation, on cells where there are very many levels.

    A test on cells is a test of the statistic of the cells, so it remains valid; measured values are never
    taken from cells.
    """

    def __init__(self, forecasts: Forecasts, *, draws: int, confidence: float, seed: int) -> None:
        self.forecasts = forecasts
        self._draws, self._confidence, self._seed = draws, confidence, seed
        self._cells = {cells: coarse(forecasts, cells) for cells in (MAX_NULL_CELLS, SLOW_CELLS)}
        self._nulls: dict[int, CachedNullOutcomes] = {}
        self._resamplers: dict[int, CachedResampler] = {}

    @property
    def cells(self) -> int | None:
        """How many cells were simulated, None when that was done on the levels themselves."""
        return None if self._cells[MAX_NULL_CELLS] is self.forecasts else self._cells[MAX_NULL_CELLS].levels

    def verdict(self) -> TestResult | CalibrantError:
        """Test calibration by the default test, or return why these data allow none."""
        try:
            tested = self._test(find_test(DEFAULT_TEST, self.forecasts))
            return self._drawn_again(tested) if _could_flip(tested) else tested
        except CalibrantError as error:
            return error

    def _drawn_again(self, tested: TestResult) -> TestResult:
        """Return the test with more draws, where so few could have put it on the wrong side of the level."""
        more = NullReference(
            self.forecasts, draws=DECIDING_DRAWS, confidence=self._confidence, seed=self._seed
        )
        return more._test(find_test(DEFAULT_TEST, self.forecasts))

    def without_certain(self) -> NullReference | None:
        """Return the same for the records whose predictions are neither 0 nor 1; None if there are none."""
        inside = (self.forecasts.values > 0) & (self.forecasts.values < 1)
        if not inside.any():
            return None
        inner = self.forecasts.between(*self.forecasts.values[inside][[0, -1]].tolist())
        return NullReference(inner, draws=self._draws, confidence=self._confidence, seed=self._seed)

    def _test(self, about: Measure) -> TestResult:
        law = about.null.law
        if self.forecasts.binary and by_signs(self.forecasts):
            return run_test(self._simulated(about), about, {}, draws=self._draws, seed=self._seed)
        by_law = not self.forecasts.binary or (law is not None and law_serves(self.forecasts, law))
        source = self.forecasts if by_law else self._simulated(about)
        method = "asymptotic" if by_law and self.forecasts.binary else "auto"  # not to be decided twice
        how: dict[str, Any] = {"method": method, "draws": self._draws, "seed": self._seed}
        return run_test(source, about, {}, null=None if by_law else self._null(about), **how)

    def judged(self, row: ResultRow) -> ResultRow:
        """Add null mean, p-value and interval, as far as the measure and the data allow."""
        return self._tried(self._with_interval, self._tried(self._with_test, row))

    def bounded(self, row: ResultRow) -> ResultRow:
        """Add the interval alone."""
        return self._tried(self._with_interval, row)

    def _tried(self, step: Callable[[ResultRow], ResultRow], row: ResultRow) -> ResultRow:
        if row.measurement is None:
            return row
        try:
            return step(row)
        except CalibrantError as error:  # too few records, or a measure without a value in most resamples
            return replace(row, note=row.note or str(error))

    def _with_test(self, row: ResultRow) -> ResultRow:
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

    def _with_interval(self, row: ResultRow) -> ResultRow:
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
        if is_unbounded(low, high):
            return _noted(row, NO_INTERVAL)
        method = f"{interval.method} (approximate)"
        assert row.value is not None  # of the levels, where the interval is that of cells
        return replace(row, low=min(low, row.value), high=max(high, row.value), interval_method=method)

    def _without_certain(self, row: ResultRow) -> ResultRow:
        """Add what the row is without predictions of 0 and 1: no sample bounds what these do."""
        inner = without_certain(self.forecasts, row.about.name, self._confidence)
        note = certain_note(self.forecasts, row.about.name, row.value, inner, self._confidence)
        return _noted(replace(row, inner=inner), note)

    def _resampled(self, about: Measure) -> Forecasts:
        """Return what intervals are taken on: the cells, or the rows where inverted tests need fractions."""
        needs_rows = not self.forecasts.binary and about.name in ISOTONIC
        few = self.forecasts.levels <= FEW_ROWS and self.forecasts.record_outcomes is not None
        return self.forecasts if needs_rows and few else self._simulated(about)

    def _simulated(self, about: Measure) -> Forecasts:
        return self._cells[_cells_for(about)]

    def _null(self, about: Measure) -> CachedNullOutcomes:
        """Return the calibrated outcomes that all measures of this kind share."""
        cells = _cells_for(about)
        if cells not in self._nulls:
            self._nulls[cells] = CachedNullOutcomes(self._cells[cells])
        return self._nulls[cells]

    def _resampler(self, about: Measure) -> CachedResampler:
        """Return the resamples that all measures of this kind share."""
        cells = _cells_for(about)
        if cells not in self._resamplers:
            self._resamplers[cells] = CachedResampler(self._cells[cells])
        return self._resamplers[cells]

    def sample(self, row: ResultRow) -> NullSample | None:
        """Simulate one measure on calibrated outcomes, for the histogram; None where that cannot be done."""
        if row.value is None or row.pvalue is None or not self.forecasts.binary or by_signs(self.forecasts):
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


def _could_flip(tested: TestResult) -> bool:
    """Return whether the error of the simulation could put a p-value on the other side of the level."""
    if not 0 < tested.draws < DECIDING_DRAWS:
        return False
    error = np.sqrt(tested.pvalue * (1 - tested.pvalue) / tested.draws)
    return bool(abs(tested.pvalue - VERDICT_LEVEL) <= 3 * error)


def _noted(row: ResultRow, note: str) -> ResultRow:
    return replace(row, note="; ".join(text for text in (row.note, note) if text))


def _cells_for(about: Measure) -> int:
    """Return how many cells to simulate on: fewer for measures that fit something to every data set."""
    return SLOW_CELLS if about.null.batch is None else MAX_NULL_CELLS


def _tests_fractions(about: Measure) -> bool:
    """Return whether a limit law of this measure holds for outcomes that are neither 0 nor 1."""
    law = about.null.law
    return law is not None and (law.fractions or law.scale is null_deviation)
