"""How far rounding moves a logistic fit: sums of weights of many sizes keep few digits of the rarer outcome.

The weight of the outcomes 0 of a level is a difference, w - ones. Where nearly all weight has outcome 1 it
is known only to some units in the last place of w, however small it is itself.
"""

from __future__ import annotations

import math

import numpy as np

from calibrant.forecasts import Forecasts
from calibrant.measures.registry.resolution import EPS, no_certificate, rounded, widened
from calibrant.results import Array, Certified

FARTHEST = 0.5  # on the logit scale; within it, curvatures differ by less than a factor of 2


def intercept_rounded(forecasts: Forecasts, measured: Certified, rates: Array) -> Certified:
    """Bound an intercept, fitted alone, whose fitted rates are given."""
    curvature = float((forecasts.weights * rates * (1 - rates)).sum())
    moved = 2 * _ratio(_gradient_error(forecasts, rates, np.ones(forecasts.levels)), curvature)
    return _certified("intercept", forecasts, measured, moved, moved)


def slope_rounded(forecasts: Forecasts, measured: Certified, rates: Array, logit: Array) -> Certified:
    """Bound a slope, fitted with its intercept; `rates` are the fitted ones at the logits given.

    With H the curvature and g a bound of the errors of the gradient, the fit moves along a direction d by at
    most 2 sqrt(d' H^-1 d) sqrt(g' H^-1 g): Cauchy's inequality, and 2 for the curvature's change on the way.
    """
    curvature = forecasts.weights * rates * (1 - rates)
    total = float(curvature.sum())
    centred = logit - _ratio(float(curvature @ logit), total, 0.0)
    spread = float(curvature @ centred**2)
    level = _gradient_error(forecasts, rates, np.ones(forecasts.levels))
    pull = math.sqrt(
        _ratio(level**2, total) + _ratio(_gradient_error(forecasts, rates, centred) ** 2, spread)
    )
    farthest = math.sqrt(_ratio(1.0, total) + _ratio(float(np.max(centred**2)), spread))
    moved = 2 * pull * math.sqrt(_ratio(1.0, spread))
    return _certified("slope", forecasts, measured, moved, 2 * pull * farthest)


def _gradient_error(forecasts: Forecasts, rates: Array, along: Array) -> float:
    """Bound the gradient along `along` of the exact sums: what the fit has left, and what rounding took.

    Sums of n terms err by n / 2 units in the last place; twice that leaves room for the arithmetic here.
    """
    rest = forecasts.outcomes - forecasts.weights * rates
    terms = forecasts.counts + (forecasts.levels + 16)
    taken = 2 * EPS * terms * (forecasts.outcomes + forecasts.weights * rates)
    return abs(float(rest @ along)) + float(taken @ np.abs(along))


def _certified(
    name: str, forecasts: Forecasts, measured: Certified, moved: float, farthest: float
) -> Certified:
    if not farthest <= FARTHEST:
        raise no_certificate(name, "the weights have too many orders of magnitude for what sums keep of them")
    return widened(rounded(forecasts, measured), moved)


def _ratio(above: float, below: float, otherwise: float = math.inf) -> float:
    return above / below if below > 0 else otherwise
