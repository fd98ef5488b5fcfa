"""Few nodes suffice for long data: plans that follow the records between them are whole and near optimal."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import samples
from scipy.stats import wasserstein_distance

import calibrant as cb
from calibrant.kernels import lower_distance
from calibrant.kernels.lower_distance_bounds import (
    ChainPlan,
    balanced,
    followed,
    split_onto,
    taken,
)
from calibrant.metrics.distance.lower import level_masses

certify = cb.lower_distance.core


@given(sample=samples(), inner=st.lists(st.floats(0.01, 0.99), max_size=5), seed=st.integers(0, 999))
@settings(max_examples=150)
def test_a_followed_plan_takes_all_the_mass_and_costs_what_transport_costs(sample, inner, seed):
    """Whatever the plan at the nodes was: mass and mean are those of the outcomes, moves are optimal."""
    levels = level_masses(sample.forecasts)
    nodes = np.unique([0.0, 1.0, *inner])
    nodes = nodes[np.append(True, np.diff(nodes) > 1e-6)]
    nodes[-1] = 1.0
    absorbed = np.random.default_rng(seed).exponential(size=len(nodes))
    plan = balanced(ChainPlan(nodes, absorbed), taken(nodes, absorbed), levels)
    plan = followed(plan, split_onto(nodes, levels), levels)
    places, mass = plan.places(levels)
    assert np.all(np.diff(places) >= 0)
    assert mass.min() >= 0
    assert mass.sum() == pytest.approx(levels.weights.sum(), abs=1e-12)
    assert mass @ places == pytest.approx(levels.outcomes.sum(), abs=1e-12)
    moved = 0.0
    for own, share in zip(levels.of_outcomes(), (1 - places, places), strict=True):
        if own.sum() > 1e-9:
            moved += own.sum() * wasserstein_distance(levels.values, places, own, share * mass)
    assert plan.cost(levels) == pytest.approx(moved, abs=1e-8)


@given(sample=samples(min_size=9), quantiles=st.sampled_from([2, 3]), widest=st.sampled_from([1.0, 0.1]))
@settings(max_examples=100)
def test_data_cut_at_few_quantiles_get_the_same_distance(sample, quantiles, widest):
    f = sample.forecasts
    tight = certify(f, tolerance=1e-9)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lower_distance, "QUANTILES", quantiles)
        patch.setattr(lower_distance, "MAX_NODE_GAP", widest)
        found = certify(f)
    assert found.lower <= tight.upper + 1e-12
    assert tight.lower <= found.upper + 1e-12
    assert found.upper - found.lower <= 1e-6


def scattered(kind: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Predictions spread in some way, and outcomes that are calibrated, biased, noise or the opposite."""
    rng = np.random.default_rng(5)
    p = {
        "calibrated": lambda: rng.beta(0.5, 3, n),
        "overconfident": lambda: 1 / (1 + np.exp(-1.3 * rng.logistic(size=n))),
        "piled up": lambda: np.clip(np.where(rng.random(n) < 0.7, rng.normal(0.3, 3e-4, n), 0.9), 0, 1),
        "tiny": lambda: 10 ** rng.uniform(-9, 0, n),
        "noise": lambda: rng.beta(2, 2, n),
        "opposite": lambda: rng.beta(2, 2, n),
    }[kind]()
    logit = np.log(p) - np.log1p(-p)
    truth = {"overconfident": 1 / (1 + np.exp(-logit / 1.3)), "noise": 0.5, "opposite": 1 - p}.get(kind, p)
    return rng.random(n) < truth, p


@pytest.mark.parametrize("kind", ["calibrated", "overconfident", "piled up", "tiny", "noise", "opposite"])
def test_some_thousand_nodes_prove_a_millionth(kind):
    """A plan at the nodes alone needs 60,000 of them for that, on most of these data."""
    found = certify(cb.Forecasts(*scattered(kind, 30_000)))
    assert found.upper - found.lower <= 1e-6
    assert len(found.details["corners"]) <= 2 * lower_distance.QUANTILES
