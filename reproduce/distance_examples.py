"""Examples of "A Unifying Theory of Distance from Calibration": the two points, Lemmas 4.5, 6.5 and 6.6."""

from __future__ import annotations

import numpy as np

import calibrant as cb
from reproduce.layout import table

PAPER = "A Unifying Theory of Distance from Calibration"
TITLE = "Examples: two points, Lemmas 4.5, 6.5 and 6.6"


def two_points(e: float) -> list[tuple[str, float, float]]:
    """Predictions 1/2 - e with outcome 0, 1/2 + e with outcome 1: name, ours, the paper's."""
    y, p = [0, 1], [0.5 - e, 0.5 + e]
    return [
        ("ECE", cb.level_set_error(y, p), 0.5 - e),
        ("smooth", cb.smooth_calibration_error(y, p), e * (0.5 - e)),
        ("upper distance", cb.upper_distance(y, p), e),
        ("binned, 10 bins", cb.binned_calibration_error(y, p, bins=10), 0.5 - e),
        ("binned, 11 bins", cb.binned_calibration_error(y, p, bins=11), 0.0),
    ]


def quadratic_gap(a: float) -> list[tuple[str, float, float]]:
    """Lemma 4.5: 1/2 -+ a, each with rate 1/2; the truth may lie anywhere between the two distances."""
    f = cb.Forecasts([0.5, 0.5], [0.5 - a, 0.5 + a])
    return [
        ("lower distance, at most", cb.lower_distance(f, tolerance=1e-9), 2 * a * a),
        ("upper distance", cb.upper_distance(f), a),
    ]


def interval_gap(a: float) -> list[tuple[str, float, float]]:
    """Lemma 6.5: weights 1 - a and a at 1/2 and 1/2 + a, outcome rates .5 / (1 - a) and 0."""
    f = cb.Forecasts([0.5 / (1 - a), 0.0], [0.5, 0.5 + a], sample_weight=[1 - a, a])
    return [
        ("upper distance", cb.upper_distance(f), a * a),
        ("interval error", cb.interval_calibration_error(f), a + a * a),
    ]


def interval_jump(e: float) -> float:
    """Lemma 6.6: y = 1, 0, 1, 0 at .4, .5 - e, .5 + e, .6."""
    return cb.interval_calibration_error([1, 0, 1, 0], [0.4, 0.5 - e, 0.5 + e, 0.6])


def page() -> str:
    """Return the section of the docs page."""
    rows = [
        (f"two points, e = {e}: {name}", ours, paper)
        for e in (0.01, 0.04)
        for name, ours, paper in two_points(e)
    ]
    rows += [(f"Lemma 4.5, a = {a}: {n}", o, p) for a in (0.1, 0.01) for n, o, p in quadratic_gap(a)]
    rows += [(f"Lemma 6.5, a = {a}: {n}", o, p) for a in (0.1, 0.01) for n, o, p in interval_gap(a)]
    rows += [("Lemma 6.6: interval error, e = 1e-9", interval_jump(1e-9), 0.15)]
    rows += [("Lemma 6.6: interval error, e = 0", interval_jump(0.0), 0.2)]
    return table(["example", "calibrant", "closed form"], rows)


def largest_difference() -> float:
    """Return how far ours and the paper's are apart at most, over what the paper states as an equality."""
    pairs = [pair for e in (0.001, 0.01, 0.04) for pair in two_points(e)]
    pairs += [pair for a in (0.01, 0.1) for pair in (quadratic_gap(a)[1], *interval_gap(a))]
    return float(np.max([abs(ours - paper) for _, ours, paper in pairs]))


if __name__ == "__main__":
    print(page())
