"""The search for the best report: the expected value of a measure over all outcomes of a few rounds."""

from __future__ import annotations

import itertools
import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.errors import CalibrantError, InvalidInputError, LevelSetWarning
from calibrant.forecasts import Forecasts
from calibrant.inference.null import batched, one_by_one, values_of_residuals
from calibrant.metrics.lookup import find_measure
from calibrant.metrics.registry import Measure
from calibrant.results import Array

Labels = npt.NDArray[np.intp]  # the block of each round

MAX_PARTITION_ROUNDS = 6  # rounds up to which every set partition is tried: there are 203 of 6, and 877 of 7


def all_outcomes(n: int) -> Array:
    """Return the 2^n outcomes of n rounds, one per row."""
    return np.array(list(itertools.product((0.0, 1.0), repeat=n)))


def chances(outcomes: Array, truth: Array) -> Array:
    """Return the probability of each row of outcomes when round i is 1 with probability truth[i]."""
    return np.asarray(np.prod(np.where(outcomes == 1, truth, 1 - truth), axis=1))


def pools(n: int) -> list[Labels]:
    """Return the ways to pool n rounds, coarsest first; for more than 6 rounds those that pool neighbors."""
    # measures jump where reports tie, on faces of the cube that descent never finds: each is searched
    if n <= MAX_PARTITION_ROUNDS:
        labels = sorted(_set_partitions(n), key=max)
    else:
        labels = [tuple(k * i // n for i in range(n)) for k in range(1, n + 1)]
    return [np.array(label, dtype=np.intp) for label in labels]


def _set_partitions(n: int) -> Iterator[tuple[int, ...]]:
    """Yield the block of every round, blocks numbered as they appear."""
    if n == 1:
        yield (0,)
        return
    for head in _set_partitions(n - 1):
        for block in range(max(head) + 2):
            yield (*head, block)


TIE = 1e-9  # a report this near to the truth's value ties with it
OTHER = 1e-3  # in some round: a report that differs by less is taken for the truth
GRID = 21  # values tried when all rounds are pooled
COARSE = 11  # values tried per block when there are two
STARTS = 3  # of a face that are descended from
ROUGH, FINE = (1e-4, 1e-8), (1e-9, 1e-18)  # of report and value: descents that look around, and the last
POLICY = (1e-7, 1e-13)  # the same, for policies
SHARE = 0.75  # of the time is for looking around, the rest for a last descent from the best
BLOCK_DISTANCE = 1e-6  # by which blocks are held apart when their order matters and their value does not
RESTARTS = 12
SPREAD = 0.25  # standard deviation of the random starts of policies around the truth


class BestReport:
    """The best report so far, and whether any other report ties with the truth."""

    def __init__(self, expected: Expected, truth: Array, seconds: float = math.inf) -> None:
        self.expected, self.truth, self.deadline = expected, truth, time.monotonic() + seconds
        self.honest = self.value = expected(truth)
        self.report, self.tied, self.finished = truth.copy(), False, True

    def measure(self, report: Array) -> float:
        """Return the expected value of a report, which is kept if it is the best; stop when time is up."""
        value, other = self.expected(report), self.expected.differs(report)
        self.tied |= other and abs(value - self.honest) <= TIE
        if other and value < self.value - 1e-12:
            self.value, self.report = value, report.copy()
        if time.monotonic() > self.deadline:
            self.finished = False
            raise TimeoutError
        return value

    def descend(
        self, face: Labels, start: Array, precision: tuple[float, float] = ROUGH, tries: int = 200
    ) -> None:
        """Improve one value per block by the simplex method of Nelder and Mead."""
        from scipy.optimize import minimize

        def value(blocks: Array) -> float:
            return self.measure(np.clip(blocks, 0.0, 1.0)[face])

        options: Any = {"xatol": precision[0], "fatol": precision[1], "maxfev": tries * len(start)}
        minimize(value, start, method="Nelder-Mead", options=options)


def best_report(expected: Expected, truth: Array, *, budget: float, seed: int) -> BestReport:
    """Search the reports: starts on every face first, then descents, the most promising first."""
    best = BestReport(expected, truth, SHARE * budget)
    with suppress(TimeoutError):
        _look_around(best, seed)
    if best.value < best.honest:
        best.deadline += (1 - SHARE) * budget
        _, face = np.unique(best.report, return_inverse=True)
        with suppress(TimeoutError):
            best.descend(face, _on_face(best.report, face), FINE)
    return best


def _look_around(best: BestReport, seed: int) -> None:
    """Start on every face: from the pooled truth, then from grids, nearly equal blocks and random values."""
    truth, generator = best.truth, np.random.default_rng(seed)
    faces = pools(len(truth))
    for face in faces:
        best.measure(_on_face(truth, face)[face])
    for report in (np.round(truth), np.zeros(len(truth)), np.ones(len(truth))):
        best.measure(report)
    grid = np.linspace(0, 1, GRID)
    from_the_mean = grid[np.argsort(np.abs(grid - truth.mean()), kind="stable")]  # slow measures end early
    _search_face(best, faces[0], from_the_mean[:, None], 1)
    for face in faces:
        best.descend(face, _on_face(truth, face))
    for face in faces:
        _search_face(best, face, _starts(truth, face, generator), STARTS)


def _search_face(best: BestReport, face: Labels, starts: Iterable[Array], descents: int) -> None:
    """Try the starts for one way to pool, and descend from the best few."""
    tried = [(best.measure(start[face]), start) for start in starts]
    for _, start in sorted(tried, key=lambda item: item[0])[:descents]:
        best.descend(face, start)


def _starts(truth: Array, face: Labels, generator: np.random.Generator) -> Iterator[Array]:
    center, blocks = _on_face(truth, face), int(face.max()) + 1
    if blocks == 2 and len(truth) <= 4:
        yield from map(np.array, itertools.product(np.linspace(0, 1, COARSE), repeat=2))
    if 2 <= blocks <= 3:
        for order in itertools.permutations(range(blocks)):
            yield np.clip(truth.mean() + BLOCK_DISTANCE * (np.array(order) - (blocks - 1) / 2), 0, 1)
    for _ in range(3):
        yield np.clip(center + generator.normal(0, 0.2, blocks), 0, 1)


def _on_face(report: Array, face: Labels) -> Array:
    """Return one value per block: the mean of the report over its rounds."""
    return np.asarray(np.bincount(face, report) / np.bincount(face))


Function = Callable[[Any, Any], float]
NO_VALUE = 1e300  # counts as the expected value of a report that no outcome gives a value


class Scored:
    """A measure as a forecaster meets it, the smaller the better; one with a sign by its distance."""

    def __init__(self, measure: str | Function, options: Mapping[str, Any]) -> None:
        self.row: Measure | None = None
        self.options = self.settings = dict(options)
        if callable(measure):
            self.name = getattr(measure, "__name__", type(measure).__name__)
            self.function: Function = measure
        else:
            self.row = defined(find_measure(measure))
            self.name, self.settings = self.row.name, {**self.row.options, **options}
            self.row.settings(self.settings)  # refuses what the measure does not know

    def values(self, report: Array, outcomes: Array) -> Array:
        if self.row is None:
            return np.array([self._called(report, y) for y in outcomes.astype(np.int64)])
        forecasts, level = levels_of(report)
        summed = np.zeros((len(outcomes), forecasts.levels))
        np.add.at(summed.T, level, outcomes.T / len(report))
        by_outcome = row_values(self.row, self.settings, forecasts, summed)
        if not np.isfinite(by_outcome).any():  # such as O/E where every report is 0
            return np.full(len(outcomes), NO_VALUE)
        if not np.isfinite(by_outcome).all():  # options may ask for what the name alone does not
            bad = outcomes[int(np.argmin(np.isfinite(by_outcome)))].tolist()
            raise _undefined(self.name, f"got {self.options}, without value for outcomes {bad}")
        return by_outcome

    def _called(self, report: Array, y: npt.NDArray[np.int64]) -> float:
        subject = f"measure {self.name!r}"
        try:
            value = float(self.function(y, report.copy(), **self.options))
        except CalibrantError:
            raise
        except Exception as error:  # it may raise anything
            rule = "must be a function of (y_true, y_prob) that returns a number"
            got = f"it raised {type(error).__name__} for outcomes {y.tolist()}: {error}"
            raise InvalidInputError(subject, rule, got) from error
        if not np.isfinite(value):
            got = f"got {value} for outcomes {y.tolist()} and predictions {report.tolist()}"
            raise InvalidInputError(subject, "must return a finite number", got)
        return value


def row_values(entry: Measure, settings: dict[str, Any], forecasts: Forecasts, outcomes: Array) -> Array:
    """Return a measure for each row of outcomes (the weight of y per level), by its distance if signed."""
    entry = entry if entry.options == settings else replace(entry, options=settings)
    if batched(forecasts, entry):
        found = values_of_residuals(forecasts, entry, outcomes - forecasts.weights * forecasts.values)
    else:
        distinct, back = np.unique(outcomes, axis=0, return_inverse=True)
        found = one_by_one(forecasts, entry, distinct)[back.reshape(-1)]
    return np.asarray(np.abs(found - entry.ideal)) if entry.signed else found


def levels_of(report: Array, counts: Array | None = None) -> tuple[Forecasts, Any]:
    """Return distinct reports as Forecasts without outcomes, and the level of each."""
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

    def differs(self, report: Array) -> bool:
        return bool(np.max(np.abs(report - self.truth)) > OTHER)

    def of_population(self, report: Array) -> float:
        """Return the measure itself with the true probabilities in place of the outcomes."""
        self.evaluations += 1
        return float(self.scored.values(report, self.truth[None])[0])


def defined(entry: Measure) -> Measure:
    """Return the row, or refuse one that has no value on some outcomes."""
    if entry.needs_both_outcomes:
        raise _undefined(entry.name)
    return entry


def _undefined(name: str, got: str = "") -> InvalidInputError:
    rule = "has no expected value: it is not defined when all outcomes agree"
    hint = "see `calibrant measures` for others"
    return InvalidInputError(f"measure {name!r}", rule, got, hint)


class Policy(Expected):
    """Reports that may depend on the outcomes so far: one number per history, the shortest first."""

    def __init__(self, scored: Scored, truth: Array) -> None:
        super().__init__(scored, truth)
        n = len(truth)
        self.histories = [h for k in range(n) for h in itertools.product((0, 1), repeat=k)]
        self.honest = np.array([truth[len(h)] for h in self.histories])
        place = {h: i for i, h in enumerate(self.histories)}
        rows = [[place[tuple(map(int, y[:k]))] for k in range(n)] for y in self.outcomes]
        self.met: npt.NDArray[np.intp] = np.array(rows)  # per outcome, the histories met on the way

    def __call__(self, reports: Array) -> float:
        self.evaluations += 1
        made = np.clip(reports, 0.0, 1.0)[self.met]
        values = [
            self.scored.values(report, y[None])[0] for report, y in zip(made, self.outcomes, strict=True)
        ]
        return float(self.chances @ np.array(values))

    def differs(self, reports: Array) -> bool:
        """Return whether reports are others than the honest ones; rare histories count by their chance."""
        met = np.bincount(self.met.ravel(), np.repeat(self.chances, self.met.shape[1]))
        return bool(np.max(met * (reports - self.honest) ** 2) > OTHER**2)

    def by_history(self, reports: Array) -> dict[str, float]:
        """Return the reports by what has been seen: "" at first, "01" after outcomes 0 and 1."""
        return {"".join(map(str, h)): float(r) for h, r in zip(self.histories, reports, strict=True)}

    def pooled(self) -> list[Array]:
        """Return the policies that ignore the outcomes."""
        rounds = np.array([len(history) for history in self.histories])
        return [_on_face(self.truth, face)[face][rounds] for face in pools(len(self.truth))]

    def candidates(self, reports: Array) -> Array:
        """Return the values that pooling some rounds would report, and those of other histories, for ties."""
        return np.unique(np.round([0.0, 0.5, 1.0, *np.concatenate(self.pooled()), *reports], 12))


def best_policy(policy: Policy, *, budget: float, seed: int) -> BestReport:
    """Search for the reports with the least expected value: pooled ones, then from random starts."""
    generator, best = np.random.default_rng(seed), BestReport(policy, policy.honest, budget)
    histories = np.arange(len(policy.honest))
    with suppress(TimeoutError):
        for start in policy.pooled():
            best.measure(start)
        before = np.inf
        while best.value < before:
            before = best.value
            for place, candidate in itertools.product(histories, policy.candidates(best.report)):
                trial = best.report.copy()
                trial[place] = candidate
                best.measure(trial)
        for restart in range(RESTARTS + 1):
            noise = generator.normal(0, SPREAD, len(histories)) * (restart > 0)
            start = best.report if restart == RESTARTS else np.clip(policy.honest + noise, 0, 1)
            best.descend(histories, start, POLICY, 400)
    return best
