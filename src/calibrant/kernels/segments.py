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
GATHERED = 256  # members gathered at a time
ROUNDING = 1e-14  # of the steps so far: a new extreme must exceed the last by more, so that ends are stable


@compiled
def segment_curves(members: Index, offsets: Offsets, terms: Array, sums: Array, ends: Offsets) -> None:
    """Fill for each list: weight, weight * value, variance, the curve's end, highest, lowest point, mark.

    A row of `terms` holds value, weight, residual and key of a record, so that a record is one cache line.
    The sum of the keys marks a set of members. `ends` gets how many members stand before the highest and
    before the lowest point.
    """
    for k in range(len(offsets) - 1):
        start, stop = offsets[k], offsets[k + 1]
        total = moment = spread = steps = curve = high = low = mark = 0.0
        high_end = low_end = 0
        for j in range(start, stop):
            i = members[j]
            value, weight, residual = terms[i, 0], terms[i, 1], terms[i, 2]
            total += weight
            moment += weight * value
            spread += weight * weight * value * (1.0 - value)
            curve += residual
            steps += abs(residual)
            mark += terms[i, 3]
            if j + 1 == stop or terms[members[j + 1], 0] != value:
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
        sums[k, 6] = mark
        ends[k, 0] = high_end
        ends[k, 1] = low_end


@compiled
def successive_variances(members: Index, offsets: Offsets, terms: Array, variance: Array) -> None:
    """Fill the variance of the end of each curve from differences of neighbours, eq. (6) times (sum W)^2."""
    for k in range(len(offsets) - 1):
        start, stop = offsets[k], offsets[k + 1]
        total = squares = pairs = 0.0
        for j in range(start, stop):
            weight, gap = terms[members[j], 1], terms[members[j], 2] / terms[members[j], 1]
            total += weight
            if j + 1 < stop:
                other = terms[members[j + 1], 1]
                both = weight + other
                squares += ((gap - terms[members[j + 1], 2] / other) * both) ** 2
                pairs += both  # in sum W_1 + W_n + 2 (W_2 + ... + W_{n-1}), the last factor of (6)
        variance[k] = total * squares / (4.0 * pairs) if pairs > 0.0 else 0.0


@compiled
def null_ranges(members: Index, offsets: Offsets, steps: Array, bits: Words, ranges: Array) -> None:
    """Fill the range of every list's curve in every simulated data set.

    Bit t of ``bits[i, w]`` is the outcome of record i in data set 64 w + t. A row of `steps` holds the
    value of a record and what it adds to the curve when that bit is 1 and when it is 0. Members are
    gathered a block at a time, and 64 curves advance together, so that the inner loops read from the
    nearest cache and become vector instructions (np.maximum does, a comparison does not).
    """
    words = bits.shape[1]
    curve, top, bottom = np.empty((words, LANES)), np.empty((words, LANES)), np.empty((words, LANES))
    up, down, last = np.empty(GATHERED), np.empty(GATHERED), np.empty(GATHERED, dtype=np.bool_)
    word = np.empty((words, GATHERED), dtype=np.uint64)
    for k in range(len(offsets) - 1):
        stop = offsets[k + 1]
        curve[:], top[:], bottom[:] = 0.0, 0.0, 0.0
        for start in range(offsets[k], stop, GATHERED):
            count = min(GATHERED, stop - start)
            for j in range(count):
                i = members[start + j]
                up[j], down[j] = steps[i, 1], steps[i, 2]
                last[j] = start + j + 1 == stop or steps[members[start + j + 1], 0] != steps[i, 0]
                for w in range(words):
                    word[w, j] = bits[i, w]
            for w in range(words):
                _advance(word[w, :count], up, down, last, curve[w], top[w], bottom[w])
        for w in range(words):
            for t in range(LANES):
                ranges[k, LANES * w + t] = top[w, t] - bottom[w, t]


@compiled
def _advance(
    word: Words, up: Array, down: Array, last: npt.NDArray[np.bool_], curve: Array, top: Array, bottom: Array
) -> None:
    """Move 64 curves over a block of records; extremes count only after the last of equal values."""
    one = np.uint64(1)
    for j in range(len(word)):
        bits, high, low = word[j], up[j], down[j]
        if last[j]:
            for t in range(LANES):
                c = curve[t] + (high if (bits >> np.uint64(t)) & one else low)
                curve[t] = c
                top[t] = np.maximum(top[t], c)
                bottom[t] = np.minimum(bottom[t], c)
        else:
            for t in range(LANES):
                curve[t] += high if (bits >> np.uint64(t)) & one else low


@compiled
def thinned_curve(members: Index, terms: Array, stretch: int, points: Array) -> int:
    """Fill `points` with the lowest and highest points of stretches of the curve, and its end.

    A point is the weight so far, the value and the curve there; the number of points is returned.
    """
    count = 0
    weight = curve = 0.0
    low, high = np.zeros(4), np.zeros(4)
    some = False
    for j in range(len(members)):
        i = members[j]
        weight += terms[i, 1]
        curve += terms[i, 2]
        if j + 1 == len(members) or terms[members[j + 1], 0] != terms[i, 0]:
            if not some or curve < low[2]:
                low[0], low[1], low[2], low[3] = weight, terms[i, 0], curve, j
            if not some or curve > high[2]:
                high[0], high[1], high[2], high[3] = weight, terms[i, 0], curve, j
            some = True
        if some and ((j + 1) % stretch == 0 or j + 1 == len(members)):
            first, second = (low, high) if low[3] < high[3] else (high, low)
            points[count] = first[:3]
            count += 1
            if second[3] > first[3]:
                points[count] = second[:3]
                count += 1
            some = False
    if points[count - 1, 0] != weight:
        points[count, 0], points[count, 1], points[count, 2] = weight, terms[members[-1], 0], curve
        count += 1
    return count


@compiled
def counting_sort(cell: Index, starts: Offsets, members: Index) -> None:
    """Fill `members` with positions by cell, in order within each; `starts` is overwritten."""
    for i in range(len(cell)):
        place = starts[cell[i]]
        members[place] = i
        starts[cell[i]] = place + 1
