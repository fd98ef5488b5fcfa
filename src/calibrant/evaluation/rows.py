"""Rows of an evaluation: a measure with what chance alone would give, its p-value and its interval."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, TypeVar, cast

import numpy as np

from calibrant.errors import CalibrantError, LevelSetWarning, reject_name
from calibrant.forecasts import Forecasts
from calibrant.formatting import confidence_text, format_value, limits_text, pluralize
from calibrant.inference.bootstrap import Resampler, levels_to_simulate
from calibrant.inference.intervals import NO_INTERVAL, bounds, is_unbounded
from calibrant.inference.inversion import LOGISTIC
from calibrant.inference.null import Drawing, NullOutcomes, null_values
from calibrant.inference.pvalues import LEVEL
from calibrant.inference.testing import (
    DEFAULT_TEST,
    TestResult,
    by_signs,
    find_test,
    has_sign_test,
    levels_to_test_on,
    run_test,
)
from calibrant.metrics.binned import mostly_distinct
from calibrant.metrics.certificates import NoCertificateError
from calibrant.metrics.lookup import find_measure, measure, measures
from calibrant.metrics.registry import Measure
from calibrant.parallel import map_threads
from calibrant.results import Array, Measurement

SIZE_MEASURE = "smooth"  # how far: within a factor 2 of the distance to calibration, in units of probability
LOCATION_MEASURE = "kuiper"  # where: it names an interval
MAX_CACHED = 2**23  # numbers: 64 MB
Draw = TypeVar("Draw", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, eq=False)
class ResultRow:
    """One measure of the evaluation."""

    about: Measure  # its registry entry
    measurement: Measurement | None  # None where the data cannot support it: `note` says why
    note: str = ""
    chance: float | None = None  # mean of the measure if the predictions were calibrated
    pvalue: float | None = None  # how often chance alone gives as much
    log_pvalue: float | None = None
    pvalue_is_bound: bool = False  # no draw reached the value: the p-value is this or less
    low: float | None = None  # ends of the confidence interval of the population value
    high: float | None = None
    pvalue_method: str | None = None  # "exact", "asymptotic" or "approximate"
    interval_method: str | None = None
    inner: ResultRow | None = None  # the same slope or intercept without predictions of 0 and 1,
    certain: int = 0  # and how many such predictions that row leaves out

    @property
    def approximate(self) -> tuple[str, ...]:
        """The fields that hold only approximately: every interval, and p-values that are not simulated."""
        rough = () if self.pvalue is None or self.pvalue_method == "exact" else ("pvalue",)
        return (*rough, *(() if self.low is None else ("low", "high")))

    @property
    def value(self) -> float | None:
        return None if self.measurement is None else self.measurement.value

    @property
    def records(self) -> int:
        return 0 if self.measurement is None else self.measurement.n

    @property
    def shown(self) -> ResultRow:
        """What tables show: where some predictions are 0 or 1, a slope or an intercept without them."""
        return self if self.inner is None else self.inner

    def to_dict(self) -> dict[str, Any]:
        about, taken = self.about, self.measurement
        tested = ("pvalue", "log_pvalue", "pvalue_is_bound", "pvalue_method", "interval_method")
        kept, rest = ("certain", "records", "value", "low", "high", "pvalue", "pvalue_is_bound"), self.inner
        return {
            "name": about.name,
            **{name: getattr(taken, name, None) for name in ("value", "lower", "upper", "exact")},
            "by_chance": self.chance,
            **{name: getattr(self, name) for name in (*tested, "approximate", "low", "high")},
            "meaning": about.meaning,
            "note": self.note,
            "citation": about.citation,
            "options": dict(taken.options if taken else about.options),
            "details": taken.to_dict()["details"] if taken else {},
            "without_certain": None if rest is None else {name: getattr(rest, name) for name in kept},
        }

    def noted(self, note: str) -> ResultRow:
        return replace(self, note="; ".join(text for text in (self.note, note) if text))


def select_measures(names: Sequence[str] | None) -> list[Measure]:
    """Return the registry entries of these names, or of one name; the headline ones when none are given."""
    table = measures()
    if names is None:
        return [entry for entry in table.values() if entry.headline]
    names = [names] if isinstance(names, str) else names
    for name in names:
        if name not in table:
            raise reject_name("measure", name, list(table))
    return [table[name] for name in names]


def measure_rows(
    forecasts: Forecasts, wanted: Iterable[Measure], done: Callable[[ResultRow], ResultRow] = lambda row: row
) -> list[ResultRow]:
    """Take measures, or note why the data cannot support them; hand each row to `done`."""

    def taken(about: Measure) -> ResultRow:
        if about.needs_level_sets and mostly_distinct(forecasts):
            return ResultRow(about, None, "needs predictions that repeat; here hardly any does")
        try:
            return ResultRow(about, measure(forecasts, about.name))
        except NoCertificateError:
            return ResultRow(about, None, "cannot be computed from a sketch; evaluate the rows for it")
        except CalibrantError as error:
            return ResultRow(about, None, str(error))

    with warnings.catch_warnings():  # the filters belong to all threads, so they are set once, outside
        warnings.simplefilter("ignore", LevelSetWarning)
        return map_threads(taken, wanted, size=forecasts.levels, done=done)


def drawn_once(draw: Draw) -> Draw:
    """Return what a fresh generator draws, without drawing it again for a second measure."""

    def drawn_or_kept(self: Any, generator: np.random.Generator, rows: int) -> Any:
        seeds = generator.bit_generator.seed_seq
        assert isinstance(seeds, np.random.SeedSequence)
        key = (str(seeds.entropy), seeds.spawn_key, rows)  # with the number of the block
        kept: dict[Hashable, Any] = self.__dict__.setdefault("kept", {})
        if key in kept:
            return kept[key]
        drawn = draw(self, generator, rows)
        if isinstance(drawn, np.ndarray):
            drawn.flags.writeable = False
        if (1 + len(kept)) * drawn.size <= MAX_CACHED:
            kept[key] = drawn
        return drawn

    return cast("Draw", drawn_or_kept)


class CachedNullOutcomes(NullOutcomes):
    outcomes = drawn_once(NullOutcomes.outcomes)

    def residuals(self, generator: np.random.Generator, rows: int) -> Array:
        return np.asarray(self.outcomes(generator, rows) - self._expected)


class CachedResampler(Resampler):
    draw = drawn_once(Resampler.draw)


@dataclass(frozen=True, slots=True, eq=False)
class NullSample:
    """The values of a measure on data sets that have these predictions and calibrated outcomes."""

    measure: str
    values: Array
    observed: float
    pvalue: float


class NullReference:
    """Tests and bounds the rows of one evaluation, with draws that all measures share."""

    def __init__(self, forecasts: Forecasts, *, draws: int, confidence: float, seed: int) -> None:
        self.forecasts = forecasts
        self._draws, self._confidence, self._seed = draws, confidence, seed
        self._drawing = Drawing(draws, seed)
        self._null_on, self._resampler_on = cache(CachedNullOutcomes), cache(CachedResampler)

    @property
    def cells(self) -> int | None:
        """How many cells were simulated, None when that was done on the levels themselves."""
        merged = levels_to_simulate(self.forecasts, find_measure(SIZE_MEASURE))
        return None if merged is self.forecasts else merged.levels

    def _null(self, about: Measure) -> CachedNullOutcomes:
        return self._null_on(levels_to_test_on(self.forecasts, about))

    def verdict(self) -> TestResult | CalibrantError:
        """Test calibration by the default test, or return why these data allow none."""
        try:
            return self._test(find_test(DEFAULT_TEST, self.forecasts))
        except CalibrantError as error:
            return error

    @cached_property
    def without_certain(self) -> NullReference | None:
        """Return the same for the records whose predictions are neither 0 nor 1; None if there are none."""
        inside = (self.forecasts.values > 0) & (self.forecasts.values < 1)
        if not inside.any():
            return None
        inner = self.forecasts.between(*self.forecasts.values[inside][[0, -1]].tolist())
        return NullReference(inner, draws=self._draws, confidence=self._confidence, seed=self._seed)

    def _test(self, about: Measure) -> TestResult:
        drawn = self.forecasts.binary and not by_signs(self.forecasts)
        return run_test(self.forecasts, about, self._drawing, null=self._null(about) if drawn else None)

    def judged(self, row: ResultRow) -> ResultRow:
        """Add null mean, p-value and interval, as far as the measure and the data allow."""
        return self.bounded(self._tried(self._with_test, row))

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
        signs = self.forecasts.record_outcomes is not None and has_sign_test(self.forecasts, row.about)
        if not (self.forecasts.binary or signs):
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
        values = self.forecasts.values
        certain = int(self.forecasts.counts[(values == 0) | (values == 1)].sum())
        if certain and row.about.name in LOGISTIC:
            return self._inner_interval(row, certain)
        if self._confidence == 0:
            return row
        assert row.value is not None
        interval = bounds(
            self.forecasts,
            row.about,
            self._drawing,
            value=row.value,
            confidence=self._confidence,
            pvalue=row.pvalue if math.isclose(self._confidence, 1 - LEVEL) else None,  # decided at LEVEL
            resampler=self._resampler_on(levels_to_simulate(self.forecasts, row.about)),
        )
        if is_unbounded(interval.lower, interval.upper):
            return row.noted(NO_INTERVAL)
        method = f"{interval.method} (approximate)"
        return replace(row, low=interval.lower, high=interval.upper, interval_method=method)

    def _inner_interval(self, row: ResultRow, certain: int) -> ResultRow:
        """Add what a logistic fit is without predictions of 0 and 1: no sample bounds what these do."""
        are, others = pluralize(certain, "prediction is", "predictions are"), self.without_certain
        try:
            taken = None if others is None else measure(others.forecasts, row.about.name)
        except CalibrantError:
            taken = None
        if others is None or taken is None:
            return row.noted(f"{are} exactly 0 or 1, so there is no interval")
        rest = ResultRow(row.about, taken, certain=certain)
        rest = others.bounded(rest) if row.pvalue is None else others.judged(rest)
        span = ""
        if rest.low is not None and rest.high is not None:
            ends = limits_text(rest.low, rest.high)
            span = f", {confidence_text(self._confidence)} interval {ends}"
        those = "that record" if certain == 1 else "them"
        return replace(row, inner=rest).noted(
            f"{are} exactly 0 or 1; without {those} it is {format_value(rest.value)}{span}; "
            f"with {those} it is {format_value(row.value)} and has no interval"
        )

    def sample(self, row: ResultRow) -> NullSample | None:
        """Simulate one measure on calibrated outcomes, for the histogram; None where that cannot be done."""
        if row.value is None or row.pvalue is None or not self.forecasts.binary or by_signs(self.forecasts):
            return None
        null = self._null(row.about)
        values = null_values(null.forecasts, row.about, null, self._drawing)
        return NullSample(row.about.name, values, row.value, row.pvalue)
