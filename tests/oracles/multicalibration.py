"""The multi-calibration metric straight from eqs. (1)-(6), one subpopulation and one record at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np


def kuiper(y: np.ndarray, p: np.ndarray, w: np.ndarray) -> float:
    """Eq. (3): the largest total over intervals of predictions; equal ones are in or out together."""
    values = sorted(set(p.tolist()))
    best = 0.0
    for i, low in enumerate(values):
        for high in values[i:]:
            inside = (p >= low) & (p <= high)
            best = max(best, abs(math.fsum((w * (y - p))[inside])))
    return best / math.fsum(w)


def sigma(p: np.ndarray, w: np.ndarray) -> float:
    """Eq. (5)."""
    return math.sqrt(math.fsum(w * w * p * (1 - p))) / math.fsum(w)


def successive_sigma(r: Sequence[float], s: Sequence[float], w: Sequence[float]) -> float:
    """Eq. (6), as printed."""
    n = len(r)
    top = sum((r[j] - s[j] - r[j + 1] + s[j + 1]) ** 2 * (w[j] + w[j + 1]) ** 2 for j in range(n - 1))
    bottom = 4 * sum(w) * (w[0] + w[-1] + 2 * sum(w[1:-1]))
    return math.sqrt(top / bottom)


def metric(y: np.ndarray, p: np.ndarray, w: np.ndarray, masks: list[np.ndarray]) -> float:
    """Eq. (4); subpopulation 0 is everyone."""
    base = sigma(p, w)
    best = 0.0
    for mask in [np.ones(len(p), bool), *masks]:
        d, s = kuiper(y[mask], p[mask], w[mask]), sigma(p[mask], w[mask])
        if d > 1e-12:
            best = max(best, d * base / s if s > 0 else d if base == 0 else math.inf)
    return best


def step_down(z: np.ndarray, simulated: np.ndarray) -> np.ndarray:
    """Westfall and Young's step-down p-values by their definition."""
    order = sorted(range(len(z)), key=lambda k: -z[k])
    out = np.empty(len(z))
    last = 0.0
    for i, k in enumerate(order):
        maxima = [max(simulated[j, b] for j in order[i:]) for b in range(simulated.shape[1])]
        last = max(last, (1 + sum(m >= z[k] for m in maxima)) / (1 + simulated.shape[1]))
        out[k] = last
    return out


def synthetic(q: int) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """Appendix F: outcomes, scores and the nested middle blocks, for odd q."""
    n = q * (q + 1)
    j = np.arange(1, n + 1)
    block, place = (j - 1) // (q + 1) + 1, (j - 1) % (q + 1) + 1
    middle = {f"k={k}": (j > k * (q + 1)) & (j <= n - k * (q + 1)) for k in range(1, (q - 1) // 2 + 1)}
    return (place <= block).astype(int), (2 * j + q) / (2 * (q + 1) ** 2), middle
