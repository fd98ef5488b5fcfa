"""Streams of predictions: monitors, forecasters and calibrators that update with each outcome."""

from calibrant.public_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
