"""How fast recalibration maps fit, next to other packages in the same run."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from benchmarks.harness import Report, seconds
from benchmarks.recalibration_accuracy import Fit, ours, peers


def speed(report: Report, n: int = 10**6) -> None:
    """Times of fits next to other packages, in the same run."""
    rng = np.random.default_rng(0)
    p = rng.random(n)
    y = (rng.random(n) < p**1.3).astype(float)
    few = slice(0, n // 10)
    others = peers()
    pairs = [
        ("platt, clip fixed", ours("platt", clip=1e-7), "scikit-learn sigmoid", slice(None), 0.3),
        ("platt", ours("platt"), "scikit-learn sigmoid", slice(None), None),
        ("isotonic", ours("isotonic"), "scikit-learn isotonic", slice(None), 0.6),
        (
            "centered-isotonic",
            ours("centered-isotonic"),
            "probcal CenteredIsotonicCalibrator",
            slice(None),
            0.1,
        ),
        ("bounded-slope", ours("bounded-slope"), "scikit-learn isotonic", slice(None), 2.5),
        ("venn-abers, fit and predict", ours("venn-abers"), "venn-abers (package)", few, 0.05),
    ]
    for what, mine, yardstick, part, limit in pairs:
        label = f"{what}, n = {len(p[part]):,}"
        if yardstick not in others:
            report.skipped(label, f"{yardstick} is not installed")
            continue
        x, r = p[part], y[part]
        actions = [partial(fitted, f, x, r, predict="predict" in what) for f in (mine, others[yardstick])]
        report.ratio(label, seconds(actions[0], 3), yardstick, seconds(actions[1], 3), limit)
    knots = ours("isotonic")(p, y)
    report.ratio(
        f"isotonic, predict, n = {n:,}",
        seconds(lambda: knots(p), 3),
        "np.argsort",
        seconds(lambda: np.argsort(p), 3),
        3,
    )
    report.figure(f"spline, n = {n:,}", seconds(lambda: ours("spline")(p, y), 3), at_most=1.5)
    for size in (n // 100, n // 10, n):
        x, worst = np.sort(p[:size]), np.arange(size) % 2.0
        took = seconds(partial(fitted, ours("bounded-slope"), x, worst), 1)
        report.figure(f"bounded-slope, outcomes that alternate, n = {size:,}", took)


def fitted(fit: Fit, p: Any, y: Any, *, predict: bool = False) -> None:
    """Fit, and predict if asked to."""
    mapped = fit(p, y)
    if predict:
        mapped(p)


def main() -> None:
    """Run and save."""
    report = Report("recalibration")
    speed(report)
    report.save()


if __name__ == "__main__":
    main()
