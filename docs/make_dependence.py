"""Write the section of docs/guarantees.md on dependent rows, weights, decision curves and dominance.

python docs/make_dependence.py [--sets 400] [--slopes] [--decisions]

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
DECISIONS_START, DECISIONS_END = "<!-- decisions: begin -->", "<!-- decisions: end -->"
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


def events_count_more(rng: np.random.Generator, y: Any) -> Any:
    """Draw weights that follow the outcome: an event weighs about ten times as much."""
    return np.where(y, 10.0, 1.0) * rng.choice([0.5, 1.5], len(y))


def benefit_rows(sets: int) -> Iterator[str]:
    """Yield how often exchangeable models are told apart: by the band, and by each threshold alone."""
    yield "| models | n | weights | called different | by single thresholds |"
    yield "| --- | ---: | --- | ---: | ---: |"
    for name, factor in (("calibrated", 1.0), ("logits x 3", 3.0)):
        for n in (300, 2000):
            for weights in ("none", "follow the outcome"):
                rng, hits = np.random.default_rng([n, int(factor)]), np.zeros(2)
                for seed in range(sets):
                    z = rng.normal(0, 1, n)
                    y = rng.random(n) < expit(z)
                    p, q = (expit(factor * (z + rng.normal(0, 0.7, n))) for _ in range(2))
                    w = None if weights == "none" else events_count_more(rng, y)
                    (pair,) = cb.net_benefits(y, p, q, sample_weight=w, draws=199, seed=seed).differences
                    hits += [pair.better.any(), ((pair.lower > 0) | (pair.upper < 0)).any()]
                band, single = (100 * hits / sets).tolist()
                yield f"| exchangeable, {name} | {n:,} | {weights} | {band:.1f} | {single:.1f} |"


def pointwise_rows(sets: int) -> Iterator[str]:
    """Yield the coverage of the net benefit at single thresholds, with weights that follow the outcome."""
    at = np.array([0.05, 0.1, 0.2, 0.5, 0.8])

    def draw(rng: np.random.Generator, n: int) -> Any:
        z = rng.normal(-1, 1, n)
        y = rng.random(n) < expit(z)
        return y, expit(2 * (z + rng.normal(0, 0.5, n))), events_count_more(rng, y)

    y, p, w = draw(np.random.default_rng(0), 2_000_000)
    truth = [np.sum(w * (p >= t) * (y - (1 - y) * t / (1 - t))) / w.sum() for t in at]
    yield "| n | " + " | ".join(f"{t:g}" for t in at) + " |"
    yield "| ---: " * (1 + len(at)) + "|"
    for n in (300, 2000):
        rng, held = np.random.default_rng(n), np.zeros(len(at))
        for _ in range(5 * sets):
            y, p, w = draw(rng, n)
            (found,) = cb.net_benefits(y, p, sample_weight=w, thresholds=at).models.values()
            held += (found.lower <= truth) & (truth <= found.upper)
        yield f"| {n:,} | " + " | ".join(f"{share:.1f}" for share in 20 * held / sets) + " |"


def dominance_rows(sets: int) -> Iterator[str]:
    """Yield the coverage of the loss of one model against another: few levels, rare events, weights."""
    yield "| models | n | coverage | mean width | refused |"
    yield "| --- | ---: | ---: | ---: | ---: |"

    def constants(rng: np.random.Generator, n: int) -> Any:
        return rng.random(n) < 0.02, np.full(n, 0.01), np.full(n, 0.03)

    def far_constants(rng: np.random.Generator, n: int) -> Any:
        return rng.random(n) < 0.02, np.full(n, 0.5), np.full(n, 0.1)

    def four_levels(rng: np.random.Generator, n: int) -> Any:
        rate = np.array([0.01, 0.02, 0.04, 0.1])[rng.integers(0, 4, n)]
        return rng.random(n) < rate, np.full(n, 0.02), rate

    def few_levels(rng: np.random.Generator, n: int) -> Any:
        high = rng.random(n) < 0.5
        moved = high ^ (rng.random(n) < 0.04)
        return rng.random(n) < np.where(high, 0.6, 0.1), np.where(moved, 0.7, 0.1), np.where(high, 0.7, 0.1)

    def continuous(rng: np.random.Generator, n: int) -> Any:
        z = rng.normal(0, 1, n)
        y = rng.random(n) < expit(z)
        return y, expit(z + rng.normal(0, 0.5, n)), expit(2 * z + rng.normal(0, 0.5, n))

    def exchangeable(rng: np.random.Generator, n: int) -> Any:
        z = rng.normal(0, 1, n)
        y = rng.random(n) < expit(z)
        return y, *(expit(2 * (z + rng.normal(0, 0.5, n))) for _ in range(2))

    cases: list[tuple[str, Callable[..., Any]]] = [
        ("0.01 against 0.03, 2% events", constants),
        ("0.5 against 0.1, 2% events", far_constants),
        ("a constant against four levels, 4% events", four_levels),
        ("two levels each", few_levels),
        ("continuous", continuous),
        ("continuous, exchangeable", exchangeable),
    ]
    for name, draw in cases:
        for weighted in (False, True):
            for n in (50, 200, 1000):
                rng, held, known, width = np.random.default_rng(n), 0, 0, 0.0
                population = np.random.default_rng(0)
                drawn = draw(population, 200_000)
                w = events_count_more(population, drawn[0]) if weighted else None
                truth = cb.dominance(*drawn, sample_weight=w, draws=0).loss
                for seed in range(sets):
                    drawn = draw(rng, n)
                    w = events_count_more(rng, drawn[0]) if weighted else None
                    with suppress(cb.TooFewRecordsError):  # refused
                        found = cb.dominance(*drawn, sample_weight=w, draws=DRAWS, seed=seed)
                        held += found.lower - 1e-9 <= truth <= found.upper + 1e-9
                        width += found.upper - found.lower
                        known += 1
                weights = ", weights follow the outcome" if weighted else ""
                refused = 100 * (1 - known / sets)
                shown = f"{100 * held / known:.1f} | {width / known:.3f}" if known else "- | -"
                yield f"| {name}{weights} | {n:,} | {shown} | {refused:.0f} |"


def section(sets: int) -> str:
    """Return the section."""
    parts = [
        START,
        f"{sets} data sets per row. Tests: percent of calibrated data sets rejected at the 5% level."
        " Calibration in the large: percent of 95% intervals that contain the true value."
        ' "As independent" is Kuiper\'s test without the clusters. Fewer than 10 clusters of equal weight, or'
        " fewer than 5 with an outcome above or below its prediction, are refused.",
        "\n".join(cluster_rows(sets)),
        slopes(sets),
        'Outcomes sampled unequally and weighted back, tested with `null="signs"`:',
        "\n".join(weight_rows(sets)),
        decisions(sets),
        END,
    ]
    return "\n\n".join(parts)


def slopes(sets: int) -> str:
    """Return the part of the section on slope and smooth error."""
    parts = [
        SLOPES_START,
        "Slope and smooth error on the same data: percent rejected at the 5% level, percent of 95% "
        "intervals that contain the true value, and the same for overconfident predictions (logits "
        "doubled).",
        "\n".join(slope_rows(sets)),
        SLOPES_END,
    ]
    return "\n\n".join(parts)


def decisions(sets: int) -> str:
    """Return the part of the section on net benefit and dominance."""
    parts = [
        DECISIONS_START,
        "Percent of pairs of exchangeable models for which `net_benefits` names a better one (aim: at "
        "most 5):",
        "\n".join(benefit_rows(sets)),
        "Percent of the intervals of `net_benefits` at one threshold that contain the true value, with "
        f"weights that depend on the outcome ({5 * sets:,} data sets; aim: 95):",
        "\n".join(pointwise_rows(sets)),
        "Percent of the intervals of `dominance` that contain the true loss (aim: at least 95), and percent "
        "of data sets refused because, with weights, there are fewer than 5 records of either outcome.",
        "\n".join(dominance_rows(sets)),
        DECISIONS_END,
    ]
    return "\n\n".join(parts)


def main() -> None:
    """Simulate, and put the section, or one part of it, in place."""
    options = argparse.ArgumentParser()
    options.add_argument("--sets", type=int, default=400)
    options.add_argument("--slopes", action="store_true", help="only the part on slope and smooth error")
    options.add_argument("--decisions", action="store_true", help="only net benefit and dominance")
    given = options.parse_args()
    start, end, write = START, END, section
    if given.slopes:
        start, end, write = SLOPES_START, SLOPES_END, slopes
    elif given.decisions:
        start, end, write = DECISIONS_START, DECISIONS_END, decisions
    text = write(given.sets)
    for name in ("guarantees.in.md", "guarantees.md"):
        page = HERE / name
        old = page.read_text(encoding="utf-8")
        head, rest = old.split(start)
        page.write_text(head + text + rest.split(end)[1], encoding="utf-8")


if __name__ == "__main__":
    main()
