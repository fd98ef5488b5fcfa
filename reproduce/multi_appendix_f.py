"""Appendix F of "Measuring multi-calibration": the synthetic data set with closed forms."""

from __future__ import annotations

import math

import numpy as np

import calibrant as cb
from reproduce.layout import table

PAPER = "Measuring multi-calibration"
TITLE = "Appendix F: closed forms"
SIZES = (3, 5, 9, 21)


def synthetic(q: int) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """Return outcomes, predictions and the nested middle blocks, q odd."""
    n = q * (q + 1)
    j = np.arange(1, n + 1)
    block, place = (j - 1) // (q + 1) + 1, (j - 1) % (q + 1) + 1
    middle = {f"k={k}": (j > k * (q + 1)) & (j <= n - k * (q + 1)) for k in range(1, (q - 1) // 2 + 1)}
    return (place <= block).astype(int), (2 * j + q) / (2 * (q + 1) ** 2), middle


def ours(q: int) -> tuple[float, float]:
    """Return M and its ablation."""
    y, p, groups = synthetic(q)
    found = cb.audit(y, p, groups=groups, draws=0, min_size=1, seed=0)
    return found.metric, found.ablated


def closed_form(q: int) -> tuple[float, float]:
    """Equations (29) and (30)."""
    above = 2 * q**5 + 12 * q**4 + 27 * q**3 + 29 * q**2 + 16 * q + 4
    below = 3 * q**6 + 15 * q**5 + 29 * q**4 + 27 * q**3 + 13 * q**2 + 3 * q
    ablated = (2 * q + 3) / (8 * (q + 1))
    return ablated * math.sqrt(above / below), ablated


def page() -> str:
    """Return the section of the docs page."""
    rows = []
    for q in SIZES:
        (m, ablated), (exact, plain) = ours(q), closed_form(q)
        rows.append((q, m, exact, ablated, plain, ablated / m, math.sqrt(1.5 * q)))
    head = ["q", "M, ours", "equation (29)", "ablation, ours", "equation (30)", "ablation / M", "sqrt(1.5 q)"]
    return table(head, rows)


if __name__ == "__main__":
    print(page())
