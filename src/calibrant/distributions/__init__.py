"""Calibration of forecast distributions: ensembles, quantiles, values of the CDF, or objects with `.cdf`."""

from calibrant.public_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
