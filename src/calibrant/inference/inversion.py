"""Intervals by inverting tests: which true errors would give the value that was seen?

A measure that fits something to the data (isotonic recalibration, a bandwidth) is never 0 on a sample, and
resampling adds the same noise once more. So the population is moved away from calibration step by step,
and at every step outcomes are drawn and measured as the data were. The interval holds the true errors
under which the value seen is neither unusually large nor unusually small. At step 0 that is the exact
test of calibration: the lower end is 0 unless that test rejects. The bias is in the draws as it is in the
value, so it cancels. The predictions themselves are a sample too: away from calibration the true error of
their like varies, in proportion to its size, and the draws vary by that as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant.errors import InvalidInputError, sentence
from calibrant.forecasts import Forecasts
from calibrant.inference.draw_quantiles import lower_quantile, upper_quantile
from calibrant.inference.null_outcomes import NullOutcomes, batched, measured, values_of_outcomes
from calibrant.inference.resample import Resampler, values_of_resamples
from calibrant.measures.registry.row import Measure
from calibrant.measures.scores import isotonic_curve
from calibrant.results import Array
from calibrant.seeds import in_blocks
from calibrant.sums import dot

FEWEST_DRAWS = 99
TRUTHS = 49  # resampled predictions, for a standard deviation
STEPS = (0.4, 0.8, 1.2, 1.8, 2.7, 4.0, 6.0, 10.0, 16.0, 30.0)  # of the error that was seen


@dataclass(frozen=True, slots=True)
class Step:
    """A true error, and the values between which its data sets lie with the confidence asked for."""

    truth: float
    low: float
    high: float


def inverted(
    forecasts: Forecasts,
    row: Measure,
    settings: dict[str, Any],
    *,
    value: float,
    confidence: float,
    draws: int,
    seed: int,
) -> tuple[float, float]:
    """Return the interval: the widest over the directions in which calibration can fail.

    These are the direction of the recalibration that the data suggest, and a shift of all rates towards one
    half, which is open where the data suggest nothing (no events, say).
    """
    simulate = _simulator(forecasts, row, settings, min(draws, max(FEWEST_DRAWS, draws // 4)), seed)
    share = (1 - confidence) / 2
    null = simulate(forecasts.values)
    first = Step(0.0, lower_quantile(null, share), upper_quantile(null, 1 - share))
    # below what chance gives, a value promises no more than the middle of chance
    seen = max(value, float(np.median(null)))
    varied = _spread_of_truth(forecasts, row, settings, seed) * _normals(len(null), seed)
    lower, upper = np.inf, 0.0
    for direction in _directions(forecasts):
        steps = [first]
        for rates in _moved(forecasts, direction):
            truth = measured(forecasts.with_outcomes(forecasts.weights * rates), row, settings)
            drawn = simulate(rates) + truth * varied
            steps.append(Step(truth, lower_quantile(drawn, share), upper_quantile(drawn, 1 - share)))
            if steps[-1].low > seen:
                break
        lower = min(lower, _crossing([s.high for s in steps], [s.truth for s in steps], value))
        upper = max(upper, _crossing([s.low for s in steps], [s.truth for s in steps], seen))
    return lower, max(lower, upper)


def _spread_of_truth(forecasts: Forecasts, row: Measure, settings: dict[str, Any], seed: int) -> float:
    """Return the relative standard deviation of the true error over predictions like these.

    It is taken where the isotonic fit is the truth; farther from calibration, error and deviation grow alike.
    """
    fit = isotonic_curve(forecasts)
    truth = measured(forecasts.with_outcomes(forecasts.weights * fit), row, settings)
    if not truth > 0:
        return 0.0
    drawn = Resampler(forecasts).draw(np.random.default_rng([seed, 1]), TRUTHS)
    records = drawn.records
    if records is not None:
        records = replace(records, outcomes=records.weights * np.repeat(fit, forecasts.counts))
    drawn = replace(drawn, outcomes=drawn.weights * fit, records=records)
    return float(np.nanstd(values_of_resamples(forecasts, row, settings, drawn, quick=False))) / truth


def _normals(number: int, seed: int) -> Array:
    """Return normal numbers whose mean and standard deviation are 0 and 1."""
    drawn = np.random.default_rng([seed, 2]).normal(size=number)
    drawn -= drawn.mean()
    return np.asarray(drawn / (drawn.std() or 1.0))


def _crossing(values: list[float], truths: list[float], seen: float) -> float:
    """Return the truth at which a growing quantile reaches what was seen."""
    return float(np.interp(seen, np.maximum.accumulate(values), truths))


def _directions(forecasts: Forecasts) -> Iterator[Array]:
    """Yield one change of the rate per level for each direction, all of comparable size."""
    fitted = isotonic_curve(forecasts) - forecasts.values
    size = dot(forecasts.weights, np.abs(fitted))
    size = max(size, np.sqrt(forecasts.null_variance), float(forecasts.squared_weights.sum()))
    yield fitted
    yield np.full(forecasts.levels, size if forecasts.mean_prediction < 0.5 else -size)


def _moved(forecasts: Forecasts, direction: Array) -> Iterator[Array]:
    """Yield rates farther and farther from the predictions, until they move no more."""
    last = forecasts.values
    for step in STEPS:
        rates = np.clip(forecasts.values + step * direction, 0.0, 1.0)
        if np.array_equal(rates, last):
            return
        last = rates
        yield rates


def _simulator(forecasts: Forecasts, row: Measure, settings: dict[str, Any], draws: int, seed: int) -> Any:
    """Return a function from rates to the values of data sets drawn from them, always by the same numbers."""
    quick = batched(forecasts, row, settings)

    def simulate(rates: Array) -> Array:
        source = NullOutcomes(forecasts, rates) if forecasts.binary else _Fractions(forecasts, rates)

        def work(generator: np.random.Generator, rows: int) -> Array:
            if quick:
                return np.asarray(row.null.batch(forecasts, source.residuals(generator, rows), settings))  # type: ignore[misc]
            if row.null.tables is not None:
                return values_of_outcomes(forecasts, row, settings, source.outcomes(generator, rows))
            drawn = source.forecasts_of(generator, rows)
            return np.array([measured(one, row, settings) for one in drawn])

        return in_blocks(work, draws, width=source.width, seed=seed, threads=1)

    return simulate


class _Fractions:
    """Draws fractional outcomes around given rates: the deviations that the data show, with random signs.

    If the predictions are calibrated, all that outcomes differ from them by is noise; about other rates it
    is what the isotonic fit leaves, which has taken up some of it. Where noise is as likely up as down, the
    signs make an exact test of calibration; else nearly so.
    """

    def __init__(self, forecasts: Forecasts, rates: Array) -> None:
        outcomes, counts = forecasts.record_outcomes, forecasts.counts
        if outcomes is None:
            hint = "leave out the rows with fractional outcomes, or take confidence_interval of all rows"
            raise InvalidInputError(
                sentence(
                    "this interval",
                    "is not taken of merged predictions where outcomes are fractions",
                    hint=hint,
                )
            )
        equal = np.full(forecasts.n, 1 / forecasts.n)
        weights = equal if forecasts.record_weights is None else forecasts.record_weights
        if rates is forecasts.values:
            self._around = outcomes - np.repeat(rates, counts)
        else:
            fit = isotonic_curve(forecasts)
            blocks = 1 + int(np.count_nonzero(np.diff(fit)))
            free = forecasts.n / max(1, forecasts.n - blocks)
            self._around = (outcomes - np.repeat(fit, counts)) * np.sqrt(free)
        self._forecasts, self._record_weights, self._rates = forecasts, weights, np.repeat(rates, counts)
        self._starts = np.concatenate(([0], np.cumsum(counts)[:-1]))
        self._expected, self._predicted = forecasts.weights * rates, forecasts.weights * forecasts.values
        self.width = forecasts.n

    def outcomes(self, generator: np.random.Generator, rows: int) -> Array:
        """Draw `rows` sets of outcomes."""
        moved = self._signs(generator, rows) * self._around
        return self._expected + np.add.reduceat(moved * self._record_weights, self._starts, axis=1)

    def forecasts_of(self, generator: np.random.Generator, rows: int) -> Iterator[Forecasts]:
        """Draw `rows` sets of outcomes as Forecasts that know their records."""
        for signs in self._signs(generator, rows):
            yield self._forecasts.with_record_outcomes(self._rates + signs * self._around)

    def _signs(self, generator: np.random.Generator, rows: int) -> Array:
        return np.asarray(2.0 * generator.integers(0, 2, size=(rows, self.width)) - 1)

    def residuals(self, generator: np.random.Generator, rows: int) -> Array:
        """Draw `rows` sets of residuals."""
        return self.outcomes(generator, rows) - self._predicted
