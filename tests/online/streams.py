"""Streams that the tests of online forecasters share: seven adversaries, and how to step through them."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np

from calibrant.online import (
    ClassForecaster,
    DecisionLossForecaster,
    DistanceForecaster,
    ExpectedErrorForecaster,
    OnlineCalibrator,
)

TEN = [int(c) for c in "1101001110"]
FIVE = [0.2, 0.8, 0.5, 0.9, 0.1]

MAKERS = {
    "distance": lambda: DistanceForecaster(),
    "distance, late": lambda: DistanceForecaster(delay=3),
    "distance, horizon": lambda: DistanceForecaster(horizon=200),
    "expected error": lambda: ExpectedErrorForecaster(seed=5),
    "expected error, horizon": lambda: ExpectedErrorForecaster(horizon=300, delay=2, seed=1),
    "decision loss": lambda: DecisionLossForecaster(seed=2),
    "decision loss, bins": lambda: DecisionLossForecaster(bins=7, potential="quadratic", seed=2),
    "calibrator": lambda: OnlineCalibrator(),
    "calibrator, late": lambda: OnlineCalibrator(delay=4, prior=0.2, decay=0.9, bins=3),
    "calibrator without guard": lambda: OnlineCalibrator(guard=False),
}


def answer(player, p=None, **more):
    """Ask any of them for a forecast."""
    if isinstance(player, ClassForecaster):
        return float(player.predict_one(**more)[0])
    return (
        player.transform_one(p, **more) if hasattr(player, "transform_one") else player.predict_one(p, **more)
    )


class Adversary:
    """Fixes each outcome after the forecast; seven ways, by name."""

    NAMES = ("iid", "drift", "opposite", "greedy", "blocks", "bits then stop", "sweep")

    def __init__(self, name, rounds, seed=0):
        self.name, self.rounds, self.t = name, rounds, 0
        self.rng = np.random.default_rng(seed)
        self.bias = defaultdict(float)

    def outcome(self, p):
        y = int(self._outcome(p))
        self.bias[p] += y - p
        self.t += 1
        return y

    def _outcome(self, p):
        t, rounds = self.t, self.rounds
        if self.name == "opposite":
            return p < 0.5
        if self.name == "greedy":  # push the bias of this value further from 0
            return self.bias[p] > 0 or (self.bias[p] == 0 and p < 0.5)
        if self.name == "blocks":
            return (t // math.isqrt(rounds)) & 1
        chances = {
            "iid": 0.37,
            "drift": 0.5 + 0.4 * math.sin(8 * math.pi * t / rounds),
            "bits then stop": 0.5 if t < rounds // 2 else 1.0,
            "sweep": 1 - abs(1 - 2 * t / rounds),
        }
        return self.rng.random() < chances[self.name]
