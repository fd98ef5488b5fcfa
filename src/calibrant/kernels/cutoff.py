"""Forecasting with a small cutoff error: which two neighboring points to mix, and the loop of many rounds.

`curve` holds the sum of outcome - answer over all answers below each gap between the points 0, 1/m, ..., 1:
entry 0 lies below the point 0 and entry m + 1 above the point 1.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from calibrant.kernels.compile import compiled
from calibrant.results import Array

Integers = npt.NDArray[np.int64]


@compiled
def cutoff_pair(curve: Array, rate: float, start: int) -> tuple[int, int, float]:
    """Return two neighboring points and the chance of the lower, so that neither outcome pays.

    The potential is the mean of exp(rate * C) times the mean of exp(-rate * C) over the gaps. Its lean at a
    point says by how much an event raises it more than a non-event. The walk begins at `start`.
    """
    last = len(curve) - 2
    rises = np.exp(rate * curve)
    lower, upper = np.empty((last + 1, 2)), np.empty((last + 1, 2))  # sums over the gaps below and above
    up, down = 0.0, 0.0
    for k in range(last + 1):
        weight = 1.0 if k == 0 else 1.0 / last  # each end weighs as much as all gaps between
        up, down = up + weight * rises[k], down + weight / rises[k]
        lower[k, 0], lower[k, 1] = up, down
    up, down = 0.0, 0.0
    for k in range(last, -1, -1):
        weight = 1.0 if k == last else 1.0 / last
        up, down = up + weight * rises[k + 1], down + weight / rises[k + 1]
        upper[k, 0], upper[k, 1] = up, down
    k = start
    here = _lean(lower, upper, rate, k)
    if here > 0.0:
        while k < last:
            following = _lean(lower, upper, rate, k + 1)
            if following <= 0.0:
                return k, k + 1, following / (following - here)
            k, here = k + 1, following
    elif here < 0.0:
        while k > 0:
            previous = _lean(lower, upper, rate, k - 1)
            if previous >= 0.0:
                return k - 1, k, here / (here - previous)
            k, here = k - 1, previous
    return k, k, 1.0


def _lean(lower: Array, upper: Array, rate: float, k: int) -> float:
    x = k / (len(lower) - 1)
    rises = math.exp(rate * (1.0 - x)) * upper[k, 0] * lower[k, 1]
    falls = math.exp(rate * x) * lower[k, 0] * upper[k, 1]
    return rises - falls  # type: ignore[no-any-return]


@compiled
def run_cutoff(
    outcomes: Array, guides: Array, coins: Array, curve: Array, rate: float, last: int,
    predictions: Array, steered: npt.NDArray[np.bool_], errors: Array,
) -> int:  # fmt: skip
    """Forecast and learn round by round; `curve` changes in place. Return the point answered last.

    `guides` is empty where there is none. `errors` gets the range of the curve after each round.
    """
    points = len(curve) - 2
    for t in range(len(outcomes)):
        start = last
        if len(guides) > 0:
            start = int(guides[t] * points + 0.5)
        low, high, chance = cutoff_pair(curve, rate, start)
        last = low if high == low or coins[t] < chance else high
        predictions[t] = last / points
        steered[t] = len(guides) > 0 and last != start
        residual = outcomes[t] - predictions[t]
        for g in range(last + 1, len(curve)):
            curve[g] += residual
        errors[t] = curve.max() - curve.min()
    return last
