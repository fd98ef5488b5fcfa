"""Several classes: what a forecaster gains by lying about all probabilities at once, by enumeration."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from calibrant.errors import InvalidInputError, reject_name, sentence
from calibrant.forecasts import Forecasts
from calibrant.inputs import probabilities, whole_number
from calibrant.metrics.lookup import find_measure
from calibrant.results import Array, Result, html_paragraphs
from calibrant.truthfulness.search import TIE

ClassScore = Literal["total", "top"]
MAX_REPORTS = 20_000


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ClassTruthfulness(Result):
    """What a lie about several classes gains in expectation, over all outcomes of a few rounds.

    `honest` is the expected value of the score when the `truth` is reported, `best` the least one among the
    reports tried and `report` where it is reached; `gap` is their difference, at least.
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

    def _repr_html_(self) -> str:
        return html_paragraphs(str(self))


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

    Returns
    -------
    ClassTruthfulness

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
        raise InvalidInputError(sentence("truth", rule, f"got shape {table.shape}"))
    if score not in ("total", "top"):
        raise reject_name("score", score, ["total", "top"])
    points = _simplex(table.shape[1], whole_number("steps", steps, 1, 100))
    if len(points) ** len(table) > MAX_REPORTS:
        got, hint = f"got {len(points) ** len(table):,} reports", "take fewer rounds, classes or steps"
        raise InvalidInputError(sentence("truth", f"must allow at most {MAX_REPORTS:,} reports", got, hint))
    lies = [np.array(rows) for rows in itertools.product(points, repeat=len(table))]
    reports = [table, np.broadcast_to(table.mean(axis=0), table.shape), *lies]
    values = [_expected(measure, score, table, report) for report in reports]
    place = int(np.argmin(values))
    place = place if values[place] < values[0] - TIE else 0
    gap = values[0] - values[place]
    return ClassTruthfulness(measure, score, table, values[0], values[place], reports[place], gap, len(lies))


def _simplex(classes: int, steps: int) -> list[tuple[float, ...]]:
    """Return the points of a grid on the simplex."""
    counts = itertools.product(range(steps + 1), repeat=classes - 1)
    return [(*(k / steps for k in some), 1 - sum(some) / steps) for some in counts if sum(some) <= steps]


def _expected(measure: str, score: ClassScore, truth: Array, report: Array) -> float:
    """Return the expected score of a report, over every combination of classes that can occur."""
    row, total = find_measure(measure), 0.0
    rounds, classes = truth.shape
    report = np.clip(report, 0.0, 1.0)
    top = np.argmax(report, axis=1)
    for labels in itertools.product(range(classes), repeat=rounds):
        chance = float(np.prod(truth[np.arange(rounds), labels]))
        if not chance:
            continue
        if score == "top":
            parts = [(top == labels, report[np.arange(rounds), top])]
        else:
            parts = [(np.equal(labels, k), report[:, k]) for k in range(classes)]
        total += chance * sum(row.function.value(Forecasts(y, p), **row.options) for y, p in parts)
    return total
