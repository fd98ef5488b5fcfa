"""What a slope or an intercept is without predictions of exactly 0 or 1, whose logits have no end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.errors import CalibrantError
from calibrant.forecasts import Forecasts
from calibrant.inference.interval_notes import boundless
from calibrant.inference.merging import coarse
from calibrant.inference.score_interval import LOGISTIC, score_interval
from calibrant.measures.registry.lookup import measure
from calibrant.numerals import confidence_text, counted, limits_text, short

CELLS = 1024  # more levels than that are merged for the interval


@dataclass(frozen=True, slots=True)
class Inner:
    """The value of the other records, so many of them, with its interval where there is one."""

    certain: int
    records: int
    value: float
    low: float | None = None
    high: float | None = None

    @property
    def span(self) -> str:
        """The interval for people."""
        return "" if self.low is None or self.high is None else limits_text(self.low, self.high)


def certain_count(forecasts: Forecasts, name: str) -> int:
    """Return how many predictions are 0 or 1, where the measure is a logistic fit."""
    if name not in LOGISTIC:
        return 0
    return int(forecasts.counts[(forecasts.values == 0) | (forecasts.values == 1)].sum())


def without_certain(forecasts: Forecasts, name: str, confidence: float) -> Inner | None:
    """Take the measure and its interval without them; None where they do not matter or nothing is left."""
    certain = certain_count(forecasts, name)
    if certain == 0:
        return None
    try:
        inner = forecasts.between(float(np.nextafter(0, 1)), float(np.nextafter(1, 0)))
        value = measure(inner, name).value
    except CalibrantError:
        return None
    if confidence == 0:
        return Inner(certain, inner.n, value)
    try:
        cells = coarse(inner, CELLS)
        ends = score_interval(cells, name, value=measure(cells, name).value, confidence=confidence)
    except CalibrantError:  # predictions so near 0 or 1 that their logits are held
        return Inner(certain, inner.n, value)
    return Inner(certain, inner.n, value) if boundless(*ends) else Inner(certain, inner.n, value, *ends)


def certain_note(forecasts: Forecasts, name: str, inner: Inner | None, confidence: float) -> str:
    """Say how many predictions are 0 or 1, and what the measure is without them."""
    certain = certain_count(forecasts, name)
    if certain == 0:
        return ""
    are = counted(certain, "prediction is", "predictions are")
    if inner is None:
        return f"{are} exactly 0 or 1, so there is no interval"
    span = f", {confidence_text(confidence)} interval {inner.span}" if inner.span else ""
    return f"{are} exactly 0 or 1, so there is no interval; without them it is {short(inner.value)}{span}"
