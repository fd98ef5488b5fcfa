"""Properties in the truthfulness paper, measured: ranks, completeness, soundness, continuity."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import calibrant as cb
from calibrant.truthfulness.search import Expected, Scored, all_outcomes, chances
from reproduce.layout import table

PAPER = "A Perfectly Truthful Calibration Measure"
TITLE = "Theorem 1.6 and sections 4 to 6: ranks, completeness, continuity"
PAIRS, ROUNDS = 400, 5
MOVES = 1500

RANKED: dict[str, tuple[str, dict[str, Any], int]] = {  # measure, options, inversions known beforehand
    "ECE": ("level-set", {}, 174),
    "binned": ("binned", {}, 175),
    "ECE, squared": ("level-set", {"norm": 2}, 154),
    "Kuiper": ("kuiper", {}, 112),
    "l1-ATB": ("l1-atb", {}, 92),
    "KS": ("ks", {}, 84),
    "Laplace kernel": ("kernel", {}, 61),
    "ATB": ("atb", {}, 0),
    "UBSE, 2 quantile bins": ("ubse", {"bins": 2}, 0),
    "Laplace kernel, squared": ("kernel-squared", {}, 0),
    "Brier": ("brier", {}, 0),
}
BINNED = {  # whether by rank, power, inversions known beforehand
    "2 equal bins, squared": (False, 2, 107),
    "2 quantile bins": (True, 1, 95),
    "2 quantile bins, squared": (True, 2, 20),
}

Measure = Callable[[Any, Any], float]
MEASURES: dict[str, Measure] = {
    "ECE": cb.level_set_error,
    "binned, 15 bins": cb.binned_calibration_error,
    "smooth": cb.smooth_calibration_error,
    "l1-ATB": lambda y, p: cb.averaged_two_bin_error(y, p, norm=1),
    "Kuiper": cb.kuiper_error,
    "Laplace kernel": cb.kernel_calibration_error,
    "ATB": cb.averaged_two_bin_error,
    "UBSE": cb.binned_squared_error,
    "Brier": cb.brier_score,
}
TRUTHS: dict[str, Callable[[Any], Any]] = {
    "calibrated": lambda v: v,
    "shifted by .1": lambda v: np.clip(v + 0.1, 0, 1),
    "too extreme": lambda v: 0.5 + 0.6 * (v - 0.5),
}
LIPSCHITZ = {"lower distance": 1.0, "smooth": 2.0, "l1-ATB": 3.0, "ATB": 6.0}


def reports(rng: np.random.Generator, truth: Any) -> list[Any]:
    """Return two reports: the truth pooled at random, and then often shifted."""
    found = []
    for _ in range(2):
        pool = rng.integers(0, len(truth), len(truth))
        report = np.array([truth[pool == pool[i]].mean() for i in range(len(truth))])
        found.append(np.clip(report + rng.normal(0, 0.1) * (rng.random() < 0.7), 0, 1))
    return found


def two_bins(report: Any, outcomes: Any, by_rank: bool, power: int) -> Any:
    """Return the error of two bins for each row of outcomes; equal reports are cut in every order alike."""
    n, total = len(report), np.zeros(len(outcomes))
    cuts = [np.flatnonzero(report < 0.5), np.flatnonzero(report >= 0.5)]
    orders = [list(o) for o in itertools.permutations(range(n)) if (np.diff(report[list(o)]) >= 0).all()]
    partitions = [np.array_split(order, 2) for order in orders] if by_rank else [cuts]
    for bins in partitions:
        for rows in (rows for rows in bins if len(rows)):
            gap = np.abs((outcomes - report)[:, rows].mean(axis=1))
            total += len(rows) / n * gap**power
    return total / len(partitions)


def values(name: str, truth: Any, two: list[Any]) -> tuple[list[float], list[float]]:
    """Return the expected values on a sample of two reports, and their values in the population."""
    if name in RANKED:
        measure, options, _ = RANKED[name]
        expected = Expected(Scored(measure, options), truth)
        return [expected(report) for report in two], [expected.of_population(report) for report in two]
    by_rank, power, _ = BINNED[name]
    outcomes = all_outcomes(len(truth))
    weights = chances(outcomes, truth)
    sample = [float(weights @ two_bins(report, outcomes, by_rank, power)) for report in two]
    return sample, [float(two_bins(report, truth[None], by_rank, power)[0]) for report in two]


def inversions(name: str, pairs: int = PAIRS) -> tuple[int, int]:
    """Count pairs of reports that the expected sample value ranks against the population value."""
    rng, wrong, counted = np.random.default_rng(1), 0, 0
    for _ in range(pairs):
        truth = rng.random(ROUNDS)
        sample, population = values(name, truth, reports(rng, truth))
        if abs(population[0] - population[1]) > 1e-9:
            counted += 1
            wrong += (sample[0] - sample[1]) * (population[0] - population[1]) < -1e-15
    return wrong, counted


def responses(name: str, n: int = 100_000, runs: int = 4) -> list[float]:
    """Return the mean of a measure where outcomes follow the predictions, are shifted, or less extreme."""
    rng = np.random.default_rng(0)
    found = []
    for truth in TRUTHS.values():
        values = []
        for _ in range(runs):
            v = rng.random(n)
            values.append(float(MEASURES[name](rng.random(n) < truth(v), v)))
        found.append(float(np.mean(values)))
    return found


def steepest(measure: Measure, moves: int = MOVES) -> float:
    """Return the largest change of a measure per mean move of the predictions, over small random moves."""
    rng, most = np.random.default_rng(0), 0.0
    for _ in range(moves):
        v, y = np.round(rng.random(8), 1), rng.integers(0, 2, 8)
        moved = np.clip(v + 10 ** rng.uniform(-4, -1) * rng.choice([-1, 0, 1], 8), 0, 1)
        distance = float(np.abs(v - moved).mean())
        if distance > 0:
            most = max(most, abs(float(measure(y, v)) - float(measure(y, moved))) / distance)
    return most


def page() -> str:
    """Return the section of the docs page."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cb.LevelSetWarning)
        return "\n\n".join([_ranks(), _complete(), _continuous()])


def _ranks() -> str:
    text = (
        "**Ranks** (Theorem 1.6). Random truths of five rounds and two reports each: how often the expected "
        "value on a sample ranks the reports against their population values. The paper proves 0 for ATB."
    )
    rows = []
    for name, (_, _, known) in sorted((RANKED | BINNED).items(), key=lambda item: -item[1][2]):
        wrong, counted = inversions(name)
        rows.append((name, f"{wrong} of {counted}", known))
    return f"{text}\n\n{table(['measure', 'inversions', 'an independent count'], rows)}"


def _complete() -> str:
    text = (
        "**Completeness and soundness**, 100,000 records, predictions uniform. A complete measure tends to 0 "
        "where outcomes follow the predictions, a sound one does not where they do not. The ECE is not "
        "complete on continuous predictions; the Brier score measures more than calibration; UBSE shrinks "
        "with its number of bins, and is sound only relative to it."
    )
    rows = [(name, *(f"{value:.6f}" for value in responses(name))) for name in MEASURES]
    return f"{text}\n\n{table(['measure', *TRUTHS], rows)}"


def _continuous() -> str:
    text = (
        "**Continuity** (Theorem 4.4 for ATB): the largest change per mean move of the predictions over "
        "1,500 small moves of eight predictions, next to the proved constant."
    )
    every = {"lower distance": cb.lower_distance, **MEASURES}
    rows = []
    for name, measure in every.items():
        found = steepest(measure, 150 if name == "lower distance" else MOVES)
        shown = f"{found:.2f}" if found < 10 else "unbounded" if found > 100 else f"{found:.1f}"
        rows.append((name, shown, LIPSCHITZ.get(name, "")))
    return f"{text}\n\n{table(['measure', 'largest', 'proved'], rows)}"


if __name__ == "__main__":
    print(page())
