"""Table 1 of "A Perfectly Truthful Calibration Measure", all eight columns, cells printed "> 0" filled in."""

from __future__ import annotations

from collections.abc import Callable

import calibrant as cb
from reproduce.layout import table

PAPER = "A Perfectly Truthful Calibration Measure"
TITLE = "Table 1: two rounds with probabilities 1/4 and 3/4"
OUTCOMES = {(0, 0): 3 / 16, (1, 1): 3 / 16, (0, 1): 9 / 16, (1, 0): 1 / 16}
AVERAGE, TRUTH = [0.5, 0.5], [0.25, 0.75]
MEASURES: dict[str, Callable[[list[int], list[float]], float]] = {
    "SMCAL": lambda y, p: cb.smooth_calibration_error(y, p),
    "DISTCAL": lambda y, p: cb.lower_distance(y, p, tolerance=1e-9),
    "l2-DISTCAL": lambda y, p: cb.lower_distance(y, p, alpha=2, tolerance=1e-7),
    "ATB": lambda y, p: cb.averaged_two_bin_error(y, p),
}
PRINTED = {
    (0, 0): ("0.5", "0.5", "0.5", "0.5", "0.25", "0.3125", "0.25", "0.203125"),
    (1, 1): ("0.5", "0.5", "0.5", "0.5", "0.25", "0.3125", "0.25", "0.203125"),
    (0, 1): ("0", "0.0625", "0", "> 0", "0", "> 0", "0", "0.015625"),
    (1, 0): ("0", "0.1875", "0", "> 0", "0", "> 0", "0", "0.140625"),
    "expected": ("0.1875", "0.234375", "0.1875", "> 0.1875", "0.09375", "> 0.11", "0.09375", "0.09375"),
}


def ours() -> dict[object, tuple[float, ...]]:
    """Return the eight columns for every outcome, and their expectation."""
    found: dict[object, tuple[float, ...]] = {
        y: tuple(f(list(y), report) for f in MEASURES.values() for report in (AVERAGE, TRUTH))
        for y in OUTCOMES
    }
    found["expected"] = tuple(
        sum(chance * found[y][k] for y, chance in OUTCOMES.items()) for k in range(2 * len(MEASURES))
    )
    return found


def agrees(value: float, printed: str) -> bool:
    """Return whether a cell holds what the paper prints, an inequality included."""
    if printed.startswith(">"):
        return value > float(printed.removeprefix("> "))
    return abs(value - float(printed)) < 1e-6


def page() -> str:
    """Return the section of the docs page."""
    head = ["outcomes", *(f"{name} {report}" for name in MEASURES for report in ("average", "truth"))]
    rows = []
    for y, values in ours().items():
        cells = [
            f"{v:.6f} (> {p[2:]})" if p[0] == ">" else f"{v:.6f}"
            for v, p in zip(values, PRINTED[y], strict=True)
        ]  # type: ignore[index]
        rows.append((str(y), *cells))
    text = (
        "Every printed cell comes out as printed. Where the paper prints an inequality (in brackets) the "
        "value is filled in."
    )
    return f"{text}\n\n{table(head, rows)}"


if __name__ == "__main__":
    print(page())
