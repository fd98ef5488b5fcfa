"""Section 5 of the testing paper: what cECE and SintCE cost in records, a figure that neither paper has."""

from __future__ import annotations

import math

import numpy as np

import calibrant as cb
from reproduce.layout import lines_figure, table

PAPER = "Testing Calibration in Nearly-Linear Time"
TITLE = "Section 5: records needed to test each measure"
POINTS = (4, 8, 16, 32, 64, 128)
RUNS, SUCCESS = 3000, 2 / 3


def hard_case(t: int, alpha: float, seed: int = 0) -> cb.Forecasts:
    """D_theta: u_i = 1/3 + i / (3 t) with rates u_i +- alpha, signs at random."""
    u = 1 / 3 + np.arange(1, t + 1) / (3 * t)
    signs = np.random.default_rng([t, seed]).choice([-1.0, 1.0], t)
    return cb.Forecasts(np.clip(u + alpha * signs, 0, 1), u)


def alphas(t: int) -> dict[str, float]:
    """The sizes of the error in Lemmas 26 and 28 (the constant of the former is unreadable in our copy)."""
    return {"cECE": min(1 / 3, 1 / (t * math.sqrt(math.log(t)))), "SintCE": 1 / (3 * t)}


def values(t: int, draws: int = 5) -> dict[str, tuple[float, float]]:
    """Return (least value over random signs, the lemma's bound) of cECE and SintCE."""
    size = alphas(t)
    convolved = [cb.convolved_calibration_error(hard_case(t, size["cECE"], s)) for s in range(draws)]
    surrogate = [
        cb.interval_calibration_error(hard_case(t, size["SintCE"], s), method="surrogate")
        for s in range(draws)
    ]
    return {
        "cECE": (min(convolved), 1 / (100 * t * math.sqrt(math.log(t)))),
        "SintCE": (min(surrogate), 1 / (3 * t)),
    }


def succeeds(n: int, u: np.ndarray, alpha: float, seed: int) -> bool:
    """Return whether the best simple test tells rates u from u +- alpha in two thirds of the runs of each.

    Signs are unknown, so the test adds up squared sums of residuals per point, less their calibrated mean.
    """
    rng = np.random.default_rng([seed, n])

    def statistics(signs: np.ndarray) -> np.ndarray:
        counts = rng.multinomial(n, np.full(len(u), 1 / len(u)), size=RUNS)
        ones = rng.binomial(counts, np.clip(u + alpha * signs, 0, 1))
        return np.sum((ones - counts * u) ** 2 - counts * u * (1 - u), axis=1)

    null = statistics(np.zeros((RUNS, len(u))))
    other = statistics(rng.choice([-1.0, 1.0], (RUNS, len(u))))
    limit = np.quantile(null, SUCCESS)
    return bool(np.mean(other > limit) >= SUCCESS)


def fewest(u: np.ndarray, alpha: float, seed: int = 0) -> int:
    """Return the least number of records, to 5%, by doubling and halving."""
    high = 4
    while not succeeds(high, u, alpha, seed):
        high *= 2
    low = high // 2
    while high > 1.05 * low + 1:
        middle = (low + high) // 2
        low, high = (low, middle) if succeeds(middle, u, alpha, seed) else (middle, high)
    return high


def curves(points: tuple[int, ...] = POINTS) -> dict[str, tuple[list[float], list[float]]]:
    """Return, per measure, its values at the hard cases and the records needed there."""
    found: dict[str, tuple[list[float], list[float]]] = {}
    for name in ("cECE", "SintCE"):
        eps, needed = [], []
        for t in points:
            u = 1 / 3 + np.arange(1, t + 1) / (3 * t)
            eps.append(values(t)[name][0])
            needed.append(float(fewest(u, alphas(t)[name])))
        found[name] = (eps, needed)
    sizes = [0.3, 0.1, 0.03, 0.01, 0.003]
    found["smooth, distance"] = (sizes, [float(fewest(np.array([0.5]), e)) for e in sizes])
    return found


def slope(eps: list[float], needed: list[float]) -> float:
    """Return the exponent of n as a power of eps, by least squares over the finer half."""
    half = len(eps) // 2
    return float(np.polyfit(np.log(eps[half:]), np.log(needed[half:]), 1)[0])


def page() -> str:
    """Return the section of the docs page."""
    rows = []
    for t in POINTS:
        found = values(t)
        rows.append((t, *found["cECE"], *found["SintCE"]))
    lines = curves()
    slopes = {name: slope(*line) for name, line in lines.items()}
    figure = lines_figure("records", lines, x="calibration error to be found", y="records needed")
    text = (
        "Values at the hard cases D_theta (least over random signs) next to the lemmas, and below them the "
        "least number of records from which a test is right two times out of three, by simulation of the "
        "test that suits the case. Slopes in the log-log figure: "
        + ", ".join(f"{name} {value:.2f}" for name, value in slopes.items())
        + ". The theory says -2 for smooth and distance, and at most -2.5 (up to logarithms) for the others."
    )
    head = ["t", "cECE", "Lemma 26: at least", "SintCE", "Lemma 28: at least"]
    return f"{text}\n\n{table(head, rows)}\n\n{figure}"


if __name__ == "__main__":
    print(page())
