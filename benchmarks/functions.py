"""How the time of every public function of rows grows with them: steps next to the sort's own, no cliffs.

One warm call per size, in seconds of the processors, continuous predictions. A step from one size to the
next (ten times the rows) is a cliff where it grows more than three times as much as np.argsort does, unless
the function had not yet reached a tenth of a second: below that fixed costs and caches decide.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import calibrant as cb
from benchmarks.harness import Report, forecast_data

SIZES = [10**k for k in range(3, 1 + int(os.environ.get("CALIBRANT_BENCH_GROWTH", "7")))]
LIMIT = 15.0  # seconds; ten times as many rows are then not tried
STEP = 3.0  # times the growth of the sort
SHORT = 0.1  # seconds below which a step says nothing

Call = Callable[[Any, Any], Any]


PAYOFF = [[0.0, -0.2], [0.0, 0.8]]
NOT_OF_ROWS = {  # public functions that the table leaves out, and why
    "as_score": "takes a payoff",
    "binned_calibration_error": "another name of expected_calibration_error",
    "class_truthfulness": "enumerates all outcomes of a few records",
    "detectable_distance": "takes a number of records",
    "load_demo": "makes rows",
    "load_recalibration": "reads a file",
    "measure": "takes Forecasts and the name of a measure; every measure has a line",
    "measures": "lists the registry",
    "recalibrations": "lists the registry",
    "required_samples": "takes a distance",
    "validation_sample_size": "takes a precision",
    "reliability_diagram": "draws what evaluate finds",
    "truthfulness_gap": "enumerates all outcomes of a few records",
    "verify": "takes a report; runs evaluate again",
    "worst_truth": "enumerates all outcomes of a few records",
}


def column(p: Any) -> dict[str, Any]:
    """Return two columns of covariates."""
    return {"half": np.where(p < 0.5, "low", "high"), "tenth": np.floor(10 * p)}


def calls() -> dict[str, Call]:
    """Every public function of rows, called as its docstring does."""
    measured = {row.function.__name__: _call(row.function) for row in cb.measures().values()}
    return {**measured, **_one_model(), **_several()}


def _call(function: Callable[..., Any]) -> Call:
    return lambda y, p: function(y, p)


def _several() -> dict[str, Call]:
    """Functions of groups, of several models, of several classes, of streams."""
    seeded = {"seed": 1}

    def classes(p: Any) -> Any:
        return np.column_stack([1 - p, p])

    return {
        "Monitor.update": lambda y, p: cb.Monitor().update(y, p),
        "GroupMonitor.update": lambda y, p: cb.GroupMonitor(["low", "high"]).update(y, p, column(p)["half"]),
        "audit": lambda y, p: cb.audit(y, p, groups=column(p), draws=99, **seeded),
        "audit_table": lambda y, p: cb.audit_table(
            y, {"a": p, "b": p**1.1}, column(p), subpopulations=20, **seeded
        ),
        "class_low_degree_error": lambda y, p: cb.class_low_degree_error(y.astype(int), classes(p)),
        "class_table": lambda y, p: cb.class_table(y.astype(int), classes(p)),
        "class_wise": lambda y, p: cb.class_wise(y.astype(int), classes(p)),
        "compare": lambda y, p: cb.compare(y, p, p**1.1, draws=99, **seeded),
        "compare_groups": lambda y, p: cb.compare_groups(y, p, column(p)["half"], **seeded),
        "distinguish": lambda y, p: cb.distinguish(y, p, column(p), **seeded),
        "dominance": lambda y, p: cb.dominance(y, p, p**1.1, draws=19, **seeded),
        "error_rates": lambda y, p: cb.error_rates(y, p, column(p)["half"]),
        "net_benefits": lambda y, p: cb.net_benefits(y, {"a": p, "b": p**1.1}),
        "one_vs_rest": lambda y, p: cb.one_vs_rest(y.astype(int), classes(p), 1),
        "search_groups": lambda y, p: cb.search_groups(y, p, column(p), **seeded),
        "top_label": lambda y, p: cb.top_label(y.astype(int), classes(p)),
    }


def _one_model() -> dict[str, Call]:
    seeded = {"seed": 1}
    return {
        "Forecasts": lambda y, p: cb.Forecasts(y, p),
        "Sketch.from_arrays": lambda y, p: cb.Sketch.from_arrays(y, p),
        "assert_calibrated": lambda y, p: cb.assert_calibrated(y, p, max={"smooth": 0.5}, **seeded),
        "best_actions": lambda y, p: cb.best_actions(p, PAYOFF),
        "calibration_test": lambda y, p: cb.calibration_test(y, p, **seeded),
        "calibration_test, smooth": lambda y, p: cb.calibration_test(
            y, p, measure="smooth", draws=19, **seeded
        ),
        "censored": lambda y, p: cb.censored(p, y, 0.5),
        "certified_distance": lambda y, p: cb.certified_distance(y, p, np.arange(len(p))),
        "choose_threshold": lambda y, p: cb.choose_threshold(y, p, risk=0.2),
        "confidence_interval": lambda y, p: cb.confidence_interval(y, p, draws=199, **seeded),
        "confidence_interval, atb": lambda y, p: cb.confidence_interval(
            y, p, measure="atb", draws=199, **seeded
        ),
        "cox_calibration": lambda y, p: cb.cox_calibration(y, p),
        "decision_report": lambda y, p: cb.decision_report(y, p, payoff=PAYOFF),
        "decompose": lambda y, p: cb.decompose(y, p),
        "distance_to_calibration": lambda y, p: cb.distance_to_calibration(y, p, np.arange(len(p))),
        "distances": lambda y, p: cb.distances(y, p),
        "estimate_decision_loss": lambda y, p: cb.estimate_decision_loss(y, p, draws=9, **seeded),
        "evaluate": lambda y, p: cb.evaluate(y, p, **seeded).to_dict(),
        "fixed_decision_loss": lambda y, p: cb.fixed_decision_loss(y, p, payoff=0.4),
        "hosmer_lemeshow": lambda y, p: cb.hosmer_lemeshow(y, p),
        "incentives": lambda y, p: cb.incentives(p, ["level-set", "brier"], draws=9, **seeded),
        "net_benefit": lambda y, p: cb.net_benefit(y, p),
        "random_binning_estimate": lambda y, p: cb.random_binning_estimate(y, p, **seeded),
        "random_partition_error": lambda y, p: cb.random_partition_error(y, p, partition="two-bin", **seeded),
        "recalibrate, platt": lambda y, p: cb.recalibrate(y, p, method="platt", **seeded),
        "recalibrate, isotonic": lambda y, p: cb.recalibrate(y, p, method="isotonic", **seeded),
        "risk_coverage": lambda y, p: cb.risk_coverage(y, p, draws=99, **seeded),
        "smoothed_reliability": lambda y, p: cb.smoothed_reliability(y, p),
        "spiegelhalter": lambda y, p: cb.spiegelhalter(y, p),
        "swap_regret": lambda y, p: cb.swap_regret(y, p > 0.4, payoff=0.25),
        "threshold_loss_curve": lambda y, p: cb.threshold_loss_curve(y, p),
        "tolerance_test": lambda y, p: cb.tolerance_test(y, p, accept=0.05, reject=0.1, **seeded),
        "transport_plan": lambda y, p: cb.transport_plan(y, p),
        "validation_table": lambda y, p: cb.validation_table(y, p),
        "weight_family": lambda y, p: cb.weight_family(y, p, {"slope": lambda v: 2 * v - 1}, **seeded),
        "weighted_calibration_error": lambda y, p: cb.weighted_calibration_error(
            y, p, weight_function=lambda v: 1 - v
        ),
        "worst_task": lambda y, p: cb.worst_task(y, p),
    }


def main() -> None:
    """Run, judge every step and save."""
    warnings.simplefilter("ignore")
    report = Report("functions")
    times: dict[str, list[float | None]] = {name: [] for name in ["np.argsort", *calls()]}
    for n in SIZES:
        y, p = forecast_data(n)
        for name, call in {"np.argsort": lambda _, p: np.argsort(p), **calls()}.items():
            past = times[name]
            late = bool(past) and (past[-1] is None or past[-1] > LIMIT)
            past.append(None if late else _taken(call, y, p))
            if past[-1] is not None:
                report.figure(f"{name}, {n:,} rows", past[-1])
    for name, past in times.items():
        if name != "np.argsort":
            _judge(report, name, past, times["np.argsort"])
    report.save()


def _taken(call: Call, y: Any, p: Any) -> float:
    """Return the time of a warm call; of a long one the first is warm enough."""
    for _ in range(2):
        start = time.process_time()
        call(y, p)
        taken = time.process_time() - start
        if taken > 2.0:
            break
    return taken


def _judge(report: Report, name: str, past: list[float | None], sort: list[float | None]) -> None:
    """Record the steepest step over the sort's own."""
    steps = [
        (b / a) / max(10.0, (d or 1.0) / (c or 1.0))
        for a, b, c, d in zip(past, past[1:], sort, sort[1:], strict=False)
        if a is not None and b is not None and b > SHORT
    ]
    if steps:
        report.figure(f"{name}: steepest step over the sort's", max(steps), "times", STEP)


if __name__ == "__main__":
    main()
