"""Figure 3 of the testing paper: quartiles of three measures over 100 runs, the dCE curve completed."""

from __future__ import annotations

import numpy as np

from reproduce.layout import lines_figure, table
from reproduce.testing_table1 import RUNS, SIZES, values

PAPER = "Testing Calibration in Nearly-Linear Time"
TITLE = "Figure 3: quartiles of smCE, dCE and cECE"
MEASURES = {"smCE": "smooth", "dCE": "lower-distance", "cECE": "convolved"}


def quartiles(measure: str, n: int, runs: int = RUNS) -> tuple[float, float, float]:
    """Return the 25%, 50% and 75% quantiles over the runs."""
    low, middle, high = np.quantile(values(measure, n, runs), [0.25, 0.5, 0.75])
    return float(low), float(middle), float(high)


def page() -> str:
    """Return the section of the docs page."""
    found = {name: [quartiles(measure, n) for n in SIZES] for name, measure in MEASURES.items()}
    rows = [
        (name, *(" / ".join(f"{x:.4f}" for x in entry) for entry in entries))
        for name, entries in found.items()
    ]
    lines = {name: (SIZES, [middle for _, middle, _ in entries]) for name, entries in found.items()}
    bands = {
        name: (SIZES, [low for low, _, _ in entries], [high for _, _, high in entries])
        for name, entries in found.items()
    }
    figure = lines_figure("figure3", lines, bands=bands, x="records", y="calibration error")
    text = (
        "v ~ U[0, 0.99], y ~ Bernoulli(v + 0.01), 100 runs; true distance 0.01. The paper prints no numbers "
        "for this figure, and its dCE curve stops where its solver did. Here it is complete."
    )
    return f"{text}\n\n{table(['measure', *(f'n = {n}' for n in SIZES)], rows)}\n\n{figure}"


if __name__ == "__main__":
    print(page())
