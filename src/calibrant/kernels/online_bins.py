"""Randomised forecasting among equal bins: the loop of many rounds, and its single rules.

A bin is answered by its middle. Each bin has a weight upwards (outcomes came more often than its right edge)
and one downwards (less often than its left edge), for every group. The rules are plain functions of lists
or arrays, so that a step in Python and the compiled loop apply the same arithmetic, bit for bit.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.kernels.compiled import compiled
from calibrant.results import Array

Integers = npt.NDArray[np.int64]
LARGEST_EXPONENT = 600.0


def potential(excess: float, spread: float) -> float:
    """Return exp(excess^2 / (3 spread)) for a positive excess, otherwise 1 (Luo and Schapire 2015)."""
    if excess <= 0.0:
        return 1.0
    return math.exp(min(excess * excess / (3.0 * spread), LARGEST_EXPONENT))


def weight_of(excess: float, spread: float, quadratic: bool) -> float:
    """Return how much an excess beyond an edge weighs."""
    if quadratic:
        return max(excess, 0.0)
    return 0.5 * (potential(excess + 1.0, spread + 1.0) - potential(excess - 1.0, spread + 1.0))


def direction_of(up: float, down: float, left: float, right: float) -> int:
    """Return 1 if a bin should be left upwards, -1 downwards, 0 if answering it costs nothing."""
    if up * (1.0 - right) > down * (1.0 - left):
        return 1
    if down * left > up * right:
        return -1
    return 0


def chosen_pair(up: Any, down: Any, groups: Any, start: int, bins: int) -> tuple[int, int, float]:
    """Walk from `start` to a bin that costs nothing, or to two neighbours and the chance of the lower one."""
    i, walked, before = start, 0, 0.0
    while True:
        rise, fall = 0.0, 0.0
        for g in groups:
            if g >= 0:
                rise += up[g][i]
                fall += down[g][i]
        direction = direction_of(rise, fall, i / bins, (i + 1) / bins)
        if direction == 0:
            return i, i, 1.0
        pull = rise - fall
        if direction == -walked:
            if direction == 1:
                return i, i + 1, -before / (pull - before)
            return i - 1, i, -pull / (before - pull)
        walked, before = direction, pull
        i += direction


def settle(
    answers: Any, events: Any, up: Any, down: Any, groups: Any, i: int, outcome: float, quadratic: bool
) -> None:
    """Count the outcome in bin i of every group, and renew the weights."""
    for g in groups:
        if g >= 0:
            answers[g][i] += 1
            events[g][i] += int(outcome)
            n, s, bins = answers[g][i], events[g][i], len(answers[g])
            left, right = i / bins, (i + 1) / bins
            up[g][i] = weight_of(s - n * right, s * (1.0 - right) + (n - s) * right, quadratic)
            down[g][i] = weight_of(n * left - s, s * (1.0 - left) + (n - s) * left, quadratic)


@compiled
def run_bins(
    outcomes: Array, guides: Array, members: Integers, coins: Array,
    answers: Integers, events: Integers, up: Array, down: Array, last: Integers, quadratic: bool,
    chosen: Integers, steered: npt.NDArray[np.bool_], errors: Array,
) -> None:  # fmt: skip
    """Forecast and learn round by round; tables (group, bin) and `last`, the bin answered, change in place.

    Row t of `members` holds the groups of round t, filled up with -1. `guides` is empty where there is none.
    `errors` gets what the absolute biases of all bins of group 0 add up to after each round, from 0.
    """
    bins = answers.shape[1]
    error = 0.0
    for t in range(len(outcomes)):
        start = last[0]
        if len(guides) > 0:
            start = min(int(guides[t] * bins), bins - 1)
        low, high, chance = chosen_pair(up, down, members[t], start, bins)
        i = low
        if high != low and coins[t] >= chance:
            i = high
        last[0] = i
        chosen[t] = i
        steered[t] = len(guides) > 0 and i != start
        before = abs(events[0, i] - answers[0, i] * ((i + 0.5) / bins))
        settle(answers, events, up, down, members[t], i, outcomes[t], quadratic)
        error += abs(events[0, i] - answers[0, i] * ((i + 0.5) / bins)) - before
        errors[t] = error


def fresh_weight(quadratic: bool) -> float:
    """Return the weight of a bin that has not been answered."""
    return weight_of(0.0, 0.0, quadratic)
