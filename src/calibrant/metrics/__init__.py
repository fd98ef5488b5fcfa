"""Calibration measures: functions of outcomes and predictions, one family per file."""

from calibrant.public_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
