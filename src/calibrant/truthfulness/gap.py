"""truthfulness_gap: how much a forecaster who knows the probabilities gains by reporting others."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from calibrant.errors import InvalidInputError, reject_rows, sentence
from calibrant.inputs import array_of, check_unit_interval, numeric_vector
from calibrant.results import Array
from calibrant.seeds import recorded_seed
from calibrant.truthfulness.best_report import OTHER, TIE, BestReport, best_report, only_reports
from calibrant.truthfulness.expected import Expected, Function, Scored
from calibrant.truthfulness.outcomes import pools
from calibrant.truthfulness.sequential import Policy, best_policy

MOST_ROUNDS = 12
MOST_IN_SEQUENCE = 4
IDENTITY = 1e-11  # to which the decomposition must hold on the reports tried
TRIALS = 20


@dataclass(frozen=True, slots=True)
class Truthfulness:
    """What a forecaster gains by lying, in expectation over the outcomes of a few rounds.

    `honest` is the expected value of the measure when the `truth` is reported, `best` the least one found
    and `report` where it was found; `gap` is their difference and `ratio` best / honest. `proof` is
    "decomposition" where a theorem says that the gap is 0 (E[m(r, y)] = m(r, p) + a constant, checked here
    by number), "reports" where only the reports given were tried, and "search" otherwise: then the gap is
    at least this (`exact` is False). `strict` says that no other report within 1e-9 of the truth's value
    was found. `finished` is False where the budget ended the search. `policy` holds the reports by history
    when outcomes are told as they come.
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
        told = ", told each outcome before the next report," if self.policy is not None else ""
        if self.gap <= TIE:
            known = {"decomposition": "proved by decomposition", "reports": "of the reports given"}
            ended = "" if self.finished else ", but the search ran out of time"
            how = known.get(self.proof, f"none of the {self.evaluations:,} reports tried does better{ended}")
            ties = "" if self.strict else "; other reports do as well"
            return (
                f"{self.measure}: a forecaster who knows the truth {_listed(self.truth)}{told} gains nothing "
                f"by lying ({how}){ties}. Expected value {self.honest:.6f}."
            )
        share = f", {self.gap / self.honest:.0%}" if self.honest > 0 else ""
        least = "" if self.proof == "reports" else "at least "
        lie = _policy_text(self.policy) if self.policy is not None else _listed(self.report)
        return (
            f"{self.measure}: a forecaster who knows the truth {_listed(self.truth)}{told} gains "
            f"{least}{self.gap:.6f}{share} by reporting {lie}. Expected value {self.honest:.6f} when honest, "
            f"{self.best:.6f} with the lie."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, ready for JSON."""
        return {**asdict(self), "truth": list(self.truth), "report": list(self.report)}


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
    seed : int
        Of the search's random starts.
    **options
        Options of the measure.

    Returns
    -------
    Truthfulness
        Prints as a sentence. Unless proved, the gap is a lower bound: a search may miss a better lie.

    Examples
    --------
    >>> print(truthfulness_gap("ece", [0.25, 0.75]))
    ece: a forecaster who knows the truth 0.25, 0.75 gains at least 0.187500, 50% by reporting 0.5, 0.5. \
Expected value 0.375000 when honest, 0.187500 with the lie.
    >>> truthfulness_gap("atb", [0.25, 0.75]).proof
    'decomposition'
    """
    probabilities = _checked_truth(truth, MOST_IN_SEQUENCE if sequential else MOST_ROUNDS)
    scored, seconds, used = Scored(measure, options), _checked_budget(budget), recorded_seed(seed)
    if sequential:
        if reports is not None:
            raise InvalidInputError(sentence("reports", "must not be given with sequential=True"))
        return _in_sequence(scored, probabilities, seconds, used)
    expected = Expected(scored, probabilities)
    if reports is not None:
        best = only_reports(expected, probabilities, _checked_reports(reports, len(probabilities)))
        return _result(expected, best, "reports")
    if _decomposes(expected, used):
        return _proved(expected)
    return _result(expected, best_report(expected, probabilities, budget=seconds, seed=used), "search")


def _decomposes(expected: Expected, seed: int) -> bool:
    """Return whether the row is a binned squared error, and its identity holds under the settings given.

    Lemma 3.3 and Theorem 4.3 of the truthfulness paper: E[m(r, y)] = m(r, p) + sum p (1 - p) / n^2, and
    m(r, p) >= 0 = m(p, p). Options can take a row out of the family, so the identity is checked.
    """
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
    honest = expected(truth)
    best = BestReport(truth, honest, honest, truth)
    for face in pools(len(truth)):
        pooled = np.asarray(np.bincount(face, truth) / np.bincount(face))[face]
        if np.max(np.abs(pooled - truth)) > OTHER:
            best.offer(expected(pooled), pooled)
    best.value, best.report = honest, truth  # rounding may have made a tie look better
    return _result(expected, best, "decomposition")


def _result(expected: Expected, best: BestReport, proof: str) -> Truthfulness:
    gap = max(0.0, best.honest - best.value)
    tied = best.tied or gap > TIE
    return Truthfulness(
        measure=expected.scored.name,
        truth=tuple(map(float, best.truth)),
        honest=best.honest,
        best=best.value,
        report=tuple(map(float, best.report)),
        gap=gap,
        ratio=_ratio(best.value, best.honest),
        strict=not tied,
        proof=proof,
        evaluations=expected.evaluations,
        exact=proof == "decomposition",
        finished=best.finished,
    )


def _in_sequence(scored: Scored, truth: Array, budget: float, seed: int) -> Truthfulness:
    policy = Policy(scored, truth)
    honest = policy(policy.honest)
    best = best_policy(policy, budget=budget, seed=seed)
    gap = max(0.0, honest - best.value)
    return Truthfulness(
        measure=scored.name,
        truth=tuple(map(float, truth)),
        honest=honest,
        best=best.value,
        report=tuple(map(float, best.reports)),
        gap=gap,
        ratio=_ratio(best.value, honest),
        strict=gap <= TIE and not best.tied,
        proof="search",
        evaluations=policy.evaluations,
        exact=False,
        finished=best.finished,
        policy=policy.by_history(best.reports),
    )


def _ratio(best: float, honest: float) -> float:
    return best / honest if honest > 0 else 1.0


def _checked_truth(truth: Any, most: int) -> Array:
    checked = numeric_vector(truth, "truth").astype(np.float64)
    if len(checked) > most:
        got = f"got {len(checked)}"
        raise InvalidInputError(sentence("truth", f"must have at most {most} rounds", got))
    reject_rows("truth", "must not be missing", checked, np.isnan(checked))
    check_unit_interval(checked, "truth")
    return checked


def _checked_reports(reports: Any, n: int) -> Array:
    given = np.atleast_2d(array_of(reports, "reports"))
    if given.dtype.kind not in "biuf":
        raise InvalidInputError(sentence("reports", "must be numeric", f"got dtype {given.dtype}"))
    checked = given.astype(np.float64)
    if checked.ndim != 2 or checked.shape[1] != n or len(checked) == 0:
        got = f"got shape {checked.shape}"
        raise InvalidInputError(sentence("reports", f"must have one row per report of {n} rounds", got))
    for report in checked:
        reject_rows("reports", "must not be missing", report, np.isnan(report))
        check_unit_interval(report, "reports")
    return checked


def _checked_budget(budget: float) -> float:
    if isinstance(budget, bool) or not isinstance(budget, (int, float)) or not 0 < budget < math.inf:
        raise InvalidInputError(sentence("budget", "must be a positive number of seconds", f"got {budget!r}"))
    return float(budget)


def _listed(values: tuple[float, ...]) -> str:
    return ", ".join(f"{value:.4g}" for value in values)


def _policy_text(policy: Mapping[str, float]) -> str:
    return ", ".join(f"{value:.4g} {f'after {seen}' if seen else 'first'}" for seen, value in policy.items())
