"""Calibration by subpopulation: audits, comparisons of groups, and searches for the worst group."""

from calibrant.public_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
