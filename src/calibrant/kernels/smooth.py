"""Mass trimming: total-variation denoising of the cumulative curve, the engine of the smooth error.

The dual of the smooth calibration error is, with gaps c_j = L (v_{j+1} - v_j), g_0 = 0 and g_m = C_m,

    min over g of  sum_j |g_j - g_{j-1}|  +  sum_j c_j |g_j - C_j|.

Solve it left to right. The derivative of the cost-so-far is a step function from -1 to 1, in other words
a multiset of positions of total mass 2, all of it at 0 to begin with. Step j puts mass 2 c_j at C_j and
trims mass c_j from either end; the smallest and largest position left bound g_j. A sweep back then reads
off the minimizer. Long curves use a queue of equally wide buckets in place of a heap, in a third of the time:
a cumulative curve moves little from step to step, so neighbors in time are neighbors in memory.
"""

from __future__ import annotations

import math
from heapq import heappop, heappush

import numpy as np
import numpy.typing as npt

from calibrant.kernels.compile import COMPILE_ABOVE, compiled
from calibrant.parallel import chunked_sum

Array = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]

MAX_STEPS_PER_POSITION = 8  # steps of searching per position before a heap is the better choice
MIN_PEAK = 1e-280  # below this the number of buckets per unit is not finite


def largest_ends(positions: Array, gaps: Array) -> Array | None:
    """Return the largest position left after each step, or None where a heap is faster."""
    peak = float(positions.max())
    if peak <= 0.0:
        return np.zeros(len(gaps))
    if peak < MIN_PEAK:
        return None
    buckets = max(1024, 1 << (len(gaps) - 1).bit_length())
    ends = np.empty(len(gaps))  # mass at 0 never runs out, as the gaps add up to at most 1: it comes last
    return ends if _ends_by_buckets(positions, gaps, (buckets - 1) / peak, buckets, ends) else None


@compiled
def _ends_by_buckets(positions: Array, gaps: Array, scale: float, buckets: int, ends: Array) -> bool:
    """Fill `ends`; return False where positions crowd so that the search takes too long."""
    # `words` has one bit per bucket in use, 32 per word, and `blocks` one bit per word in use. `best` is the
    # step with the largest position, in the bucket `top`
    zero = len(gaps)
    newest, older, mass = np.full(buckets, -1, np.int32), np.empty(zero + 1, np.int32), np.empty(zero + 1)
    words, blocks = np.zeros(buckets >> 5, np.int64), np.zeros(buckets >> 10, np.int64)
    newest[0], older[zero], mass[zero], words[0], blocks[0] = zero, -1, np.inf, 1, 1
    top, best, patience = 0, zero, MAX_STEPS_PER_POSITION * zero
    for step in range(zero):
        rest = gaps[step]
        if positions[step] > 0.0:
            bucket = int(positions[step] * scale)
            older[step] = newest[bucket]
            newest[bucket] = step
            mass[step] = 2.0 * rest
            words[bucket >> 5] |= 1 << (bucket & 31)
            blocks[bucket >> 10] |= 1 << ((bucket >> 5) & 31)
            if bucket > top or (bucket == top and positions[step] > positions[best]):
                top, best = bucket, step
        while mass[best] <= rest:
            rest -= mass[best]
            other = newest[top]
            if other == best:
                newest[top] = older[best]
            else:
                while older[other] != best:
                    other = older[other]
                older[other] = older[best]
            if newest[top] < 0:
                top = _next_bucket(top, words, blocks)
            best = newest[top]
            other = older[best]
            while other >= 0:
                if positions[other] > positions[best]:
                    best = other
                other = older[other]
                patience -= 1
            if patience < 0:
                return False
        mass[best] -= rest
        ends[step] = positions[best]
    return True


def _next_bucket(empty: int, words: Whole, blocks: Whole) -> int:
    """Return the highest bucket in use below one that has become empty; the lowest is always in use."""
    word, block = empty >> 5, empty >> 10
    words[word] &= ~(1 << (empty & 31))
    if words[word] == 0:
        blocks[block] &= ~(1 << (word & 31))
        while blocks[block] == 0:
            block -= 1
        word = (block << 5) + math.frexp(blocks[block])[1] - 1
    return (word << 5) + math.frexp(words[word])[1] - 1


BUCKETS_ABOVE = 200_000  # length from which a queue of buckets repays loading one more kernel
MAX_GAP_SUM = 1.0 + 1e-12  # the sum of the gaps from 0 to 1, rounding allowed for


@compiled
def upper_ends(curve: Array, gaps: Array) -> Array:
    """Return the largest position left after each step, when the gaps add up to at most 1."""
    # The mass 1 that each end may take from 0 never runs out, so positive positions form a max-heap of their
    # own. The smallest positions are the same upside down: -upper_ends(-curve, gaps)
    ends = np.empty(len(gaps))  # np.zeros and np.full would each add to the time that compiling takes
    key = np.empty(len(gaps) + 2)  # a binary max-heap, -1 (below every position) where it is empty
    for i in range(len(key)):
        key[i] = -1.0
    mass = np.empty(len(key))
    size = 0
    for step in range(len(gaps)):
        position, rest = curve[step], gaps[step]
        if position > 0.0:
            i = size
            size += 1
            while i > 0 and key[(i - 1) >> 1] < position:
                above = (i - 1) >> 1
                key[i] = key[above]
                mass[i] = mass[above]
                i = above
            key[i] = position
            mass[i] = 2.0 * rest
        while size > 0 and rest > 0.0:
            if mass[0] > rest:
                mass[0] -= rest
                break
            rest -= mass[0]
            size -= 1
            last = key[size]
            last_mass = mass[size]
            key[size] = -1.0
            i = 0
            below = 1
            while below < size:
                below += key[below + 1] > key[below]  # no branch for the processor to guess wrong
                if key[below] <= last:
                    break
                key[i] = key[below]
                mass[i] = mass[below]
                i = below
                below = 2 * i + 1
            key[i] = last
            mass[i] = last_mass
        ends[step] = key[0] if size > 0 else 0.0
    return ends


@compiled
def both_ends(curve: Array, gaps: Array) -> tuple[Array, Array]:
    """Return the smallest and the largest position left after each step, whatever the gaps add up to."""
    # Every position is in two heaps, its mass apart: either end uses it up, the other then throws it away
    lower = np.zeros(len(gaps))
    upper = np.zeros(len(gaps))
    mass = [2.0]
    bottom = [(0.0, 0)]
    top = [(0.0, 0)]
    for step, gap in enumerate(gaps):
        position = curve[step]
        mass.append(2.0 * gap)
        heappush(bottom, (position, step + 1))
        heappush(top, (-position, step + 1))
        for heap in (bottom, top):
            rest = gap
            while rest > 0.0:
                item = heap[0][1]
                taken = min(rest, mass[item])
                mass[item] -= taken
                rest -= taken
                if mass[item] == 0.0:
                    if len(heap) == 1:
                        break
                    heappop(heap)
        while mass[bottom[0][1]] == 0.0 and len(bottom) > 1:
            heappop(bottom)
        while mass[top[0][1]] == 0.0 and len(top) > 1:
            heappop(top)
        lower[step] = bottom[0][0]
        upper[step] = -top[0][0]
    return lower, upper


@compiled
def swept_back(lower: Array, upper: Array, end: float) -> Array:
    """Return the minimizer g_0 .. g_m: g_0 = 0, g_m = `end`, and g_j is g_{j+1} clipped into its bounds."""
    path = np.zeros(len(lower) + 2)
    level = end
    path[-1] = level
    for j in range(len(lower) - 1, -1, -1):
        level = min(max(level, lower[j]), upper[j])
        path[j + 1] = level
    return path


@compiled
def lipschitz_witness(path: Array, curve: Array, gaps: Array) -> Array:
    """Return weights x_1 .. x_m in [-1, 1] with |x_{j+1} - x_j| <= gap that prove `path` to be optimal."""
    # Carries the intervals that the conditions leave forward, and chooses one point of each on the way back.
    # Complementary slackness, each where the sign is not 0: x_j = sign(g_j - g_{j-1}) and
    # x_{j+1} - x_j = gap_j sign(g_j - C_j)
    low = np.full(len(path) - 1, -1.0)
    high = np.full(len(path) - 1, 1.0)
    for j in range(len(low)):
        if j > 0:
            over = path[j] - curve[j]
            low[j] = max(-1.0, low[j - 1] + (gaps[j - 1] if over > 0.0 else -gaps[j - 1]))
            high[j] = min(1.0, high[j - 1] + (-gaps[j - 1] if over < 0.0 else gaps[j - 1]))
        jump = path[j + 1] - path[j]
        if jump > 0.0:
            low[j] = high[j]
        elif jump < 0.0:
            high[j] = low[j]
    weight = min(max(0.0, low[-1]), high[-1])
    low[-1] = weight
    for j in range(len(gaps) - 1, -1, -1):
        over = path[j + 1] - curve[j + 1]
        chosen = min(max(weight, low[j]), high[j])
        # last, bounds on x_{j+1} - x_j: Lipschitz despite rounding
        weight = max(chosen, weight - (-gaps[j] if over < 0.0 else gaps[j]))
        weight = min(weight, low[j + 1] - (gaps[j] if over > 0.0 else -gaps[j]))
        low[j] = min(max(weight, -1.0), 1.0)  # overwrites its bound, which is not needed again
    return low


def steepest_steps(values: Array, lipschitz: float) -> Array:
    """Return how far the weights of neighboring values may differ: the gaps c_j."""
    # weights in [-1, 1] differ by at most 2; masses far above that would round the others away
    steps = lipschitz * np.diff(values)
    return np.minimum(steps, 2.0, out=steps) if lipschitz > 2.0 else steps


def denoised(curve: Array, gaps: Array) -> Array:
    """Return the minimizer g_0 .. g_m for the whole curve C_0 .. C_m, by whichever trimming fits."""
    inner = curve[1:-1].copy()  # writeable, so that numba always sees the same type
    if np.sum(gaps) <= MAX_GAP_SUM and upper_ends.worth_compiling(len(inner)):
        lower, upper = _two_sides(inner, gaps)
    else:  # in plain Python nothing beats the heaps of the standard library
        lower, upper = both_ends(inner, gaps)
    return swept_back(lower, upper, curve[-1])


def denoising_cost(path: Array, curve: Array, gaps: Array) -> float:
    """Return the dual objective at `path`: an upper bound on the smooth error whatever the path."""
    if len(gaps) + 1 >= COMPILE_ABOVE:
        after, before, level = path[1:], path[:-1], curve[1:-1]
        moved = chunked_sum(lambda part: np.abs(after[part] - before[part]), len(after))
        return moved + chunked_sum(lambda part: gaps[part] * np.abs(after[part] - level[part]), len(gaps))
    # summed as `_cost_of_rows` does: the last digit does not depend on which of the two measured
    moves, areas = np.abs(np.diff(path)), gaps * np.abs(path[1:-1] - curve[1:-1])
    steps = np.append((moves[1:] + areas)[::-1], moves[0])
    return float(np.cumsum(steps)[-1])


def _two_sides(inner: Array, gaps: Array) -> tuple[Array, Array]:
    """Trim the two ends, which do not meet: on two threads where that repays their start."""
    if len(inner) < COMPILE_ABOVE:
        return -upper_ends(-inner, gaps), upper_ends(inner, gaps)
    from concurrent.futures import ThreadPoolExecutor

    def trimmed(side: Array) -> Array:
        ends = largest_ends(np.append(side, 0.0), gaps) if len(side) >= BUCKETS_ABOVE else None
        return upper_ends(side, gaps) if ends is None else ends

    upper_ends.machine_code()  # made here, so that the two threads share one
    with ThreadPoolExecutor(1) as pool:
        mirrored = pool.submit(trimmed, -inner)
        upper = trimmed(inner)
        lower = mirrored.result()
        return np.negative(lower, out=lower), upper


def smooth_values(values: Array, residuals: Array, lipschitz: float = 1.0) -> Array:
    """Return the smooth calibration error of every row of `residuals`, all on the same `values`."""
    gaps = steepest_steps(values, lipschitz)
    rows = np.ascontiguousarray(residuals)
    cost = _cost_of_rows if np.sum(gaps) <= MAX_GAP_SUM else _cost_of_wide_rows
    cost.prepare(rows.size)
    return cost(rows, gaps)


def one_kernel_serves(length: int) -> bool:
    return length < COMPILE_ABOVE and _cost_of_rows.worth_compiling(0)


@compiled
def _cost_of_rows(residuals: Array, gaps: Array) -> Array:
    costs = np.empty(len(residuals))
    for draw in range(len(residuals)):
        curve = np.cumsum(residuals[draw])
        costs[draw] = _cost(curve, gaps, -upper_ends(-curve, gaps), upper_ends(curve, gaps))
    return costs


@compiled
def _cost_of_wide_rows(residuals: Array, gaps: Array) -> Array:
    """Return the cost of each row whatever the gaps add up to: seldom needed, so a kernel of its own."""
    costs = np.empty(len(residuals))
    for draw in range(len(residuals)):
        curve = np.cumsum(residuals[draw])
        lower, upper = both_ends(curve, gaps)
        costs[draw] = _cost(curve, gaps, lower, upper)
    return costs


def _cost(curve: Array, gaps: Array, lower: Array, upper: Array) -> float:
    """Return the dual objective at the minimizer that `lower` and `upper` bound."""
    level = curve[-1]
    cost: float = 0.0
    for j in range(len(gaps) - 1, -1, -1):
        before = min(max(level, lower[j]), upper[j])
        cost += abs(level - before) + gaps[j] * abs(before - curve[j])
        level = before
    cost += abs(level)
    return cost
