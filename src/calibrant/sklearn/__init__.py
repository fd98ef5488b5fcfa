"""Estimators for scikit-learn pipelines: Recalibrator for scores, Recalibrated around a classifier."""

from calibrant.errors import MissingDependencyError
from calibrant.sklearn.display import ReliabilityDisplay
from calibrant.sklearn.recalibrated import Recalibrated, Recalibrator

try:
    import sklearn as _sklearn  # noqa: F401
except ImportError as _problem:
    raise MissingDependencyError(
        "calibrant.sklearn", "needs scikit-learn", hint="pip install 'calibrant[sklearn]'"
    ) from _problem


__all__ = ["Recalibrated", "Recalibrator", "ReliabilityDisplay"]
