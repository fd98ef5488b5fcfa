"""Cumulative curves of many subpopulations at once, of records in the order of their predictions.

Subpopulation k is ``members[offsets[k]:offsets[k + 1]]``, or part k of a partition, of the records whose
``cell[i]`` is k. The curve exists only between distinct predictions: equal ones are taken together.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from calibrant.kernels.compile import compiled
from calibrant.results import Array

Index = npt.NDArray[np.int32]
Offsets = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

ALL_BITS, NO_BITS = ~np.uint64(0), np.uint64(0)
LANES = 64  # simulated data sets in one word
GATHERED = 256  # members gathered at a time
MIN_STRETCH = 1 << 13  # records that fit in the cache with their simulated outcomes
ROUNDING = 1e-14  # of the steps so far: a new extreme must exceed the last by more, so that ends are stable


@compiled
def thinned_curve(members: Index, terms: Array, stretch: int) -> Array:
    """Return the lowest and highest points of stretches of the curve, and its end: weight, value, curve."""
    points = np.zeros((2 * (len(members) // stretch + 2), 3))
    low, high = np.zeros(3), np.zeros(3)
    count, weight, curve = 0, 0.0, 0.0
    for start in range(0, len(members), stretch):
        low[2], low_at, high[2], high_at = np.inf, -1, -np.inf, -1
        for j in range(start, min(start + stretch, len(members))):
            i = members[j]
            weight += terms[i, 1]
            curve += terms[i, 2]
            if low[2] <= curve <= high[2]:
                continue
            value = terms[i, 0]
            if j + 1 == len(members) or terms[members[j + 1], 0] != value:
                if curve < low[2]:
                    low[0], low[1], low[2], low_at = weight, value, curve, j
                if curve > high[2]:
                    high[0], high[1], high[2], high_at = weight, value, curve, j
        if high_at < 0:
            continue  # the stretch lies within equal predictions
        points[count] = low if low_at <= high_at else high
        count += 1
        if low_at != high_at:
            points[count] = high if low_at < high_at else low
            count += 1
    if points[count - 1, 0] != weight:
        points[count, 0], points[count, 1], points[count, 2] = weight, terms[members[-1], 0], curve
        count += 1
    return points[:count]


@compiled
def counting_sort(cell: Index, starts: Offsets, members: Index) -> None:
    """Fill `members` with positions by cell, in order within each; `starts` is overwritten."""
    for i in range(len(cell)):
        place = starts[cell[i]]
        members[place] = i
        starts[cell[i]] = place + 1


@compiled
def segment_curves(members: Index, offsets: Offsets, terms: Array, sums: Array, ends: Offsets) -> None:
    """Fill ten sums for each list, and the records about its highest and lowest point.

    The sums: size, weight, weight * value, variance, the curve's end, highest, lowest, mark (equal for equal
    members), scale and squared residuals. Residuals are wrong by a part of the scale, of which they are
    differences. A row of `terms` holds value, weight, residual and key of a record; `ends` the records around
    the highest point, then around the lowest, -1 before a curve's start and after its end.
    """
    for k in range(len(offsets) - 1):
        start, stop = offsets[k], offsets[k + 1]
        total = moment = spread = steps = curve = high = low = mark = scale = squares = 0.0
        ends[k, 0] = ends[k, 2] = -1
        ends[k, 1] = ends[k, 3] = members[start] if stop > start else -1
        for j in range(start, stop):
            i = members[j]
            value, weight, residual = terms[i, 0], terms[i, 1], terms[i, 2]
            total += weight
            moment += weight * value
            spread += weight * weight * value * (1.0 - value)
            curve += residual
            steps += abs(residual)
            squares += residual * residual
            mark += terms[i, 3]
            scale += abs(weight * value) + abs(weight * value + residual)
            following = members[j + 1] if j + 1 < stop else -1
            if following < 0 or terms[following, 0] != value:
                if curve > high + ROUNDING * steps:
                    high = curve
                    ends[k, 0], ends[k, 1] = i, following
                if curve < low - ROUNDING * steps:
                    low = curve
                    ends[k, 2], ends[k, 3] = i, following
        sums[k, 0], sums[k, 1], sums[k, 2], sums[k, 3] = stop - start, total, moment, spread
        sums[k, 4], sums[k, 5], sums[k, 6], sums[k, 7] = curve, high, low, mark
        sums[k, 8], sums[k, 9] = scale, squares


@compiled
def partition_curves(cell: Index, terms: Array, sums: Array, ends: Offsets) -> None:
    """Fill the same for each part of a partition, in one pass over the records in their order."""
    parts = len(sums)
    value_of, steps = np.full(parts, np.nan), np.zeros(parts)
    last = np.full(parts, -1)
    sums[:] = 0.0
    ends[:] = -1
    for i in range(len(cell)):
        k = cell[i]
        value, weight, residual = terms[i, 0], terms[i, 1], terms[i, 2]
        curve = sums[k, 4]
        if value != value_of[k]:
            # the part's previous prediction is complete: its point counts
            value_of[k] = value
            slack = ROUNDING * steps[k]
            if last[k] < 0:
                ends[k, 1] = ends[k, 3] = i
            elif curve > sums[k, 5] + slack:
                sums[k, 5] = curve
                ends[k, 0], ends[k, 1] = last[k], i
            elif curve < sums[k, 6] - slack:
                sums[k, 6] = curve
                ends[k, 2], ends[k, 3] = last[k], i
        last[k] = i
        sums[k, 0] += 1.0
        sums[k, 1] += weight
        sums[k, 2] += weight * value
        sums[k, 3] += weight * weight * value * (1.0 - value)
        sums[k, 4] = curve + residual
        sums[k, 7] += terms[i, 3]
        sums[k, 8] += abs(weight * value) + abs(weight * value + residual)
        sums[k, 9] += residual * residual
        steps[k] += abs(residual)
    for k in range(parts):
        if sums[k, 4] > sums[k, 5] + ROUNDING * steps[k]:
            sums[k, 5] = sums[k, 4]
            ends[k, 0], ends[k, 1] = last[k], -1
        elif sums[k, 4] < sums[k, 6] - ROUNDING * steps[k]:
            sums[k, 6] = sums[k, 4]
            ends[k, 2], ends[k, 3] = last[k], -1


@compiled
def successive_variances(members: Index, offsets: Offsets, terms: Array, variance: Array) -> None:
    """Fill the variance of the end of each curve: eq. (6) times (sum W)^2, ties apart."""
    for k in range(len(offsets) - 1):
        stop = offsets[k + 1]
        total = squares = pairs = within = 0.0
        last_gap = last_weight = 0.0
        singles = 0
        j = offsets[k]
        while j < stop:
            value, end = terms[members[j], 0], j + 1
            while end < stop and terms[members[end], 0] == value:
                end += 1
            if end - j > 1:
                # around their mean: no order of these is independent of both the rows and the outcomes
                within += _tied_variance(members[j:end], terms)
            else:
                weight = terms[members[j], 1]
                gap = terms[members[j], 2] / weight
                total += weight
                if singles > 0:
                    both = weight + last_weight
                    squares += ((gap - last_gap) * both) ** 2
                    pairs += both  # in sum W_1 + W_n + 2 (W_2 + ... + W_{n-1}), the last factor of (6)
                last_gap, last_weight = gap, weight
                singles += 1
            j = end
        if singles == 1:  # no neighbor of its own kind: its square is all there is
            within += (last_gap * last_weight) ** 2
        variance[k] = within + (total * squares / (4.0 * pairs) if pairs > 0.0 else 0.0)


@compiled
def _tied_variance(members: Index, terms: Array) -> float:
    """Return the sum of squared weights times the unbiased variance of the residuals around their mean."""
    mean = squared_weights = apart = 0.0
    for i in members:
        mean += terms[i, 2] / terms[i, 1] / len(members)
        squared_weights += terms[i, 1] ** 2
    for i in members:
        apart += (terms[i, 2] / terms[i, 1] - mean) ** 2
    return squared_weights * apart / (len(members) - 1)


@compiled
def null_ranges(
    members: Index, offsets: Offsets, steps: Array, bits: Words, first: int, ranges: Array
) -> None:
    """Fill the range of every list's curve in the simulated data sets of the words from `first` on."""
    # bit t of bits[i, w]: outcome of record i in data set 64 w + t; a row of steps: value, step for 1, for 0
    lists, draws = ranges.shape
    words = -(-draws // LANES)
    curve, top, bottom = np.zeros((lists, draws)), np.zeros((lists, draws)), np.zeros((lists, draws))
    up, down, last = np.empty(GATHERED), np.empty(GATHERED), np.empty(GATHERED, dtype=np.bool_)
    word = np.empty((words, GATHERED), dtype=np.uint64)
    done = offsets[:-1].copy()
    stretch = max(MIN_STRETCH, GATHERED * lists)
    for begin in range(0, len(steps), stretch):
        end = begin + stretch
        # a copy of one stretch of records stays in the cache while all lists take from it
        near_steps, near_bits = steps[begin:end].copy(), bits[begin:end, first : first + words].copy()
        for k in range(lists):
            while done[k] < offsets[k + 1] and members[done[k]] < end:
                count = 0
                while count < GATHERED and done[k] < offsets[k + 1] and members[done[k]] < end:
                    i = members[done[k]] - begin
                    done[k] += 1
                    up[count], down[count] = near_steps[i, 1], near_steps[i, 2]
                    last[count] = done[k] == offsets[k + 1] or steps[members[done[k]], 0] != near_steps[i, 0]
                    for w in range(words):
                        word[w, count] = near_bits[i, w]
                    count += 1
                for w in range(words):
                    lanes = slice(LANES * w, min(LANES * (w + 1), draws))
                    _advance(
                        word[w, :count], up, down, last, curve[k, lanes], top[k, lanes], bottom[k, lanes]
                    )
    ranges[:] = top - bottom


@compiled
def _advance(
    word: Words, up: Array, down: Array, last: npt.NDArray[np.bool_], curve: Array, top: Array, bottom: Array
) -> None:
    """Move 64 curves over a block of records; extremes count only after the last of equal values."""
    j = 0
    while j < len(word):
        if j + 4 <= len(word) and last[j] and last[j + 1] and last[j + 2] and last[j + 3]:
            # four values at a time: each curve is loaded and stored once for all four
            bits0, bits1, bits2, bits3 = word[j], word[j + 1], word[j + 2], word[j + 3]
            up0, up1, up2, up3 = up[j], up[j + 1], up[j + 2], up[j + 3]
            down0, down1, down2, down3 = down[j], down[j + 1], down[j + 2], down[j + 3]
            for t in range(len(curve)):
                lane, high, low = np.uint64(1) << np.uint64(t), top[t], bottom[t]
                c0 = curve[t] + (up0 if bits0 & lane else down0)
                c1 = c0 + (up1 if bits1 & lane else down1)
                c2 = c1 + (up2 if bits2 & lane else down2)
                c3 = c2 + (up3 if bits3 & lane else down3)
                curve[t] = c3
                top[t] = max(high, c0, c1, c2, c3)
                bottom[t] = min(low, c0, c1, c2, c3)
            j += 4
            continue
        for t in range(len(curve)):
            curve[t] += up[j] if word[j] & (np.uint64(1) << np.uint64(t)) else down[j]
        if last[j]:
            for t in range(len(curve)):
                top[t] = max(top[t], curve[t])
                bottom[t] = min(bottom[t], curve[t])
        j += 1


@compiled
def settle_coins(coins: Words, rows: Offsets, rest: Array, undecided: Words, out: Words) -> int:
    """Take coins as `bernoulli_words` explains; move rows still undecided to the front and count them."""
    alive = 0
    digits = np.empty(len(coins), dtype=np.uint64)
    for i in range(len(rows)):
        left = np.uint64(0)
        chance, row = rest[i], rows[i]
        for look in range(len(coins)):
            chance += chance
            digits[look] = ALL_BITS if chance >= 1.0 else NO_BITS
            chance -= chance >= 1.0
        for w in range(out.shape[1]):
            open_lanes, ones = undecided[i, w], out[row, w]
            for look in range(len(coins)):
                fallen = coins[look, i, w] & open_lanes
                open_lanes ^= fallen
                ones |= fallen & digits[look]
            out[row, w], undecided[alive, w] = ones, open_lanes
            left |= open_lanes
        if left and chance > 0.0:  # a chance with no digits left loses every lane
            rows[alive], rest[alive] = row, chance
            alive += 1
    return alive


@compiled
def strata_extremes(part: Index, terms: Array, within: Array, extremes: Array) -> None:
    """Widen the highest and lowest point of each part's curve to what is possible inside its cells."""
    # rows of terms: value (one per cell), weight, residual of an entry; rows of within: its positive and
    # negative residuals, its least and largest prediction
    parts = len(extremes)
    value_of, before, curve = np.full(parts, np.nan), np.zeros(parts), np.zeros(parts)
    under, over = np.zeros(parts), np.zeros(parts)
    low, high = np.full(parts, np.inf), np.full(parts, -np.inf)
    for i in range(len(part)):
        k = part[i]
        if terms[i, 0] != value_of[k]:
            value_of[k], before[k] = terms[i, 0], curve[k]
            under[k], over[k], low[k], high[k] = 0.0, 0.0, np.inf, -np.inf
        curve[k] += terms[i, 2]
        under[k] += within[i, 0]
        over[k] += within[i, 1]
        low[k] = min(low[k], within[i, 2])
        high[k] = max(high[k], within[i, 3])
        if high[k] > low[k]:  # sums only grow: those of the whole cell count in the end
            extremes[k, 0] = max(extremes[k, 0], before[k] + under[k])
            extremes[k, 1] = min(extremes[k, 1], before[k] - over[k])
