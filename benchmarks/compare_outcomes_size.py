"""Simulate how often `compare(outcomes=, predictions=)` calls equal models different (5% is right)."""

from __future__ import annotations

import sys

import numpy as np

from benchmarks.harness import Report
from calibrant.inference.compare_outcomes import SCORES, compare_outcomes


def pair(rng: np.random.Generator, n: int, size: int, stretch: float, base: float, shared: float) -> tuple:
    """Draw two exchangeable models: right where a shared and an own difficulty allow, overconfident."""
    clusters = np.repeat(np.arange(n // size), size)
    common = rng.normal(0, shared, n // size)[clusters] + rng.normal(0, shared, n)
    found = []
    for _ in range(2):
        logit = base + common + rng.normal(0, 1, n)
        found.append((rng.random(n) < 1 / (1 + np.exp(-logit)), 1 / (1 + np.exp(-stretch * logit))))
    return found, clusters


def main(sets: int = 400) -> None:
    """Measure the share of data sets in which each score differs, per case, and save."""
    report = Report("compare_outcomes_size")
    limit = 0.05 + 2 * np.sqrt(0.05 * 0.95 / sets)  # binomial error
    cases = {
        "calibrated, 100 rows": (100, 1, 1.0, 0.5, 1.0),
        "calibrated, 1,000 rows": (1000, 1, 1.0, 0.5, 1.0),
        "logits x 3, 300 rows": (300, 1, 3.0, 0.5, 1.0),
        "99% right, 300 rows": (300, 1, 1.0, 5.0, 1.0),
        "30 clusters of 10": (300, 10, 1.0, 0.5, 1.0),
        "30 clusters of 10, logits x 3": (300, 10, 3.0, 0.5, 1.0),
        "10 clusters of 30": (300, 30, 1.0, 0.5, 1.0),
    }
    for name, (n, size, stretch, base, shared) in cases.items():
        rng = np.random.default_rng(1)
        claims = dict.fromkeys(SCORES, 0)
        for _ in range(sets):
            (one, other), clusters = pair(rng, n, size, stretch, base, shared)
            found = compare_outcomes(
                {"a": one[0], "b": other[0]}, {"a": one[1], "b": other[1]}, clusters=clusters
            )
            for score in SCORES:
                claims[score] += found.differences[score][0].pvalue <= 0.05
        for score, count in claims.items():
            report.figure(f"{name}: {score} called different", count / sets, f"of {sets} data sets", limit)
    report.save()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 400)
