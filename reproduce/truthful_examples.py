"""Example 1.1 and Lemma 6.2 of the truthfulness paper."""

from __future__ import annotations

import math

import numpy as np

import calibrant as cb
from reproduce.layout import table

PAPER = "A Perfectly Truthful Calibration Measure"
TITLE = "Example 1.1 and Lemma 6.2"
SIZES = (100, 1000, 10_000)
RUNS = 1000


def example(n: int, runs: int = RUNS, seed: int = 0) -> dict[str, tuple[float, float]]:
    """P uniform on [1/3, 2/3]: ECE and ATB of the truth and of the constant 1/2, mean and standard error."""
    rng = np.random.default_rng([seed, n])
    values: dict[str, list[float]] = {name: [] for name in limits(n)}
    for _ in range(runs):
        p = rng.uniform(1 / 3, 2 / 3, n)
        y, half = rng.random(n) < p, np.full(n, 0.5)
        values["ECE truth"].append(float(np.abs(y - p).mean()))  # every prediction is distinct
        values["ECE constant"].append(cb.level_set_error(y, half))
        values["ATB truth"].append(cb.averaged_two_bin_error(y, p))
        values["ATB constant"].append(cb.averaged_two_bin_error(y, half))
    return {
        name: (float(np.mean(drawn)), float(np.std(drawn, ddof=1)) / runs**0.5)
        for name, drawn in values.items()
    }


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
    rows: list[tuple[str, str, str]] = []
    for n in SIZES:
        for name, (mean, error) in example(n).items():
            rows.append((f"{name}, T = {n:,}", f"{mean:.4g} +- {2 * error:.1g}", f"{limits(n)[name]:.6g}"))
    rows += [
        (f"P[ATB <= 1/T], calibrated, T = {n:,}", f"{accepted(n):.3f}", "at least 0.75")
        for n in (10, 100, 1000)
    ]
    text = f"Means over {RUNS:,} runs, +- two standard errors."
    return f"{text}\n\n{table(['quantity', 'calibrant', 'closed form'], rows)}"


if __name__ == "__main__":
    print(page())
