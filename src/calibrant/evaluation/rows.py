"""Rows of an evaluation: a measure taken, with what chance alone would give and how sure the value is."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from calibrant.cores import on_all_cores
from calibrant.errors import CalibrantError, reject_name
from calibrant.evaluation.without_certain import Inner
from calibrant.forecasts import Forecasts
from calibrant.measures.level_sets import LevelSetWarning, singletons
from calibrant.measures.registry.lookup import measure, measures
from calibrant.measures.registry.row import Measure
from calibrant.numerals import pvalue_text
from calibrant.results import Measurement

SIZE = "smooth"  # how far: within a factor 2 of the distance to calibration, in units of probability
WHERE = "kuiper"  # where: it names an interval


@dataclass(frozen=True, slots=True, eq=False)
class Row:
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


def chosen(names: Sequence[str] | None) -> list[Measure]:
    """Return the registry rows of these names, or of one name; the headline rows when none are given."""
    table = measures()
    if names is None:
        return [row for row in table.values() if row.headline]
    names = [names] if isinstance(names, str) else names
    for name in names:
        if name not in table:
            raise reject_name("measure", name, list(table))
    return [table[name] for name in names]


def take(forecasts: Forecasts, about: Measure) -> Row:
    """Take one measure, or note why the data cannot support it."""
    return take_all(forecasts, [about])[0]


def take_all(
    forecasts: Forecasts, wanted: Iterable[Measure], done: Callable[[Row], Row] = lambda row: row
) -> list[Row]:
    """Take measures, several at a time where there are very many levels, and hand each to `done`."""
    with warnings.catch_warnings():  # the filters belong to all threads, so they are set once, outside
        warnings.simplefilter("ignore", LevelSetWarning)
        return on_all_cores(lambda about: _taken(forecasts, about), wanted, size=forecasts.levels, done=done)


def _taken(forecasts: Forecasts, about: Measure) -> Row:
    """Take one measure, or note why the data cannot support it."""
    if about.needs_level_sets and singletons(forecasts):
        return Row(about, None, "needs predictions that repeat; here hardly any does")
    try:
        return Row(about, measure(forecasts, about.name))
    except CalibrantError as error:
        return Row(about, None, str(error))


def value_of(forecasts: Forecasts, about: Measure) -> float | None:
    """Take the value alone, without proof or note; None where the data cannot support the measure."""
    if about.needs_level_sets and singletons(forecasts):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LevelSetWarning)
        try:
            return about.function.value(forecasts, **about.options)
        except CalibrantError:
            return None
