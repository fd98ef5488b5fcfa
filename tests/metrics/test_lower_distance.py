"""The lower distance: its certificates hold the oracle's value, and its plan really calibrates."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import distance as oracle
from samples import samples

import calibrant as cb
from calibrant.kernels import lower_distance
from calibrant.metrics.distance.lower import level_masses

probabilities = st.one_of(st.integers(0, 10).map(lambda k: k / 10), st.floats(0, 1))
masses_of_any_size = st.one_of(st.just(1.0), st.floats(-12, 0).map(lambda k: 10.0**k))
certify = cb.lower_distance.core


def masses(f):
    return np.stack([np.maximum(f.weights - f.outcomes, 0), f.outcomes])


@given(sample=samples(max_size=8))
@settings(max_examples=80)
def test_agrees_with_the_linear_program(sample):
    f = sample.forecasts
    truth = oracle.lower_distance(f.values, masses(f))
    tight, usual = certify(f, tolerance=1e-9), certify(f)
    assert tight.value == pytest.approx(truth, abs=1e-8)
    for found in (tight, usual):
        assert found.lower - 1e-9 <= truth <= found.upper + 1e-9
        assert found.lower <= found.value <= found.upper
    assert usual.upper - usual.lower <= 1e-6


@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_the_linear_program_on_more_levels(seed):
    rng = np.random.default_rng(seed)
    v = rng.random(40)
    f = cb.Forecasts(rng.random(40) < v**2, v)
    truth = oracle.lower_distance(f.values, masses(f), tolerance=1e-9)
    found = certify(f, tolerance=1e-9)
    assert found.value == pytest.approx(truth, abs=1e-8)
    assert found.lower - 1e-9 <= truth <= found.upper + 1e-9


@pytest.mark.parametrize("alpha", [1.5, 2.0, 3.0])
@given(sample=samples(max_size=6))
@settings(max_examples=15)
def test_powers_agree_with_the_linear_program(alpha, sample):
    f = sample.forecasts
    truth = oracle.lower_distance(f.values, masses(f), alpha, tolerance=1e-8, mesh=20_001)
    found = certify(f, alpha=alpha)
    assert found.lower - 1e-7 <= truth <= found.upper + 1e-7  # the feasibility tolerance of HiGHS
    assert found.upper - found.lower <= 2e-6


@given(sample=samples())
@settings(max_examples=100)
def test_the_plan_moves_all_the_data_to_calibrated_predictions(sample):
    f = sample.forecasts
    plan = cb.transport_plan(f)
    assert plan.cost == pytest.approx(cb.lower_distance(f), abs=2e-6)
    for y, mass in enumerate(masses(f)):
        left = [plan.mass[(plan.outcome == y) & (plan.source == v)].sum() for v in f.values]
        assert left == pytest.approx(mass, abs=2e-6)
    for u in np.unique(plan.target):
        there = plan.target == u
        ones = plan.mass[there & (plan.outcome == 1)].sum()
        assert ones == pytest.approx(u * plan.mass[there].sum(), abs=2e-6)


def test_one_level_is_exact():
    found = certify(cb.Forecasts([0, 1, 1, 1], [0.5] * 4))
    assert (found.value, found.lower, found.upper, found.exact) == (0.25, 0.25, 0.25, True)


def test_calibrated_data_are_at_distance_zero():
    p = np.repeat([0.1, 0.3, 0.5], 10)
    y = np.concatenate([np.arange(10) < k for k in (1, 3, 5)])
    assert cb.lower_distance(y, p) == pytest.approx(0, abs=1e-15)


def test_two_mistaken_certainties():
    """Half the records say 0 and half say 1, all wrong: they meet at 1/2 or stay where they are."""
    f = cb.Forecasts([1, 0], [0, 1])
    assert certify(f, tolerance=1e-9).value == pytest.approx(
        oracle.lower_distance(f.values, masses(f)), abs=1e-8
    )


def ugly(kind, n, rng):
    v = rng.random(n)
    y = rng.random(n) < v
    match kind:
        case "calibrated":
            return y, v, None
        case "wavy":
            return rng.random(n) < np.clip(v + 0.1 * np.sin(20 * v), 0, 1), v, None
        case "rare":
            v = rng.beta(0.1, 5, n)
            return rng.random(n) < v, v, None
        case "weights":
            return y, v, 10 ** rng.uniform(-10, 0, n)
        case "fractions":
            return rng.random(n), v, None
        case "close":
            return y, 0.5 + 1e-16 * rng.integers(0, 100, n) + 0.1 * (v < 0.5), None
        case _:
            return y, np.round(v), None


KINDS = ["calibrated", "wavy", "rare", "weights", "fractions", "close", "certain"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [2, 300, 6_000])
def test_the_tolerance_is_met_on_ugly_data(kind, n):
    y, v, w = ugly(kind, n, np.random.default_rng(n))
    found = certify(cb.Forecasts(y, v, sample_weight=w))
    assert 0 <= found.upper - found.lower <= 1e-6


@pytest.mark.parametrize("kind", ["calibrated", "wavy", "weights"])
def test_large_data_are_certified(kind):
    rng = np.random.default_rng(5)
    y, v, w = ugly(kind, 32_768, rng)
    found = certify(cb.Forecasts(y, v, sample_weight=w))
    assert found.upper - found.lower <= 1e-6
    y, v, w = ugly(kind, 300_000, rng)
    found = certify(cb.Forecasts(y, v, sample_weight=w), tolerance=1e-4)
    assert found.upper - found.lower <= 1e-4


def test_few_nodes_widen_the_certificate_but_keep_it():
    y, v, _ = ugly("wavy", 20_000, np.random.default_rng(6))
    f = cb.Forecasts(y, v)
    best, few = certify(f), certify(f, tolerance=1e-9, max_nodes=2_048)
    assert len(few.details["corners"]) <= 2_048
    assert few.upper - few.lower > 1e-9
    assert few.lower <= best.upper
    assert best.lower <= few.upper
    assert few.upper - few.lower <= 1e-5


def test_wrong_options_are_refused():
    f = cb.Forecasts([0, 1], [0.2, 0.8])
    for options in ({"tolerance": 0}, {"alpha": 0.5}, {"max_nodes": 3}):
        with pytest.raises(cb.CalibrantError, match=next(iter(options))):
            cb.lower_distance(f, **options)
    many = cb.Forecasts(np.arange(100) % 2, np.linspace(0, 1, 100))
    with pytest.raises(cb.CalibrantError, match="at most 64"):
        cb.lower_distance(many, alpha=2)


@pytest.mark.parametrize("tolerance", [1e-3, 0.1, 10.0])
def test_a_generous_tolerance_still_gives_valid_bounds(tolerance):
    y, v, _ = ugly("wavy", 500, np.random.default_rng(7))
    f = cb.Forecasts(y, v)
    found, truth = certify(f, tolerance=tolerance), certify(f)
    assert found.lower <= truth.upper
    assert truth.lower <= found.upper
    assert found.upper - found.lower <= tolerance


@pytest.mark.parametrize("n", [500, 200_000])
def test_pieces_of_the_data_add_up(n):
    """Long data are handled a chunk at a time: the price of a plan must not depend on the chunks."""
    from calibrant.kernels import lower_distance_bounds

    y, v, w = ugly("weights", n, np.random.default_rng(8))
    f = cb.Forecasts(y, v, sample_weight=w)
    levels = level_masses(f)
    nodes = np.linspace(0, 1, 101)
    leaving = lower_distance_bounds.taken(nodes, np.full(101, 0.01))
    plan = lower_distance_bounds.ChainPlan(nodes, np.full(101, 0.01))
    plan = lower_distance_bounds.balanced(plan, leaving, levels)
    whole, shared = plan.cost(levels), lower_distance_bounds.split_onto(nodes, levels)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lower_distance_bounds, "CHUNK", 77)
        assert plan.cost(levels) == pytest.approx(whole, abs=1e-12)
        assert lower_distance_bounds.split_onto(nodes, levels) == pytest.approx(shared, abs=1e-12)
    assert shared.sum(axis=1) == pytest.approx(masses(f).sum(axis=1))
    assert (shared @ nodes).sum() == pytest.approx(f.mean_prediction)


@given(sample=samples())
@settings(max_examples=100)
def test_both_proofs_can_be_checked_by_hand(sample):
    f = sample.forecasts
    found = certify(f)
    corners, (r0, r1) = found.details["corners"], found.details["potentials"]
    assert corners[[0, -1]].tolist() == [0, 1]
    for r in (r0, r1):
        assert np.all(np.abs(np.diff(r)) <= np.diff(corners) + 1e-12)
    u = np.linspace(0, 1, 20_001)
    assert np.max((1 - u) * np.interp(u, corners, r0) + u * np.interp(u, corners, r1)) <= 1e-12
    zeros, ones = masses(f)
    mean = zeros @ np.interp(f.values, corners, r0) + ones @ np.interp(f.values, corners, r1)
    assert max(mean, 0) == pytest.approx(found.lower, abs=1e-12)
    u, x = found.details["calibrated_values"], found.details["calibrated_weights"]
    assert x.sum() == pytest.approx(1)
    assert u @ x == pytest.approx(f.base_rate)


@given(
    st.lists(st.tuples(probabilities, masses_of_any_size), min_size=1, max_size=6),
    probabilities,
    masses_of_any_size,
    st.booleans(),
)
@settings(max_examples=150)
def test_a_lone_outcome_has_a_closed_form(others, at, mass, mirrored):
    """Plan and potentials agree to the last bits, and with the general solver, which the limit keeps off."""
    values, weights = zip(*others, strict=True)
    y = [0.0] * len(others) + [1.0]
    p = np.array([*values, at])
    f = cb.Forecasts(
        1 - np.array(y) if mirrored else y, 1 - p if mirrored else p, sample_weight=[*weights, mass]
    )
    found = certify(f)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lower_distance, "MAX_CLOSED_FORM_LEVELS", 0)
        general = certify(f, tolerance=1e-9)
    assert found.upper - found.lower <= 1e-12
    assert general.lower - 1e-14 <= found.value <= general.upper + 1e-14


def test_three_records_are_always_exact():
    rng = np.random.default_rng(0)
    for outcomes in np.ndindex(2, 2, 2):
        for _ in range(20):
            assert certify(cb.Forecasts(outcomes, np.round(rng.random(3), 2))).exact
