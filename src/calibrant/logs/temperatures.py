"""temperatures: one temperature per task, each shrunk toward what all tasks have in common."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.errors import InvalidInputError
from calibrant.formatting import format_value, pluralize
from calibrant.logs.answer import Options
from calibrant.logs.rows import LogRows
from calibrant.results import Array, Result, Table, number_cell, text_cell

FOLDS = 5
MIN_PROBABILITY = 1e-12  # smaller ones are raised to this before logarithms are taken
MAX_LOG = 5.0  # temperatures are looked for between exp(-5) and exp(5)
Answers = list[tuple[Array, int]]  # log-probabilities of the choices, and the right choice


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
    """A temperature per task; above 1 makes answers less certain.

    `common` is the temperature that all tasks share, and `spread` the standard deviation of the logarithms
    around it. `log_loss` has the mean log loss as logged, with one temperature and with one per task, on
    questions that were not used for the fit.
    """

    tasks: tuple[TaskTemperature, ...]
    common: float
    spread: float
    log_loss: dict[str, float]
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
        return np.array(
            [
                math.nan if (q := _logs(found, confidence)) is None
                else float(_softmax(q / self.temperature(str(task)))[q.argmax() if found is not None else 1])
                for task, confidence, found in zip(
                    answers["task"], answers["confidence"], answers["probabilities"], strict=True
                )
            ]
        )  # fmt: skip

    def sheet(self) -> Table:
        """Return the table of the tasks."""
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
    groups: dict[str, list[tuple[str, Array, int]]] = {}
    for log, sample in rows:
        q, label = _logs(sample.probabilities, sample.confidence), sample.label
        if sample.probabilities is None and not math.isnan(sample.correct):
            label = int(sample.correct)
        if q is None or label is None:
            dropped += 1
        else:
            groups.setdefault(log.task, []).append((rows.cluster_of(log, sample), q, label))
    if not groups:
        raise InvalidInputError("log", "must have answers with a confidence and a grade", "got none")
    alone, common, spread, shrunk = _fit({t: [(q, k) for _, q, k in found] for t, found in groups.items()})
    tasks = tuple(
        TaskTemperature(task, len(found), math.exp(alone[task][0]), alone[task][1], math.exp(shrunk[task]))
        for task, found in groups.items()
    )
    count = sum(map(len, groups.values()))
    return Temperatures(tasks, math.exp(common), spread, _held_out(groups), count, dropped)


def _logs(probabilities: Any, confidence: float) -> Array | None:
    """Return the log-probabilities of the choices, or of wrong and right; None without a confidence."""
    if probabilities is None and math.isnan(confidence):
        return None
    shares = [1 - confidence, confidence] if probabilities is None else probabilities
    return np.asarray(np.log(np.maximum(np.asarray(shares, dtype=np.float64), MIN_PROBABILITY)))


def _softmax(scores: Array) -> Array:
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def _stacked(answers: Answers) -> list[tuple[Array, Any]]:
    """Return answers with equally many choices as one table each."""
    sizes = sorted({len(q) for q, _ in answers})
    parts = [[(q, k) for q, k in answers if len(q) == size] for size in sizes]
    return [(np.stack([q for q, _ in part]), np.array([k for _, k in part])) for part in parts]


def _loss(tables: Iterable[tuple[Array, Any]], log_temperature: float) -> float:
    total = 0.0
    for q, right in tables:
        scores = q * math.exp(-log_temperature)
        top = scores.max(axis=1)
        spread = top + np.log(np.exp(scores - top[:, None]).sum(axis=1))
        total += float(np.sum(spread - scores[np.arange(len(right)), right]))
    return total


def _least(loss: Callable[[float], float]) -> float:
    from scipy.optimize import minimize_scalar

    return float(minimize_scalar(loss, bounds=(-MAX_LOG, MAX_LOG), method="bounded").x)


def _fit_one(answers: Answers) -> tuple[float, float]:
    """Return the logarithm of the best temperature, and its standard error."""
    tables = _stacked(answers)
    if all(np.ptp(q, axis=1).max() == 0 for q, _ in tables):
        return 0.0, 1e6  # choices that are all equal fit any temperature
    best = _least(lambda t: _loss(tables, t))
    information = 0.0
    for q, _ in tables:
        scores = q * math.exp(-best)
        shares = _softmax(scores)
        mean = (shares * scores).sum(axis=1, keepdims=True)
        information += float(np.sum(shares * (scores - mean) ** 2))
    return best, 1 / math.sqrt(max(information, 1e-12))


def _fit(
    groups: dict[str, Answers],
) -> tuple[dict[str, tuple[float, float]], float, float, dict[str, float]]:
    """Return each task's own fit, the common logarithm, its spread, and the shrunken logarithms."""
    alone = {task: _fit_one(answers) for task, answers in groups.items()}
    values, variances = (np.array(column) for column in zip(*alone.values(), strict=True))
    variances = variances**2
    weights = 1 / variances
    mean = weights @ values / weights.sum()
    room = weights.sum() - (weights**2).sum() / weights.sum()
    excess = float(weights @ (values - mean) ** 2) - (len(values) - 1)
    between = max(0.0, excess / room) if len(values) > 1 and room > 0 else 0.0
    weights = 1 / (variances + between)
    common = float(weights @ values / weights.sum())
    if not between:
        return alone, common, 0.0, dict.fromkeys(alone, common)

    def shrunk(answers: Answers) -> float:
        """Fit with the penalty of the normal law: where all answers are wrong, no parabola is near."""
        tables = _stacked(answers)
        return _least(lambda t: _loss(tables, t) + (t - common) ** 2 / (2 * between))

    fitted = {task: shrunk(answers) for task, answers in groups.items()}
    return alone, common, math.sqrt(between), fitted


def _held_out(groups: dict[str, list[tuple[str, Array, int]]]) -> dict[str, float]:
    """Return the mean log loss on questions left out of the fit: as logged, one temperature, one per task."""
    questions = sorted({question for found in groups.values() for question, _, _ in found})
    fold_of = {question: k % FOLDS for k, question in enumerate(questions)}
    losses, count = dict.fromkeys(("as logged", "one temperature", "one per task"), 0.0), 0
    for fold in range(min(FOLDS, len(questions))):
        inside = {
            task: [(q, k) for question, q, k in found if fold_of[question] != fold]
            for task, found in groups.items()
        }
        fitted = {task: answers for task, answers in inside.items() if answers}
        if not fitted:
            return {}
        _, common, _, shrunk = _fit(fitted)
        pooled = _fit_one([one for answers in fitted.values() for one in answers])[0]
        for task, found in groups.items():
            outside = _stacked([(q, k) for question, q, k in found if fold_of[question] == fold])
            count += sum(len(right) for _, right in outside)
            at = (0.0, pooled, shrunk.get(task, common))
            for name, value in zip(losses, at, strict=True):
                losses[name] += _loss(outside, value)
    return {name: total / count for name, total in losses.items()}
