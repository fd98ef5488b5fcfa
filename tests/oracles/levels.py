"""Level sets by a dictionary, the way one would on paper; normalised weights."""

from __future__ import annotations

from collections import defaultdict

from samples import Sample


def levels(sample: Sample) -> list[tuple[float, float, float]]:
    """Return (value, weight, weight of y) of every distinct prediction, ascending."""
    weight: dict[float, float] = defaultdict(float)
    outcome: dict[float, float] = defaultdict(float)
    for v, y, w in zip(sample.p, sample.y, sample.weights, strict=True):
        weight[float(v) + 0.0] += float(w)
        outcome[float(v) + 0.0] += float(w) * float(y)
    return [(v, weight[v], outcome[v]) for v in sorted(weight)]
