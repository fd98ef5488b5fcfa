"""Bets against calibration: each multiplies its stake by 1 in expectation while forecasts are calibrated.

A bet (f, d) supposes that the true log odds are those predicted plus d f(v). On outcome y it pays the
likelihood ratio exp(d f y) / (1 - v + v exp(d f)), which is 1 + lambda(v) (y - v) with
lambda(v) = (exp(d f) - 1) / (1 - v + v exp(d f)). Its mean is 1 under calibration whatever v is, and at
most 1 for fractional y. On the scale of log odds one set of stakes serves rare events and even chances.
"""

from __future__ import annotations

import numpy as np

from calibrant.results import Array

KNOTS = np.array([-5.0, -2.5, 0.0, 2.5, 5.0])  # log odds at which the hats peak
STAKES = np.array([-1.0, -0.4, -0.15, -0.05, 0.05, 0.15, 0.4, 1.0])
SHAPES = ("shift", "spread", *(f"near {1 / (1 + np.exp(-k)):.2g}" for k in KNOTS))
CERTAIN = 700.0  # log of the pay when something happens that was predicted to be impossible
IMPOSSIBLE = (
    "certainty: something happened that was predicted to be impossible (a prediction of exactly 0 or 1)"
)


def bet_names() -> list[str]:
    """Return what each bet supposes, in words, in the order of `log_pays`.

    How large an error it supposes is no estimate of the error: it is the one of a few bets that paid most.
    """
    return [f"{_in_words(shape, stake > 0)} ({_size(shape, stake)})" for shape in SHAPES for stake in STAKES]


def _size(shape: str, stake: float) -> str:
    """Say how large an error was bet on; f of the spread is the logit / 2.5, so its factor is a slope."""
    if shape == "spread":
        return f"a bet on slope {1 + stake / 2.5:.2g}, no estimate"
    return f"a bet on odds {np.exp(stake):.2g} times those predicted, no estimate"


def _in_words(shape: str, upwards: bool) -> str:
    if shape == "spread":
        return f"spread: predictions are {'not extreme enough' if upwards else 'too extreme'}"
    return f"{shape}: events come {'more' if upwards else 'less'} often than predicted"


def log_pays(outcomes: Array, predictions: Array) -> Array:
    """Return the log of what every bet (columns) pays on every record (rows)."""
    v, y = predictions[:, None, None], outcomes[:, None, None]
    lifts = _shapes(predictions)[:, :, None] * STAKES
    logs: Array = (lifts * y - np.log1p(v * np.expm1(lifts))).reshape(len(predictions), -1)
    impossible = ((predictions == 0) & (outcomes > 0)) | ((predictions == 1) & (outcomes < 1))
    logs[impossible] = CERTAIN
    return logs


def _shapes(predictions: Array) -> Array:
    """Return the functions f of the prediction: constant, a tilt away from even odds, and hats."""
    with np.errstate(divide="ignore"):
        odds = np.log(predictions) - np.log1p(-predictions)
    odds = np.clip(odds, KNOTS[0], KNOTS[-1])
    hats = np.maximum(0.0, 1 - np.abs(odds[:, None] - KNOTS) / (KNOTS[1] - KNOTS[0]))
    return np.concatenate([np.ones((len(odds), 1)), odds[:, None] / 2.5, hats], axis=1)
