"""Options that mean nothing are refused by name, whether or not the data would have used them."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import calibrant as cb

Y, P = [0, 1, 1, 0, 1, 0] * 40, [0.2, 0.7, 0.8, 0.3, 0.6, 0.9] * 40
Q = [p / 2 for p in P]

RANDOM = [
    *({"draws": bad} for bad in (-5, 0, True, 2.5, "9")),
    *({"seed": bad} for bad in (-1, "x", True)),
    *({"threads": bad} for bad in (0, "x", True)),
]
CALLS = {
    "limit law": lambda **how: cb.calibration_test(Y, P, method="asymptotic", **how),
    "validity": lambda **how: cb.calibration_test(Y, P, method="validity", **how),
    "guaranteed": lambda **how: cb.tolerance_test(Y, P, accept=0.02, reject=0.1, **how),
    "score interval": lambda **how: cb.confidence_interval(Y, P, measure="slope", **how),
    "compare": lambda **how: cb.compare(Y, P, Q, measure="slope", **how),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("option", RANDOM, ids=str)
def test_options_of_draws_are_refused_where_nothing_would_be_drawn(call, option):
    with pytest.raises(cb.InvalidInputError, match=f"^{next(iter(option))} must be"):
        CALLS[call](**option)


@pytest.mark.parametrize("several", [cb.compare, cb.net_benefits])
def test_the_name_of_a_weight_is_not_ignored_beside_arrays(several):
    with pytest.raises(cb.InvalidInputError, match="arrays must not be combined with column names"):
        several(Y, P, Q, weight="w")


def test_decision_curves_of_no_model_say_so_by_their_own_argument():
    with pytest.raises(
        cb.InvalidInputError, match=r"^predictions must be those of a model or more; got none"
    ):
        cb.net_benefits(Y)
    with pytest.raises(cb.InvalidInputError, match=r"^models must have a row without a missing value"):
        cb.net_benefits([0, 1], [math.nan, 0.5], [0.5, math.nan], missing="drop")


@pytest.mark.parametrize(
    ("option", "named"),
    [
        *(({"confidence": bad}, "confidence") for bad in (None, False, True, 1, -0.5, "0.9", math.nan)),
        *(({"fewest": bad}, "fewest") for bad in (0, -1, True, 2.5, "x", math.nan)),
        *(({"max": bad}, "max") for bad in ({}, ["smooth"], "smooth", None)),
        *(({"max": {"smooth": bad}}, "limit of 'smooth'") for bad in (-1, "1", True, math.nan, None)),
        ({"draws": 0}, "draws"),
    ],
    ids=str,
)
def test_assert_calibrated_refuses_by_name(option, named):
    with pytest.raises(cb.InvalidInputError, match=f"^{named} must"):
        cb.assert_calibrated(Y, P, **{"max": {"smooth": 0.9}, **option})


def test_limits_may_be_numbers_of_numpy():
    assert cb.assert_calibrated(Y, P, max={"smooth": np.float32(0.9)}, confidence=0)[0].outcome == "pass"


@pytest.mark.parametrize("bad", [None, False, True, 1, -0.5, "0.9", math.nan], ids=str)
def test_evaluate_refuses_a_confidence_that_is_none(bad):
    with pytest.raises(cb.InvalidInputError, match=r"^confidence must lie in \[0, 1\), 0 for no intervals"):
        cb.evaluate(Y, P, confidence=bad)


def test_evaluate_takes_one_measure_by_its_name_and_refuses_none():
    assert [row.about.name for row in cb.evaluate(Y, P, measures="smooth", draws=19, seed=1).rows] == [
        "smooth"
    ]
    with pytest.raises(cb.InvalidInputError, match=r"^measures must name a measure or more"):
        cb.evaluate(Y, P, measures=[])


@pytest.mark.parametrize(
    "result",
    [
        lambda: cb.confidence_interval([0, 0.5, 1, 0.25], [0.2, 0.7, 0.4, 0.1], seed=1, draws=19),
        lambda: cb.confidence_interval([0, 1, 1, 0, 1], [0.2, 0.7, 0.4, 0.6, 0.8], measure="slope", seed=1),
        lambda: cb.calibration_test([0, 1, 1, 0], [0.0, 0.7, 0.4, 1.0], seed=1, draws=19),
        lambda: cb.calibration_test([0, 0], [0.0, 1.0], measure="hosmer-lemeshow", method="asymptotic"),
    ],
    ids=["no null mean", "no end", "infinite statistic", "p-value of 0"],
)
def test_results_without_a_number_are_ready_for_json(result):
    json.dumps(result().to_dict(), allow_nan=False)
