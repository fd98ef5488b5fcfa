"""Read the logs of language-model evaluations: lm-evaluation-harness and Inspect."""

from calibrant.logs.evaluation import LogEvaluation
from calibrant.logs.evaluation import compare_logs as compare
from calibrant.logs.evaluation import evaluate_log as evaluate
from calibrant.logs.rows import LogSummary, LogWarning, read
from calibrant.logs.temperatures import Temperatures, temperatures

__all__ = [
    "LogEvaluation",
    "LogSummary",
    "LogWarning",
    "Temperatures",
    "compare",
    "evaluate",
    "read",
    "temperatures",
]
