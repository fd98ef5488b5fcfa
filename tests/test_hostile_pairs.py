"""Every entry point, called with inputs that do not match or are not numbers: none is silent, none is raw.

A door is a public function that takes outcomes and predictions. All of them must refuse the same inputs, in
the library's words, and warn where outcomes and predictions look swapped.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import calibrant as cb
from calibrant.errors import CalibrantError
from calibrant.public_names import all_homes

rng = np.random.default_rng(0)
N = 60
P = rng.integers(1, 20, N) / 20
Y = (rng.random(N) < P).astype(int)
X = {"x": rng.random(N)}
ORDER = rng.permutation(N)
FEW = {"draws": 9, "seed": 1}


def compared_with(function):
    return lambda y, p, **w: function(y, p, np.full(N, 0.5), **FEW, **w)


def grouped(function):
    return lambda y, p, **w: function(y, p, X, **FEW, **w)


def with_options(function, **options):
    return lambda y, p, **w: function(y, p, **options, **w)


MEASURES = sorted({row.function.__name__ for row in cb.measures().values()} & set(all_homes()))
DOORS = {
    **{name: with_options(getattr(cb, name)) for name in MEASURES},
    **{name: with_options(getattr(cb, name), **FEW) for name in ("calibration_test", "confidence_interval")},
    **{name: with_options(getattr(cb, name), **FEW) for name in ("evaluate", "estimate_decision_loss")},
    **{name: with_options(getattr(cb, name)) for name in ("cox_calibration", "decompose", "distances")},
    **{name: with_options(getattr(cb, name)) for name in ("hosmer_lemeshow", "net_benefit", "spiegelhalter")},
    **{name: with_options(getattr(cb, name)) for name in ("smoothed_reliability", "threshold_loss_curve")},
    **{name: with_options(getattr(cb, name)) for name in ("transport_plan", "worst_task", "Forecasts")},
    **{name: compared_with(getattr(cb, name)) for name in ("compare", "dominance")},
    **{name: grouped(getattr(cb, name)) for name in ("distinguish", "search_groups")},
    "assert_calibrated": with_options(cb.assert_calibrated, max={"smooth": 0.9}, **FEW),
    "audit": with_options(cb.audit, groups={"g": P > 0.5}, **FEW),
    "decision_report": with_options(cb.decision_report, payoff=0.3),
    "fixed_decision_loss": with_options(cb.fixed_decision_loss, payoff=0.3),
    "random_binning_estimate": with_options(cb.random_binning_estimate, seed=1),
    "random_partition_error": with_options(cb.random_partition_error, partition="two-bin"),
    "recalibrate": with_options(cb.recalibrate, method="platt", seed=1),
    "recalibrate beside columns": with_options(cb.recalibrate, method="platt", covariates=X, seed=1),
    "Sketch": with_options(cb.Sketch.from_arrays),
    "tolerance_test": with_options(cb.tolerance_test, accept=0.05, reject=0.2, **FEW),
    "weight_family": with_options(cb.weight_family, functions={"one": np.ones_like}, **FEW),
}
STREAMS = {
    "Monitor": lambda y, p: cb.Monitor().update(y, p),
    "GroupMonitor": lambda y, p: cb.GroupMonitor(["a"]).update(y, p, ["a"] * N),
}
HUGE = [10**400] * N
RAGGED = [[1], [1, 2]] * (N // 2)
GAP = np.arange(N) == 3
HOSTILE = {
    "predictions shuffled": (pd.Series(Y), pd.Series(P).iloc[ORDER]),
    "outcomes shuffled": (pd.Series(Y).iloc[ORDER], pd.Series(P)),
    "masked prediction": (Y, np.ma.array(P, mask=GAP)),
    "masked outcome": (np.ma.array(Y, mask=GAP), P),
    "huge outcomes": (HUGE, P),
    "huge predictions": (Y, HUGE),
    "ragged outcomes": (RAGGED, P),
    "ragged predictions": (Y, RAGGED),
    "complex": (Y, P + 0j),
    "three dimensions": (Y, P.reshape(-1, 2, 2)),
    "a mapping": ({"a": 1}, P),
    "a set": (Y, set(P.tolist())),
    "a generator": (Y, (v for v in P)),
    "bytes": (Y, b"abc"),
    "dates": (Y, np.array(["2020-01-01"] * N, dtype="M8[D]")),
    "durations": (Y, np.arange(N).astype("m8[s]")),
    "text": (Y, P.astype(str)),
    "nothing": (Y, np.array([None] * N, dtype=object)),
    "logits": (Y, P * 8 - 4),
    "percentages": (Y, P * 100),
    "signs": (Y * 2 - 1, P),
    "records": (Y, np.zeros(N, dtype=[("a", float)])),
    "infinite": (Y, np.where(GAP, np.inf, P)),
    "nan": (Y, np.where(GAP, np.nan, P)),
    "another length": (Y[:-1], P),
    "no outcomes": (None, P),
    "numbers": (1, 0.5),
}
WEIGHTS = {
    "masked": np.ma.array(np.ones(N), mask=GAP),
    "negative": -np.ones(N),
    "two columns": np.ones((N, 2)),
    "text": ["a"] * N,
    "ragged": RAGGED,
    "zero": np.zeros(N),
}


def refused(call, *arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(CalibrantError, match=r"\.$"):
            call(*arguments, **options)


@pytest.mark.parametrize("door", DOORS | STREAMS)
def test_every_door_refuses_what_is_no_pair_of_columns(door):
    for outcomes, predictions in HOSTILE.values():
        refused((DOORS | STREAMS)[door], outcomes, predictions)


@pytest.mark.parametrize("door", DOORS)
def test_every_door_refuses_weights_that_are_none(door):
    for weights in WEIGHTS.values():
        refused(DOORS[door], Y, P, sample_weight=weights)
    shuffled = pd.Series(np.ones(N)).iloc[ORDER]
    refused(DOORS[door], Y, pd.Series(P), sample_weight=shuffled)


@pytest.mark.parametrize("door", DOORS | STREAMS)
def test_every_door_warns_of_swapped_arguments_or_refuses_them(door):
    with warnings.catch_warnings(record=True) as reported:
        warnings.simplefilter("always")
        try:
            (DOORS | STREAMS)[door](P, Y.astype(float))
        except CalibrantError:
            return
    assert any(issubclass(one.category, cb.SwappedArgumentsWarning) for one in reported)


EXTRA = {
    "audit": lambda y, p, x: cb.audit(y, p, groups=x, draws=0),
    "distinguish": lambda y, p, x: cb.distinguish(y, p, x, **FEW),
    "evaluate": lambda y, p, x: cb.evaluate(y, p, groups=x, **FEW),
    "recalibrate by covariates": lambda y, p, x: cb.recalibrate(y, p, method="platt", covariates=x),
    "recalibrate by groups": lambda y, p, x: cb.recalibrate(y, p, method="platt", groups=x),
    "recalibrate by clusters": lambda y, p, x: cb.recalibrate(y, p, method="platt", clusters=x["x"]),
    "search_groups": lambda y, p, x: cb.search_groups(y, p, x, **FEW),
    "audit_table": lambda y, p, x: cb.audit_table(y, {"a": p}, x, seeds=2, subpopulations=5, seed=1),
    "weight_family": lambda y, p, x: cb.weight_family(
        y, p, {"one": lambda p, x: x["x"]}, covariates=x, **FEW
    ),
    "GroupMonitor": lambda y, p, x: cb.GroupMonitor([0, 1]).update(y, p, (x["x"] > 0.5).astype(int)),
    "several classes": lambda y, p, x: cb.recalibrate(
        (y + (x["x"] > 2)), pd.DataFrame({0: 1 - p, 1: p / 2, 2: p / 2}).iloc[ORDER], method="temperature"
    ),
}


@pytest.mark.parametrize("door", EXTRA)
def test_columns_beside_the_predictions_must_be_aligned_too(door):
    extra = pd.DataFrame(X).iloc[ORDER]
    refused(EXTRA[door], pd.Series(Y), pd.Series(P), extra)
    arrays = extra.reset_index(drop=True)
    if door != "several classes":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            EXTRA[door](pd.Series(Y), pd.Series(P), arrays)
