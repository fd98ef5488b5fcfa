"""identity, shift, platt, temperature, beta: logistic maps shrunk toward no change."""

from __future__ import annotations

from calibrant.fits.logistic import Clip, Family, LogisticFit, Shrink, logistic, shows_no_slope
from calibrant.recalibration.maps.identity import IdentityMap
from calibrant.recalibration.maps.logistic import LogisticMap
from calibrant.recalibration.registry import Fitted
from calibrant.recalibration.samples import Sample

WRONG_WAY = (
    "The fitted slope is negative: larger predictions went with fewer outcomes 1, so the scores rank the"
    " wrong way round; check the labels."
)
ONE_LEVEL = "All predictions are equal, which shows no slope: the map shifts them only."


def identity(sample: Sample, *, seed: int) -> Fitted:
    """Leave the predictions as they are."""
    return Fitted(IdentityMap())


def shift(sample: Sample, *, seed: int, shrink: Shrink = "auto", clip: Clip = "auto") -> Fitted:
    """Add a constant to the logit."""
    return _fitted(sample, "shift", shrink, clip)


def platt(sample: Sample, *, seed: int, shrink: Shrink = "auto", clip: Clip = "auto") -> Fitted:
    """Fit intercept and slope of the logit."""
    return _fitted(sample, "platt", shrink, clip)


def temperature(sample: Sample, *, seed: int, shrink: Shrink = "auto", clip: Clip = "auto") -> Fitted:
    """Fit the slope of the logit."""
    fit = logistic(sample.levels, "temperature", shrink=shrink, clip=clip)
    details = {**_details(fit), "temperature": temperature_of(fit.low)}
    return Fitted(LogisticMap.of(fit), logistic_notes(sample, fit), details)


def temperature_of(slope: float) -> float | None:
    """Return the temperature by which logits are divided, None where it is infinite.

    >>> temperature_of(0.8), temperature_of(0.0)
    (1.25, None)
    """
    return 1 / slope if abs(slope) > 1e-300 else None


def beta(sample: Sample, *, seed: int, shrink: Shrink = "auto", clip: Clip = "auto") -> Fitted:
    """Fit powers of p and of 1 - p, and a constant."""
    return _fitted(sample, "beta", shrink, clip)


def _fitted(sample: Sample, family: Family, shrink: Shrink, clip: Clip) -> Fitted:
    fit = logistic(sample.levels, family, shrink=shrink, clip=clip)
    return Fitted(LogisticMap.of(fit), logistic_notes(sample, fit), _details(fit))


def logistic_notes(sample: Sample, fit: LogisticFit) -> tuple[str, ...]:
    """Return what the user should know of a logistic fit."""
    notes = [WRONG_WAY] if fit.low < 0 or fit.high < 0 else []
    return (*notes, *([ONE_LEVEL] if shows_no_slope(sample.levels) else []))


def _details(fit: LogisticFit) -> dict[str, float | None]:
    return {"clip": fit.clip, "width": fit.width if fit.width < float("inf") else None}
