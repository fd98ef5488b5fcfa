"""Planning for a verdict, and the alternating alternative."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cb
from calibrant.cli.main import calibrant as command
from calibrant.inference.planning import ALTERNATIVES


def test_the_formula_of_the_lower_distance():
    width = 2 * math.sqrt(2 * math.log(1 / 0.05)) + math.sqrt(2)
    assert cb.required_samples(accept=0.02, reject=0.05).n == pytest.approx((width / 0.03) ** 2, rel=1e-4)


@given(st.floats(0, 0.3), st.floats(0.05, 0.6), st.sampled_from([0.9, 0.95, 0.999]), st.integers(0, 10**6))
def test_from_the_planned_records_on_there_is_a_verdict(accept, gap, confidence, seed):
    reject = min(1.0, accept + gap)
    plan = cb.required_samples(accept=accept, reject=reject, confidence=confidence)
    rng = np.random.default_rng(seed)
    v = np.round(rng.random(plan.n), 1)
    y = rng.random(plan.n) < np.clip(v + rng.uniform(-0.6, 0.6), 0, 1)
    found = cb.tolerance_test(y, v, accept=accept, reject=reject, confidence=confidence)
    assert found.verdict != "undecided"


def test_for_smooth_too():
    plan = cb.required_samples(accept=0.02, reject=0.5, measure="smooth")
    rng = np.random.default_rng(0)
    for size in np.linspace(0, 0.6, 13):
        v = np.round(rng.random(plan.n), 1)
        y = rng.random(plan.n) < np.clip(v + size, 0, 1)
        found = cb.tolerance_test(y, v, accept=0.02, reject=0.5, measure="smooth")
        assert found.verdict != "undecided"


def test_alternating_errors_are_planned_at_the_distance_asked_for():
    assert "alternating" in ALTERNATIVES
    plan = cb.required_samples(0.03, alternative="alternating", measure="smooth", draws=99, seed=1)
    assert plan.distance == pytest.approx(0.03, rel=1e-2)
    assert plan.alternative == "alternating"
    given_predictions = cb.required_samples(
        0.03, alternative="alternating", predictions=np.linspace(0, 1, 999), draws=99, seed=1
    )
    assert given_predictions.distance == pytest.approx(0.03, rel=1e-2)


def test_on_the_command_line():
    from click.testing import CliRunner

    found = CliRunner().invoke(command, ["plan", "--accept", "0.02", "--reject", "0.05"])
    assert found.output.startswith("44,239 records always decide")
    for bad in (["--accept", "0.02"], [], ["--accept", "0.02", "--reject", "0.05", "--distance", "0.1"]):
        assert CliRunner().invoke(command, ["plan", *bad]).exception is not None


@pytest.mark.parametrize("options", [{}, {"accept": 0.1}, {"distance": 0.1, "accept": 0.1, "reject": 0.2}])
def test_either_a_distance_or_two_limits(options):
    with pytest.raises(cb.CalibrantError, match="either a distance, or both accept and reject"):
        cb.required_samples(**options)


def test_limits_are_checked():
    with pytest.raises(cb.CalibrantError, match="0 <= accept < reject <= 1"):
        cb.required_samples(accept=0.2, reject=0.1)
    with pytest.raises(cb.CalibrantError, match="further apart"):
        cb.required_samples(accept=0.2, reject=0.20001)
