"""Examples of the survey: tight cases of Theorem 4.3 (A.8), and Appendix B."""

from __future__ import annotations

import numpy as np

import calibrant as cb
from reproduce.layout import table

PAPER = "Calibration through the lens of indistinguishability"
TITLE = "Examples A.8 and Appendix B"
LEVELS = 400_000  # that approximate the continuous second example


def first_tight(e: float) -> float:
    """Predict 1/2 where the rate is 1/2 + e: decision loss 2 e, twice the ECE."""
    return cb.decision_loss([0.5 + e], [0.5])


def second_tight(e: float) -> float:
    """Rates uniform on [e, 1], predicted e too low: decision loss far below the ECE e."""
    rates = e + (1 - e) * (np.arange(LEVELS) + 0.5) / LEVELS
    return cb.decision_loss(rates, rates - e)


def uncertain_distance(e: float) -> tuple[float, float, float]:
    """Appendix B: upper distance delta, true distance 2 e delta on four points, and lower distance."""
    delta = e / (1 - 2 * e)
    weights = np.array([0.5 - e, e, e, 0.5 - e])
    y = np.array([0.5 - delta, 1, 0, 0.5 + delta])
    p = np.array([0.5 - delta, 0.5 - delta, 0.5 + delta, 0.5 + delta])
    true = cb.distance_to_calibration(y, p, [0, 1, 2, 3], sample_weight=weights)
    return (
        cb.upper_distance(y, p, sample_weight=weights),
        float(true),
        cb.lower_distance(y, p, sample_weight=weights, tolerance=1e-9),
    )


def page() -> str:
    """Return the section of the docs page."""
    rows: list[tuple[str, float, float]] = []
    for e in (0.01, 0.1):
        rows.append((f"A.8, first example, e = {e}: CDL", first_tight(e), 2 * e))
        rows.append((f"A.8, second example, e = {e}: CDL", second_tight(e), e * e / (1 - e)))
        upper, true, _ = uncertain_distance(e)
        delta = e / (1 - 2 * e)
        rows.append((f"Appendix B, e = {e}: upper distance", upper, delta))
        rows.append((f"Appendix B, e = {e}: distance on the four points", true, 2 * e * delta))
    text = "The second example is continuous in the paper; here 400,000 levels approximate it."
    return f"{text}\n\n{table(['example', 'calibrant', 'closed form'], rows)}"


if __name__ == "__main__":
    print(page())
