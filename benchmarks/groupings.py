"""How close the upper distance is proven to be: 200 random samples with 14 to 60 levels.

Run `python -m benchmarks.groupings` (about 15 minutes on one core); docs/upper-distance.md shows the table.
"""

from __future__ import annotations

import json
from itertools import product
from time import perf_counter

import numpy as np

from benchmarks.harness import RESULTS, machine
from calibrant.kernels.partitions import LevelMasses, grouping_cost
from calibrant.metrics.distance.grouping import Bracket
from calibrant.metrics.distance.upper import proven_grouping

KINDS = ("uniform", "counts", "labels", "weighted labels", "ties", "grid")
LEVELS = (14, 20, 30, 40, 60)
SEEDS = 7  # 5 sizes x 6 kinds x 7 seeds = 210 samples


def sample(kind: str, size: int, seed: int) -> LevelMasses:
    """Return the levels of one random sample."""
    rng = np.random.default_rng(seed)
    v, w = np.sort(rng.random(size)), np.ones(size)
    if kind == "uniform":
        w, r = rng.random(size) + 0.05, rng.random(size)
    elif kind == "counts":
        w = rng.integers(1, 30, size).astype(float)
        r = rng.binomial(w.astype(int), 0.1 + 0.8 * v) / w
    elif kind == "labels":
        r = (rng.random(size) < v**1.5).astype(float)
    elif kind == "weighted labels":
        w, r = rng.random(size) + 0.05, (rng.random(size) < v).astype(float)
    elif kind == "ties":
        v = np.sort(np.round(10 * v) / 10)
        w, r = rng.integers(1, 5, size).astype(float), np.round(4 * rng.random(size)) / 4
    else:
        v = (np.arange(size) + 0.5) / size
        w = rng.integers(5, 60, size).astype(float)
        r = rng.binomial(w.astype(int), np.clip(v + 0.1 * np.sin(9 * v), 0, 1)) / w
    w = w / w.sum()
    return LevelMasses(v, w, w * r)


def gap_and_seconds(kind: str, size: int, seed: int, seconds: float = 15.0) -> tuple[float, float]:
    """Return the proven relative gap of one sample and the time it took."""
    levels = sample(kind, size, seed)
    begin = perf_counter()
    apart = Bracket(0.0, grouping_cost(levels, np.arange(size)), np.arange(size))
    found = proven_grouping(levels, apart, 1.0, seconds)
    return 1 - found.lower / found.upper if found.upper > 0 else 0.0, perf_counter() - begin


def main() -> None:
    """Print a table of the largest gap and time for each number of levels; keep every sample as JSON."""
    gap_and_seconds("uniform", 14, 0)  # compiles
    print("| levels | samples | largest gap | median gap | median seconds | slowest |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: |")
    samples = []
    for size in LEVELS:
        for kind, seed in product(KINDS, range(SEEDS)):
            gap, taken = gap_and_seconds(kind, size, seed)
            samples.append({"levels": size, "kind": kind, "seed": seed, "gap": gap, "seconds": taken})
        found = [one for one in samples if one["levels"] == size]
        gaps, times = (np.array([one[name] for one in found]) for name in ("gap", "seconds"))
        cells = [
            f"{100 * gaps.max():.2f}%",
            f"{100 * np.median(gaps):.2f}%",
            f"{np.median(times):.1f}",
            f"{times.max():.1f}",
        ]
        print(f"| {size} | {len(found)} | {' | '.join(cells)} |", flush=True)
        kept = json.dumps({"machine": machine(), "samples": samples}, indent=1)
        (RESULTS / "groupings.json").write_text(kept + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
