"""What lying gains under each measure, by enumeration, next to what is known from elsewhere."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import calibrant as cb
from calibrant.truthfulness.search import Function
from reproduce.layout import table
from reproduce.truthful_properties import two_bins

PAPER = "A Perfectly Truthful Calibration Measure"
TITLE = "What lying gains: two and three rounds, all outcomes enumerated"
TWO, THREE = (0.25, 0.75), (0.3, 0.6, 0.8)
BUDGET = 60.0  # seconds: nothing here may be cut short

Pair = tuple[float, float]  # expected value when honest, and with the best lie


class Known(NamedTuple):
    """A measure, and its values on two and three rounds by another program or by plain arithmetic."""

    measure: str | Function
    options: dict[str, Any]
    two: Pair
    three: Pair | None = None


def quantile_bins(y_true: Any, y_prob: Any) -> float:
    """Two bins of as many records, absolute residuals weighted by size, mean over the ways to break ties."""
    return float(two_bins(np.asarray(y_prob), np.asarray(y_true, dtype=float)[None], True, 1)[0])


def squared_bias(y_true: Any, y_prob: Any) -> float:
    """Square of the mean residual: one bin."""
    return float(np.mean(np.asarray(y_true) - np.asarray(y_prob))) ** 2


UNMOVED = (0.09375, 0.09375), (0.067778, 0.067778)  # sum of p (1 - p) / n^2, whatever calibrated is reported
KNOWN = {
    "ECE": Known("level-set", {}, (0.375, 0.1875), (0.406667, 0.196)),
    "binned, 15 bins": Known("binned", {}, (0.375, 0.1875), (0.406667, 0.196)),
    "ECE, squared": Known("level-set", {"norm": 2}, (0.1875, 0.09375), (0.203333, 0.067778)),
    "KS": Known("ks", {}, (0.28125, 0.1875), (0.255733, 0.196)),
    "Kuiper": Known("kuiper", {}, (0.28125, 0.1875), (0.297733, 0.196)),
    "l1-ATB": Known("l1-atb", {}, (0.28125, 0.1875), (0.263733, 0.196)),
    "smooth": Known("smooth", {}, (0.234375, 0.1875), (0.244027, 0.196)),
    "lower distance": Known("lower-distance", {}, (0.273438, 0.1875)),
    "upper distance": Known("upper-distance", {}, (0.34375, 0.1875)),
    "interval": Known("interval", {}, (0.359375, 0.1875)),
    "Laplace kernel": Known("kernel", {}, (0.256281, 0.1875), (0.235887, 0.196)),
    "CDL": Known("cdl", {}, (0.4375, 0.25)),
    "2 quantile bins": Known(quantile_bins, {}, (0.375, 0.25), (0.274667, 0.22)),
    "ATB": Known("atb", {}, *UNMOVED),
    "UBSE": Known("ubse", {"bins": 2}, *UNMOVED),
    "Laplace kernel, squared": Known("kernel-squared", {}, *UNMOVED),
    "squared bias": Known(squared_bias, {}, *UNMOVED),
    "Brier": Known("brier", {}, (0.1875, 0.1875), (0.203333, 0.203333)),
    "log loss": Known("log-loss", {}, (0.562335, 0.562335), (0.594759, 0.594759)),
}


def gap(name: str, truth: tuple[float, ...]) -> cb.Truthfulness:
    """Return what a forecaster who knows the truth gains under a measure of the table."""
    known = KNOWN[name]
    return cb.truthfulness_gap(known.measure, truth, budget=BUDGET, **known.options)


def page() -> str:
    """Return the section of the docs page."""
    text = (
        "What a forecaster who knows the probabilities gains by reporting others: expected value when honest "
        "and with the best lie found by a search over all ways to pool rounds. The paper has no such table; "
        "in brackets is what another program or plain arithmetic gives, where it was asked. ATB is truthful "
        "only weakly (pooling ties), only in batch (`truthfulness_gap(..., sequential=True)` finds a gain), "
        "and only in expectation (see the duels below)."
    )
    rows = [
        (name, *_cells(gap(name, TWO), known.two), *_cells(gap(name, THREE), known.three))
        for name, known in KNOWN.items()
    ]
    head = ["measure", "(.25, .75): honest", "best lie", "(.3, .6, .8): honest", "best lie"]
    return f"{text}\n\n{table(head, rows)}"


def _cells(found: cb.Truthfulness, known: Pair | None) -> tuple[str, str]:
    ours = (found.honest, found.best)
    if known is None:
        return f"{ours[0]:.6f}", f"{ours[1]:.6f}"
    return f"{ours[0]:.6f} ({known[0]:g})", f"{ours[1]:.6f} ({known[1]:g})"


if __name__ == "__main__":
    print(page())
