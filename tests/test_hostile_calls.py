"""Functions other than measures and tests, given values of the wrong kind: no raw error, no silent number.

Each line names a public call that works, and the values of one argument that it must refuse by name.
"""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import calibrant as cb
from calibrant.errors import CalibrantError

rng = np.random.default_rng(0)
N = 80
P = rng.integers(1, 20, N) / 20
Y = (rng.random(N) < P).astype(int)
X = {"x": rng.random(N), "g": np.where(P > 0.5, "a", "b")}
NAN, INF = math.nan, math.inf
SEED = [-1, 1.5, "x", True, NAN, [1]]
COUNT = [-1, 1.5, "x", NAN, True, None, [9]]
SHARE = [NAN, -0.1, 1.5, "x", None, [0.9]]
WORD = ["x", None, 1]
PREDICTIONS = [[], [0.5], [NAN] * N, [1.1] * N, ["x"] * N, None, "p", 0.5, [1e400] * N]
OUTCOMES = [[], [1], [NAN] * N, [2] * N, ["x"] * N, None, "y", 1]
WEIGHTS = [[], [1.0], [-1.0] * N, [NAN] * N, [INF] * N, [0.0] * N, ["x"] * N, "w"]
HORIZON = [0, -1, 1.5, "x", NAN, True, [9]]
DELAY = [-1, 1.5, "x", NAN, True, None, [9]]


def recalibrated(**how):
    return cb.recalibrate(how.pop("y_true", Y), how.pop("y_prob", P), **{"method": "platt", "seed": 1, **how})


def predicted(y_prob):
    return cb.recalibrate(Y, P, method="isotonic", seed=1).predict(y_prob)


def sketched(**how):
    return cb.Sketch.from_arrays(how.pop("y_true", Y), how.pop("y_prob", P), **how)


def compared(**how):
    data = [how.pop(name, given) for name, given in (("y_true", Y), ("prob_a", P), ("prob_b", P**2))]
    return cb.dominance(*data, **{"draws": 9, "seed": 1, **how})


def weighed(**how):
    return cb.weight_family(
        how.pop("y_true", Y), how.pop("y_prob", P), how.pop("functions", {"one": np.ones_like}),
        **{"draws": 9, "seed": 1, **how},
    )  # fmt: skip


def told_apart(**how):
    return cb.distinguish(
        how.pop("y_true", Y), how.pop("y_prob", P), how.pop("covariates", X), **{"draws": 9, "seed": 1, **how}
    )


def benefit(**how):
    return cb.net_benefit(how.pop("y_true", Y), how.pop("y_prob", P), **how)


def reported(**how):
    return cb.decision_report(how.pop("y_true", Y), how.pop("y_prob", P), **{"payoff": 0.3, **how})


def gap(**how):
    return cb.truthfulness_gap(
        how.pop("measure", "smooth"), how.pop("truth", [0.2, 0.6]), **{"budget": 0.2, **how}
    )


def worst(**how):
    return cb.worst_truth(how.pop("measure", "smooth"), how.pop("n", 2), **{"budget": 0.1, **how})


def encouraged(**how):
    return cb.incentives(
        how.pop("y_prob", [0.2, 0.6, 0.7]), how.pop("measures", "smooth"), **{"draws": 4, "seed": 1, **how}
    )


def table(**how):
    models = how.pop("models", {"a": P, "b": P**2})
    return cb.audit_table(Y, models, X, **{"seeds": 1, "subpopulations": 5, "seed": 1, **how})


def planned(**how):
    return cb.required_samples(how.pop("distance", 0.2), **{"draws": 19, "seed": 1, **how})


def streamed(kind, **how):
    return getattr(cb.online, kind)(**how)


def learned(kind, y, p):
    forecaster = getattr(cb.online, kind)(**({} if kind == "OnlineCalibrator" else {"horizon": 50}))
    if kind == "OnlineCalibrator":
        forecaster.transform_one(p)
    else:
        forecaster.predict_one()
    return forecaster.learn_one(y)


def watched(**how):
    return cb.Monitor(**how)


def updated(y, p):
    return cb.Monitor().update(y, p)


PACKAGES = {
    "recalibrate": (recalibrated, {
        "y_true": OUTCOMES, "y_prob": PREDICTIONS, "sample_weight": WEIGHTS,
        "method": WORD, "seed": SEED,
        "weights": WORD, "missing": WORD, "prevalence": [NAN, 0, 1, -0.1, 1.5, "x", [0.2]],
        "covariates": [5, "x", {"x": [1.0]}], "groups": [5, {"x": [1.0]}], "clusters": [5, [1], "x"],
        "classes": [5, "x"], "bins": [3], "nonsense": [1],
    }),
    "predict": (predicted, {"y_prob": [p for p in PREDICTIONS if p not in ([], [0.5], 0.5)]}),
    "Sketch": (lambda **how: cb.Sketch(**how), {
        "cells": [0, -1, 1.5, "x", NAN, True, None, 10**12], "by": [5, [5], [""], ["g", "g"]],
    }),
    "Sketch.from_arrays": (sketched, {
        "y_true": OUTCOMES, "y_prob": PREDICTIONS, "sample_weight": WEIGHTS, "missing": WORD,
        "cells": [0, -1, 1.5, "x", NAN, True],
    }),
    "Sketch.measure": (lambda name: sketched().measure(name), {"name": WORD}),
    "dominance": (compared, {
        "y_true": OUTCOMES, "prob_a": PREDICTIONS, "prob_b": PREDICTIONS, "sample_weight": WEIGHTS,
        "missing": WORD, "confidence": SHARE, "draws": COUNT, "seed": SEED,
    }),
    "weight_family": (weighed, {
        "y_true": OUTCOMES, "y_prob": PREDICTIONS, "sample_weight": WEIGHTS, "missing": WORD, "draws": COUNT,
        "seed": SEED,
        "functions": [{}, None, 5, {"a": 5}, {"a": lambda p: "x"}, {"a": lambda p: [NAN] * len(p)}],
    }),
    "distinguish": (told_apart, {
        "y_true": OUTCOMES, "y_prob": PREDICTIONS, "sample_weight": WEIGHTS, "missing": WORD, "draws": COUNT,
        "seed": SEED, "confidence": SHARE, "covariates": [5, {"x": [1.0]}, {}, None], "nominal": [["z"], 5],
        "model": [5, "x"],
    }),
    "net_benefit": (benefit, {
        "y_true": OUTCOMES, "y_prob": PREDICTIONS, "sample_weight": WEIGHTS,
        "thresholds": [[NAN], [-0.1], [1.5], "x", ["x"], [], [[0.1, 0.2]], 5],
    }),
    "decision_report": (reported, {
        "y_true": OUTCOMES, "y_prob": PREDICTIONS, "sample_weight": WEIGHTS,
        "payoff": [NAN, -0.1, 1.5, "x", None, [], [[1]], [[NAN, 1], [0, 1]], True], "ties": WORD,
        "recalibrator": ["x", 1], "folds": [-1, 0, 1, NAN, "x", 2.5], "nonsense": [1],
    }),
    "truthfulness_gap": (gap, {
        "measure": WORD, "truth": [[], [NAN], [1.5], "x", ["x"], None, [[0.5, 0.5]]],
        "budget": [NAN, -1, "x", None], "seed": SEED, "reports": [[NAN], [1.5], [0.5], "x"], "nonsense": [1],
    }),
    "worst_truth": (worst, {
        "measure": WORD, "n": [0, -1, 1.5, "x", NAN, True, None], "step": [NAN, 0, -1, "x", None],
        "budget": [NAN, -1, "x", None], "seed": SEED,
    }),
    "incentives": (encouraged, {
        "y_prob": [[], [NAN], [1.5], "x", ["x"], None], "measures": ["x", 5, ["x"], []],
        "draws": [-1, 1, 1.5, "x", NAN, True], "seed": SEED, "lies": [5, "x", {"a": 5}],
    }),
    "audit_table": (table, {
        "models": [5, {}, {"a": [0.5]}, None], "seeds": COUNT, "subpopulations": [0, -1, 1.5, "x", NAN],
        "min_size": [-1, 1.5, "x", NAN], "seed": SEED, "missing": WORD, "nominal": [["z"]],
    }),
    "required_samples": (planned, {"predictions": [[], [NAN], [1.5], "x", ["x"]]}),
    "DistanceForecaster": (lambda **how: streamed("DistanceForecaster", **how), {
        "horizon": HORIZON, "delay": DELAY,
    }),
    "ExpectedErrorForecaster": (lambda **how: streamed("ExpectedErrorForecaster", **how), {
        "horizon": HORIZON, "bins": HORIZON, "delay": DELAY, "seed": SEED,
    }),
    "DecisionLossForecaster": (lambda **how: streamed("DecisionLossForecaster", **how), {
        "horizon": HORIZON, "bins": HORIZON, "potential": WORD, "seed": SEED, "groups": [5, "x", ["a", "a"]],
    }),
    "OnlineCalibrator": (lambda **how: streamed("OnlineCalibrator", **how), {
        "bins": [*HORIZON, None], "decay": [NAN, -0.1, 1.5, "x", None, 0], "prior": [NAN, -1, "x", None],
        "delay": DELAY, "guard": ["x", 5, None], "by": [5, [1]],
    }),
    "learn_one": (lambda **how: learned("OnlineCalibrator", how.get("y", 1), how.get("p", 0.5)), {
        "y": [NAN, -1, 2, "x", None, [1]], "p": [NAN, -0.1, 1.1, "x", None, [0.5]],
    }),
    "learn_one of a forecaster": (lambda y: learned("DistanceForecaster", y, None), {
        "y": [NAN, -1, 2, "x", None, [1]],
    }),
    "Monitor": (watched, {"alpha": [NAN, 0, 1, -0.1, 1.5, "x", None, [0.1], True]}),
    "Monitor.update": (lambda **how: updated(how.get("y", 1), how.get("p", 0.5)), {
        "y": [NAN, -1, 2, "x", None], "p": [NAN, -0.1, 1.1, "x", None],
    }),
    "GroupMonitor": (lambda **how: cb.GroupMonitor(**{"groups": ["a"], **how}), {
        "groups": [[], 5, None, ["a", "a"]], "alpha": [NAN, 0, 1, "x", None],
    }),
}  # fmt: skip
CASES = [
    (package, call, argument, value)
    for package, (call, arguments) in PACKAGES.items()
    for argument, values in arguments.items()
    for value in values
]


@pytest.mark.parametrize(
    ("package", "call", "argument", "value"),
    [pytest.param(*case, id=f"{case[0]}-{case[2]}-{str(case[3])[:24]}") for case in CASES],
)
def test_hostile_values_are_refused_by_name(package, call, argument, value):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(CalibrantError) as refused:
            call(**{argument: value})
    assert str(refused.value).endswith(".")


@pytest.mark.parametrize("predictions", [[0.0, 1.0], [1.0], [0.0], [0.0, 0.5, 1.0]])
def test_samples_for_certain_predictions_are_planned_without_a_warning(predictions):
    """One outcome that was impossible settles it: a miss in 5 shows up within some ten records."""
    assert 1 <= cb.required_samples(0.2, predictions=predictions, draws=39, seed=1).n <= 40


def test_the_table_is_large():
    assert len(CASES) > 350
