"""The null distribution by enumeration: every set of 0/1 outcomes with its probability."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
from samples import Sample


def outcomes_with_probability(p: np.ndarray) -> list[tuple[np.ndarray, float]]:
    found = []
    for bits in itertools.product([0, 1], repeat=len(p)):
        y = np.array(bits)
        found.append((y, float(np.prod(np.where(y == 1, p, 1 - p)))))
    return found


def exact_pvalue(sample: Sample, badness: Callable[[Sample], float]) -> float:
    """Probability under calibration of a value at least as bad as the one observed."""
    observed = badness(sample)
    return sum(
        chance
        for y, chance in outcomes_with_probability(sample.p)
        if badness(Sample(y, sample.p, sample.w)) >= observed - 1e-9 * abs(observed) - 1e-15
    )


def null_mean(sample: Sample, value: Callable[[Sample], float]) -> float:
    return sum(
        chance * value(Sample(y, sample.p, sample.w)) for y, chance in outcomes_with_probability(sample.p)
    )
