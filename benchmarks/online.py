"""Forecasters of streams: cost per step as ratios to an empty compiled loop and to one dict update."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.harness import Report
from calibrant.kernels.compile import compiled
from calibrant.online import (
    DecisionLossForecaster,
    DistanceForecaster,
    ExpectedErrorForecaster,
    OnlineCalibrator,
)

ROUNDS = 10**6
STEPS = 20_000


@compiled
def empty_loop(values: Any, out: Any) -> None:
    """The least a compiled loop over rounds can do: read, add, write."""
    total = 0.0
    for t in range(len(values)):
        total = 0.5 * total + values[t]
        out[t] = total


def seconds(action: Callable[[], Any], repeats: int) -> float:
    """Return the least processor time of some calls: one thread works, and others may use the machine."""
    action()
    found = []
    for _ in range(repeats):
        began = time.process_time()
        action()
        found.append(time.process_time() - began)
    return min(found)


def main() -> None:
    """Time runs and steps, and write everything down."""
    report = Report("online")
    _time_runs(report)
    _time_steps(report)
    report.save()


def _time_runs(report: Report) -> None:
    rng = np.random.default_rng(0)
    y, p, out = (rng.random(ROUNDS) < 0.4).astype(float), rng.random(ROUNDS), np.empty(ROUNDS)
    yardstick = seconds(lambda: empty_loop(y, out), repeats=5)
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
            f"{what}, 10^6 rounds", seconds(action, repeats=5), "empty compiled loop", yardstick, most
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

    yardstick = seconds(updates, repeats=5)
    for make, name, most in (
        (DistanceForecaster, "predict_one", 150),
        (lambda: ExpectedErrorForecaster(seed=0), "predict_one", 200),
        (OnlineCalibrator, "transform_one", 500),
    ):
        what = f"{type(make()).__name__}, one step in Python"
        report.ratio(what, seconds(played(make, name), repeats=5), "one dict update", yardstick, most)


if __name__ == "__main__":
    main()
