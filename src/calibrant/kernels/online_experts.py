"""Five experts on somebody's predictions and their aggregation: the loop of many rounds, its single rules.

The rules are plain functions of lists or arrays, so that a step in Python and the compiled loop apply the
same arithmetic, bit for bit.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.kernels.compiled import compiled
from calibrant.results import Array

Integers = npt.NDArray[np.int64]

EDGE = 1e-6  # predictions are kept this far from 0 and 1 before their log odds are taken
CAUTION = 10.0  # records of no bias that every bin starts with, for the mean residual
EXPERTS = 5
FILTER = 5  # numbers per logistic expert: slope, intercept and the three entries of their covariance


def log_odds(p: float) -> float:
    """Return the log odds of a prediction, kept away from 0 and 1."""
    inside = min(max(p, EDGE), 1.0 - EDGE)
    return math.log(inside / (1.0 - inside))


def sigmoid(x: float) -> float:
    """Return the probability of these log odds."""
    return 1.0 / (1.0 + math.exp(-x)) if x >= 0.0 else math.exp(x) / (1.0 + math.exp(x))


def bin_of(p: float, bins: int) -> int:
    """Return the bin of a prediction."""
    return min(int(p * bins), bins - 1)


def expert_answers(p: float, filters: Any, answered: Any, residuals: Any, events: Any, out: Any) -> None:
    """Write into `out`: raw, Platt, forgetting Platt, raw plus the bin's mean residual, the bin's rate."""
    bins = len(answered)
    x, b = log_odds(p), bin_of(p, bins)
    out[0] = p
    out[1] = sigmoid(filters[0] * x + filters[1])
    out[2] = sigmoid(filters[FILTER] * x + filters[FILTER + 1])
    out[3] = min(max(p + residuals[b] / (answered[b] + CAUTION), 0.0), 1.0)
    out[4] = (events[b] + 2.0 * (b + 0.5) / bins) / (answered[b] + 2.0)


def largest_weight(weights: Any) -> float:
    """Return the largest weight."""
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
    """Teach the experts one outcome, at the parameters they have now."""
    x, b = log_odds(p), bin_of(p, len(answered))
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
    answers, said = np.empty((len(outcomes), EXPERTS)), np.empty(EXPERTS)
    begin = 0
    for end in batch_ends:
        for t in range(begin, end):
            expert_answers(raw[t], filters, answered, residuals, events, said)
            mixtures[t] = mixed(weights, said)
            for k in range(EXPERTS):
                answers[t, k], history[t, k] = said[k], weights[k]
        for t in range(begin, end):
            for k in range(EXPERTS):
                said[k] = answers[t, k]
            reweigh(weights, said, outcomes[t], rate)
            experts_learn(raw[t], outcomes[t], filters, answered, residuals, events, decay)
        begin = end
