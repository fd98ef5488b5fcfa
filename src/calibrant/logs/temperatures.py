"""temperatures: one temperature per task, each shrunk toward what all tasks have in common."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError
from calibrant.formatting import format_value, pluralize
from calibrant.logs.answer import Options
from calibrant.logs.rows import LogRows
from calibrant.results import Array, Result, Table, number_cell, text_cell

FOLDS = 5
MIN_PROBABILITY = 1e-12  # smaller ones are raised to this before logarithms are taken
MAX_LOG = 5.0  # temperatures are looked for between exp(-5) and exp(5)
Codes = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, repr=False)
class TaskTemperature(Result):
    """One task: its temperature fitted alone, the standard error of its logarithm, and the shrunken one."""

    task: str
    answers: int
    alone: float
    log_error: float
    temperature: float


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Temperatures(Result):
    """A temperature per task; above 1 makes answers less certain."""

    tasks: tuple[TaskTemperature, ...]
    common: float  # of all tasks together
    spread: float  # standard deviation of the logarithms around it
    log_loss: dict[str, float]  # means as logged, with one temperature, one per task; on held-out questions
    answers: int
    dropped: int

    def __str__(self) -> str:
        found = f"{pluralize(len(self.tasks), 'task')} with {pluralize(self.answers, 'answer')}"
        text = f"{found}: divide log-probabilities by the task's temperature, {self.common:.2f} if it is new."
        if not self.log_loss:
            return text
        held_out = ", ".join(f"{format_value(value)} {name}" for name, value in self.log_loss.items())
        return f"{text} Log loss on questions not used for the fit: {held_out}."

    def temperature(self, task: str) -> float:
        """Return the temperature of a task, and the common one of a task that was not seen."""
        return next((one.temperature for one in self.tasks if one.task == task), self.common)

    def apply(self, answers: Any) -> Array:
        """Return the recalibrated confidence of each answer of a frame that `read` returned."""
        from scipy.special import softmax

        columns = (answers[name] for name in ("task", "confidence", "probabilities"))
        applied = []
        for task, confidence, probabilities in zip(*columns, strict=True):
            q = _log_probabilities(probabilities, confidence)
            if q is None:
                applied.append(math.nan)
            else:
                answer = 1 if probabilities is None else q.argmax()
                applied.append(float(softmax(q / self.temperature(str(task)))[answer]))
        return np.array(applied)

    def sheet(self) -> Table:
        lines = (
            (
                text_cell(one.task),
                number_cell(one.answers, f"{one.answers:,}"),
                number_cell(one.alone, f"{one.alone:.2f}"),
                number_cell(one.temperature, f"{one.temperature:.2f}"),
            )
            for one in self.tasks
        )
        return Table(("task", "answers", "fitted alone", "temperature"), tuple(lines))

    def rows(self) -> tuple[Result, ...]:
        return self.tasks


def temperatures(
    path: str | Path | Sequence[str | Path], tool: str | None = None, **options: Any
) -> Temperatures:
    """Fit a temperature per task of a log, shrunk toward the one that all tasks share.

    Log-probabilities of the choices are divided by the temperature; where a log has no choices, the logit of
    the confidence is. The logarithms of the temperatures are taken as normally distributed around a common
    value, whose spread is estimated by the method of DerSimonian & Laird (1986). A task with few answers
    therefore gets nearly the common temperature, and one with many keeps its own.

    Parameters
    ----------
    path
        A log, several logs, or a folder of them.
    tool
        "lm-eval" or "inspect"; by default the structure of the files decides.
    **options
        As of `read`: confidence, score, filter, field, pattern, scale, threshold, partial, topic, cluster.

    Returns
    -------
    Temperatures
    """
    rows, dropped = LogRows(path, tool, Options(**options)), 0
    found: list[tuple[str, str, Array, int]] = []
    for log, sample in rows:
        q, label = _log_probabilities(sample.probabilities, sample.confidence), sample.label
        if sample.probabilities is None and not math.isnan(sample.correct):
            label = int(sample.correct)
        if q is None or label is None:
            dropped += 1
        else:
            found.append((log.task, rows.cluster_of(log, sample), q, label))
    if not found:
        raise InvalidInputError("log", "must have answers with a confidence and a grade", "got none")
    names, questions, logs, labels = zip(*found, strict=True)
    table = np.full((len(logs), max(map(len, logs))), -np.inf)  # some have fewer choices
    for row, q in zip(table, logs, strict=True):
        row[: len(q)] = q
    places = {name: place for place, name in enumerate(dict.fromkeys(names))}
    tasks, right = np.array([places[name] for name in names]), np.array(labels)
    alone, errors, common, spread, shrunk = _fit(table, right, tasks, len(places))
    counts = np.bincount(tasks).tolist()
    columns = (counts, np.exp(alone).tolist(), errors.tolist(), np.exp(shrunk).tolist())
    fitted = tuple(TaskTemperature(*one) for one in zip(places, *columns, strict=True))
    losses = _held_out(table, right, tasks, np.unique(questions, return_inverse=True)[1])
    return Temperatures(fitted, math.exp(common), spread, losses, len(found), dropped)


def _log_probabilities(probabilities: Any, confidence: float) -> Array | None:
    """Return the log-probabilities of the choices, or of wrong and right; None without a confidence."""
    if probabilities is None and math.isnan(confidence):
        return None
    shares = [1 - confidence, confidence] if probabilities is None else probabilities
    return np.asarray(np.log(np.maximum(np.asarray(shares, dtype=np.float64), MIN_PROBABILITY)))


def _losses(table: Array, right: Codes, log_temperature: float | Array) -> Array:
    from scipy.special import log_softmax

    scores = table * np.exp(-np.broadcast_to(log_temperature, len(table)))[:, None]
    return -np.asarray(log_softmax(scores, axis=1)[np.arange(len(right)), right])


def _best(table: Array, right: Codes, penalty: float = 0.0, center: float = 0.0) -> float:
    """Return the logarithm of the temperature with the least log loss, penalized away from `center`."""
    from scipy.optimize import minimize_scalar

    def loss(t: float) -> float:
        return float(_losses(table, right, t).sum()) + penalty * (t - center) ** 2

    return float(minimize_scalar(loss, bounds=(-MAX_LOG, MAX_LOG), method="bounded").x)


def _fit_one(table: Array, right: Codes) -> tuple[float, float]:
    """Return the logarithm of the best temperature, and its standard error."""
    from scipy.special import softmax

    lowest = np.where(np.isinf(table), table.max(axis=1, keepdims=True), table).min(axis=1)
    if np.all(table.max(axis=1) == lowest):
        return 0.0, 1e6  # choices that are all equal fit any temperature
    best = _best(table, right)
    scores = table * math.exp(-best)
    shares = softmax(scores, axis=1)
    scores = np.where(np.isinf(scores), 0.0, scores)
    mean = (shares * scores).sum(axis=1, keepdims=True)
    return best, 1 / math.sqrt(max(float(np.sum(shares * (scores - mean) ** 2)), 1e-12))


def _fit(table: Array, right: Codes, tasks: Codes, count: int) -> tuple[Array, Array, float, float, Array]:
    """Return each task's own logarithm and its error, the common one, the spread, and the shrunken ones."""
    rows = {task: np.flatnonzero(tasks == task) for task in np.unique(tasks).tolist()}
    values, errors = np.array([_fit_one(table[found], right[found]) for found in rows.values()]).T
    weights = 1 / errors**2
    mean = weights @ values / weights.sum()
    capacity = weights.sum() - (weights**2).sum() / weights.sum()
    excess = float(weights @ (values - mean) ** 2) - (len(values) - 1)
    between = max(0.0, excess / capacity) if len(values) > 1 and capacity > 0 else 0.0
    weights = 1 / (errors**2 + between)
    common = float(weights @ values / weights.sum())
    shrunk = np.full(count, common)
    for task, found in rows.items() if between else ():
        # fitted with the penalty of the normal law: where all answers are wrong, no parabola is near
        shrunk[task] = _best(table[found], right[found], 1 / (2 * between), common)
    return values, errors, common, math.sqrt(between), shrunk


def _held_out(table: Array, right: Codes, tasks: Codes, questions: Codes) -> dict[str, float]:
    """Return the mean log loss on questions left out of the fit: as logged, one temperature, one per task."""
    losses = {name: np.zeros(len(right)) for name in ("as logged", "one temperature", "one per task")}
    if questions.max() == 0:
        return {}
    for fold in range(min(FOLDS, int(questions.max()) + 1)):
        inside, outside = questions % FOLDS != fold, questions % FOLDS == fold
        shrunk = _fit(table[inside], right[inside], tasks[inside], int(tasks.max()) + 1)[-1]
        pooled = _fit_one(table[inside], right[inside])[0]
        for name, value in zip(losses, (0.0, pooled, shrunk[tasks[outside]]), strict=True):
            losses[name][outside] = _losses(table[outside], right[outside], value)
    return {name: float(found.mean()) for name, found in losses.items()}
