"""Five experts on somebody's predictions, mixed so that the whole is never much worse than the best of them.

The experts: the raw prediction; logistic recalibration by recursive Newton steps, once with all the past and
once forgetting it; the raw prediction plus the mean residual of its bin; and the rate of its bin. They
are mixed by Vovk's aggregating algorithm, which for the Brier score loses at most ln(1 / prior) / 2 in total
to any one of them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.kernels.online_experts import (
    EXPERTS,
    FILTER,
    expert_answers,
    experts_learn,
    mixed,
    reweigh,
    run_experts,
)
from calibrant.online.state import Fields
from calibrant.results import Array

NAMES = ("raw", "platt", "platt, forgetting", "raw + bin's residual", "bin's rate")
LEAST_DECAY = 1e-300  # a smaller one forgets no more, since variances stop at 1, and would overflow
RATE = 2.0  # the largest for which squared error on [0, 1] is mixable
_IDENTITY = [1.0, 0.0, 0.25, 0.0, 0.25]  # slope, intercept, and the three entries of their covariance


class Experts:
    """Parameters of the experts and the logarithms of their weights; plain lists and floats."""

    def __init__(self, *, bins: int, decay: float, prior: float, delay: int) -> None:
        self.decay, self.rate = max(decay, LEAST_DECAY), RATE / (delay + 1)
        others = math.log((1 - prior) / (EXPERTS - 1))
        self.weights = [math.log(prior), *[others] * (EXPERTS - 1)]
        self.filters = [*_IDENTITY, *_IDENTITY]
        self.answered = [0] * bins
        self.residuals = [0.0] * bins
        self.events = [0] * bins

    def answers(self, p: float) -> list[float]:
        """Return what each expert says."""
        out = [0.0] * EXPERTS
        expert_answers(p, self.filters, self.answered, self.residuals, self.events, out)
        return out

    def mix(self, answers: list[float]) -> float:
        """Return the mixture of the answers."""
        return mixed(self.weights, answers)

    def learn(self, answers: list[float], outcome: float) -> None:
        """Reweigh the experts by the answers they gave and teach them the outcome."""
        reweigh(self.weights, answers, outcome, self.rate)
        state = self.filters, self.answered, self.residuals, self.events
        experts_learn(answers[0], outcome, *state, self.decay)

    @property
    def shares(self) -> list[float]:
        """Return the weights as parts of 1."""
        return normalised(np.array([self.weights]))[0].tolist()  # type: ignore[no-any-return]

    def run(self, outcomes: Array, raw: Array, ends: npt.NDArray[np.int64]) -> tuple[Array, Array]:
        """Mix and learn batch by batch; return the mixtures and the weights they were mixed with."""
        weights, filters = np.array(self.weights), np.array(self.filters)
        answered, events = (np.array(x, dtype=np.int64) for x in (self.answered, self.events))
        residuals = np.array(self.residuals)
        mixtures, history = np.empty(len(outcomes)), np.empty((len(outcomes), EXPERTS))
        run_experts(
            outcomes, raw, ends, weights, filters, answered, residuals, events,
            self.decay, self.rate, mixtures, history,
        )  # fmt: skip
        self.weights, self.filters, self.residuals = weights.tolist(), filters.tolist(), residuals.tolist()
        self.answered, self.events = answered.tolist(), events.tolist()
        return mixtures, normalised(history)

    def to_state(self) -> dict[str, Any]:
        """Return what changes from round to round, ready for JSON."""
        names = ("weights", "filters", "answered", "residuals", "events")
        return {name: getattr(self, name) for name in names}

    def restore(self, fields: Fields) -> None:
        """Take over a saved state, every field checked."""
        bins = len(self.answered)
        self.weights = fields.numbers("weights", EXPERTS, high=0)
        self.filters = fields.numbers("filters", 2 * FILTER)
        covariances = (self.filters[2:5], self.filters[7:10])
        if any(p < 0 or q < 0 or p * q < r * r * (1 - 1e-9) - 1e-12 for p, r, q in covariances):
            raise fields.refused("filters", "must hold covariances")
        self.answered, self.events = fields.counts("answered", bins), fields.counts("events", bins)
        self.residuals = fields.numbers("residuals", bins)
        if any(e > n for e, n in zip(self.events, self.answered, strict=True)):
            raise fields.refused("events", "must not exceed the answers")
        if any(abs(r) > n for r, n in zip(self.residuals, self.answered, strict=True)):
            raise fields.refused("residuals", "must not exceed the answers")


def normalised(logs: Array) -> Array:
    """Return weights that add up to 1 in each row from their logarithms."""
    weights = np.exp(logs - logs.max(axis=1, keepdims=True, initial=-np.inf))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))
