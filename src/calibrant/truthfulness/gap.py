"""truthfulness_gap, worst_truth, class_truthfulness: what a forecaster who knows the truth gains by lying."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from calibrant.errors import InvalidInputError
from calibrant.inputs import number, numeric_vector, positive_number, probabilities, to_array, whole_number
from calibrant.metrics.calling import check_choice, shares_parameters
from calibrant.parallel import recorded_seed
from calibrant.results import Array, Result
from calibrant.truthfulness.search import (
    NO_VALUE,
    TIE,
    BestReport,
    Expected,
    Function,
    Policy,
    Scored,
    all_outcomes,
    best_policy,
    best_report,
    chances,
    pools,
)

MAX_ROUNDS = 12
MAX_SEQUENTIAL_ROUNDS = 4
IDENTITY = 1e-11  # to which the decomposition must hold on the reports tried
TRIALS = 20


@dataclass(frozen=True, slots=True, repr=False)
class Truthfulness(Result):
    """What a forecaster gains by lying, in expectation over the outcomes of a few rounds.

    `honest` is the expected value of the measure when the `truth` is reported, `best` the least one found
    and `report` where it was found; `gap` is their difference and `ratio` best / honest. `proof` is
    "decomposition" where a theorem says that the gap is 0, "reports" where only the reports given were tried,
    and "search" otherwise: then the gap is at least this (`exact` is False). `strict` says that no other
    report within 1e-9 of the truth's value was found. `finished` is False where the budget ended the search.
    `policy` holds the reports by history when each outcome is revealed before the next report.
    """

    measure: str
    truth: tuple[float, ...]
    honest: float
    best: float
    report: tuple[float, ...]
    gap: float
    ratio: float
    strict: bool
    proof: str
    evaluations: int
    exact: bool
    finished: bool = True
    policy: Mapping[str, float] | None = None

    def __str__(self) -> str:
        seen = ", and sees each outcome before the next report," if self.policy is not None else ""
        if self.gap <= TIE:
            known = {"decomposition": "proved by decomposition", "reports": "of the reports given"}
            ended = "" if self.finished else ", but the search ran out of time"
            how = known.get(self.proof, f"none of the {self.evaluations:,} reports tried does better{ended}")
            ties = "" if self.strict else "; other reports do as well"
            return (
                f"{self.measure}: a forecaster who knows the truth {_listed(self.truth)}{seen} gains nothing "
                f"by lying ({how}){ties}. Expected value {self.honest:.6f}."
            )
        share = f", {self.gap / self.honest:.0%}" if self.honest > 0 else ""
        least = "" if self.proof == "reports" else "at least "
        lie = _listed(self.report)
        if self.policy is not None:
            made = ((f"after {seen}" if seen else "first", value) for seen, value in self.policy.items())
            lie = ", ".join(f"{value:.4g} {when}" for when, value in made)
        return (
            f"{self.measure}: a forecaster who knows the truth {_listed(self.truth)}{seen} gains "
            f"{least}{self.gap:.6f}{share} by reporting {lie}. Expected value {self.honest:.6f} when honest, "
            f"{self.best:.6f} with the lie."
        )


@shares_parameters("")
def truthfulness_gap(
    measure: str | Function,
    truth: Any,
    *,
    reports: Any = None,
    sequential: bool = False,
    budget: float = 5.0,
    seed: int = 0,
    **options: Any,
) -> Truthfulness:
    """Return how much lying lowers the expected value of a measure, by enumerating all outcomes.

    Parameters
    ----------
    measure : str or callable
        A name of the registry, or a function of (y_true, y_prob) that returns a number; less is better.
    truth : sequence of float
        The probability of an outcome 1 in each round, up to 12 rounds.
    reports : array of shape (k, n), optional
        Try these reports only, instead of searching.
    sequential : bool
        Tell the forecaster each outcome before the next report is made (up to 4 rounds).
    budget : float
        Seconds after which the search ends with what it has; `finished` says whether it did.
    **options
        Options of the measure.

    Examples
    --------
    >>> print(truthfulness_gap("ece", [0.25, 0.75]))
    ece: a forecaster who knows the truth 0.25, 0.75 gains at least 0.187500, 50% by reporting 0.5, 0.5. \
Expected value 0.375000 when honest, 0.187500 with the lie.
    >>> truthfulness_gap("atb", [0.25, 0.75]).proof
    'decomposition'
    """
    checked, most = numeric_vector(truth, "truth"), MAX_SEQUENTIAL_ROUNDS if sequential else MAX_ROUNDS
    if len(checked) > most:
        raise InvalidInputError("truth", f"must have at most {most} rounds", f"got {len(checked)}")
    known = probabilities(checked, "truth")
    scored, seconds, used = Scored(measure, options), positive_number("budget", budget), recorded_seed(seed)
    if sequential:
        if reports is not None:
            raise InvalidInputError("reports", "must not be given with sequential=True")
        policy = Policy(scored, known)
        return _result(policy, best_policy(policy, budget=seconds, seed=used), "search")
    expected = Expected(scored, known)
    if reports is not None:
        given = np.atleast_2d(to_array(reports, "reports"))
        if given.ndim != 2 or given.shape[1] != len(known) or len(given) == 0:
            rule = f"must have one row per report of {len(known)} rounds"
            raise InvalidInputError("reports", rule, f"got shape {given.shape}")
        best = BestReport(expected, known)
        for report in probabilities(given, "reports"):
            best.measure(report)
        return _result(expected, best, "reports")
    if _decomposes(expected, used):
        return _proved(expected)
    return _result(expected, best_report(expected, known, budget=seconds, seed=used), "search")


def _decomposes(expected: Expected, seed: int) -> bool:
    """Return whether the row is a binned squared error, and its identity holds under the settings given."""
    # Lemma 3.3 and Theorem 4.3 of the truthfulness paper: E[m(r, y)] = m(r, p) + sum p (1 - p) / n^2, and
    # m(r, p) >= 0 = m(p, p). Options can take a row out of the family, so the identity is checked.
    if expected.scored.row is None or expected.scored.row.truthful != "batch":
        return False
    truth, generator = expected.truth, np.random.default_rng(seed)
    constant = float(truth @ (1 - truth)) / len(truth) ** 2
    values = np.concatenate((truth, [0.0, 0.5, 1.0]))
    for _ in range(TRIALS):
        report = generator.choice(values, len(truth))
        if abs(expected(report) - expected.of_population(report) - constant) > IDENTITY:
            return False
    return expected.of_population(truth) <= IDENTITY


def _proved(expected: Expected) -> Truthfulness:
    """Return a gap of 0; it is strict unless a calibrated report, the truth pooled, ties."""
    truth = expected.truth
    best = BestReport(expected, truth)
    for face in pools(len(truth)):
        pooled = np.asarray(np.bincount(face, truth) / np.bincount(face))[face]
        if expected.differs(pooled):
            best.measure(pooled)
    best.value, best.report = best.honest, truth  # rounding may have made a tie look better
    return _result(expected, best, "decomposition")


def _result(searched: Expected, best: BestReport, proof: str) -> Truthfulness:
    name = searched.scored.name
    if best.honest >= NO_VALUE:
        raise InvalidInputError("truth", f"must have a value under {name!r}", "got none")
    gap = max(0.0, best.honest - best.value)
    return Truthfulness(
        measure=name,
        truth=tuple(map(float, searched.truth)),
        honest=best.honest,
        best=best.value,
        report=tuple(map(float, best.report)),
        gap=gap,
        ratio=best.value / best.honest if best.honest > 0 else 1.0,
        strict=gap <= TIE and not best.tied,
        proof=proof,
        evaluations=searched.evaluations,
        exact=proof == "decomposition",
        finished=best.finished,
        policy=searched.by_history(best.report) if isinstance(searched, Policy) else None,
    )


def _listed(values: tuple[float, ...]) -> str:
    return ", ".join(f"{value:.4g}" for value in values)


STEP = 0.05
MAX_WORST_TRUTH_ROUNDS = 3  # rounds


@shares_parameters("")
def worst_truth(
    measure: str | Function, n: int, *, step: float = STEP, budget: float = 5.0, seed: int = 0, **options: Any
) -> Truthfulness:
    """Return the truthfulness gap at the truth, on a grid, where lying gains most.

    All reports on the same grid are tried for every truth; truthfulness_gap then searches at the worst.

    Parameters
    ----------
    measure, budget, seed, **options
        As in `truthfulness_gap`.
    n, step
        How many rounds: 1, 2 or 3; and the step of the grid.

    Examples
    --------
    >>> found = worst_truth("level-set", 1)
    >>> found.truth, round(found.gap, 6)
    ((0.25,), 0.125)
    """
    whole_number("n", n, 1, MAX_WORST_TRUTH_ROUNDS)
    if not 0.01 <= number("step", step) <= 0.5:
        raise InvalidInputError("step", "must lie in [0.01, 0.5]", f"got {step}")
    grid = np.linspace(0.0, 1.0, round(1 / step) + 1)
    truth = _most_tempting(Scored(measure, options), grid, int(n))
    return truthfulness_gap(measure, truth, budget=budget, seed=seed, **options)


def _most_tempting(scored: Scored, grid: Any, n: int) -> list[float]:
    """Return the ascending truth with the largest gap; among equals the one nearest to the middle."""
    outcomes = all_outcomes(n)
    reports = list(itertools.combinations_with_replacement(range(len(grid)), n))
    values = np.array([scored.values(grid[list(report)], outcomes) for report in reports])
    best, honest, order = -np.inf, 0.0, reports[len(reports) // 2]
    for k, place in enumerate(reports):
        # measures do not see the order of the rounds, so permuting the report is permuting the truth
        ways = [chances(outcomes, grid[list(way)]) for way in sorted(set(itertools.permutations(place)))]
        honest = float(values[k] @ chances(outcomes, grid[list(place)]))
        gap = honest - float(np.min(values @ np.array(ways).T))
        centered = gap - 1e-10 * float(np.abs(grid[list(place)] - 0.5).sum())
        if centered > best:
            best, order = centered, place
    return [float(grid[i]) for i in order]


ClassScore = Literal["total", "top"]
MAX_REPORTS = 20_000


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ClassTruthfulness(Result):
    """What a lie about several classes gains in expectation, over all outcomes of a few rounds.

    The fields are those of `Truthfulness`; only the reports on a grid were tried.
    """

    measure: str
    score: str
    truth: Array
    honest: float
    best: float
    report: Array
    gap: float
    evaluations: int

    def __str__(self) -> str:
        name = f"{self.measure}, {'sum over classes' if self.score == 'total' else 'top label'}"
        if self.gap <= TIE:
            return f"{name}: none of {self.evaluations:,} lies lowers the expected value {self.honest:.6f}."
        lie = "; ".join(", ".join(f"{p:.3g}" for p in row) for row in self.report)
        share = f", {self.gap / self.honest:.0%}" if self.honest > 0 else ""
        return f"{name}: reporting {lie} gains at least {self.gap:.6f}{share} of {self.honest:.6f}."


@shares_parameters("")
def class_truthfulness(
    truth: Any, *, measure: str = "atb", score: ClassScore = "total", steps: int = 10
) -> ClassTruthfulness:
    """Return how much lying about several classes lowers a score, by enumerating outcomes and reports.

    The sum over classes of a truthful measure is truthful, since each term is lowest for the truth. The same
    measure of the top label is not: the report decides which class is asked about.

    Parameters
    ----------
    truth
        The probability of each class (columns) in each of a few rounds (rows).
    measure
        A name of the registry.
    score
        "total" for the sum over classes, "top" for the most probable class.
    steps
        Reports are tried on a grid with this many steps from 0 to 1; the truth and its mean are added.

    Examples
    --------
    >>> print(class_truthfulness([[0.5, 0.3, 0.2]], score="top"))
    atb, top label: reporting 0.3, 0.3, 0.4 gains at least 0.050000, 20% of 0.250000.
    >>> class_truthfulness([[0.5, 0.3, 0.2]]).gap
    0.0
    """
    table = probabilities(truth, "truth")
    if table.ndim != 2 or table.shape[1] < 2 or np.any(np.abs(table.sum(axis=1) - 1) > 1e-9):
        rule = "must have one row per round and one column per class, rows summing to 1"
        raise InvalidInputError("truth", rule, f"got shape {table.shape}")
    check_choice("score", score, ("total", "top"))
    classes, whole = table.shape[1], whole_number("steps", steps, 1, 100)
    counts = (some for some in itertools.product(range(whole + 1), repeat=classes - 1) if sum(some) <= whole)
    points = [(*(k / whole for k in some), 1 - sum(some) / whole) for some in counts]
    if len(points) ** len(table) > MAX_REPORTS:
        got, hint = f"got {len(points) ** len(table):,} reports", "take fewer rounds, classes or steps"
        raise InvalidInputError("truth", f"must allow at most {MAX_REPORTS:,} reports", got, hint)
    lies = [np.array(rows) for rows in itertools.product(points, repeat=len(table))]
    reports = [table, np.broadcast_to(table.mean(axis=0), table.shape), *lies]
    scored = Scored(measure, {})
    values = [_expected(scored, score, table, report) for report in reports]
    place = int(np.argmin(values))
    place = place if values[place] < values[0] - TIE else 0
    gap = values[0] - values[place]
    return ClassTruthfulness(measure, score, table, values[0], values[place], reports[place], gap, len(lies))


def _expected(scored: Scored, score: ClassScore, truth: Array, report: Array) -> float:
    """Return the expected score of a report; each class, and the top label, is one question per round."""
    report = np.clip(report, 0.0, 1.0)
    if score == "top":
        asked = np.arange(len(truth)), np.argmax(report, axis=1)
        return Expected(scored, truth[asked])(report[asked])
    return sum(Expected(scored, p)(reported) for p, reported in zip(truth.T, report.T, strict=True))
