"""missing="drop" in every public function that refuses missing values, or a hint that says what to do."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import calibrant as cb
from calibrant.public_names import all_homes

RNG = np.random.default_rng(4)
N = 60
P = np.round(RNG.uniform(0.05, 0.95, N), 2)
Y = (RNG.random(N) < P).astype(float)
GAP = 7
Y_GAP, P_GAP = Y.copy(), P.copy()
Y_GAP[GAP] = np.nan
KEPT = np.arange(N) != GAP
GROUP = np.array(["a", "b"])[RNG.integers(0, 2, N)]
PAIR = np.column_stack([1 - P, P])
ACTIONS = np.where(P > 0.5, "act", "wait")
QUICK = {"draws": 19, "seed": 1, "confidence": 0.9}

# what a function needs besides outcomes and predictions, with `rows` chosen
EXTRA = {
    "audit": lambda rows: {"groups": {"g": GROUP[rows]}, "min_size": 5},
    "audit_table": lambda rows: {"models": {"m": P[rows]}, "covariates": {"g": GROUP[rows]}, "min_size": 5},
    "choose_threshold": lambda rows: {"risk": 0.3},
    "class_low_degree_error": lambda rows: {"probabilities": PAIR[rows]},
    "class_table": lambda rows: {"probabilities": PAIR[rows]},
    "class_wise": lambda rows: {"probabilities": PAIR[rows]},
    "compare": lambda rows: {"*": (P[rows], P[rows] ** 2)},
    "compare_groups": lambda rows: {"groups": GROUP[rows]},
    "certified_distance": lambda rows: {"ids": np.arange(N)[rows]},
    "distance_to_calibration": lambda rows: {"ids": np.arange(N)[rows]},
    "distinguish": lambda rows: {"covariates": {"x": P[rows], "z": P[::-1][rows]}},
    "dominance": lambda rows: {"*": (P[rows], P[rows] ** 2)},
    "decision_report": lambda rows: {"payoff": 0.3},
    "random_partition_error": lambda rows: {"partition": "two-bin"},
    "error_rates": lambda rows: {"groups": GROUP[rows]},
    "fixed_decision_loss": lambda rows: {"payoff": 0.3},
    "measure": lambda rows: {"name": "smooth"},
    "net_benefits": lambda rows: {"*": (P[rows], P[rows] ** 2)},
    "one_vs_rest": lambda rows: {"probabilities": PAIR[rows], "label": 1},
    "search_groups": lambda rows: {"covariates": {"x": P[::-1][rows]}, "min_size": 20},
    "swap_regret": lambda rows: {"actions": ACTIONS[rows], "payoff": 0.3},
    "tolerance_test": lambda rows: {"accept": 0.02, "reject": 0.3},
    "top_label": lambda rows: {"probabilities": PAIR[rows]},
    "weight_family": lambda rows: {"functions": {"one": lambda v: 1.0}},
    "weighted_calibration_error": lambda rows: {"weight_function": np.ones_like},
    "assert_calibrated": lambda rows: {"max": {"smooth": 0.9}},
}


def functions():
    """Return every public function of outcomes."""
    for name in all_homes():
        function = getattr(cb, name)
        if inspect.isclass(function) or not callable(function):
            continue
        if "y_true" in inspect.signature(function).parameters:
            yield name


def call(name, y, rows, **options):
    function = getattr(cb, name)
    known = inspect.signature(function).parameters
    extra = EXTRA.get(name, lambda rows: {})(rows)
    models = extra.pop("*", None)
    if models is None and "y_prob" in known:
        models = (P[rows],)
    options |= {key: value for key, value in QUICK.items() if key in known}
    return function(y, *(models or ()), **extra, **options)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", list(functions()))
def test_a_missing_outcome_is_refused_with_a_hint_and_dropped_on_request(name):
    with pytest.raises(cb.CalibrantError, match=r'must not be missing.*Hint: .*missing="drop"'):
        call(name, Y_GAP, slice(None))
    dropped, without = call(name, Y_GAP, slice(None), missing="drop"), call(name, Y[KEPT], KEPT)
    assert type(dropped) is type(without)
    if isinstance(without, float):
        assert dropped == pytest.approx(without, rel=1e-12)
    if hasattr(dropped, "dropped"):
        assert dropped.dropped == 1


@pytest.mark.parametrize(
    "refused",
    [
        lambda: cb.best_actions([0.2, np.nan], 0.3),
        lambda: cb.incentives([0.2, np.nan, 0.4]),
        lambda: cb.required_samples(0.1, predictions=[0.2, np.nan]),
    ],
)
def test_functions_of_predictions_alone_say_what_to_do(refused):
    with pytest.raises(cb.CalibrantError, match=r"must not be missing.*Hint: leave such rows out"):
        refused()
