"""The measures that are simple functionals, straight from their definitions, record by record."""

from __future__ import annotations

import itertools
import math

import numpy as np
from samples import Sample

from oracles.levels import levels


def ece(sample: Sample, norm: float = 1, root: bool = False) -> float:
    gaps = [(w, abs(a / w - v)) for v, w, a in levels(sample)]
    if math.isinf(norm):
        return max(gap for _, gap in gaps)
    total = sum(w * gap**norm for w, gap in gaps)
    return total ** (1 / norm) if root else total


def _quantile_bin(sample: Sample, value: float, bins: int) -> int:
    """The bin in which the middle of a level's weight falls."""
    below = sum(w for v, w, _ in levels(sample) if v < value)
    own = sum(w for v, w, _ in levels(sample) if v == value)
    return sum(below + own / 2 >= k / bins - 1e-12 for k in range(1, bins))


def _bins(sample: Sample, bins: object, strategy: str) -> list[list[int]]:
    """The records of every occupied bin."""
    edges = [k / bins for k in range(bins + 1)] if isinstance(bins, int) else list(bins)
    found: dict[int, list[int]] = {}
    for i, v in enumerate(sample.p):
        if isinstance(bins, int) and strategy == "quantile":
            k = _quantile_bin(sample, v, bins)
        else:
            k = sum(v >= edge for edge in edges[1:-1])
        found.setdefault(k, []).append(i)
    return [found[k] for k in sorted(found)]


def binned(sample: Sample, bins: object = 15, strategy: str = "uniform", norm: object = 1) -> float:
    w = sample.weights
    gaps = [
        (w[rows].sum(), abs(np.sum(w[rows] * (sample.y[rows] - sample.p[rows])) / w[rows].sum()))
        for rows in _bins(sample, bins, strategy)
    ]
    if norm == "max":
        return max(gap for _, gap in gaps)
    total = sum(weight * gap**norm for weight, gap in gaps)
    return math.sqrt(total) if norm == 2 else total


def ubse(sample: Sample, bins: int | None = None, strategy: str = "quantile") -> float:
    w = sample.weights
    bins = max(1, round(len(w) ** (1 / 3))) if bins is None else bins
    rows_of = _bins(sample, bins, strategy)
    return sum(float(np.sum(w[rows] * (sample.y[rows] - sample.p[rows]))) ** 2 for rows in rows_of)


def _interval_sum(sample: Sample, low: float, high: float) -> float:
    inside = (sample.p >= low) & (sample.p <= high)
    return float(np.sum((sample.weights * (sample.y - sample.p))[inside]))


def ks(sample: Sample) -> float:
    return max(abs(_interval_sum(sample, 0, high)) for high in sample.p)


def kuiper(sample: Sample) -> float:
    """The cutoff calibration error, over all intervals of predictions."""
    values = np.unique(sample.p)
    return max(abs(_interval_sum(sample, a, b)) for a in values for b in values if a <= b)


def atb(sample: Sample, norm: int = 2) -> float:
    """Integrate over the threshold piece by piece; between predictions the two bins do not change."""
    cuts = [0.0, *np.unique(sample.p), 1.0]
    total = 0.0
    for low, high in itertools.pairwise(cuts):
        left = (sample.p < high) if high > low else np.zeros(len(sample.p), bool)
        residual = sample.weights * (sample.y - sample.p)
        total += (high - low) * (abs(residual[left].sum()) ** norm + abs(residual[~left].sum()) ** norm)
    return total


def brier(sample: Sample) -> float:
    v, y = sample.p, sample.y
    return float(np.sum(sample.weights * (y * (1 - v) ** 2 + (1 - y) * v**2)))


def log_loss(sample: Sample, predictions: np.ndarray | None = None) -> float:
    eps = np.finfo(float).eps
    v = np.clip(sample.p if predictions is None else predictions, eps, 1 - eps)
    return float(-np.sum(sample.weights * (sample.y * np.log(v) + (1 - sample.y) * np.log(1 - v))))


def isotonic(sample: Sample) -> dict[float, float]:
    """Isotonic regression by its max-min formula over the levels."""
    table = levels(sample)
    fitted = {}
    for j, (v, _, _) in enumerate(table):
        fitted[v] = max(min(_mean(table[i : k + 1]) for k in range(j, len(table))) for i in range(j + 1))
    return fitted


def _mean(rows: list[tuple[float, float, float]]) -> float:
    return sum(a for _, _, a in rows) / sum(w for _, w, _ in rows)


def miscalibration(sample: Sample, score: str = "brier") -> float:
    fit = isotonic(sample)
    fitted = np.array([fit[float(v) + 0.0] for v in sample.p])
    if score == "log":
        return log_loss(sample) - log_loss(sample, fitted)
    return brier(sample) - brier(Sample(sample.y, fitted, sample.w))


def in_the_large(sample: Sample) -> float:
    return float(np.sum(sample.weights * (sample.y - sample.p)))


def ici(sample: Sample, quantile: float | None = None) -> float:
    fit = isotonic(sample)
    gaps = sorted((abs(fit[float(v) + 0.0] - v), w) for v, w in zip(sample.p, sample.weights, strict=True))
    if quantile is None:
        return float(sum(g * w for g, w in gaps))
    reached = 0.0
    for gap, w in gaps:
        reached += w
        if reached >= quantile - 1e-12:
            return float(gap)
    return float(gaps[-1][0])


def omnibus(sample: Sample) -> float:
    """-log of the smaller p-value of Kuiper's range (Feller's series) and Cox's score, for 0/1 outcomes."""
    from scipy.stats import chi2, norm

    r, spread = sample.weights * (sample.y - sample.p), sample.weights**2 * sample.p * (1 - sample.p)
    inside = (sample.p > 0) & (sample.p < 1)
    p, spread = sample.p[inside], spread[inside]
    logit = np.log(p) - np.log1p(-p)
    score, rank = np.sum(r) ** 2 / np.sum(spread), 1
    if len(set(p.tolist())) > 1:
        away = logit - np.average(logit, weights=spread)
        score, rank = score + np.sum(r[inside] * away) ** 2 / np.sum(spread * away**2), 2
    ratio = kuiper(sample) / math.sqrt(spread.sum())
    h = (np.arange(1, 200) - 0.5) * math.pi
    below = np.sum((8 / ratio**2 + 2 / h**2) * np.exp(-2 * h**2 / ratio**2)) if ratio > 0.01 else 0.0
    log_kuiper = math.log1p(-below) if ratio < 4 else math.log(8) + norm.logsf(ratio)
    return -min(log_kuiper, float(chi2.logsf(score, rank)))


def observed_expected(sample: Sample) -> float:
    return float(np.sum(sample.weights * sample.y) / np.sum(sample.weights * sample.p))


def c_statistic(sample: Sample) -> float:
    """Every pair of an event and a non-event; a fraction is some of both."""
    pairs = [
        (w * y * v * (1 - z), 1.0 if p > q else 0.5 if p == q else 0.0)
        for p, y, w in zip(sample.p, sample.y, sample.weights, strict=True)
        for q, z, v in zip(sample.p, sample.y, sample.weights, strict=True)
    ]
    return sum(w * order for w, order in pairs) / sum(w for w, _ in pairs)
