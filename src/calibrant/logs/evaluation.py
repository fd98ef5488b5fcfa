"""Evaluate the answers of a log, and compare the models of several logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.errors import InvalidInputError, warn_user
from calibrant.evaluation.evaluate import Evaluation, evaluate
from calibrant.files import atomic_write, check_target
from calibrant.forecasts import Forecasts
from calibrant.inference.compare_outcomes import OutcomeComparison, compare_outcomes
from calibrant.logs.answer import Options
from calibrant.logs.rows import LogRows, LogSummary, LogWarning
from calibrant.parallel import DRAWS
from calibrant.records import Missing
from calibrant.report.answers import Answers
from calibrant.results import html_paragraphs


@dataclass(frozen=True, slots=True, eq=False)
class LogEvaluation:
    """An evaluation of answers, with how their confidence was read and when to abstain."""

    evaluation: Evaluation
    answers: Answers | None  # spikes and thresholds; None where the answers are weighted or sketched
    log: LogSummary

    @classmethod
    def of(cls, evaluation: Evaluation, log: LogSummary) -> LogEvaluation:
        """Add to an evaluation what its answers say about abstaining, and how they were read."""
        return cls(evaluation, Answers.of(evaluation.forecasts, log.clustered, evaluation.seed), log)

    def __str__(self) -> str:
        verdict = self.evaluation.verdict
        promise = "" if self.answers is None else str(self.answers)
        return "\n".join(filter(None, (verdict.what, verdict.whom, promise, *self.log.sentences())))

    def to_dict(self) -> dict[str, Any]:
        answers = None if self.answers is None else self.answers.to_dict()
        return {**self.evaluation.to_dict(), "answers": answers, "log": self.log.to_dict()}

    @property
    def charts(self) -> Mapping[str, Any]:
        """The Altair charts by name: those of an evaluation, `risk` and `confidences`."""
        from calibrant.report.charts.canvas import as_altair

        specs = {} if self.answers is None else self.answers.specifications(self.evaluation.forecasts)
        return {**self.evaluation.charts, **{name: as_altair(spec) for name, spec in specs.items()}}

    def _repr_html_(self) -> str:
        shown = self.evaluation._repr_html_()
        if self.answers is not None:
            shown += html_paragraphs(str(self.answers))
            shown += self.answers.table().as_html() if self.answers.thresholds else ""
        return shown + html_paragraphs(*self.log.sentences())

    def to_html(self, path: str | Path) -> Path:
        """Write the report, one file complete in itself, and return its path."""
        from calibrant.evaluation.report import page

        check_target(path)
        return atomic_write(path, page(self.evaluation, answers=self.answers, facts=self.log.sentences()))


def evaluate_log(
    path: str | Path | Sequence[str | Path],
    tool: str | None = None,
    *,
    missing: Missing = "error",
    draws: int = DRAWS,
    seed: int | None = 0,
    title: str = "",
    **options: Any,
) -> LogEvaluation:
    """Evaluate the answers in a log: calibration by task and topic, and when to abstain.

    Parameters
    ----------
    path
        A log, several logs, or a folder of them.
    tool
        "lm-eval" or "inspect"; by default the structure of the files decides.
    missing
        Refuse answers without a confidence or grade ("error"), or leave them out and count them ("drop").
    draws, seed
        Simulations, and their seed.
    title
        Title of the report; by default the models and tasks.
    **options
        As of `read`: confidence, score, filter, field, pattern, scale, threshold, partial, topic, cluster.

    Returns
    -------
    LogEvaluation
        Verdict, measures, groups, thresholds and charts; `to_html` writes the report.
    """
    rows = LogRows(path, tool, Options(**options))
    columns = rows.columns()
    groups = {name: columns[name] for name in rows.summary.groups()}
    forecasts = Forecasts(columns["correct"], columns["confidence"], missing=missing)
    if rows.summary.clustered:
        forecasts = forecasts.with_clusters(columns["cluster"])
    heading = title or rows.summary.title()
    evaluation = evaluate(forecasts, groups=groups or None, draws=draws, seed=seed, title=heading)
    return LogEvaluation.of(evaluation, rows.summary)


def compare_logs(
    paths: Sequence[str | Path],
    tool: str | None = None,
    *,
    level: float = 0.95,
    missing: str = "error",
    **options: Any,
) -> OutcomeComparison:
    """Compare the models of two logs or more on the questions that all of them answered.

    Accuracy, calibration, Brier score and risk-coverage are compared, each model with its own correctness,
    paired by task, question and epoch, and clustered by question or by the field `cluster`.

    Parameters
    ----------
    paths
        A log, or a folder of logs, per model.
    tool
        "lm-eval" or "inspect"; by default the structure of the files decides.
    level
        Confidence of the intervals.
    missing
        "error", or "drop" to leave out questions without a confidence or grade for one of the models.
    **options
        As of `read`: confidence, score, filter, field, pattern, topic, cluster, ...

    Returns
    -------
    OutcomeComparison
        Scores per model, and differences with intervals and adjusted p-values.
    """
    logs = [LogRows(path, tool, Options(**options)) for path in paths]
    if len(logs) < 2:
        raise InvalidInputError("compare", "needs two logs or more", f"got {len(logs)}")
    tables = [
        {
            (file.task, one.id, one.epoch): (one.confidence, one.correct, log.cluster_of(file, one))
            for file, one in log
        }
        for log in logs
    ]
    shared = set(tables[0]).intersection(*tables[1:])
    if not shared:
        got = "got " + " and ".join(f"{next(iter(table), ('nothing',))[0]!r}" for table in tables)
        raise InvalidInputError("logs", "must share questions of the same task", got)
    for name, table in zip(paths, tables, strict=True):
        if len(table) > len(shared):
            left = f"{len(table) - len(shared):,} of {len(table):,} answers in {Path(name).name}"
            warn_user(f"{left} are left out: not all models have these questions.", LogWarning)
    keys = sorted(shared, key=str)
    columns = [np.array([table[key][:2] for key in keys], dtype=np.float64) for table in tables]
    names = _names([", ".join(log.summary.models) for log in logs], [str(path) for path in paths])
    return compare_outcomes(
        {name: values[:, 1] for name, values in zip(names, columns, strict=True)},
        {name: values[:, 0] for name, values in zip(names, columns, strict=True)},
        clusters=np.array([tables[0][key][2] for key in keys]),
        missing="drop" if missing == "drop" else "error",
        confidence=level,
    )


def _names(models: list[str], paths: list[str]) -> list[str]:
    """Return a different name per log: the model's, or where they are the same that of file or folder."""
    for names in (models, [Path(path).name for path in paths]):
        if all(names) and len(set(names)) == len(names):
            return names
    return paths
