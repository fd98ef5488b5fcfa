"""Level sets: the records that share one prediction, and what may not be asked when each has one record."""

from __future__ import annotations

from calibrant.errors import warn_user
from calibrant.forecasts import Forecasts


class LevelSetWarning(UserWarning):
    """The measure conditions on each distinct prediction, but hardly any prediction repeats."""


ENOUGH = 30  # records; with fewer somebody works an example by hand


def singletons(forecasts: Forecasts) -> bool:
    """Return whether most levels hold a single 0/1 record, so that E[y | v] cannot be read off the data."""
    return forecasts.binary and forecasts.n > ENOUGH and 2 * forecasts.levels > forecasts.n


REMEDY = "Use smooth_calibration_error or averaged_two_bin_error, or recalibrate or round first."


def warn_if_singletons(forecasts: Forecasts, what: str, remedy: str = REMEDY) -> None:
    """Warn that `what` is meaningless on raw continuous predictions, with the remedies."""
    if singletons(forecasts):
        text = (
            f"{what} compares each distinct prediction with the outcomes that share it, but here "
            f"{forecasts.n:,} records have {forecasts.levels:,} distinct predictions: the value is mostly "
            f"noise. {remedy}"
        )
        warn_user(text, LevelSetWarning)
