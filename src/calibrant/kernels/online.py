"""Loops of the online forecasters, and their single rules.

The rules are plain functions of lists or arrays, so that a step in Python and the compiled loop apply the
same arithmetic, bit for bit. A bin is answered by its middle. It has, for every group, a weight upwards
(outcomes came more often than its right edge) and one downwards (less often than its left edge).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.kernels.compile import compiled
from calibrant.results import Array

Integers = npt.NDArray[np.int64]
MAX_EXPONENT = 600.0


def potential(excess: float, spread: float) -> float:
    """Return exp(excess^2 / (3 spread)) for a positive excess, otherwise 1 (Luo and Schapire 2015)."""
    if excess <= 0.0:
        return 1.0
    return math.exp(min(excess * excess / (3.0 * spread), MAX_EXPONENT))


def weight_of(excess: float, spread: float, quadratic: bool) -> float:
    if quadratic:
        return max(excess, 0.0)
    return 0.5 * (potential(excess + 1.0, spread + 1.0) - potential(excess - 1.0, spread + 1.0))


def chosen_pair(up: Any, down: Any, groups: Any, start: int, bins: int) -> tuple[int, int, float]:
    """Walk from `start` to a bin that costs nothing, or to two neighbors and the chance of the lower one."""
    i, walked, before = start, 0, 0.0
    while True:
        rise, fall = 0.0, 0.0
        for g in groups:
            if g >= 0:
                rise += up[g][i]
                fall += down[g][i]
        left, right = i / bins, (i + 1) / bins
        if rise * (1.0 - right) > fall * (1.0 - left):
            direction = 1
        elif fall * left > rise * right:
            direction = -1
        else:
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
    for g in groups:
        if g >= 0:
            answers[g][i] += 1
            events[g][i] += int(outcome)
            weights = weights_of(answers[g][i], events[g][i], i, len(answers[g]), quadratic)
            up[g][i], down[g][i] = weights


def weights_of(n: int, s: int, i: int, bins: int, quadratic: bool) -> tuple[float, float]:
    """Return the weights of bin i after n answers and s events."""
    left, right = i / bins, (i + 1) / bins
    up = weight_of(s - n * right, s * (1.0 - right) + (n - s) * right, quadratic)
    down = weight_of(n * left - s, s * (1.0 - left) + (n - s) * left, quadratic)
    return up, down


@compiled
def run_bins(
    outcomes: Array, guides: Array, members: Integers, coins: Array,
    answers: Integers, events: Integers, up: Array, down: Array, last: Integers, quadratic: bool,
    chosen: Integers, steered: npt.NDArray[np.bool_], errors: Array,
) -> None:  # fmt: skip
    """Forecast and learn round by round; tables (group, bin) and `last`, the bin answered, are updated."""
    # row t of members: the groups of round t, filled up with -1
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
        errors[t] = error  # growth of the absolute biases of all bins of group 0


EDGE = 1e-6  # predictions are kept this far from 0 and 1 before their log odds are taken
CAUTION = 10.0  # records of no bias that every bin starts with, for the mean residual
EXPERTS = 5
FILTER = 5  # numbers per logistic expert: slope, intercept and the three entries of their covariance


def log_odds_and_bin(p: float, bins: int) -> tuple[float, int]:
    inside = min(max(p, EDGE), 1.0 - EDGE)
    return math.log(inside / (1.0 - inside)), min(int(p * bins), bins - 1)


def sigmoid(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x)) if x >= 0.0 else math.exp(x) / (1.0 + math.exp(x))


def expert_answers(p: float, filters: Any, answered: Any, residuals: Any, events: Any, out: Any) -> None:
    """Write into `out`: raw, Platt, forgetting Platt, raw plus the bin's mean residual, the bin's rate."""
    bins = len(answered)
    x, b = log_odds_and_bin(p, bins)
    out[0] = p
    out[1] = sigmoid(filters[0] * x + filters[1])
    out[2] = sigmoid(filters[FILTER] * x + filters[FILTER + 1])
    out[3] = min(max(p + residuals[b] / (answered[b] + CAUTION), 0.0), 1.0)
    out[4] = (events[b] + 2.0 * (b + 0.5) / bins) / (answered[b] + 2.0)


def largest_weight(weights: Any) -> float:
    top = weights[0]
    for k in range(1, EXPERTS):
        top = max(top, weights[k])
    return top  # type: ignore[no-any-return]


def mixed(weights: Any, answers: Any) -> float:
    """Return Vovk's substitution for squared error and eta = 2; `weights` are logarithms."""
    top = largest_weight(weights)
    nothing, event = 0.0, 0.0
    for k in range(EXPERTS):
        weight, answer = weights[k] - top, answers[k]
        nothing += math.exp(weight - 2.0 * answer * answer)
        event += math.exp(weight - 2.0 * (1.0 - answer) * (1.0 - answer))
    return min(max(0.5 + 0.25 * (math.log(event) - math.log(nothing)), 0.0), 1.0)


def reweigh(weights: Any, answers: Any, outcome: float, rate: float) -> None:
    """Lower each log weight by `rate` times the expert's squared error, and set the largest to 0."""
    for k in range(EXPERTS):
        weights[k] -= rate * (outcome - answers[k]) * (outcome - answers[k])
    top = largest_weight(weights)
    for k in range(EXPERTS):
        weights[k] -= top


def newton_step(filters: Any, at: int, x: float, outcome: float, decay: float) -> None:
    """Move slope and intercept by one recursive Newton step; the three numbers after are their covariance."""
    answer = sigmoid(filters[at] * x + filters[at + 1])
    p, r, q = filters[at + 2], filters[at + 3], filters[at + 4]
    if decay < 1.0:
        p, r, q = p / decay, r / decay, q / decay
        widest = max(p, q)
        if widest > 1.0:
            p, r, q = p / widest, r / widest, q / widest
    h = answer * (1.0 - answer)
    u, w = p * x + r, r * x + q
    d = 1.0 + h * (x * u + w)
    p, r, q = p - h * u * u / d, r - h * u * w / d, q - h * w * w / d
    filters[at + 2], filters[at + 3], filters[at + 4] = p, r, q
    filters[at] += (p * x + r) * (outcome - answer)
    filters[at + 1] += (r * x + q) * (outcome - answer)


def experts_learn(
    p: float, outcome: float, filters: Any, answered: Any, residuals: Any, events: Any, decay: float
) -> None:
    x, b = log_odds_and_bin(p, len(answered))
    newton_step(filters, 0, x, outcome, 1.0)
    newton_step(filters, FILTER, x, outcome, decay)
    answered[b] += 1
    residuals[b] += outcome - p
    events[b] += int(outcome)


@compiled
def run_experts(
    outcomes: Array, raw: Array, batch_ends: Integers,
    weights: Array, filters: Array, answered: Integers, residuals: Array, events: Integers,
    decay: float, rate: float, mixtures: Array, history: Array,
) -> None:  # fmt: skip
    """Aggregate every batch, then learn it; the state changes in place, `history` keeps the weights used."""
    answers = np.empty((len(outcomes), EXPERTS))
    begin = 0
    for end in batch_ends:
        for t in range(begin, end):
            expert_answers(raw[t], filters, answered, residuals, events, answers[t])
            mixtures[t] = mixed(weights, answers[t])
            history[t] = weights
        for t in range(begin, end):
            reweigh(weights, answers[t], outcomes[t], rate)
            experts_learn(raw[t], outcomes[t], filters, answered, residuals, events, decay)
        begin = end


def usable_cell(charges: Sequence[float] | Array, limits: Sequence[float] | Array, start: int) -> int:
    """Return the cell nearest to `start` whose left end is not over, nor its right end under, its limit."""
    # the leftmost point is never over its limit and the rightmost never under, so both walks end
    left = start
    while charges[left] > limits[left]:
        left -= 1
    right = start
    while charges[right + 1] < -limits[right + 1]:
        right += 1
    if left == start:
        return right
    if right == start:
        return left
    return left if start - left <= right - start else right


def charged_right(
    outcome: float, left: float, right: float, low_limit: float, high_limit: float, slack: float
) -> bool:
    """Return whether the right end of the cell is charged; `left` and `right` are the ends' charges."""
    if slack == 0.0:
        return outcome == 1.0
    # the other end takes the charge where that evens the charges out and its own limit allows it
    if outcome == 1.0:
        return not (left > right and left >= -low_limit)
    return right < left and right <= high_limit


def cell_is_full(uses: int, left: float, right: float, cost: float, slack: float) -> bool:
    width = right - left
    if slack > 0.0:
        return uses * width * width >= cost
    middle = 0.5 * (left + right)
    return uses * width * 0.5 >= max(middle, 1.0 - middle) * cost


@compiled
def run_grid(
    outcomes: Array, guides: Array, batch_ends: Integers,
    points: Array, charges: Array, limits: Array, uses: Integers, counts: Integers, sums: Array,
    slack: float, cost: float, splits: bool,
    predictions: Array, certificates: Array, steered: npt.NDArray[np.bool_],
) -> None:  # fmt: skip
    """Forecast every batch, then learn it; the state changes in place and has spare capacity."""
    # counts: points, current cell, rounds steered; sums: distance moved, all absolute charges
    size = len(outcomes)
    lows, highs, cells = np.empty(size), np.empty(size), np.empty(size, dtype=np.int64)
    begin = 0
    for end in batch_ends:
        for t in range(begin, end):
            last = counts[0] - 2
            start = min(counts[1], last)
            if len(guides) > 0:
                start = np.searchsorted(points[: counts[0]], guides[t], side="right") - 1
                start = min(max(start, 0), last)
            cell = usable_cell(charges, limits, start)
            counts[1] = cell
            low, high = points[cell], points[cell + 1]
            steered[t] = len(guides) > 0 and cell != start
            counts[2] += steered[t]
            if len(guides) > 0 and slack > 0.0:
                predictions[t] = min(max(guides[t], low), high)
            else:
                predictions[t] = 0.5 * (low + high)
            lows[t], highs[t], cells[t] = low, high, cell
        for t in range(begin, end):
            low, high = lows[t], highs[t]
            i = cells[t]
            k = i + 1
            if points[i] != low or points[k] != high:  # this cell or one before it was split meanwhile
                i = np.searchsorted(points[: counts[0]], low)
                k = np.searchsorted(points[: counts[0]], high)
            right = charged_right(outcomes[t], charges[i], charges[k], limits[i], limits[k], slack)
            c = k if right else i
            before = abs(charges[c])
            charges[c] += points[c] - outcomes[t]
            sums[1] += abs(charges[c]) - before
            sums[0] += abs(predictions[t] - points[c])
            certificates[t] = sums[0] + sums[1]
            if splits and k == i + 1:
                uses[i] += 1
                if cell_is_full(uses[i], low, high, cost, slack):
                    _split(points, charges, limits, uses, counts, i, slack)
        begin = end


def _split(
    points: Array, charges: Array, limits: Array, uses: Integers, counts: Integers, i: int, slack: float
) -> None:
    for s in range(counts[0] - 1, i, -1):
        points[s + 1], charges[s + 1] = points[s], charges[s]
        limits[s + 1], uses[s + 1] = limits[s], uses[s]
    width = points[i + 2] - points[i]
    points[i + 1], charges[i + 1] = 0.5 * (points[i] + points[i + 2]), 0.0
    uses[i], uses[i + 1] = 0, 0
    limit = 2.0 * slack / width
    limits[i + 1] = limit
    limits[i], limits[i + 2] = max(limits[i], limit), max(limits[i + 2], limit)
    counts[0] += 1


@compiled
def cutoff_pair(curve: Array, rate: float, start: int) -> tuple[int, int, float]:
    """Walk from `start` to two neighbors and the chance of the lower, so that neither outcome pays."""
    last = len(curve) - 2
    # the potential is the mean of exp(rate * C) times the mean of exp(-rate * C) over the gaps
    rises = np.exp(rate * curve)
    below, above = np.empty((last + 1, 2)), np.empty((last + 1, 2))  # sums over the gaps below and above
    up, down = 0.0, 0.0
    for k in range(last + 1):
        weight = 1.0 if k == 0 else 1.0 / last  # each end weighs as much as all gaps between
        up, down = up + weight * rises[k], down + weight / rises[k]
        below[k, 0], below[k, 1] = up, down
    up, down = 0.0, 0.0
    for k in range(last, -1, -1):
        weight = 1.0 if k == last else 1.0 / last
        up, down = up + weight * rises[k + 1], down + weight / rises[k + 1]
        above[k, 0], above[k, 1] = up, down
    k, here = start, _lean(below, above, rate, start)
    step = 1 if here > 0.0 else -1
    while step * here > 0.0 and 0 <= k + step <= last:
        following = _lean(below, above, rate, k + step)
        if step * following <= 0.0:
            if step == 1:
                return k, k + 1, following / (following - here)
            return k - 1, k, here / (here - following)
        k, here = k + step, following
    return k, k, 1.0


def _lean(below: Array, above: Array, rate: float, k: int) -> float:
    """Return by how much more an event at point k raises the potential than a non-event."""
    x = k / (len(below) - 1)
    rises = math.exp(rate * (1.0 - x)) * above[k, 0] * below[k, 1]
    falls = math.exp(rate * x) * below[k, 0] * above[k, 1]
    return rises - falls  # type: ignore[no-any-return]


@compiled
def run_cutoff(
    outcomes: Array, guides: Array, coins: Array, curve: Array, rate: float, last: int,
    predictions: Array, steered: npt.NDArray[np.bool_], errors: Array,
) -> int:  # fmt: skip
    """Forecast and learn round by round, changing `curve`; return the point answered last. See `run_bins`."""
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
