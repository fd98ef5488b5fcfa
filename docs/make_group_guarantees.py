"""Write the section on groups of docs/guarantees.md: false alarms and coverage when the model is wrong.

    python docs/make_group_guarantees.py [--sets 400] [--skewed]

Takes about nine minutes on one core, and three minutes with --skewed, for real responses alone. Every row
draws its own data sets, from seeds that depend on the names of the row alone.
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

HERE = Path(__file__).parent
START, END = "<!-- groups: begin -->", "<!-- groups: end -->"
SKEWED_START, SKEWED_END = "<!-- skewed: begin -->", "<!-- skewed: end -->"
LEVEL = 0.05
DRAWS = 99
RARELY = 1e-3  # chance of a mark where the size is 5%
Data = tuple[np.ndarray, np.ndarray]  # predictions and true rates
Model = Callable[[int, np.random.Generator], Data]


def _times(factor: float) -> Model:
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


MODELS: dict[str, Model] = {
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


Labels = Callable[[np.ndarray, np.random.Generator], np.ndarray]
LABELS: dict[str, tuple[Labels, int, bool]] = {  # who is in which group, how many records, weighted
    "2 at random": (_random_labels, 300, False),
    "2 at random, weighted": (_random_labels, 300, True),
    "5 that follow the prediction": (_following_labels, 300, False),
    "5 that follow it, few records": (_following_labels, 60, False),
    "a group of 5 records": (_small_group, 60, False),
}
CLUSTERS = ((15, 10, 0.0), (15, 10, 0.1), (15, 10, 0.4), (100, 5, 0.0), (100, 5, 0.1), (100, 5, 0.4),
            (300, 2, 0.4))  # fmt: skip


def _generator(name: str, k: int) -> np.random.Generator:
    return np.random.default_rng([k, zlib.crc32(name.encode())])


def comparisons(sets: int) -> Iterator[str]:
    """Yield a row per kind of groups and model: how often compare_groups finds a difference."""
    yield "| groups | n | " + " | ".join(MODELS) + " |"
    yield "| --- | ---: | " + " | ".join(["---:"] * len(MODELS)) + " |"
    for labels, (label, n, weighted) in LABELS.items():
        shares = []
        for model, draw in MODELS.items():
            alarms = tested = 0
            for k in range(sets):
                rng = _generator(f"{labels}, {model}", k)
                p, truth = draw(n, rng)
                y, group = (rng.random(n) < truth).astype(int), label(p, rng)
                weight = rng.lognormal(0, 0.7, n) if weighted else None
                if len(set(group)) < 2:
                    continue
                found = cb.compare_groups(
                    y, p, group, sample_weight=weight, draws=DRAWS, ordered=False, seed=k
                )
                tested += found.comparable
                alarms += found.comparable and found.pvalue <= LEVEL + 1e-12
            shares.append(_share(alarms, tested) + _refused(sets - tested, sets))
        yield f"| {labels} | {n} | {' | '.join(shares)} |"


def intervals(sets: int) -> Iterator[str]:
    """Yield a row per model: how often the interval of a group's difference holds the truth."""
    sizes = (10, 40, 200)
    yield "| model | " + " | ".join(f"groups of {size}" for size in sizes) + " | groups of 200, weighted |"
    yield "| --- " + "| ---: " * (len(sizes) + 1) + "|"
    for model, draw in MODELS.items():
        shares = []
        for size, weighted in (*((size, False) for size in sizes), (200, True)):
            held = known = 0
            for k in range(sets):
                rng = _generator(f"interval {size}, {weighted}, {model}", k)
                p, truth = draw(4 * size, rng)
                y, group = rng.random(len(p)) < truth, np.repeat(np.arange(4), size)
                weight = rng.lognormal(0, 0.7, len(p)) if weighted else np.ones(len(p))
                found = cb.audit(y, p, groups={"g": group}, sample_weight=weight, draws=0, min_size=1)
                for one in found.groups:
                    if one.rule.conditions and not np.isnan(one.limits[0]):
                        inside = one.rule.members({"g": group})
                        true = float(np.average((truth - p)[inside], weights=weight[inside]))
                        known += 1
                        held += one.limits[0] - 1e-9 <= true <= one.limits[1] + 1e-9
            shares.append(f"{100 * held / max(known, 1):.1f}" + _refused(4 * sets - known, 4 * sets))
        yield f"| {model} | {' | '.join(shares)} |"


def clusters(sets: int) -> Iterator[str]:
    """Yield a row per number of clusters and correlation: compare_groups and audit of clustered rows."""
    yield "| clusters x rows | correlation | compare_groups | audit | coverage | refused |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    for number, size, correlation in CLUSTERS:
        alarms, refused, held, known = np.zeros(2), 0, 0, 0
        for k in range(sets):
            rng = _generator(f"{number} x {size}, {correlation}", k)
            label = np.repeat(np.arange(number), size)
            n = len(label)
            shared = np.sqrt(correlation) * rng.normal(size=number)[label]
            luck = norm.cdf(shared + np.sqrt(1 - correlation) * rng.normal(size=n))
            p = norm.cdf(0.7 * rng.normal(size=number)[label] + 0.7 * rng.normal(size=n))
            y, group = (luck < p).astype(int), rng.integers(0, 3, n)
            try:
                compared = cb.compare_groups(y, p, group, draws=DRAWS, clusters=label, ordered=False, seed=k)
                audited = cb.audit(y, p, groups={"g": group}, draws=DRAWS, clusters=label, seed=k)
            except cb.TooFewRecordsError:
                refused += 1
                continue
            alarms += np.array([compared.pvalue, audited.pvalue]) <= LEVEL + 1e-12
            for one in compared.groups:
                if not np.isnan(one.lower):
                    known += 1
                    held += one.lower - 1e-9 <= 0 <= one.upper + 1e-9
        done = sets - refused
        found = (*(_share(int(alarm), done) for alarm in alarms), f"{100 * held / max(known, 1):.1f}")
        yield f"| {number} x {size} | {correlation:g} | {' | '.join(found)} | {100 * refused / sets:.1f} |"


def _lognormal(p: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return p * rng.lognormal(-0.5, 1, len(p))


def _exponential(p: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return p * rng.exponential(1, len(p))


def _half_points(p: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return 0.5 * (rng.random(len(p)) < 2 * p)


def _beta(p: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return rng.beta(0.4 * p, 0.4 * (1 - p))


Responses = Callable[[np.ndarray, np.random.Generator], np.ndarray]
SKEWED: dict[str, tuple[Responses, float, float]] = {  # outcomes, and the range of the predictions
    "lognormal": (_lognormal, 0.5, 2.0),
    "exponential": (_exponential, 0.5, 2.0),
    "half-points, 1 in 10": (_half_points, 0.03, 0.07),
    "shares, mostly near 0 or 1": (_beta, 0.05, 0.4),
}


def skewed(sets: int) -> Iterator[str]:
    """Yield a row per kind of outcomes: audits of real responses, right and wrong for one group of four."""
    yield "| outcomes | n | false alarms | refused | found |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    for name, (respond, low, high) in SKEWED.items():
        for n in (200, 1000):
            alarms, refused = np.zeros(2, dtype=int), 0
            for k in range(sets):
                rng = _generator(f"{name}, {n}", k)
                p, group = rng.uniform(low, high, n), rng.integers(0, 4, n)
                y = respond(p, rng)
                # the first group has outcomes for 1.5 times its predictions
                for wrong, means in enumerate((p, np.where(group == 0, p / 1.5, p))):
                    found = cb.audit(y, means, groups={"g": group}, variant="real", draws=DRAWS, seed=k)
                    alarms[wrong] += found.pvalue is not None and found.pvalue <= LEVEL + 1e-12
                    refused += found.pvalue is None and not wrong
            shares = _share(int(alarms[0]), sets), f"{100 * refused / sets:.0f}"
            yield f"| {name} | {n:,} | {' | '.join(shares)} | {100 * alarms[1] / sets:.0f} |"


def skewed_section(sets: int) -> str:
    """Return the part on skewed outcomes."""
    rows = list(skewed(sets))
    parts = [
        SKEWED_START,
        'Outcomes of any size with skewed errors (`variant="real"`) in four random groups: percent of '
        f"{sets} data sets in which `audit` finds a group, or everyone, wrong although all predictions are "
        "right; percent in which there is too little data for p-values; and percent in which it finds an "
        "error when the predictions for one group are two thirds of what they should be.",
        "\n".join(rows),
        f"Worst cell: {_extreme(rows, slice(2, 3), max)}.",
        SKEWED_END,
    ]
    return "\n\n".join(parts)


def _share(count: int, of: int) -> str:
    unlikely = of and binom.sf(count - 1, of, LEVEL) < RARELY
    return f"{100 * count / max(of, 1):.1f}{' !' if unlikely else ''}"


def _refused(count: int, of: int) -> str:
    return f" ({100 * count / of:.0f} refused)" if count else ""


def _extreme(lines: list[str], columns: slice, worst: Callable[..., float]) -> str:
    """Name the cell with the worst number among some columns of a table."""
    head, cells = lines[0].split(" | "), []
    for line in lines[2:]:
        row = line.strip("| ").split(" | ")
        cells += [(float(row[k].split()[0]), row[0], head[k].strip("| ")) for k in range(len(row))[columns]]
    value = worst(cell[0] for cell in cells)
    _, row_name, column = next(cell for cell in cells if cell[0] == value)
    return f"{value:.1f} ({row_name}; {column})"


def section(sets: int) -> str:
    """Return the section."""
    compared, held, clustered = (list(rows(sets)) for rows in (comparisons, intervals, clusters))
    parts = [
        START,
        f"{sets} data sets per cell. Percent of data sets in which `compare_groups` finds a difference at "
        "the 5% level although the groups share one calibration curve; ! marks more than 5% "
        "beyond chance (1 in 1,000). In parentheses is the percent in which it refuses to compare because no "
        "records with similar predictions differ in both group and outcome.",
        "\n".join(compared),
        f"Worst cell: {_extreme(compared, slice(2, None), max)}.",
        "Percent of 95% intervals of a group's difference in `audit` (observed rate minus mean prediction) "
        "that contain the true difference, given the predictions; four groups per data set. Weighted groups "
        "with fewer than 5 events, or fewer than 5 records without one, have no interval.",
        "\n".join(held),
        f"Worst cell: {_extreme(held, slice(1, None), min)}.",
        "Calibrated predictions of clustered rows in three random groups: percent of data sets in which "
        "`compare_groups` and `audit` find a difference at the 5% level, and percent of the groups' 95% "
        "intervals that contain 0. Fewer than 10 clusters of equal weight, or fewer than 5 with an outcome "
        "above or below its prediction, are refused.",
        "\n".join(clustered),
        f"Worst cells: {_extreme(clustered, slice(2, 4), max)} of the tests, "
        f"{_extreme(clustered, slice(4, 5), min)} of the intervals.",
        skewed_section(sets),
        END,
    ]
    return "\n\n".join(parts)


def main() -> None:
    """Simulate, and put the section in place."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--sets", type=int, default=400)
    options.add_argument("--skewed", action="store_true", help="only the part on skewed outcomes")
    given = options.parse_args()
    start, end = (SKEWED_START, SKEWED_END) if given.skewed else (START, END)
    text = skewed_section(given.sets) if given.skewed else section(given.sets)
    for name in ("guarantees.in.md", "guarantees.md"):
        page = HERE / name
        old = page.read_text(encoding="utf-8")
        head, rest = old.split(start)
        page.write_text(head + text + rest.split(end)[1], encoding="utf-8")


if __name__ == "__main__":
    main()
