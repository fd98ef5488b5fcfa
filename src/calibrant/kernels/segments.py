"""Cumulative curves of many index lists at once.

A list holds the members of one subpopulation, as positions in the one global order of predictions, so that
nothing is sorted here. The lists stand one after another in `members`; list k is
``members[offsets[k]:offsets[k + 1]]``. The curve exists only between distinct predictions: equal ones are
taken together, whatever their order.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from calibrant.kernels.compiled import compiled
from calibrant.results import Array

Index = npt.NDArray[np.int32]
Offsets = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

LANES = 64  # simulated data sets in one word
ROUNDING = 1e-14  # of the steps so far: a new extreme must exceed the last by more, so that ends are stable


@compiled
def segment_curves(
    members: Index,
    offsets: Offsets,
    value: Array,
    weight: Array,
    residual: Array,
    variance: Array,
    sums: Array,
    ends: Offsets,
) -> None:
    """Fill for each list: weight, weight * value, variance, and the curve's end, highest and lowest point.

    `ends` gets how many members stand before the highest and before the lowest point.
    """
    for k in range(len(offsets) - 1):
        start, stop = offsets[k], offsets[k + 1]
        total = moment = spread = steps = curve = high = low = 0.0
        high_end = low_end = 0
        for j in range(start, stop):
            i = members[j]
            total += weight[i]
            moment += weight[i] * value[i]
            spread += variance[i]
            curve += residual[i]
            steps += abs(residual[i])
            if j + 1 == stop or value[members[j + 1]] != value[i]:
                if curve > high + ROUNDING * steps:
                    high = curve
                    high_end = j + 1 - start
                if curve < low - ROUNDING * steps:
                    low = curve
                    low_end = j + 1 - start
        sums[k, 0] = total
        sums[k, 1] = moment
        sums[k, 2] = spread
        sums[k, 3] = curve
        sums[k, 4] = high
        sums[k, 5] = low
        ends[k, 0] = high_end
        ends[k, 1] = low_end


@compiled
def successive_variances(
    members: Index, offsets: Offsets, weight: Array, gap: Array, variance: Array
) -> None:
    """Fill the variance of the end of each curve from differences of neighbours, eq. (6) times (sum W)^2."""
    for k in range(len(offsets) - 1):
        start, stop = offsets[k], offsets[k + 1]
        total = squares = pairs = 0.0
        for j in range(start, stop):
            i = members[j]
            total += weight[i]
            if j + 1 < stop:
                n = members[j + 1]
                both = weight[i] + weight[n]
                squares += ((gap[i] - gap[n]) * both) ** 2
                pairs += both  # in sum W_1 + W_n + 2 (W_2 + ... + W_{n-1}), the last factor of (6)
        variance[k] = total * squares / (4.0 * pairs) if pairs > 0.0 else 0.0


@compiled
def null_ranges(
    members: Index, offsets: Offsets, value: Array, high: Array, low: Array, bits: Words, ranges: Array
) -> None:
    """Fill the range of every list's curve in every simulated data set.

    Bit t of ``bits[i, w]`` is the outcome of record i in data set 64 w + t; the record adds `high` to the
    curve when the bit is 1 and `low` when it is 0. Sixty-four curves advance together, so that the inner
    loops become vector instructions (np.maximum does, a comparison does not).
    """
    curve = np.empty(LANES)
    top = np.empty(LANES)
    bottom = np.empty(LANES)
    one = np.uint64(1)
    for k in range(len(offsets) - 1):
        stop = offsets[k + 1]
        for w in range(bits.shape[1]):
            curve[:] = 0.0
            top[:] = 0.0
            bottom[:] = 0.0
            for j in range(offsets[k], stop):
                i = members[j]
                word, up, down = bits[i, w], high[i], low[i]
                if j + 1 == stop or value[members[j + 1]] != value[i]:
                    for t in range(LANES):
                        c = curve[t] + (up if (word >> np.uint64(t)) & one else down)
                        curve[t] = c
                        top[t] = np.maximum(top[t], c)
                        bottom[t] = np.minimum(bottom[t], c)
                else:
                    for t in range(LANES):
                        curve[t] += up if (word >> np.uint64(t)) & one else down
            for t in range(LANES):
                ranges[k, LANES * w + t] = top[t] - bottom[t]
