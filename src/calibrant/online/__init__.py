"""Predictions in a stream: monitors, forecasters and calibrators that learn one outcome at a time."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from calibrant.online.calibrator import OnlineCalibrator
    from calibrant.online.certificates import total_certificate
    from calibrant.online.decision_loss import DecisionLossForecaster
    from calibrant.online.distance import DistanceForecaster
    from calibrant.online.expected_error import ExpectedErrorForecaster
    from calibrant.online.group_monitor import GroupMonitor
    from calibrant.online.monitor import Monitor
    from calibrant.online.reading import Reading
    from calibrant.online.run import Run

_LATER = {
    "DecisionLossForecaster": "decision_loss",
    "DistanceForecaster": "distance",
    "ExpectedErrorForecaster": "expected_error",
    "GroupMonitor": "group_monitor",
    "Monitor": "monitor",
    "OnlineCalibrator": "calibrator",
    "Reading": "reading",
    "Run": "run",
    "total_certificate": "certificates",
}

__all__ = [
    "DecisionLossForecaster",
    "DistanceForecaster",
    "ExpectedErrorForecaster",
    "GroupMonitor",
    "Monitor",
    "OnlineCalibrator",
    "Reading",
    "Run",
    "total_certificate",
]


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module 'calibrant.online' has no attribute {name!r}")
    from importlib import import_module

    item: object = getattr(import_module(f"calibrant.online.{_LATER[name]}"), name)
    globals()[name] = item
    return item


def __dir__() -> list[str]:
    return list(__all__)
