"""Truthfulness: whether a forecaster gains by reporting something other than the truth."""

from calibrant.public_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
