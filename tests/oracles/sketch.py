"""The sums of a sketch by a dictionary, one record at a time."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field

from samples import Sample


@dataclass
class Cell:
    count: int = 0
    sums: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    low: float = math.inf
    high: float = -math.inf


def cell_sums(sample: Sample, cells: int) -> dict[int, Cell]:
    """Return what a sketch keeps, by cell: 0 for the prediction 0, cells + 1 for the prediction 1."""
    found: dict[int, Cell] = defaultdict(Cell)
    weights = [1.0] * len(sample.p) if sample.w is None else sample.w
    for v, y, w in zip(sample.p, sample.y, weights, strict=True):
        v, y, w = float(v) + 0.0, float(y), float(w)
        cell = found[0 if v == 0 else math.floor(v * cells) + 1]
        cell.count += 1
        cell.low, cell.high = min(cell.low, v), max(cell.high, v)
        terms = {"w": w, "ww": w * w, "wv": w * v, "wy": w * y, "wyv": w * y * v, "mixed": y * (1 - y)}
        terms |= {"wv(1-v)": w * v * (1 - v), "wwv(1-v)": w * w * v * (1 - v)}
        for name, term in terms.items():
            cell.sums[name] += term
    return found
