"""Write the section of docs/guarantees.md on dependent rows, weights, decision curves and dominance.

python docs/make_dependence.py [--sets 400] [--slopes]

The section replaces what is between its two markers, in guarantees.in.md and in guarantees.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit
from scipy.stats import norm

import calibrant as cb

START, END = "<!-- dependence: begin -->", "<!-- dependence: end -->"
SLOPES_START, SLOPES_END = "<!-- slopes: begin -->", "<!-- slopes: end -->"
DRAWS = 99
HERE = Path(__file__).parent


def clustered(rng: np.random.Generator, number: int, size: int, shared: float) -> Any:
    """Draw calibrated predictions, partly shared, and outcomes correlated within clusters."""
    c = np.repeat(np.arange(number), size)
    p = norm.cdf(0.7 * rng.normal(size=number)[c] + 0.7 * rng.normal(size=len(c)))
    e = np.sqrt(shared) * rng.normal(size=number)[c] + np.sqrt(1 - shared) * rng.normal(size=len(c))
    return (norm.cdf(e) < p).astype(float), p, c


def cluster_rows(sets: int) -> Iterator[str]:
    """Yield size of two tests and coverage of an interval under correlation within clusters."""
    yield "| clusters x rows | correlation | omnibus | Kuiper | as independent | in the large |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    for number, size in ((15, 10), (30, 10), (100, 5), (300, 2)):
        for shared in (0.0, 0.1, 0.4):
            rng = np.random.default_rng([number, int(10 * shared)])
            hits = np.zeros(4)
            for seed in range(sets):
                y, p, c = clustered(rng, number, size, shared)
                how = {"draws": DRAWS, "seed": seed}
                hits[0] += cb.calibration_test(y, p, clusters=c, **how).rejects()
                hits[1] += cb.calibration_test(y, p, clusters=c, measure="kuiper", **how).rejects()
                hits[2] += cb.calibration_test(y, p, measure="kuiper", **how).rejects()
                hits[3] += 0.0 in cb.confidence_interval(y, p, clusters=c, measure="in-the-large", **how)
            shown = " | ".join(f"{100 * hit / sets:.1f}" for hit in hits)
            yield f"| {number} x {size} | {shared:g} | {shown} |"


def slope_rows(sets: int) -> Iterator[str]:
    """Yield size and coverage for the slope and the smooth error, of calibrated and overconfident models."""
    yield (
        "| clusters x rows | correlation | slope, test | smooth, test | slope, interval | smooth, interval |"
        " slope 1/2, interval | smooth, overconfident |"
    )
    yield "| --- | ---: " + "| ---: " * 6 + "|"
    y, p, _ = clustered(np.random.default_rng(0), 400_000, 1, 0.0)
    truth = cb.smooth_calibration_error(y, overconfident(p))
    for number, size in ((15, 10), (30, 10), (100, 5), (300, 2)):
        for shared in (0.0, 0.1, 0.4):
            rng = np.random.default_rng([number, int(10 * shared)])
            hits, known = np.zeros(6), np.zeros(6)
            for seed in range(sets):
                y, p, c = clustered(rng, number, size, shared)
                how: dict[str, Any] = {"clusters": c, "draws": DRAWS, "seed": seed}
                q = overconfident(p)
                tries: list[Callable[[], bool]] = [
                    lambda y=y, p=p, how=how: cb.calibration_test(y, p, measure="slope", **how).rejects(),
                    lambda y=y, p=p, how=how: cb.calibration_test(y, p, measure="smooth", **how).rejects(),
                    lambda y=y, p=p, how=how: 1.0 in cb.confidence_interval(y, p, measure="slope", **how),
                    lambda y=y, p=p, how=how: 0.0 in cb.confidence_interval(y, p, measure="smooth", **how),
                    lambda y=y, q=q, how=how: 0.5 in cb.confidence_interval(y, q, measure="slope", **how),
                    lambda y=y, q=q, how=how: truth in cb.confidence_interval(y, q, measure="smooth", **how),
                ]
                for k, attempt in enumerate(tries):
                    with suppress(cb.TooFewRecordsError):  # refused
                        hits[k] += attempt()
                        known[k] += 1
            shown = " | ".join(f"{100 * hit:.1f}" for hit in hits / known)
            yield f"| {number} x {size} | {shared:g} | {shown} |"


def overconfident(p: Any) -> Any:
    """Double the logits, which have an interval of the slope only within 1e-12 of 0 and 1."""
    return np.clip(p**2 / (p**2 + (1 - p) ** 2), 1e-9, 1 - 1e-9)


def weight_rows(sets: int) -> Iterator[str]:
    """Yield the size of the tests where events were sampled more often than others, or less."""
    yield "| sampled | n | omnibus, signs | Kuiper, signs | Kuiper, exact null |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    for name, kept in (
        ("a third of those without an event", (1 / 3, 1)),
        ("a third of the events", (1, 1 / 3)),
    ):
        for n in (200, 1000):
            rng, hits = np.random.default_rng([n, len(name)]), np.zeros(3)
            for seed in range(sets):
                p = rng.random(3 * n)
                y = (rng.random(3 * n) < p).astype(int)
                rows = np.flatnonzero(rng.random(3 * n) < np.take(kept, y))[:n]
                y, p, w = y[rows], p[rows], 1 / np.take(kept, y[rows])
                for k, (measure, null) in enumerate(
                    (("omnibus", "signs"), ("kuiper", "signs"), ("kuiper", "exact"))
                ):
                    found = cb.calibration_test(
                        y, p, sample_weight=w, measure=measure, null=null, draws=DRAWS, seed=seed
                    )
                    hits[k] += found.rejects()
            yield f"| {name} | {n:,} | " + " | ".join(f"{100 * hit / sets:.1f}" for hit in hits) + " |"


def benefit_rows(sets: int) -> Iterator[str]:
    """Yield how often exchangeable models are told apart: by the band, and by each threshold alone."""
    yield "| models | n | called different | by single thresholds |"
    yield "| --- | ---: | ---: | ---: |"
    for name, factor in (("calibrated", 1.0), ("logits x 3", 3.0)):
        for n in (300, 2000):
            rng, hits = np.random.default_rng([n, int(factor)]), np.zeros(2)
            for seed in range(sets):
                z = rng.normal(0, 1, n)
                y = rng.random(n) < expit(z)
                p, q = (expit(factor * (z + rng.normal(0, 0.7, n))) for _ in range(2))
                (pair,) = cb.net_benefits(y, p, q, draws=199, seed=seed).differences
                hits += [pair.better.any(), ((pair.lower > 0) | (pair.upper < 0)).any()]
            band, single = (100 * hits / sets).tolist()
            yield f"| exchangeable, {name} | {n:,} | {band:.1f} | {single:.1f} |"


def dominance_rows(sets: int) -> Iterator[str]:
    """Yield the coverage of the loss of one model against another, with few levels and rare events."""
    yield "| models | n | coverage | mean width |"
    yield "| --- | ---: | ---: | ---: |"

    def constants(rng: np.random.Generator, n: int) -> Any:
        return rng.random(n) < 0.02, np.full(n, 0.01), np.full(n, 0.03)

    def few_levels(rng: np.random.Generator, n: int) -> Any:
        high = rng.random(n) < 0.5
        moved = high ^ (rng.random(n) < 0.04)
        return rng.random(n) < np.where(high, 0.6, 0.1), np.where(moved, 0.7, 0.1), np.where(high, 0.7, 0.1)

    def continuous(rng: np.random.Generator, n: int) -> Any:
        z = rng.normal(0, 1, n)
        return (
            rng.random(n) < expit(z),
            expit(z + rng.normal(0, 0.5, n)),
            expit(2 * z + rng.normal(0, 0.5, n)),
        )

    cases: list[tuple[str, Callable[..., Any]]] = [
        ("two constants, 2% events", constants),
        ("two levels each", few_levels),
        ("continuous", continuous),
    ]
    for name, draw in cases:
        truth = cb.dominance(*draw(np.random.default_rng(0), 200_000), draws=0).loss
        for n in (50, 200):
            rng, held, width = np.random.default_rng(n), 0, 0.0
            for seed in range(sets):
                found = cb.dominance(*draw(rng, n), draws=DRAWS, seed=seed)
                held += found.lower - 1e-9 <= truth <= found.upper + 1e-9
                width += found.upper - found.lower
            yield f"| {name} | {n} | {100 * held / sets:.1f} | {width / sets:.3f} |"


def section(sets: int) -> str:
    """Return the section."""
    parts = [
        START,
        f"{sets} data sets per row. Percent of calibrated data"
        " sets rejected at the 5% level; for calibration in the large, percent of 95% intervals"
        ' that hold the true value. "As independent" is Kuiper\'s test without the clusters. Fewer than 10'
        " clusters of equal weight, or 5 with an outcome above or below its prediction, are refused.",
        "\n".join(cluster_rows(sets)),
        slopes(sets),
        'Outcomes sampled unequally and weighted back, tested with `null="signs"`:',
        "\n".join(weight_rows(sets)),
        "Percent of pairs of exchangeable models for which `net_benefits` names a better one (aim: 5):",
        "\n".join(benefit_rows(sets)),
        "Percent of the intervals of `dominance` that hold the true loss (aim: 95):",
        "\n".join(dominance_rows(sets)),
        END,
    ]
    return "\n\n".join(parts)


def slopes(sets: int) -> str:
    """Return the part of the section on slope and smooth error."""
    parts = [
        SLOPES_START,
        "Slope and smooth error on the same data: percent rejected at the 5% level, percent of 95% "
        "intervals that hold the true value, and the same intervals for overconfident predictions (logits "
        "doubled).",
        "\n".join(slope_rows(sets)),
        SLOPES_END,
    ]
    return "\n\n".join(parts)


def main() -> None:
    """Simulate, and put the section, or the part on slopes, in place."""
    options = argparse.ArgumentParser()
    options.add_argument("--sets", type=int, default=400)
    options.add_argument("--slopes", action="store_true", help="only the part on slope and smooth error")
    given = options.parse_args()
    start, end = (SLOPES_START, SLOPES_END) if given.slopes else (START, END)
    text = slopes(given.sets) if given.slopes else section(given.sets)
    for name in ("guarantees.in.md", "guarantees.md"):
        page = HERE / name
        old = page.read_text(encoding="utf-8")
        head, rest = old.split(start)
        page.write_text(head + text + rest.split(end)[1], encoding="utf-8")


if __name__ == "__main__":
    main()
