"""P-values of several tests, adjusted for how many there are."""

from __future__ import annotations

from collections.abc import Sequence


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
