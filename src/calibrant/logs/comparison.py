"""Compare the models of several logs, question by question."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.errors import InvalidInputError, sentence, warn_user
from calibrant.inference.comparison import OutcomeComparison, compare_outcomes
from calibrant.logs.answer import Options
from calibrant.logs.rows import LogRows, LogWarning


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
        raise InvalidInputError(sentence("compare", "needs two logs or more", f"got {len(logs)}"))
    tables = [_answers(log) for log in logs]
    shared = set(tables[0]).intersection(*tables[1:])
    if not shared:
        got = "got " + " and ".join(f"{next(iter(table), ('nothing',))[0]!r}" for table in tables)
        raise InvalidInputError(sentence("logs", "must share questions of the same task", got))
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


def _answers(log: LogRows) -> dict[tuple[Any, ...], tuple[float, float, str]]:
    """Return confidence, correctness and cluster by task, question and epoch."""
    return {
        (file.task, sample.id, sample.epoch): (
            sample.confidence,
            sample.correct,
            log.cluster_of(file, sample),
        )
        for file, sample in log
    }


def _names(models: list[str], paths: list[str]) -> list[str]:
    """Return a different name per log: the model's, or where they are the same that of file or folder."""
    for names in (models, [Path(path).name for path in paths]):
        if all(names) and len(set(names)) == len(names):
            return names
    return paths
