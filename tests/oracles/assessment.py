"""Slow twins of the gain interval and of the calibration curve: plain loops and a general optimizer."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.optimize import minimize
from scipy.stats import t as student


def weighted_mean_and_variance(values: Sequence[float], weights: Sequence[float]) -> tuple[float, float]:
    """Mean and variance of weighted values."""
    total = sum(weights)
    mean = sum(w * v for v, w in zip(values, weights, strict=True)) / total
    return mean, sum(w * (v - mean) ** 2 for v, w in zip(values, weights, strict=True)) / total


def gain_limits(
    splits: Sequence[Sequence[float]],
    own: Sequence[float],
    outcomes: Sequence[int],
    weights: Sequence[float],
    *,
    folds: int,
    chosen: bool,
    confidence: float,
) -> tuple[float, float, float]:
    """The rule written out for records of outcome 0 or 1 without clusters."""
    stats = [weighted_mean_and_variance(one, weights) for one in splits]
    mean = sum(m for m, _ in stats) / len(stats)
    spread = sum(v for _, v in stats) / len(stats)
    own_mean, own_variance = weighted_mean_and_variance(own, weights)
    n = sum(weights)
    effects = []
    for one, (m, v) in zip(splits, stats, strict=True):
        robust = sum((w * (g - m)) ** 2 for g, w in zip(one, weights, strict=True))
        effects.append(max(1.0, robust / (v * n)) if v > 0 else 1.0)
    d = abs(own_mean - mean)
    square = (max(spread, own_variance) + d) * (sum(effects) / len(effects)) / n
    square += (d / 2) ** 2 if chosen else 0.0
    ones = sum(w for y, w in zip(outcomes, weights, strict=True) if y)
    half = float(student.ppf((1 + confidence) / 2, max(min(ones, n - ones) - 1, 1))) * math.sqrt(square)
    return mean, mean - half, mean + half + max(own_mean - mean, 0.0) / (2 * folds - 1)


def restricted_spline(z: float, knots: Sequence[float]) -> list[float]:
    """Harrell's basis: 1, z, and one cubic per inner knot that is linear beyond the outer knots."""

    def cube(x: float) -> float:
        return max(x, 0.0) ** 3

    last, before = knots[-1], knots[-2]
    terms = [1.0, z]
    for knot in knots[:-2]:
        bend = cube(z - knot) - cube(z - before) * (last - knot) / (last - before)
        terms.append((bend + cube(z - last) * (before - knot) / (last - before)) / (last - knots[0]) ** 2)
    return terms


def curve_fit(x: np.ndarray, y: np.ndarray, design: np.ndarray, width: float) -> np.ndarray:
    """Coefficients of logit rate = x + design beta with a normal prior, by a general optimizer."""

    def loss(beta: np.ndarray) -> float:
        eta = x + design @ beta
        return float(np.sum(np.logaddexp(0.0, eta) - y * eta) + beta @ beta / (2 * width**2))

    return minimize(loss, np.zeros(design.shape[1]), method="BFGS", options={"gtol": 1e-9}).x
