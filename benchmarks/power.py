"""Power of tests of calibration at equal size, ours beside MAPIE's and probcal's; writes docs/power.md.

Every test is cut at the same simulated size: its critical value is the 5 % quantile of its own p-value
(or the 95 % quantile of its statistic) under calibration, so nobody gains from a p-value that is too small.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

import calibrant as cb
from benchmarks.harness import Report, peer, version
from calibrant.inference.classic import CLASSIC
from calibrant.inference.testing import badness, centre_of

N = 1000
LEVEL = 0.05
DISTANCE, SLIGHT_DISTANCE, RARE_DISTANCE = 0.025, 0.01, 0.01
DRAWS = 2000  # outcomes under each hypothesis, for our tests
PEER_DRAWS = 500
OURS = ["kuiper", "ks", "atb", "l1-atb", "smooth", "kernel", "binned", "ubse", "brier", "in-the-large"]
TARGET = Path(__file__).parent.parent / "docs" / "power.md"

Test = Callable[[np.ndarray, np.ndarray], float]  # outcomes, predictions -> p-value


def logistic(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def logit(p: np.ndarray) -> np.ndarray:
    return np.log(p) - np.log1p(-p)


# A way of being wrong: predictions and its size to true probabilities.
WAYS: dict[str, Callable[[np.ndarray, float], np.ndarray]] = {
    "shift": lambda p, a: logistic(logit(p) + a),
    "overconfident": lambda p, a: logistic(logit(p) / (1 + a)),
    "underconfident": lambda p, a: logistic(logit(p) * (1 + a)),
    "local bump": lambda p, a: p + a * np.maximum(0, 1 - np.abs(p - 0.5) / 0.15),
    "upper tail": lambda p, a: p - a * np.maximum(0, p - 0.75),
    "wave": lambda p, a: p + a * np.sin(4 * np.pi * p),
    "upper half": lambda p, a: p * np.where(p > np.median(p), 1 + a, 1.0),
}


def scenarios() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Predictions and true probabilities; all of one shape lie at the same distance from calibration."""
    rng = np.random.default_rng(0)
    even, rare = np.sort(rng.beta(1.2, 1.2, N)), np.sort(rng.beta(0.6, 30, N))
    found = {way: (even, at_distance(even, way, DISTANCE)) for way in list(WAYS)[:-1]}
    for way in ("overconfident", "underconfident"):  # the full distance is too easy to tell tests apart
        found[f"slightly {way}"] = (even, at_distance(even, way, SLIGHT_DISTANCE))
    for way in ("shift", "upper half"):
        found[f"rare events, {way}"] = (rare, at_distance(rare, way, RARE_DISTANCE))
    return found


def at_distance(p: np.ndarray, way: str, distance: float) -> np.ndarray:
    """Return true probabilities that put the predictions at this lower distance to calibration."""
    from scipy.optimize import brentq

    def truth(size: float) -> np.ndarray:
        return np.clip(WAYS[way](p, size), 0, 1)

    def excess(size: float) -> float:
        return cb.lower_distance(cb.Forecasts(truth(size), p), tolerance=1e-4) - distance

    return truth(brentq(excess, 1e-6, 3.0, xtol=1e-3))


def powers_of_ours(p: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """Simulate each hypothesis once and evaluate every statistic on the same outcomes."""
    generator = np.random.default_rng(1)
    forecasts = cb.Forecasts(generator.random(N) < p, p)
    order = np.searchsorted(p, forecasts.values)
    under, over = (
        (generator.random((DRAWS, N)) < chances[order]) / N - forecasts.weights * forecasts.values
        for chances in (p, truth)
    )
    found = {}
    rows = [cb.measures()[name] for name in OURS] + [make(forecasts, {}) for make in CLASSIC.values()]
    for row in rows:
        centre = centre_of(forecasts, row, row.options)
        null, other = (
            badness(row, row.null.batch(forecasts, draws.copy(), row.options), centre)
            for draws in (under, over)
        )
        found[row.name] = float(np.mean(other > np.quantile(null, 1 - LEVEL)))
    return found


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


def power_of_peer(test: Test, p: np.ndarray, truth: np.ndarray) -> float:
    """The same for a function that returns p-values one data set at a time."""
    generator = np.random.default_rng(2)
    null, other = (
        np.array([test((generator.random(N) < chances).astype(int), p) for _ in range(PEER_DRAWS)])
        for chances in (p, truth)
    )
    return float(np.mean(other < np.quantile(null, LEVEL)))


def main() -> None:
    """Measure, save, and write the page."""
    report, theirs = Report("power"), peers()
    for package in ("mapie", "probcal"):
        if not peer(package):
            report.skipped(f"power of the tests of {package}", f"{package} is not installed")
    table: dict[str, dict[str, float]] = {}
    for scenario, (p, truth) in scenarios().items():
        for name, power in powers_of_ours(p, truth).items():
            table.setdefault(name, {})[scenario] = power
        for name, test in theirs.items():
            table.setdefault(name, {})[scenario] = power_of_peer(test, p, truth)
    for name, row in table.items():
        report.figure(f"mean power of {name}", float(np.mean(list(row.values()))), "")
    best = max(np.mean(list(row.values())) for row in table.values())
    ours = float(np.mean(list(table["kuiper"].values())))
    report.figure("best mean power minus that of the default", float(best - ours), "", 0.05)
    report.save()
    if theirs:
        TARGET.write_text(page(table), encoding="utf-8")
        print(f"wrote {TARGET}")


def page(table: dict[str, dict[str, float]]) -> str:
    """Return the table as a page, best mean first."""
    columns = list(next(iter(table.values())))
    order = sorted(table, key=lambda name: -np.mean(list(table[name].values())))
    ours, theirs = np.sqrt(0.25 / DRAWS), np.sqrt(0.25 / PEER_DRAWS)
    lines = [
        "# Power of the tests, side by side",
        "",
        f"Percent of data sets in which calibration is rejected, made by `python -m benchmarks power`: {N:,} "
        f"records, level {LEVEL:g}. Every alternative lies at lower distance {DISTANCE:g} from calibration "
        f"({SLIGHT_DISTANCE:g} where it says slightly, {RARE_DISTANCE:g} for rare events, whose mean "
        "prediction is 0.02). Every test is cut at its own simulated size. Standard error at most "
        f"{100 * ours:.1f} points for ours ({DRAWS:,} sets a cell), {100 * theirs:.1f} for peers "
        f"({PEER_DRAWS}). "
        "Advice on which test sees what is in [testing.md](testing.md).",
        "",
        "| test | " + " | ".join(columns) + " | mean |",
        "| --- |" + " --- |" * (len(columns) + 1),
    ]
    for name in order:
        powers = [table[name][column] for column in columns]
        cells = [name, *(f"{100 * x:.0f}" for x in powers), f"{100 * np.mean(powers):.1f}"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", *_dependence(table, columns)]) + "\n"


def _dependence(table: dict[str, dict[str, float]], columns: list[str]) -> list[str]:
    """Say how much the ranking owes to the choice of alternatives: with and without the slight ones."""
    lines = ["The order of the means depends on which alternatives are listed, so read the columns:", ""]
    for title, kept in (
        ("all columns", columns),
        ("without the two slight ones", [c for c in columns if not c.startswith("slightly")]),
    ):
        means = {name: 100 * float(np.mean([row[c] for c in kept])) for name, row in table.items()}
        best = max(means, key=lambda name: means[name])
        default = means["kuiper"]
        lines.append(
            f"- {title}: best is {best} with {means[best]:.1f}; the default, Kuiper, has {default:.1f}."
        )
    return lines


if __name__ == "__main__":
    main()
