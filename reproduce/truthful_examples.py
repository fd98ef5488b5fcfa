"""Example 1.1 and Lemma 6.2 of the truthfulness paper, and the gaps that enumeration finds."""

from __future__ import annotations

import math

import numpy as np

import calibrant as cb
from reproduce.layout import table

PAPER = "A Perfectly Truthful Calibration Measure"
TITLE = "Example 1.1, Lemma 6.2, and what lying gains"
SIZES = (100, 1000, 10_000)
RUNS = 100
GAPS = (
    "ece",
    "binned",
    "kuiper",
    "smooth",
    "l1-atb",
    "kernel",
    "cdl",
    "atb",
    "kernel-squared",
    "brier",
    "log-loss",
)


def example(n: int, runs: int = RUNS, seed: int = 0) -> dict[str, float]:
    """P uniform on [1/3, 2/3]: ECE and ATB of the truth and of the constant 1/2, means over the runs."""
    rng = np.random.default_rng([seed, n])
    found: dict[str, list[float]] = {"ECE truth": [], "ECE constant": [], "ATB truth": [], "ATB constant": []}
    for _ in range(runs):
        p = rng.uniform(1 / 3, 2 / 3, n)
        y, half = rng.random(n) < p, np.full(n, 0.5)
        found["ECE truth"].append(float(np.abs(y - p).mean()))  # every prediction is distinct
        found["ECE constant"].append(cb.expected_calibration_error(y, half))
        found["ATB truth"].append(cb.averaged_two_bin_error(y, p))
        found["ATB constant"].append(cb.averaged_two_bin_error(y, half))
    return {name: float(np.mean(values)) for name, values in found.items()}


def limits(n: int) -> dict[str, float]:
    """What theory says: 13/27, sqrt(1 / (2 pi n)), 13 / (54 n) and 1 / (4 n)."""
    return {
        "ECE truth": 13 / 27,
        "ECE constant": math.sqrt(1 / (2 * math.pi * n)),
        "ATB truth": 13 / (54 * n),
        "ATB constant": 1 / (4 * n),
    }


def accepted(n: int, runs: int = 1000, seed: int = 0) -> float:
    """Lemma 6.2: the share of calibrated samples with ATB <= 1/T; the lemma says 3/4 at least."""
    rng = np.random.default_rng([seed, n])
    inside = []
    for _ in range(runs):
        p = rng.random(n)
        inside.append(cb.averaged_two_bin_error(rng.random(n) < p, p) <= 1 / n)
    return float(np.mean(inside))


def page() -> str:
    """Return the section of the docs page."""
    rows = [(f"{name}, T = {n}", found, limits(n)[name]) for n in SIZES for name, found in example(n).items()]
    rows += [(f"P[ATB <= 1/T], calibrated, T = {n}", accepted(n), "at least 0.75") for n in (10, 100, 1000)]
    gaps = []
    for name in GAPS:
        two, three = (cb.truthfulness_gap(name, truth) for truth in ([0.25, 0.75], [0.3, 0.6, 0.8]))
        gaps.append((name, two.honest, two.best, three.honest, three.best, cb.measures()[name].truthful))
    head = ["measure", "(.25, .75): honest", "best lie", "(.3, .6, .8): honest", "best lie", "truthful"]
    text = (
        "What a forecaster who knows the probabilities gains by reporting others, by enumeration of all "
        "outcomes and search over all ways to pool rounds (the paper has no such table). "
        "Three limits of the theorem "
        "show here and in `truthfulness_gap(..., sequential=True)`: ATB is truthful weakly (pooling ties), "
        "only in batch, and only in expectation."
    )
    return f"{table(['quantity', 'ours', 'paper'], rows)}\n\n{text}\n\n{table(head, gaps)}"


if __name__ == "__main__":
    print(page())
