"""Tests, intervals, comparisons of models, and planning."""

from calibrant.public_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
