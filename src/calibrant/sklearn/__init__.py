"""Estimators for scikit-learn pipelines: Recalibrator for scores, Recalibrated around a classifier."""

from calibrant.errors import MissingDependencyError

try:
    from calibrant.sklearn.display import ReliabilityDisplay
    from calibrant.sklearn.recalibrated import Recalibrated, Recalibrator
except ModuleNotFoundError as problem:
    if (problem.name or "").partition(".")[0] != "sklearn":
        raise
    _hint = "pip install 'calibrant[sklearn]'"
    raise MissingDependencyError("calibrant.sklearn", "needs scikit-learn", hint=_hint) from problem

__all__ = ["Recalibrated", "Recalibrator", "ReliabilityDisplay"]
