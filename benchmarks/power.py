"""Power of tests of calibration at equal size, ours next to MAPIE's and probcal's; writes docs/power.md.

Every test is cut at the same simulated size: its critical value is the 5 % quantile of its own p-value
(or the 95 % quantile of its statistic) under calibration, so that p-values that are too small gain nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import calibrant as cb
from benchmarks.harness import Report, peer, version
from calibrant.inference.testing import CLASSIC, DEFAULT_TEST, badness, center_of

N = 1000
LEVEL = 0.05
DISTANCES = {"even": (0.025, 0.01), "rare": (0.01, 0.005)}  # from calibration: plain and slight
DRAWS = 2000  # outcomes under each hypothesis, for our tests
PEER_DRAWS = 500
TARGET = Path(__file__).parent.parent / "docs" / "power.md"

Test = Callable[[np.ndarray, np.ndarray], float]  # outcomes, predictions -> p-value


def logistic(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def logit(p: np.ndarray) -> np.ndarray:
    return np.log(p) - np.log1p(-p)


# A way of being wrong: predictions and its size to true probabilities.
WAYS: dict[str, Callable[[np.ndarray, float], np.ndarray]] = {
    "up": lambda p, a: logistic(logit(p) + a),
    "down": lambda p, a: logistic(logit(p) - a),
    "overconfident": lambda p, a: logistic(logit(p) / (1 + a)),
    "underconfident": lambda p, a: logistic(logit(p) * (1 + a)),
    "at 0.5": lambda p, a: p + a * np.maximum(0, 1 - np.abs(p - 0.5) / 0.15),
    "at 0.2": lambda p, a: p + a * np.maximum(0, 1 - np.abs(p - 0.2) / 0.15),
    "upper": lambda p, a: p - a * np.maximum(0, p - 0.75),
    "lower": lambda p, a: p + a * np.maximum(0, 0.25 - p),
    "upper half": lambda p, a: p * np.where(p > np.median(p), 1 + a, 1.0),
}

# Five kinds of error, two ways each, so that no kind and no direction counts more than another.
KINDS: dict[str, tuple[str, tuple[str, str]]] = {
    "shift": ("even", ("up", "down")),
    "scale": ("even", ("overconfident", "underconfident")),
    "local bump": ("even", ("at 0.5", "at 0.2")),
    "tail": ("even", ("upper", "lower")),
    "rare events": ("rare", ("up", "upper half")),
}


def predictions() -> dict[str, np.ndarray]:
    """Two shapes of predictions: spread over [0, 1], and of rare events, with mean 0.02."""
    rng = np.random.default_rng(0)
    return {"even": np.sort(rng.beta(1.2, 1.2, N)), "rare": np.sort(rng.beta(0.6, 30, N))}


def at_distance(p: np.ndarray, way: str, distance: float) -> np.ndarray:
    """Return true probabilities that put the predictions at this lower distance to calibration."""
    from scipy.optimize import brentq

    def truth(size: float) -> np.ndarray:
        return np.clip(WAYS[way](p, size), 0, 1)

    def excess(size: float) -> float:
        return cb.lower_distance(cb.Forecasts(truth(size), p), tolerance=1e-4) - distance

    return truth(brentq(excess, 1e-6, 3.0, xtol=1e-3))


def powers_of_ours(p: np.ndarray, truths: list[np.ndarray]) -> dict[str, list[float]]:
    """Simulate each hypothesis once and evaluate every statistic on the same outcomes."""
    generator = np.random.default_rng(1)
    forecasts = cb.Forecasts(generator.random(N) < p, p)
    order = np.searchsorted(p, forecasts.values)
    under, *over = (
        (generator.random((DRAWS, N)) < chances[order]) / N - forecasts.weights * forecasts.values
        for chances in (p, *truths)
    )
    found = {}
    for row in our_tests(forecasts):
        center = center_of(forecasts, row)
        null, *others = (
            badness(row, row.null.batch(forecasts, draws.copy(), row.options), center)
            for draws in (under, *over)
        )
        cut = np.quantile(null, 1 - LEVEL)
        found[row.name] = [float(np.mean(other > cut)) for other in others]
    return found


def our_tests(forecasts: cb.Forecasts) -> list[Any]:
    """Every row that is quick to simulate and means something when all predictions differ."""
    rows = [row for row in cb.measures().values() if row.null.batch and not row.needs_level_sets]
    return rows + [make(forecasts, {}) for make in CLASSIC.values()]


def peers() -> dict[str, Test]:
    """The tests of other packages that are installed here."""
    found: dict[str, Test] = {}
    if peer("mapie"):
        from mapie.metrics import calibration as mapie

        found[f"{version('mapie')} Kuiper"] = lambda y, p: mapie.kuiper_p_value(y, p)
        found[f"{version('mapie')} KS"] = lambda y, p: mapie.kolmogorov_smirnov_p_value(y, p)
        found[f"{version('mapie')} Spiegelhalter"] = lambda y, p: mapie.spiegelhalter_p_value(y, p)
    if peer("probcal"):
        from probcal import metrics

        found[f"{version('probcal')} Cox (likelihood ratio)"] = lambda y, p: (
            metrics.calibration_test(y, p).p_value
        )
        found[f"{version('probcal')} Spiegelhalter"] = lambda y, p: metrics.spiegelhalter_z(y, p).p_value
        found[f"{version('probcal')} Hosmer-Lemeshow"] = lambda y, p: metrics.hosmer_lemeshow(y, p).p_value
    return found


def powers_of_peer(test: Test, p: np.ndarray, truths: list[np.ndarray]) -> list[float]:
    """The same for a function that returns p-values one data set at a time."""
    generator = np.random.default_rng(2)
    null, *others = (
        np.array([test((generator.random(N) < chances).astype(int), p) for _ in range(PEER_DRAWS)])
        for chances in (p, *truths)
    )
    cut = np.quantile(null, LEVEL)
    return [float(np.mean(other < cut)) for other in others]


def main() -> None:
    """Measure, save, and write the page."""
    report, theirs = Report("power"), peers()
    for package in ("mapie", "probcal"):
        if not peer(package):
            report.skipped(f"power of the tests of {package}", f"{package} is not installed")
    table = measured(theirs)
    means = {name: float(np.mean(list(row.values()))) for name, row in table.items()}
    behind = max(means.values()) - means[DEFAULT_TEST]
    report.figure("best mean power of any test minus that of the default (docs/power.md)", behind, "", 0.03)
    report.save()
    if theirs:
        TARGET.write_text(page(table), encoding="utf-8")
        print(f"wrote {TARGET}")


def measured(theirs: dict[str, Test]) -> dict[str, dict[tuple[str, int], float]]:
    """Power of every test by kind of error and distance (0 plain, 1 slight), over the two ways of each."""
    table: dict[str, dict[tuple[str, int], float]] = {}
    for shape, p in predictions().items():
        cells = [
            ((kind, far), at_distance(p, way, DISTANCES[shape][far]))
            for kind, (of, ways) in KINDS.items()
            if of == shape
            for far in (0, 1)
            for way in ways
        ]
        truths = [truth for _, truth in cells]
        powers = powers_of_ours(p, truths)
        powers |= {name: powers_of_peer(test, p, truths) for name, test in theirs.items()}
        for name, values in powers.items():
            for (cell, _), value in zip(cells, values, strict=True):
                row = table.setdefault(name, {})
                row[cell] = row.get(cell, 0.0) + value / 2
    return table


def page(table: dict[str, dict[tuple[str, int], float]]) -> str:
    """Return the table as a page, best mean first."""
    columns = [(kind, far) for far in (0, 1) for kind in KINDS]
    order = sorted(table, key=lambda name: -np.mean(list(table[name].values())))
    ours, theirs = 100 * np.sqrt(0.25 / DRAWS / 2), 100 * np.sqrt(0.25 / PEER_DRAWS / 2)
    (plain, slight), (rare, slightly_rare) = DISTANCES["even"], DISTANCES["rare"]
    lines = [
        "# Power of the tests, side by side",
        "",
        f"Percent of data sets in which a test rejects calibration, from `python -m benchmarks power`: {N:,} "
        f"records, level {LEVEL:g}. There are five kinds of error, each averaged over two variants: a shift "
        "up and down, a scale too wide and too narrow, a bump at 0.5 and at 0.2, the upper and the lower "
        "tail, and for rare events (mean prediction 0.02) a shift and a wrong upper half. Every alternative "
        f"lies at lower distance {plain:g} from calibration ({slight:g} if slight); for rare events {rare:g} "
        f"and {slightly_rare:g}. Every test uses its own simulated critical value, so that all have the same "
        f"size. The standard error is at most {ours:.1f} points for ours ({DRAWS:,} sets per variant), "
        f"{theirs:.1f} for peers ({PEER_DRAWS}). [testing.md](testing.md) says which test detects what.",
        "",
        "| test | " + " | ".join(("slight " if far else "") + kind for kind, far in columns) + " | mean |",
        "| --- |" + " ---: |" * (len(columns) + 1),
    ]
    for name in order:
        powers = [table[name][column] for column in columns]
        shown = f"**{name}** (default)" if name == DEFAULT_TEST else name
        cells = [shown, *(f"{100 * x:.0f}" for x in powers), f"{100 * np.mean(powers):.1f}"]
        lines.append("| " + " | ".join(cells) + " |")
    behind = {c: max(row[c] for row in table.values()) - table[DEFAULT_TEST][c] for c in columns}
    kind, far = max(behind, key=lambda column: behind[column])
    where = ("slight " if far else "") + kind
    lines += [
        "",
        f"The default falls furthest behind the best test of a column at {where}, by "
        f"{100 * behind[kind, far]:.0f} points.",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
