"""P-values: from draws, decided despite simulation error, and corrected for multiple testing."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from calibrant.results import Array

R = TypeVar("R")

LEVEL = 0.05  # of verdicts that name no other
MORE_DRAWS = 10  # times the draws asked for, at most, where simulation error could flip a verdict
FLIP_DEVIATIONS = 2.6  # of a simulated p-value: 1 in 100
ROUNDING = 1e-10  # a simulated z this close below an observed one counts as equal to it


def exceedance(observed: float, drawn: Array) -> float:
    """Return the Monte-Carlo p-value: the share of draws, and of the data, at least as large as the data."""
    # draws that equal the statistic in exact arithmetic must count whatever the rounding
    reached = np.count_nonzero(drawn >= observed - 1e-9 * abs(observed) - 1e-15)
    return (1 + int(reached)) / (len(drawn) + 1)


def is_rejected(pvalue: float, confidence: float) -> bool:
    """Return whether a p-value is 1 - confidence or less, whatever that difference is rounded to."""
    return pvalue <= 1 - confidence + 1e-12


def could_flip(pvalue: float, draws: int, level: float = LEVEL, factor: float = 1.0) -> bool:
    """Return whether other draws could move a p-value, `factor` times a share of them, across the level."""
    if draws == 0:
        return False
    # the arcsine of the root of a share has the variance 1 / (4 draws), whatever the share
    share = max(0.0, (pvalue / factor * (draws + 1) - 1) / draws)
    apart = math.asin(math.sqrt(share)) - math.asin(math.sqrt(min(1.0, level / factor)))
    return abs(apart) <= FLIP_DEVIATIONS / (2 * math.sqrt(draws))


def draw_until_decided(test: Callable[[int], R], is_close: Callable[[R, int], bool], draws: int) -> R:
    """Run a test, and again with MORE_DRAWS times the draws where `is_close` says that it could flip."""
    found = test(draws)
    return test(MORE_DRAWS * draws) if is_close(found, draws) else found


def bonferroni(confidence: float, intervals: int) -> float:
    """Return the confidence of each of several intervals that hold all at once with `confidence`."""
    return 1 - (1 - confidence) / intervals


def holm(pvalues: Sequence[float]) -> list[float]:
    adjusted, largest = [1.0] * len(pvalues), 0.0
    for rank, k in enumerate(sorted(range(len(pvalues)), key=lambda k: pvalues[k])):
        largest = max(largest, min(1.0, (len(pvalues) - rank) * pvalues[k]))
        adjusted[k] = largest
    return adjusted


def adjusted_pvalues(z: Array, simulated: Array) -> Array:
    """Return step-down max-statistic p-values (Westfall and Young): family-wise error exact, strongly."""
    # the simulated z of a true hypothesis (rows; draws in columns) must not depend on whether others are true
    return stepdown_pvalues(z, stepdown_counts(z, simulated), simulated.shape[1])


def stepdown_counts(z: Array, simulated: Array) -> Array:
    """Return in how many draws the maximum over a hypothesis and all after it reaches its z."""
    least = np.where(np.isinf(z), np.inf, z * (1.0 - ROUNDING))
    running = np.full(simulated.shape[1], -np.inf)
    exceeded = np.empty(len(z))
    for k in np.argsort(-z, kind="stable")[::-1]:
        np.maximum(running, simulated[k], out=running)
        exceeded[k] = np.count_nonzero(running >= least[k])
    return exceeded


def stepdown_pvalues(z: Array, exceeded: Array, draws: int) -> Array:
    order = np.argsort(-z, kind="stable")
    pvalue = np.empty(len(z))
    pvalue[order] = np.maximum.accumulate((1.0 + exceeded[order]) / (draws + 1.0))
    return pvalue
