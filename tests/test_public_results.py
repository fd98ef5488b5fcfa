"""Every public result: `to_dict` is JSON, the repr is short, seeds are recorded, no bare tuples."""

from __future__ import annotations

import dataclasses
import inspect
import json

import numpy as np
import pytest

import calibrant as cb
from calibrant.public_names import all_homes

rng = np.random.default_rng(0)
P = rng.integers(1, 50, 400) / 50
Y = (rng.random(400) < P).astype(int)
TABLE = np.column_stack([P, (1 - P) / 2, (1 - P) / 2])
COLUMNS = {"g": rng.choice(["a", "b"], 400), "x": rng.random(400)}
LOW = {"draws": 19, "seed": 1}
FRAME = {"happened": Y, "predicted": P}
NAMED = {"outcome": "happened", "prediction": "predicted"}


class Nothing:
    """A model that learns nothing."""

    def fit(self, rows, target):
        return self

    def predict(self, rows):
        return np.zeros(len(rows))


MODEL = Nothing()

RESULTS = {  # name of the class, and a call that returns one
    "AbstentionThreshold": lambda: cb.choose_threshold(Y, P, risk=0.3),
    "ActionChange": lambda: cb.decision_report(Y, P**2, payoff=0.3).changes[0],
    "Assessment": lambda: cb.recalibrate(Y, P**2, method="shift", seed=1).assessment,
    "Audit": lambda: cb.audit(Y, P, groups=COLUMNS, **LOW),
    "AuditTable": lambda: cb.audit_table(Y, {"p": P, "q": P**2}, COLUMNS, subpopulations=9, seeds=2, seed=1),
    "BestActions": lambda: cb.best_actions(P, 0.3),
    "Certified": lambda: cb.certified_distance(Y[:9], P[:9], list(range(9))),
    "ClassTable": lambda: cb.class_table(np.where(Y == 1, 0, 1 + np.arange(400) % 2), TABLE, **LOW),
    "ClassTruthfulness": lambda: cb.class_truthfulness([[0.5, 0.3, 0.2]]),
    "Comparison": lambda: cb.compare(Y, P, P**2, **LOW),
    "ConfidenceInterval": lambda: cb.confidence_interval(Y, P, draws=99, seed=1),
    "ConvexScore": lambda: cb.as_score(0.3),
    "CoxCalibration": lambda: cb.cox_calibration(Y, P),
    "DecisionCurve": lambda: cb.net_benefit(Y, P),
    "DecisionEstimate": lambda: cb.estimate_decision_loss(Y, P, **LOW),
    "DecisionReport": lambda: cb.decision_report(Y, P, payoff=0.3),
    "Decomposition": lambda: cb.decompose(Y, P),
    "Difference": lambda: cb.compare(Y, P, P**2, **LOW).differences[0],
    "Distances": lambda: cb.distances(Y[:60], P[:60]),
    "Distinguisher": lambda: cb.distinguish(Y[:60], P[:60], {"x": P[:60]}, model=MODEL, **LOW),
    "Dominance": lambda: cb.dominance(Y, P, P**2, **LOW),
    "DominanceOver": lambda: cb.dominance(Y, P, {"a": P**2, "b": P**3}, **LOW),
    "ErrorRates": lambda: cb.error_rates(Y, P, COLUMNS["g"]),
    "Evaluation": lambda: cb.evaluate(Y, P, **LOW),
    "GroupComparison": lambda: cb.compare_groups(Y, P, COLUMNS["g"], **LOW),
    "Incentive": lambda: next(iter(cb.incentives(P, ["smooth"], draws=50, seed=1).best.values())),
    "Incentives": lambda: cb.incentives(P, ["smooth"], draws=50, seed=1),
    "Measurement": lambda: cb.measure(cb.Forecasts(Y, P), "ubse", partition=lambda v: v > 0.5),
    "NetBenefits": lambda: cb.net_benefits(Y, P, P**2),
    "OutcomeComparison": lambda: cb.compare(
        outcomes={"a": Y, "b": 1 - Y}, predictions={"a": P, "b": P}, **LOW
    ),
    "Plan": lambda: cb.detectable_distance(200, draws=39, seed=1),
    "RandomBinning": lambda: cb.random_binning_estimate(Y, P, seed=1),
    "PartitionError": lambda: cb.random_partition_error(Y, P, partition="two-bin"),
    "Reading": lambda: cb.Monitor().update([1, 0], [0.5, 0.4]),
    "Recalibration": lambda: cb.recalibrate(Y, P, method="platt", seed=1),
    "RiskCoverage": lambda: cb.risk_coverage(Y, P, **LOW),
    "Search": lambda: cb.search_groups(Y, P, COLUMNS, **LOW),
    "SmoothedReliability": lambda: cb.smoothed_reliability(Y, P),
    "SwapRegret": lambda: cb.swap_regret(Y, Y, payoff=0.3),
    "TestResult": lambda: cb.calibration_test(Y, P, seed=1),
    "ThresholdLossCurve": lambda: cb.threshold_loss_curve(Y, P),
    "ToleranceResult": lambda: cb.tolerance_test(Y, P, accept=0.05, reject=0.2, seed=1),
    "TransportPlan": lambda: cb.transport_plan(Y, P),
    "Truthfulness": lambda: cb.truthfulness_gap("smooth", [0.25, 0.75]),
    "ValidationPlan": lambda: cb.validation_sample_size(P),
    "ValidationTable": lambda: cb.validation_table(Y, P),
    "Verification": lambda: cb.verify(cb.evaluate(FRAME, **NAMED, draws=19).to_dict(), FRAME),
    "WeightFamily": lambda: cb.weight_family(Y, P, {"low": lambda v: v < 0.5}, **LOW),
    "Witness": lambda: cb.measure(cb.Forecasts(Y, P), "smooth").witness,
    "WorstTask": lambda: cb.worst_task(Y, P),
}
NO_RESULTS = {  # public classes that answer no question
    "Censored": "the data",
    "Forecasts": "the data",
    "GroupMonitor": "a state, which is saved",
    "Measure": "a row of the registry",
    "Monitor": "a state, which is saved",
    "Rule": "a condition on rows",
    "Sketch": "the data",
}


@pytest.mark.filterwarnings("ignore::calibrant.RecalibrationWarning")
@pytest.mark.parametrize("name", RESULTS)
def test_to_dict_is_json_and_the_repr_is_short(name):
    result = RESULTS[name]()
    assert type(result).__name__ == name
    assert dataclasses.is_dataclass(result)
    json.dumps(result.to_dict(), allow_nan=False)
    assert len(repr(result)) < (1500 if name == "Evaluation" else 800), "an evaluation shows its table"


def test_every_public_class_is_in_a_list():
    classes = {name for name in all_homes() if inspect.isclass(getattr(cb, name))}
    results = {name for name in classes if not issubclass(getattr(cb, name), Exception)}
    lost = sorted(results - set(RESULTS) - set(NO_RESULTS))
    assert not lost, f"add a call that returns each of {lost} to RESULTS of this file"


def functions():
    callables = [name for name in all_homes() if callable(getattr(cb, name))]
    return [name for name in callables if not inspect.isclass(getattr(cb, name))]


def options(name):
    return inspect.signature(getattr(cb, name)).parameters


def test_the_same_data_give_the_same_answer():
    """Seeds default to 0; the demo has its own, so that everybody sees the same loans."""
    seeds = {name: options(name)["seed"].default for name in functions() if "seed" in options(name)}
    assert {"audit", "compare", "evaluate", "recalibrate", "search_groups", "truthfulness_gap"} <= set(seeds)
    assert {name: seed for name, seed in seeds.items() if seed != 0} == {"load_demo": 1}


@pytest.mark.parametrize("name", functions())
def test_no_function_returns_a_bare_tuple(name):
    returned = inspect.signature(getattr(cb, name)).return_annotation
    assert not str(returned).startswith("tuple"), "return a frozen dataclass with names"


def test_columns_beside_the_rows_are_covariates_everywhere():
    taken = {name for name in functions() if "covariates" in options(name)}
    assert {"audit", "audit_table", "distinguish", "recalibrate", "search_groups", "weight_family"} <= taken
    for name in functions():
        other = set(options(name)) & {"features", "columns", "X", "x"}
        assert not other, f"{name}: call {other} covariates"
