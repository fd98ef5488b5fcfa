"""P-values: from draws, decided despite simulation error, and corrected for multiple testing.

Holm, Bonferroni, and the step-down maximum of Westfall and Young.
"""

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
    """Return whether a p-value is 1 - confidence or less, whatever that difference is rounded to.

    >>> is_rejected(0.2, 0.8), 0.2 <= 1 - 0.8
    (True, False)
    """
    return pvalue <= 1 - confidence + 1e-12


def could_flip(pvalue: float, draws: int, level: float = LEVEL, factor: float = 1.0) -> bool:
    """Return whether other draws could put a simulated p-value on the other side of the level.

    `factor` is 1 where the p-value is a share of the draws, 2 where it is twice a share, and so on. Shares
    are compared by the arcsines of their roots, whose variance is 1 / (4 draws) whatever they are.

    >>> could_flip(0.03, 199), could_flip(0.03, 1990), could_flip(0.01, 99), could_flip(0.03, 0)
    (True, False, False, False)
    """
    if draws == 0:
        return False
    share = max(0.0, (pvalue / factor * (draws + 1) - 1) / draws)
    apart = math.asin(math.sqrt(share)) - math.asin(math.sqrt(min(1.0, level / factor)))
    return abs(apart) <= FLIP_DEVIATIONS / (2 * math.sqrt(draws))


def draw_until_decided(test: Callable[[int], R], is_close: Callable[[R, int], bool], draws: int) -> R:
    """Run a simulated test, and once more with MORE_DRAWS times the draws where other draws could flip it.

    `test(draws)` runs it, with the same seed each time, and `is_close(result, draws)` asks `could_flip` of
    every p-value that decides something. The result records the draws it took. If it is still close then,
    it must say that it is undecided.

    >>> shares = {199: 0.045, 1990: 0.0302}
    >>> draw_until_decided(lambda draws: (shares[draws], draws), lambda one, draws: could_flip(*one), 199)
    (0.0302, 1990)
    """
    found = test(draws)
    return test(MORE_DRAWS * draws) if is_close(found, draws) else found


def bonferroni(confidence: float, intervals: int) -> float:
    """Return the confidence of each of several intervals that hold all at once with `confidence`."""
    return 1 - (1 - confidence) / intervals


def holm(pvalues: Sequence[float]) -> list[float]:
    """Return Holm's step-down p-values: monotone, at most 1.

    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    adjusted, largest = [1.0] * len(pvalues), 0.0
    for rank, k in enumerate(sorted(range(len(pvalues)), key=lambda k: pvalues[k])):
        largest = max(largest, min(1.0, (len(pvalues) - rank) * pvalues[k]))
        adjusted[k] = largest
    return adjusted


def bonferroni_pvalue(pvalue: float, tests: int) -> float:
    """Return a p-value that allows for this many tests."""
    return min(1.0, tests * pvalue)


def adjusted_pvalues(z: Array, simulated: Array) -> Array:
    """Return step-down max-statistic p-values (Westfall and Young): family-wise error exact, strongly.

    Hypotheses are taken from the largest z down; each is compared with the simulated maximum over itself and
    all after it. The simulated z of a true hypothesis (one row, one column per draw) must not depend on
    whether the others are true.
    """
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
    """Return the adjusted p-values of counts among all draws."""
    order = np.argsort(-z, kind="stable")
    pvalue = np.empty(len(z))
    pvalue[order] = np.maximum.accumulate((1.0 + exceeded[order]) / (draws + 1.0))
    return pvalue
