"""The expected value of a measure, over all outcomes of a few rounds with known probabilities."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from calibrant.errors import CalibrantError, InvalidInputError, sentence
from calibrant.forecasts import Forecasts
from calibrant.inference.null_outcomes import batched, one_by_one
from calibrant.measures.level_sets import LevelSetWarning
from calibrant.measures.registry.lookup import find_measure
from calibrant.measures.registry.row import Measure
from calibrant.results import Array
from calibrant.truthfulness.outcomes import all_outcomes, chances

Function = Callable[[Any, Any], float]


class Scored:
    """A measure as a forecaster meets it: the smaller the better, one value for each set of outcomes.

    A name of the registry or a function of (y_true, y_prob). A measure with a sign counts by its distance
    from the ideal.
    """

    def __init__(self, measure: str | Function, options: Mapping[str, Any]) -> None:
        self.row: Measure | None = None
        if callable(measure):
            self.name = getattr(measure, "__name__", type(measure).__name__)
            self.function: Function = measure
        else:
            self.row = defined(find_measure(measure))
            self.name = self.row.name
        self.options = dict(options)
        self.settings = self.options if self.row is None else {**self.row.options, **options}
        if self.row is not None:
            self.row.settings(self.settings)  # refuses what the measure does not know

    def values(self, report: Array, outcomes: Array) -> Array:
        """Return the measure of one report, for each row of outcomes."""
        if self.row is None:
            return self._called(report, outcomes)
        forecasts, level = levels_of(report)
        summed = np.zeros((len(outcomes), forecasts.levels))
        np.add.at(summed.T, level, outcomes.T / len(report))
        by_outcome = row_values(self.row, self.settings, forecasts, summed)
        if not np.isfinite(by_outcome).all():  # options may ask for what the name alone does not
            bad = outcomes[int(np.argmin(np.isfinite(by_outcome)))].tolist()
            raise _undefined(self.name, f"got {self.options}, without value for outcomes {bad}")
        return np.asarray(np.abs(by_outcome - self.row.ideal)) if self.row.signed else by_outcome

    def _called(self, report: Array, outcomes: Array) -> Array:
        result = np.array([self._one(report, y) for y in outcomes.astype(np.int64)], dtype=float)
        if not np.isfinite(result).all():
            bad = outcomes[int(np.argmin(np.isfinite(result)))].astype(int).tolist()
            got = (
                f"got {result[~np.isfinite(result)][0]} for outcomes {bad} and predictions {report.tolist()}"
            )
            raise InvalidInputError(sentence(f"measure {self.name!r}", "must return a finite number", got))
        return result

    def _one(self, report: Array, y: Any) -> float:
        try:
            return float(self.function(y, report.copy(), **self.options))
        except CalibrantError:
            raise
        except Exception as error:  # the user's function may raise anything
            rule = "must be a function of (y_true, y_prob) that returns a number"
            got = f"it raised {type(error).__name__} for outcomes {y.tolist()}: {error}"
            raise InvalidInputError(sentence(f"measure {self.name!r}", rule, got)) from error


def row_values(row: Measure, settings: dict[str, Any], forecasts: Forecasts, outcomes: Array) -> Array:
    """Return a measure of the registry for each row of outcomes, given as the weight of y per level."""
    if batched(forecasts, row, settings):
        residuals = outcomes - forecasts.weights * forecasts.values
        return np.asarray(row.null.batch(forecasts, residuals, settings))  # type: ignore[misc]
    distinct, back = np.unique(outcomes, axis=0, return_inverse=True)
    return one_by_one(forecasts, row, settings, distinct)[back.reshape(-1)]


def levels_of(report: Array, counts: Array | None = None) -> tuple[Forecasts, Any]:
    """Return the distinct reports as Forecasts without outcomes, and the level of each entry.

    `counts` says how many records stand behind each entry, one if it is absent.
    """
    values, level = np.unique(report + 0.0, return_inverse=True)
    held = np.bincount(level, counts, len(values))
    n = float(held.sum())
    forecasts = Forecasts.from_levels(
        values,
        held / n,
        np.zeros(len(values)),
        squared_weights=held / n**2,
        counts=held.astype(np.int64),
        total_weight=n,
    )
    return forecasts, level


class Expected:
    """The expected value of a measure as a function of the report, for rounds with known probabilities."""

    def __init__(self, scored: Scored, truth: Array) -> None:
        self.scored = scored
        self.truth = truth
        self.outcomes = all_outcomes(len(truth))
        self.chances = chances(self.outcomes, truth)
        self.evaluations = 0

    def __call__(self, report: Array) -> float:
        self.evaluations += 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LevelSetWarning)
            return float(self.chances @ self.scored.values(report, self.outcomes))

    def of_population(self, report: Array) -> float:
        """Return the measure itself with the true probabilities in place of the outcomes."""
        self.evaluations += 1
        return float(self.scored.values(report, self.truth[None])[0])


def defined(row: Measure) -> Measure:
    """Return the row, or refuse one that has no value on some outcomes."""
    if row.needs_both_outcomes:
        raise _undefined(row.name)
    return row


def _undefined(name: str, got: str = "") -> InvalidInputError:
    rule = "has no expected value: it is not defined when all outcomes agree"
    return InvalidInputError(
        sentence(f"measure {name!r}", rule, got, hint="see `calibrant measures` for others")
    )
