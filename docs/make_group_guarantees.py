"""Write the tables about groups of docs/guarantees.md: false alarms and coverage when the model is wrong.

    python docs/make_group_guarantees.py [--sets 400] [--page docs/guarantees_groups.md]

Every row draws its own data sets. Size is the share of data sets in which a test of level 5 % finds a
difference that is not there; coverage is that of 95 % intervals, given the predictions.
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from scipy.special import expit, logit
from scipy.stats import binom, norm

import calibrant as cb

LEVEL = 0.05
DRAWS = 99
Data = tuple[np.ndarray, np.ndarray]  # predictions and true rates


def _times(factor: float) -> Callable[[int, np.random.Generator], Data]:
    def draw(n: int, rng: np.random.Generator) -> Data:
        truth = expit(rng.normal(0, 1, n))
        return expit(factor * logit(truth)), truth

    return draw


def _two_values(n: int, rng: np.random.Generator) -> Data:
    high = rng.integers(0, 2, n) == 1
    return np.where(high, 0.98, 0.02), np.where(high, 0.7, 0.3)


def _step(n: int, rng: np.random.Generator) -> Data:
    p = rng.random(n)
    return p, np.where(p < 0.5, 0.2, 0.8)


def _valley(n: int, rng: np.random.Generator) -> Data:
    p = rng.random(n)
    return p, 0.1 + 3.2 * (p - 0.5) ** 2


def _rare(n: int, rng: np.random.Generator) -> Data:
    truth = expit(-4 + rng.normal(0, 1, n))
    return expit(3 * logit(truth) + 6), truth


MODELS: dict[str, Callable[[int, np.random.Generator], Data]] = {
    "calibrated": _times(1),
    "logits x 2": _times(2),
    "logits x 3": _times(3),
    "logits x 5": _times(5),
    "0.02 and 0.98, truth 0.3 and 0.7": _two_values,
    "step curve": _step,
    "U curve": _valley,
    "rare, logits x 3": _rare,
}


def _random_labels(p: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return rng.integers(0, 2, len(p))


def _following_labels(p: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    rank = np.argsort(np.argsort(p + 1e-9 * rng.random(len(p)))) / len(p)
    return np.clip((5 * (rank + rng.normal(0, 0.2, len(p)))).astype(int), 0, 4)


def _small_group(p: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return (rng.permutation(len(p)) < 5).astype(int)


LABELS = {
    "2 at random": _random_labels,
    "5 that follow the prediction": _following_labels,
    "a group of 5": _small_group,
}


def _generator(name: str, k: int) -> np.random.Generator:
    return np.random.default_rng([k, zlib.crc32(name.encode())])


def comparisons(sets: int) -> Iterator[str]:
    """Yield a row per model, labels and size: how often groups are said to differ, and coverage."""
    for labels, model in ((one, other) for one in LABELS for other in MODELS):
        for n in (60, 300):
            alarms = covered = bounded = 0
            for k in range(sets):
                rng = _generator(f"{labels}, {model}, {n}", k)
                p, truth = MODELS[model](n, rng)
                y = (rng.random(n) < truth).astype(int)
                group = LABELS[labels](p, rng)
                if len(set(group)) < 2:
                    continue
                found = cb.compare_groups(y, p, group, draws=DRAWS, ordered=False)
                alarms += found.pvalue <= LEVEL + 1e-12
                for level in found.groups:
                    true = float((truth - p)[group == int(level.name)].mean())
                    bounded += 1
                    covered += level.lower - 1e-9 <= true <= level.upper + 1e-9
            yield _row((labels, model, f"{n}"), alarms, sets, covered, bounded)


def clusters(sets: int) -> Iterator[str]:
    """Yield a row per number of clusters and correlation: compare_groups and audit of clustered rows."""
    for number, size, correlation in ((15, 10, 0.4), (30, 10, 0.4), (100, 10, 0.1), (100, 10, 0.4),
                                      (300, 3, 0.0), (300, 3, 0.4)):  # fmt: skip
        name = f"{number} clusters of {size}"
        alarms, refused = np.zeros(2), 0
        for k in range(sets):
            rng = _generator(f"{name}, {correlation}", k)
            label = np.repeat(np.arange(number), size)
            n = len(label)
            luck = np.sqrt(correlation) * rng.normal(size=number)[label]
            luck = norm.cdf(luck + np.sqrt(1 - correlation) * rng.normal(size=n))
            p = norm.cdf(0.7 * rng.normal(size=number)[label] + 0.7 * rng.normal(size=n))
            y, group = (luck < p).astype(int), rng.integers(0, 3, n)
            try:
                compared = cb.compare_groups(y, p, group, draws=DRAWS, clusters=label, ordered=False)
                audited = cb.audit(y, p, groups={"g": group}, draws=DRAWS, clusters=label)
            except cb.TooFewRecordsError:
                refused += 1
                continue
            alarms += np.array([compared.pvalue, audited.pvalue]) <= LEVEL + 1e-12
        done = sets - refused
        shares = " | ".join(f"{100 * alarm / max(done, 1):.1f}{_mark(int(alarm), done)}" for alarm in alarms)
        yield f"| {name} | {correlation} | {shares} | {100 * refused / sets:.1f} |"


def _mark(count: int, of: int) -> str:
    return " !" if of and binom.sf(count - 1, of, LEVEL) < 1e-3 else ""


def _row(names: tuple[str, ...], alarms: int, sets: int, covered: int, bounded: int) -> str:
    size, coverage = 100 * alarms / sets, 100 * covered / max(bounded, 1)
    return f"| {' | '.join(names)} | {size:.1f}{_mark(alarms, sets)} | {coverage:.1f} |"


def main() -> None:
    """Simulate and write the tables."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--sets", type=int, default=400)
    options.add_argument("--page", type=Path, default=Path(__file__).parent / "guarantees_groups.md")
    given = options.parse_args()
    lines = [
        "# Groups: false alarms and coverage when the model is wrong",
        "",
        f"Each row has {given.sets:,} data sets. Size is the share in which a test of level 5 % finds a "
        "difference that is not there; ! marks a size above 5 % by more than chance (1 in 1,000). Coverage "
        "is that of 95 % intervals of each group's difference, given the predictions. All in percent.",
        "",
        "## compare_groups, one calibration curve for all groups",
        "",
        "| groups | model | n | size | coverage |",
        "| --- | --- | ---: | ---: | ---: |",
        *comparisons(given.sets),
        "",
        "## Clustered rows, calibrated predictions, three random groups",
        "",
        "| clusters | correlation | size of compare_groups | size of audit | refused |",
        "| --- | ---: | ---: | ---: | ---: |",
        *clusters(given.sets),
    ]
    given.page.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
