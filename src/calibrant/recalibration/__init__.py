"""Recalibration: fit a map from predictions to probabilities, assess it, apply it, store it."""

from calibrant.public_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
