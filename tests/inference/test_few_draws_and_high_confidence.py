"""What is said at a high confidence, with few draws, of rare events, and of plans that ask for nothing."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cb
from calibrant.evaluation.tables import measure_table

Y, P = np.arange(100) % 2, np.round(np.linspace(0.05, 0.95, 100), 1)


def test_a_loss_is_real_only_if_its_pvalue_can_say_so():
    few = cb.estimate_decision_loss(np.zeros(100), P, draws=10, seed=1)
    assert few.value > few.null_upper
    assert few.pvalue == pytest.approx(1 / 11)
    assert not few.real
    assert "too few draws to say whether more than" in str(few)
    enough = cb.estimate_decision_loss(np.zeros(100), P, draws=19, seed=1)
    assert enough.real


def test_no_confidence_is_rounded_up_to_certainty():
    found = cb.dominance(Y, P[::-1], P, confidence=0.999, draws=19, seed=1)
    assert "99.9% interval" in str(found)
    over = cb.dominance(Y, P[::-1], {str(k): P for k in range(20)}, draws=19, seed=1)
    assert "99.75% interval" in str(over["3"])
    assert "99.9% of 19 draws" in str(cb.estimate_decision_loss(Y, P, confidence=0.999, draws=19, seed=1))
    assert measure_table((), 0.999).columns[-2] == "99.9% interval"
    assert measure_table((), 0).columns[-2] == "interval"


def test_more_records_are_asked_for_to_see_what_matters_of_rare_events():
    """Half of a rate of 1% is what matters; errors of 0.05 would have been seen long ago."""
    p = 0.01 + 1e-6 * np.arange(2000)
    y = np.zeros(2000)
    y[::91] = 1
    found = cb.evaluate(y, p, measures="smooth", draws=39, seed=1).verdict
    assert found.status == "too little data"
    assert found.unseen < 0.05
    assert found.next_step.endswith("more records to see errors of 0.55 points.")


@pytest.mark.parametrize(
    "plan",
    [lambda **how: cb.required_samples(0.05, **how), lambda **how: cb.detectable_distance(100, **how)],
    ids=["records", "distance"],
)
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"power": 0.05}, "^power must exceed alpha, 0.05; got 0.05"),
        ({"alternative": None}, "^alternative must be one of shift, "),
        ({"alternative": 3}, "^alternative must be one of shift, "),
        ({"alternative": lambda values: values[:3]}, r"^alternative must be a function .*; got shape \(3,\)"),
        ({"alternative": lambda values: values * np.nan}, "^alternative must be .*; got infinity or NaN"),
        ({"alternative": lambda values: "up"}, "^alternative must be .*; it raised ValueError"),
    ],
    ids=["power", "none", "number", "short", "nan", "text"],
)
def test_plans_refuse_by_name(plan, options, words):
    with pytest.raises(cb.CalibrantError, match=words):
        plan(draws=19, seed=1, **options)


def test_a_pvalue_of_exactly_one_minus_the_confidence_rejects_here_and_there():
    """1 - 0.8 is rounded below 0.2, and the interval was stretched to the ideal that is rejected."""
    rng = np.random.default_rng(55)
    n = int(rng.integers(20, 120))
    p = rng.random(n).round(1)
    y = rng.random(n) < p ** rng.choice([0.4, 0.6, 1.5])
    how = {"measure": "in-the-large", "draws": 39, "seed": 55}
    assert cb.calibration_test(y, p, method="exact", **how).pvalue == 0.2
    assert cb.confidence_interval(y, p, confidence=0.8, **how).upper < 0
