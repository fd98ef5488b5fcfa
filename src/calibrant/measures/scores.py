"""Proper scores, and how much of each is miscalibration (CORP: by isotonic regression)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from calibrant.errors import InvalidInputError, reject_name, sentence
from calibrant.forecasts import Forecasts
from calibrant.measures.registry.calling import as_forecasts, public
from calibrant.results import Array, Certified

CLIP = float(np.finfo(np.float64).eps)  # as scikit-learn does: a certain forecast that fails costs 36


@public
def brier_score(forecasts: Forecasts) -> Certified:
    """Mean squared difference of outcome and prediction; a score, not an error: calibrated is not 0.

    A fractional outcome counts as the expectation over the 0/1 outcomes that it stands for.

    >>> brier_score([0, 1], [0.25, 0.75])
    0.0625
    """
    return Certified.point(_score(forecasts, forecasts.values, "brier", CLIP))


@public
def log_loss(forecasts: Forecasts, *, clip: float = CLIP) -> Certified:
    """Mean negative log likelihood, in nats; predictions are first clipped to [clip, 1 - clip].

    >>> round(log_loss([0, 1], [0.25, 0.75]), 6)
    0.287682
    """
    if not 0 < clip < 0.5:
        raise InvalidInputError(sentence("clip", "must lie in (0, 0.5)", f"got {clip}"))
    return Certified.point(_score(forecasts, forecasts.values, "log", clip))


@public
def miscalibration(
    forecasts: Forecasts, *, score: Literal["brier", "log"] = "brier", clip: float = CLIP
) -> Certified:
    """CORP miscalibration: what the score would gain from the best monotone recalibration in hindsight.

    The MCB term of Dimitriadis, Gneiting & Jordan (2021). It is 0 when isotonic regression leaves the
    predictions as they are.

    >>> round(miscalibration([0, 1, 1, 1], [0.5, 0.6, 0.7, 0.8]), 6)
    0.135
    """
    return Certified.point(decompose(forecasts, score=score, clip=clip).miscalibration)


@dataclass(frozen=True, slots=True)
class Decomposition:
    """A mean score as miscalibration - discrimination + uncertainty, all in the score's own unit."""

    score: float
    miscalibration: float
    discrimination: float
    uncertainty: float


def decompose(
    y_true: Any,
    y_prob: Any = None,
    *,
    sample_weight: Any = None,
    score: Literal["brier", "log"] = "brier",
    clip: float = CLIP,
) -> Decomposition:
    """Split the Brier score or the log loss into miscalibration, discrimination and uncertainty (CORP).

    >>> decompose([0, 1, 1, 1], [0.5, 0.6, 0.7, 0.8]).uncertainty
    0.1875
    """
    if score not in ("brier", "log"):
        raise reject_name("score", score, ["brier", "log"])
    forecasts = as_forecasts(y_true, y_prob, sample_weight)
    mean = np.full(forecasts.levels, forecasts.base_rate)
    raw, fitted, constant = (
        _score(forecasts, p, score, clip) for p in (forecasts.values, isotonic_curve(forecasts), mean)
    )
    # isotonic regression is optimal among monotone maps, so only rounding can make a term negative
    return Decomposition(raw, max(0.0, raw - fitted), max(0.0, constant - fitted), constant)


def isotonic_curve(forecasts: Forecasts) -> Array:
    """Return the non-decreasing outcome rate that fits best, one number a level (pool adjacent violators)."""
    from scipy.optimize import isotonic_regression

    rate = forecasts.outcomes / forecasts.weights
    fit: Array = isotonic_regression(rate, weights=forecasts.weights).x
    return np.clip(fit, 0.0, 1.0)


def _score(forecasts: Forecasts, predictions: Array, score: str, clip: float) -> float:
    """Mean score of one prediction a level: outcomes a_j weigh the loss of y = 1, the rest that of y = 0."""
    ones, zeros = forecasts.outcomes, forecasts.weights - forecasts.outcomes
    if score == "brier":
        return float(ones @ (1 - predictions) ** 2 + zeros @ predictions**2)
    safe = np.clip(predictions, clip, 1 - clip)
    return float(-(ones @ np.log(safe) + zeros @ np.log1p(-safe)))
