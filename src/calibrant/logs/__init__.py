"""Read the logs of language-model evaluations: lm-evaluation-harness and Inspect.

`read` turns a log into one row per answer, with the model's confidence and whether it was right. `evaluate`
reports on calibration and on when to abstain. `compare` compares the models of several logs by question.
`temperatures` fits a temperature per task.
"""

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
