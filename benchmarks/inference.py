"""What inference costs at size: smooth next to the sort, its interval next to one value, compare, evaluate.

Ratios are of medians of interleaved calls. "Everything asked for" is what JSON and reports need: distances
and the preview of a recalibration too, which `evaluate` computes when they are first asked for.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import calibrant as cb
from benchmarks.harness import Report, forecast_data, medians

TURNS = 7
DRAWS = 199  # null draws of evaluate, by default


def main() -> None:
    """Run and save."""
    warnings.simplefilter("ignore")
    report = Report("inference")
    _smooth(report)
    _evaluate(report)
    _at_ten_million(report)
    report.save()


def noisy_data(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return predictions that are a little overconfident: to repair them, mass must move both ways."""
    rng = np.random.default_rng(3)
    truth = rng.beta(1.2, 1.8, n)
    odds = (truth / (1 - truth)) ** 1.1
    return rng.random(n) < truth, odds / (1 + odds)


def everything(y: Any, p: Any) -> None:
    """Evaluate, and ask for all that was left for later."""
    cb.evaluate(y, p, seed=1).to_dict()


def _smooth(report: Report) -> None:
    y, p = forecast_data(10**6)
    taken = medians(
        {
            "sort": lambda: np.argsort(p),
            "smooth": lambda: cb.smooth_calibration_error(y, p),
            "interval": lambda: cb.confidence_interval(y, p, measure="smooth", draws=DRAWS, seed=1),
        },
        TURNS,
    )
    report.ratio("smooth, 10^6 rows", taken["smooth"], "np.argsort", taken["sort"], 3.0, headline=True)
    report.ratio("interval of smooth, 10^6 rows", taken["interval"], "one value", taken["smooth"], 30.0)


def _evaluate(report: Report) -> None:
    y, p = noisy_data(10**5)
    rng = np.random.default_rng(0)

    def drawn() -> None:
        for _ in range(DRAWS):
            rng.random(len(p)) < p  # noqa: B015 - only the time counts

    calls: dict[str, Callable[[], Any]] = {
        "sort": lambda: np.argsort(p),
        "evaluate": lambda: cb.evaluate(y, p, seed=1),
        "everything": lambda: everything(y, p),
        "draws": drawn,
    }
    taken = medians(calls, TURNS)
    everything_named = "evaluate, everything asked for, 10^5 rows"
    report.ratio("evaluate, 10^5 rows", taken["evaluate"], "np.argsort", taken["sort"], 400.0)
    report.ratio(everything_named, taken["everything"], "np.argsort", taken["sort"], 400.0, headline=True)
    report.ratio(everything_named, taken["everything"], f"{DRAWS} draws of the outcomes", taken["draws"])


def _at_ten_million(report: Report) -> None:
    y, p = noisy_data(10**7)
    calls: dict[str, tuple[Callable[[], Any], float | None]] = {
        "interval of smooth": (lambda: cb.confidence_interval(y, p, measure="smooth", seed=1), 15.0),
        "compare": (lambda: cb.compare(y, p, p**1.1, seed=1), None),
        "evaluate": (lambda: cb.evaluate(y, p, seed=1), 10.0),
        "evaluate, everything asked for": (lambda: everything(y, p), 10.0),
    }
    for name, (call, at_most) in calls.items():
        report.figure(f"{name}, 10^7 rows", medians({"": call}, 1)[""], "s", at_most)


if __name__ == "__main__":
    main()
