"""dominance: equal to the program over all bounded proper payoffs; intervals that hold; the chart."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from oracles import decision as oracle
from samples import samples

import calibrant as cb
from calibrant.report.charts import murphy_difference


@given(samples(max_size=9), st.data())
@settings(max_examples=250)
def test_equals_the_program_over_all_payoffs(sample, data):
    other = np.array(
        data.draw(
            st.lists(
                st.one_of(st.sampled_from(sample.p.tolist()), st.sampled_from([0.0, 0.5, 1.0, 0.3])),
                min_size=len(sample.p),
                max_size=len(sample.p),
            )
        )
    )
    beliefs = np.unique(np.concatenate((sample.p, other)))
    assume(
        np.diff(beliefs, prepend=-1).min() > 1e-6
    )  # the program's tolerance blurs reports that nearly agree
    found = cb.dominance(sample.y, sample.p, other, sample_weight=sample.w, draws=0)
    assert found.loss == pytest.approx(
        oracle.better_report(sample.y, sample.weights, sample.p, other), abs=1e-8
    )
    back = cb.dominance(sample.y, other, sample.p, sample_weight=sample.w, draws=0)
    assert found.dominates == back.dominated
    if found.dominates:
        assert found.loss <= 1e-11


def test_random_gridded_cases_equal_the_program():
    rng = np.random.default_rng(3)
    for k in range(60):
        n = int(rng.integers(1, 20))
        a, b = np.round(rng.random((2, n)), 1 + k % 3)
        y, w = rng.integers(0, 2, n), rng.random(n) ** 3 + 1e-6
        exact = oracle.better_report(y, w / w.sum(), a, b)
        assert cb.dominance(y, a, b, sample_weight=w, draws=0).loss == pytest.approx(exact, abs=1e-8)


def test_against_the_base_rate_it_is_u_calibration():
    rng = np.random.default_rng(5)
    p, y = np.round(rng.random(200), 2), rng.integers(0, 2, 200)
    found = cb.dominance(y, p, np.full(200, y.mean()), draws=0)
    assert found.loss == pytest.approx(cb.u_calibration_error(y, p), abs=1e-14)


def test_sharper_and_calibrated_dominates_in_the_long_run():
    rng = np.random.default_rng(0)
    p = rng.random(50_000)
    y = rng.random(50_000) < p
    blurred = 0.5 + 0.2 * (p - 0.5)
    against = cb.dominance(y, blurred, p, seed=1, draws=200)
    assert against.lower > 0.1
    population = cb.dominance(p, p, blurred, draws=0)  # probabilities in place of outcomes
    assert population.dominates
    assert not population.dominated
    assert (
        str(population)
        == "The first model dominates: on these records no user should prefer the second model."
    )
    assert cb.dominance(p, blurred, p, draws=0).dominated


def test_the_interval_holds_the_loss_of_the_population():
    """At least as often as it says: two calibrated models, one of which lost a half of the sharpness."""
    rng = np.random.default_rng(2)
    big = rng.random(400_000)
    wrong, flat = np.clip(big + 0.15, 0, 1), np.full(400_000, 0.5)
    truth = cb.dominance(big, wrong, flat, draws=0).loss  # probabilities as outcomes: the population
    held = 0
    for seed in range(60):
        p = rng.random(400)
        y = rng.random(400) < p
        found = cb.dominance(y, np.clip(p + 0.15, 0, 1), np.full(400, 0.5), draws=199, seed=seed)
        held += found.lower <= truth <= found.upper
    assert held >= 54


def test_laws():
    rng = np.random.default_rng(1)
    y, a, b = rng.integers(0, 2, 60), np.round(rng.random(60), 1), np.round(rng.random(60), 1)
    plain = cb.dominance(y, a, b, draws=50, seed=4)
    again = cb.dominance(y, a, b, draws=50, seed=4)
    assert (plain.loss, plain.lower, plain.upper) == (again.loss, again.lower, again.upper)
    order = rng.permutation(60)
    mixed = cb.dominance(y[order], a[order], b[order], draws=50, seed=4)
    assert (mixed.loss, mixed.lower, mixed.upper) == (plain.loss, plain.lower, plain.upper)
    assert mixed.band.lower.tolist() == plain.band.lower.tolist()
    doubled = cb.dominance(y, a, b, sample_weight=np.full(60, 2.0), draws=0)
    assert doubled.loss == pytest.approx(plain.loss, abs=1e-14)
    twice = cb.dominance(np.tile(y, 2), np.tile(a, 2), np.tile(b, 2), draws=0)
    assert twice.loss == pytest.approx(plain.loss, abs=1e-14)
    assert cb.dominance(y, a, a, draws=0).loss == 0
    weights = [1e-140, 1, 1e140]
    rows = [0, 1, 1] * 5, [0.1, 0.5, 0.9] * 5, [0.3] * 15
    extreme = cb.dominance(*rows, sample_weight=weights * 5, draws=99, seed=1)
    assert np.isfinite([extreme.loss, extreme.lower, extreme.upper]).all()
    assert plain.lower <= plain.loss <= plain.upper
    assert plain.to_dict()["seed"] == 4


def test_missing_rows_are_refused_or_dropped_for_both():
    y, a, b = [0, 1, 1, 0], [0.2, np.nan, 0.7, 0.4], [0.3, 0.6, np.nan, 0.4]
    with pytest.raises(cb.CalibrantError, match="prob_a must not be missing"):
        cb.dominance(y, a, b)
    found = cb.dominance(y, a, b, missing="drop", draws=0)
    assert (found.n, found.dropped) == (2, 2)
    with pytest.raises(cb.CalibrantError, match="must have the same length"):
        cb.dominance([0, 1], [0.5, 0.5], [0.5])
    with pytest.raises(cb.CalibrantError, match="prob_b must lie in"):
        cb.dominance([0, 1], [0.5, 0.5], [0.5, 3])
    with pytest.raises(cb.CalibrantError, match="draws must be"):
        cb.dominance([0, 1], [0.5, 0.5], [0.5, 0.2], draws=-1)


def test_the_chart_shows_curve_band_and_winners():
    rng = np.random.default_rng(1)
    p = rng.random(500)
    found = cb.dominance(rng.random(500) < p, p, np.round(p, 1), draws=50, seed=1)
    drawn = murphy_difference(found, first="raw", second="rounded").to_dict()["datasets"].values()
    curve = next(d for d in drawn if {"threshold", "loss"} <= set(d[0]))
    assert max(r["loss"] for r in curve) == pytest.approx(found.curve.peaks.max(), rel=1e-4)
    band = next(d for d in drawn if {"lower", "upper"} <= set(d[0]))
    assert all(r["lower"] <= r["upper"] for r in band)
    assert {r["better"] for d in drawn for r in d if "better" in r} <= {"raw", "rounded"}


def test_over_several_baselines_it_is_the_largest():
    rng = np.random.default_rng(4)
    y, a = rng.integers(0, 2, 60), np.round(rng.random(60), 1)
    others = {name: np.round(rng.random(60), 1) for name in ("x", "y", "z")}
    found = cb.dominance(y, a, others, draws=99, seed=1)
    alone = {name: cb.dominance(y, a, b, draws=0).loss for name, b in others.items()}
    weights = np.full(60, 1 / 60)
    assert found.loss == max(alone.values()) == alone[found.worst]
    assert found.loss == pytest.approx(
        max(oracle.better_report(y, weights, a, b) for b in others.values()), abs=1e-8
    )
    assert {name: part.loss for name, part in found.each.items()} == alone
    assert found.lower <= found.loss <= found.upper
    single = cb.dominance(y, a, others["x"], draws=99, seed=1, confidence=1 - 0.05 / 3)
    assert (found["x"].lower, found["x"].upper) == (single.lower, single.upper)
    listed = cb.dominance(y, a, list(others.values()), draws=0)
    assert list(listed.each) == ["baseline 1", "baseline 2", "baseline 3"]
    assert listed.loss == found.loss
    assert listed.upper is None
    assert found.to_dict()["worst"] == found.worst
    assert found.worst in str(found)
    assert "dominates all 1 baselines" in str(cb.dominance(y, y.astype(float), {"a": a}, draws=0))


def test_bad_baselines_are_named():
    y, a = [0, 1], [0.2, 0.4]
    cases = [({}, "at least one"), ({"old": [0.2, 1.3]}, "baseline 'old': prob_b"), ([[0.1]], "baseline 1")]
    for bad, words in cases:
        with pytest.raises(cb.CalibrantError, match=words):
            cb.dominance(y, a, bad, draws=0)


def test_constants_without_events_leave_a_real_interval():
    """The interval was a point, "1 to 1", when rows were resampled."""
    found = cb.dominance([0] * 30, [0.5] * 30, [0.1] * 30)
    assert found.lower < 0.9
    assert found.upper == 1.0


def test_the_curve_lies_within_its_band_also_at_jumps():
    rng = np.random.default_rng(21)
    for levels in (2, 4, 50):
        p = rng.choice(np.linspace(0.1, 0.9, levels), 200)
        q = rng.choice(np.linspace(0.1, 0.9, levels), 200)
        y = rng.random(200) < p
        found = cb.dominance(y, p, q, draws=99)
        at = np.searchsorted(found.curve.thresholds, found.band.thresholds)
        for side in (found.curve.before[at], found.curve.after[at]):
            assert np.all(found.band.lower <= side + 1e-12)
            assert np.all(side <= found.band.upper + 1e-12)
        assert found.lower <= found.loss <= found.upper


def test_intervals_cover_the_loss_of_few_levels():
    """Two constants with 2% of events: 65% of the intervals by resampling held the loss at n = 50."""
    rng, held = np.random.default_rng(22), 0
    truth = cb.dominance(np.arange(10_000) < 200, np.full(10_000, 0.01), np.full(10_000, 0.03), draws=0).loss
    for seed in range(100):
        y = rng.random(50) < 0.02
        found = cb.dominance(y, np.full(50, 0.01), np.full(50, 0.03), draws=99, seed=seed)
        held += found.lower - 1e-9 <= truth <= found.upper + 1e-9
    assert held >= 90


def test_weights_with_hardly_any_events_are_refused():
    """With one event that weighs ten times as much, 62% of the intervals held the true loss."""
    y = np.zeros(50)
    y[:4] = 1
    w = np.where(y, 10.0, 1.0)
    with pytest.raises(cb.TooFewRecordsError, match="5 records of either outcome") as refused:
        cb.dominance(y, [0.5] * 50, [0.1] * 50, sample_weight=w)
    assert "draws=0" in str(refused.value)
    assert cb.dominance(y, [0.5] * 50, [0.1] * 50, sample_weight=w, draws=0).lower is None
    assert cb.dominance(y, [0.5] * 50, [0.1] * 50, sample_weight=np.full(50, 3.0), draws=99).lower is not None
    y[4] = 1
    w = np.where(y, 10.0, 1.0)
    assert cb.dominance(y, [0.5] * 50, [0.1] * 50, sample_weight=w, draws=99).lower is not None
