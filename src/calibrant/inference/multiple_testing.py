"""P-values of several tests, adjusted for how many there are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from calibrant.results import Array

ROUNDING = 1e-10  # a simulated z this close below an observed one counts as equal to it


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


def adjusted_pvalues(z: Array, simulated: Array) -> Array:
    """Return step-down max-statistic p-values (Westfall and Young): family-wise error exact, strongly.

    Hypotheses are taken from the largest z down; each is compared with the simulated maximum over itself and
    all after it. The simulated z of a true hypothesis (one row, one column per draw) must not depend on
    whether the others are true.
    """
    order = np.argsort(-z, kind="stable")
    draws = simulated.shape[1]
    least = np.where(np.isinf(z), np.inf, z * (1.0 - ROUNDING))
    running = np.full(draws, -np.inf)
    exceeded = np.empty(len(z))
    for k in order[::-1]:
        np.maximum(running, simulated[k], out=running)
        exceeded[k] = np.count_nonzero(running >= least[k])
    pvalue = np.empty(len(z))
    pvalue[order] = np.maximum.accumulate((1.0 + exceeded[order]) / (draws + 1.0))
    return pvalue
