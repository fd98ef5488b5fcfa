"""What is promised after T rounds, T times the measure; docs/online-proofs.md proves it."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

ROUNDING = 4 * np.finfo(np.float64).eps  # per round: points of a fixed grid are not binary fractions
CUTOFF_RATE = 3.4  # between what is best at the end of a block of rounds (3.1) and at its beginning (3.6)
SLACK, SPLIT_COST = 0.25, 1.0  # of the guard: b and c of its theorem


def adaptive_bound(rounds: Any, delay: int = 0) -> Any:
    """Return the bound on the certificate of a grid that splits where it is used (theorems 1 and 2)."""
    d = delay + 1
    t = np.asarray(rounds, dtype=np.float64)
    late = delay / 4 * np.log2(1 + 3 * t / d)
    return 3 * np.sqrt(d * (t + d) / 2) - 2 * d + late


def uniform_cells(horizon: int, delay: int = 0) -> int:
    """Return the number of cells of the fixed grid that is best for that many rounds."""
    return max(1, round(math.sqrt(2 * horizon / (3 * (delay + 1)))))


def uniform_bound(rounds: Any, cells: int, delay: int = 0) -> Any:
    """Return the bound on the certificate of a fixed grid (theorem 3), and what adding up may round."""
    inner = np.arange(1, cells) / cells
    carried = (delay + 1) * float(np.maximum(inner, 1 - inner).sum())
    t = np.asarray(rounds, dtype=np.float64)
    return (carried + t / (2 * cells)) * (1 + ROUNDING * t)


def guard_bound(rounds: Any, delay: int = 0) -> Any:
    """Return the bound on the certificate of a grid with slack (theorem 4)."""
    b, c = SLACK, SPLIT_COST
    x = np.cbrt(7 * np.asarray(rounds, dtype=np.float64) / c + 1)  # cells when all levels are split
    return (4 * b + c) / 3 * (x**2 - 1) + (delay + 1) * (x + 1) + 2 * b + delay * np.log2(x)


def expected_error_bins(horizon: int, delay: int = 0) -> int:
    """Return the number of bins that is best for that many rounds."""
    return max(1, round(float(np.cbrt(horizon / (2 * delay + 1)))))


def expected_error_bound(rounds: Any, bins: int, delay: int = 0) -> Any:
    """Return the bound on the expected calibration error in expectation (theorem 5)."""
    t = np.asarray(rounds, dtype=np.float64)
    return t / (2 * bins) + np.sqrt((2 * delay + 1) * bins * t)


def log_potential(rounds: float, bins: int, groups: int = 1) -> float:
    """Return L: the expected sum of all potentials is at most exp(L) (theorem 6)."""
    return math.log(2 * bins * groups * (1 + 1.5 * (1 + math.log(1 + rounds / bins))))


def decision_loss_bound(rounds: float, bins: int, groups: int = 1, planned: float | None = None) -> float:
    """Return the bound on the expected decision loss (theorem 7), by its dual with the best multiplier."""
    from scipy.optimize import fminbound

    if rounds <= 0:
        return 0.0
    # `planned` counts the rounds of all groups, `rounds` those of one
    height = 3 * log_potential(rounds if planned is None else planned, bins, groups)
    steps = np.repeat(np.arange(1, bins) / bins, 2)
    gaps = np.concatenate([[-0.5 / bins, 0.0, 0.0], steps])[:bins]

    def dual(multiplier: float) -> float:
        return multiplier * rounds + float((height / (4 * (gaps + multiplier))).sum())

    low, high = 0.5 / bins * (1 + 1e-12), 0.5 / bins + math.sqrt(height * bins / rounds) + 1.0
    best = fminbound(lambda x: dual(math.exp(x)), math.log(low), math.log(high), xtol=1e-9)
    return 2 * dual(math.exp(float(best)))


@functools.cache
def decision_loss_bins(horizon: int, groups: int = 1) -> int:
    """Return the number of bins whose bound is smallest."""
    tried = np.unique(np.round(np.geomspace(2, max(3.0, math.sqrt(horizon)), 60)).astype(int))
    return min((int(m) for m in tried), key=lambda m: decision_loss_bound(horizon, m, groups))


def cutoff_block(round_: int, horizon: int | None = None) -> tuple[int, float, float]:
    """Return points, rate and last round of the block that a round of CutoffForecaster belongs to."""
    end = horizon if horizon is not None else 1 << (round_ - 1).bit_length()
    points = 1 << math.isqrt(end - 1).bit_length()
    if horizon is not None:
        return points, 4 * math.sqrt(math.log(3 * points) / end), math.inf
    return points, CUTOFF_RATE * math.sqrt(math.log(3 * points) / end), end


def cutoff_bound(rounds: Any, horizon: int | None = None) -> Any:
    """Return the bound on T times the Kuiper error in expectation (theorem 9)."""
    t = np.asarray(rounds, dtype=np.float64)
    total = np.zeros_like(t)
    begin, promised = 0.0, 0.0  # what the blocks before have added
    while True:
        points, rate, end = cutoff_block(int(begin) + 1, horizon)
        grown = math.expm1(rate**2 / 8 + rate / (2 * points))
        slope = math.log1p(grown / (1 + 1 / math.cosh(rate / 2))) / rate
        inside = (t > begin) & (t <= end)
        total = np.where(inside, promised + slope * (t - begin) + 2 * math.log(3 * points) / rate, total)
        if not np.any(t > end):
            return total
        promised, begin = promised + slope * (end - begin), end


def class_rate(round_: int, classes: int, horizon: int | None = None) -> float:
    """Return the parameter of the geometric noise of ClassForecaster in a round."""
    return min(1.0, math.sqrt(classes / (2 * round_ if horizon is None else horizon)))


def class_bound(rounds: int, classes: int, horizon: int | None = None) -> float:
    """Return the bound on the expected regret with payoffs from 0 to 1 (theorem 10)."""
    if rounds == 0:
        return 0.0
    last = class_rate(rounds, classes, horizon)
    if horizon is not None:
        return min(float(rounds), rounds * last + classes * (1 - last) / last)
    early = min(rounds, classes // 2)  # rounds whose rate is 1
    # sum of 1 / sqrt(t) for early < t <= rounds: at most the integral from early + 1/2 to rounds + 1/2
    later = math.sqrt(classes / 2) * 2 * (math.sqrt(rounds + 0.5) - math.sqrt(early + 0.5))
    return min(float(rounds), early + later + classes * (1 - last) / last)
