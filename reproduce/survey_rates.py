"""Table I of the survey: how errors of online forecasters grow with the number of rounds."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import calibrant as cb
from calibrant.online.decision_loss import DecisionLossForecaster
from calibrant.online.distance import DistanceForecaster
from calibrant.online.expected_error import ExpectedErrorForecaster
from reproduce.layout import lines_figure, table

PAPER = "Calibration through the lens of indistinguishability"
TITLE = "Table I: growth of online calibration errors"
ROUNDS = tuple(2**k for k in range(8, 15))
RUNS = 20

Maker = Callable[[int, int], Any]
ROWS: dict[str, tuple[Maker, str, str]] = {  # forecaster, measure, rates that the table states
    "ECE": (lambda t, s: ExpectedErrorForecaster(horizon=t, seed=s), "ece", "0.544 to 0.667"),
    "distance": (lambda t, s: DistanceForecaster(horizon=t), "lower-distance", "0.333 to 0.5"),
    "smooth": (lambda t, s: DistanceForecaster(horizon=t), "smooth", "0.333 to 0.5"),
    "CDL": (lambda t, s: DecisionLossForecaster(horizon=t, seed=s), "cdl", "0.5, up to a logarithm"),
}


def error(name: str, rounds: int, run: int) -> float:
    """Return T times the error against fair coins: there is nothing to learn but the noise."""
    make, measure, _ = ROWS[name]
    y = np.random.default_rng([rounds, run]).integers(0, 2, rounds)
    predictions = make(rounds, run).run(y).predictions
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cb.LevelSetWarning)
        return rounds * cb.measure(cb.Forecasts(y, predictions), measure).value


def growth(name: str, rounds: tuple[int, ...] = ROUNDS, runs: int = RUNS) -> tuple[list[float], float]:
    """Return the mean errors, and their exponent in T by least squares."""
    means = [float(np.mean([error(name, t, run) for run in range(runs)])) for t in rounds]
    return means, float(np.polyfit(np.log(rounds), np.log(means), 1)[0])


def page() -> str:
    """Return the section of the docs page."""
    found = {name: growth(name) for name in ROWS}
    rows = [
        (name, *(f"{x:.1f}" for x in means), f"{exponent:.2f}", ROWS[name][2])
        for name, (means, exponent) in found.items()
    ]
    figure = lines_figure(
        "rates", {name: (ROUNDS, means) for name, (means, _) in found.items()}, x="rounds T", y="T x error"
    )
    text = (
        "T times the error of the online forecasters against fair coins, means of 20 runs, and the exponent "
        "of T. The survey states bounds for the worst nature and in the limit. Coins are one nature, so an "
        "exponent may lie below the lower bound; over so few rounds it may exceed the upper one slightly."
    )
    head = ["error", *(f"T = {t}" for t in ROUNDS), "exponent", "bounds of the table"]
    return f"{text}\n\n{table(head, rows)}\n\n{figure}"


if __name__ == "__main__":
    print(page())
