"""Forecasters of streams: cost per step as ratios, and how their errors grow against seven adversaries."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.harness import Report, seconds
from calibrant.kernels.compiled import compiled
from calibrant.online import (
    DecisionLossForecaster,
    DistanceForecaster,
    ExpectedErrorForecaster,
    OnlineCalibrator,
)

ROUNDS = 10**6
STEPS = 20_000
LENGTHS = (10**3, 10**4, 10**5)
ADVERSARIES = ("iid", "drift", "opposite", "greedy", "blocks", "bits then stop", "sweep")


@compiled
def empty_loop(values: Any, out: Any) -> None:
    """The least a compiled loop over rounds can do: read, add, write."""
    total = 0.0
    for t in range(len(values)):
        total = 0.5 * total + values[t]
        out[t] = total


def main() -> None:
    """Time runs and steps, measure growth, and write everything down."""
    report = Report("online")
    _time_runs(report)
    _time_steps(report)
    _grow(report)
    report.save()


def _time_runs(report: Report) -> None:
    rng = np.random.default_rng(0)
    y, p, out = (rng.random(ROUNDS) < 0.4).astype(float), rng.random(ROUNDS), np.empty(ROUNDS)
    yardstick = seconds(lambda: empty_loop(y, out), repeats=3)
    runs: dict[str, tuple[Callable[[], Any], float]] = {
        "DistanceForecaster.run": (lambda: DistanceForecaster().run(y), 150),
        "DistanceForecaster.run, guided": (lambda: DistanceForecaster().run(y, p), 300),
        "ExpectedErrorForecaster.run": (lambda: ExpectedErrorForecaster(seed=0).run(y), 200),
        "DecisionLossForecaster.run": (lambda: DecisionLossForecaster(seed=0).run(y), 200),
        "OnlineCalibrator.run, no guard": (lambda: OnlineCalibrator(guard=False).run(y, p), 700),
        "OnlineCalibrator.run": (lambda: OnlineCalibrator().run(y, p), 1000),
    }
    for what, (action, most) in runs.items():
        report.ratio(
            f"{what}, 10^6 rounds", seconds(action, repeats=3), "empty compiled loop", yardstick, most
        )


def _time_steps(report: Report) -> None:
    rng = np.random.default_rng(0)
    y, p = (rng.random(STEPS) < 0.4).astype(int).tolist(), rng.random(STEPS).tolist()

    def updates() -> None:
        counts: dict[int, float] = {}
        for t in range(STEPS):
            counts[t & 63] = counts.get(t & 63, 0.0) + p[t]

    def played(make: Callable[[], Any], name: str) -> Callable[[], None]:
        def action() -> None:
            player = make()
            ask = getattr(player, name)
            for t in range(STEPS):
                ask(p[t])
                player.learn_one(y[t])

        return action

    yardstick = seconds(updates, repeats=3)
    for make, name, most in (
        (DistanceForecaster, "predict_one", 150),
        (lambda: ExpectedErrorForecaster(seed=0), "predict_one", 200),
        (OnlineCalibrator, "transform_one", 500),
    ):
        what = f"{type(make()).__name__}, one step in Python"
        report.ratio(what, seconds(played(make, name), repeats=3), "one dict update", yardstick, most)


def _grow(report: Report) -> None:
    makers: dict[str, Callable[[int], Any]] = {
        "DistanceForecaster": lambda _: DistanceForecaster(),
        "ExpectedErrorForecaster": lambda rounds: ExpectedErrorForecaster(horizon=rounds, seed=0),
        "DecisionLossForecaster": lambda rounds: DecisionLossForecaster(horizon=rounds, seed=0),
    }
    for kind, make in makers.items():
        for name in ADVERSARIES:
            errors, share = [], 0.0
            for rounds in LENGTHS:
                player = make(rounds)
                _play(player, name, rounds)
                errors.append(player.certificate)
                share = max(share, player.certificate / (player.bound() or math.inf))
            slope = float(np.polyfit(np.log(LENGTHS), np.log(np.maximum(errors, 1e-9)), 1)[0])
            report.figure(f"{kind}, {name}: exponent of growth", slope, "of T")
            report.figure(f"{kind}, {name}: error after {LENGTHS[-1]:,} rounds", errors[-1], "in total")
            report.figure(f"{kind}, {name}: largest share of its bound", share, "", 1.0)


def _play(player: Any, name: str, rounds: int) -> None:
    """Play against one adversary; the outcome follows the last answer where coins must stay unseen."""
    rng, bias, last = np.random.default_rng(0), defaultdict(float), 0.5
    sees = isinstance(player, DistanceForecaster)
    chances = {
        "iid": lambda t: 0.37,
        "drift": lambda t: 0.5 + 0.4 * math.sin(8 * math.pi * t / rounds),
        "blocks": lambda t: (t // math.isqrt(rounds)) & 1,
        "bits then stop": lambda t: 0.5 if t < rounds // 2 else 1.0,
        "sweep": lambda t: 1 - abs(1 - 2 * t / rounds),
    }
    if name in chances:
        chance = np.array([chances[name](t) for t in range(rounds)], dtype=float)
        player.run((rng.random(rounds) < chance).astype(int))
        return
    for _ in range(rounds):
        p = player.predict_one()
        seen = p if sees else last
        y = int(seen < 0.5) if name == "opposite" else int(bias[seen] > 0 or (bias[seen] == 0 and seen < 0.5))
        player.learn_one(y)
        bias[p] += y - p
        last = p


if __name__ == "__main__":
    main()
