"""Evaluate a log: calibration by task and topic, spikes of confidence, and when to abstain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibrant.files import atomic_write, check_target
from calibrant.forecasts import Forecasts
from calibrant.logs.answer import Options
from calibrant.logs.rows import LogRows, LogSummary
from calibrant.records import Missing
from calibrant.report.answers import Answers
from calibrant.report.evaluate import Evaluation, evaluate
from calibrant.results import html_paragraphs


@dataclass(frozen=True, slots=True, eq=False)
class LogEvaluation:
    """An evaluation of answers, with how their confidence was read and when to abstain.

    `evaluation` has the measures, groups and verdict; `answers` the spikes and thresholds (None where the
    answers are weighted or sketched); `log` says how the confidence was read.
    """

    evaluation: Evaluation
    answers: Answers | None
    log: LogSummary

    @classmethod
    def of(cls, evaluation: Evaluation, log: LogSummary) -> LogEvaluation:
        """Add to an evaluation what the answers of a log say besides."""
        return cls(evaluation, Answers.of(evaluation.forecasts, log.clustered, evaluation.seed), log)

    def __str__(self) -> str:
        verdict = self.evaluation.verdict
        promise = "" if self.answers is None else str(self.answers)
        return "\n".join(filter(None, (verdict.what, verdict.whom, promise, *self.log.sentences())))

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
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
        from calibrant.report.page import page

        check_target(path)
        return atomic_write(path, page(self.evaluation, answers=self.answers, facts=self.log.sentences()))


def evaluate_log(
    path: str | Path | Sequence[str | Path],
    tool: str | None = None,
    *,
    missing: Missing = "error",
    draws: int = 199,
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
    evaluation = evaluate(
        forecasts,
        groups=groups or None,
        draws=draws,
        seed=seed,
        title=title or rows.summary.title(),
    )
    return LogEvaluation.of(evaluation, rows.summary)
