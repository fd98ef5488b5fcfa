"""Statements of the papers that hold for every sample, each tested as it is stated."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from samples import samples

import calibrant as cb

pytestmark = pytest.mark.filterwarnings("ignore::calibrant.LevelSetWarning")

LIPSCHITZ = [row for row in cb.measures().values() if row.lipschitz is not None and row.complete]


@pytest.mark.parametrize("row", LIPSCHITZ, ids=lambda row: row.name)
@given(sample=samples(max_size=12))
@settings(max_examples=40)
def test_a_complete_lipschitz_measure_is_at_most_its_constant_times_the_distance(row, sample):
    """Lemma 4.3 of the distance paper: move to the nearest calibrated predictions, where the value is 0."""
    distance = cb.measure(sample.forecasts, "lower-distance").upper
    value = abs(cb.measure(sample.forecasts, row.name).value - row.ideal)
    assert value <= row.lipschitz * distance + 1e-9


@given(sample=samples(max_size=6))
@settings(max_examples=150)
def test_ece_is_a_total_variation_distance(sample):
    """Lemma 2.3 of the survey: ECE = TV between (prediction, outcome) and (prediction, simulated outcome)."""
    f = sample.forecasts
    cells = np.concatenate([f.residuals, -f.residuals])  # of outcome 1 and of outcome 0, level by level
    picks = itertools.product((0, 1), repeat=len(cells)) if len(cells) <= 10 else [cells > 0]
    largest = max(abs(float(np.dot(pick, cells))) for pick in picks)
    assert cb.level_set_error(f) == pytest.approx(largest, abs=1e-12)


@pytest.mark.parametrize("bins", range(2, 22))
def test_the_number_of_bins_decides_between_all_and_nothing(bins):
    """Two predictions a hair from 1/2: an even number of bins parts them, an odd one does not."""
    e = 0.01
    found = cb.binned_calibration_error([0, 1], [0.5 - e, 0.5 + e], bins=bins)
    assert found == pytest.approx(0.5 - e if bins % 2 == 0 else 0.0, abs=1e-12)


POWERS = [
    (cb.level_set_error, {"norm": 2}),
    (cb.level_set_error, {"norm": 3}),
    (cb.binned_calibration_error, {"bins": 4, "norm": 2}),
]


@pytest.mark.parametrize(("function", "options"), POWERS)
@given(sample=samples(max_size=15))
@settings(max_examples=60)
def test_the_constant_mean_is_never_worse_for_higher_powers(function, options, sample):
    """Theorem A.2 of the truthfulness paper for alpha > 1, for each realised outcome."""
    constant = np.full(len(sample.p), min(1.0, float(sample.weights @ sample.p)))
    flat = cb.Forecasts(sample.y, constant, sample_weight=sample.w)
    assert function(flat, **options) <= function(sample.forecasts, **options) + 1e-9


@pytest.mark.parametrize("alpha", [1.5, 2.0])
@given(sample=samples(max_size=5))
@settings(max_examples=15)
def test_the_constant_mean_is_never_further_from_calibration(alpha, sample):
    """Theorem A.2 for the powers of the distance: the constant's is |bias|^alpha, a bound by Jensen."""
    f = sample.forecasts
    found = cb.measure(f, "lower-distance", alpha=alpha)
    assert abs(f.base_rate - f.mean_prediction) ** alpha <= found.upper + 1e-9


@given(sample=samples(max_size=6))
@settings(max_examples=60)
def test_the_lower_distance_is_attained_by_some_space_and_the_upper_by_another(sample):
    """Theorem 5.5 of the distance paper: no better bounds are possible from predictions and outcomes."""
    f = sample.forecasts
    one_point_per_level = cb.distance_to_calibration(sample.y, sample.p, sample.p, sample_weight=sample.w)
    assert one_point_per_level == pytest.approx(cb.upper_distance(f), abs=1e-9)
    plan = cb.transport_plan(f, tolerance=1e-9)
    cells = sorted(set(zip(plan.source.tolist(), plan.target.tolist(), strict=True)))
    assume(len(cells) <= 9)
    place = [cells.index(pair) for pair in zip(plan.source.tolist(), plan.target.tolist(), strict=True)]
    mass = np.bincount(place, plan.mass)
    rate = np.clip(np.bincount(place, plan.mass * plan.outcome) / mass, 0, 1)
    source = np.array([pair[0] for pair in cells])
    true = cb.distance_to_calibration(rate, source, list(range(len(cells))), sample_weight=mass)
    assert float(true) <= plan.cost + 1e-5


@pytest.mark.parametrize("gamma", [0.001, 0.05, 0.3])
def test_two_coins_that_no_measure_can_tell_apart_early(gamma):
    """Lemma 6.4 of the truthfulness paper: rate 1/2 + gamma at prediction 1/2 is at distance gamma."""
    assert cb.lower_distance([0.5 + gamma], [0.5]) == pytest.approx(gamma, abs=1e-6)
    # no test does better than the likelihood ratio: with gamma = c / sqrt(T) it stays wrong now and then
    flips = round(0.01 / gamma**2)
    if flips >= 1:
        heads = np.arange(flips + 1)
        from scipy.stats import binom

        variation = 0.5 * np.abs(binom.pmf(heads, flips, 0.5) - binom.pmf(heads, flips, 0.5 + gamma)).sum()
        assert variation < 1 / 3


@given(st.integers(0, 10**6), st.integers(20, 60))
@settings(max_examples=40)
def test_multi_calibration_implies_multi_accuracy(seed, n):
    """D_k >= |mean residual of k|: the range of a curve is at least the distance of its ends."""
    rng = np.random.default_rng(seed)
    y, p = rng.integers(0, 2, n), np.round(rng.random(n), 1)
    groups = {f"g{k}": rng.random(n) < 0.6 for k in range(4)}
    found = cb.audit(y, p, groups=groups, min_size=1, draws=0, seed=0)
    for group in found.groups:
        member = groups.get(group.name, np.ones(n, dtype=bool))
        assert group.kuiper >= abs(float(np.mean((y - p)[member]))) - 1e-12


@given(sample=samples())
@settings(max_examples=60)
def test_monotone_decisions_regret_at_most_twice_kuiper(sample):
    """Rossellini et al. 2025: who acts on a monotone rule loses at most twice the cutoff error."""
    f = sample.forecasts
    assert cb.monotone_regret(f) <= 2 * cb.kuiper_error(f) + 1e-9


def test_twice_kuiper_is_attained():
    assert cb.monotone_regret([1] * 4, [0.5] * 4) == pytest.approx(2 * cb.kuiper_error([1] * 4, [0.5] * 4))


@given(sample=samples(), mu=st.floats(0.05, 0.95), width=st.sampled_from([0.1, 0.3, 1.0]))
@settings(max_examples=60)
def test_noisy_decision_makers_regret_little_when_the_smooth_error_is_small(sample, mu, width):
    """Uniform noise on a threshold makes the probability to act 1 / width-Lipschitz in the prediction.

    Acting pays y - mu. Another threshold b with the same noise would have paid more by E[(b - a)(y - v)],
    at most 2 max(1, 1 / width) smCE, plus E[(b - a)(v - mu)], what the noise itself costs: at most
    |v - mu| times the chance of the wrong side, which is at most width / 16.
    """
    f = sample.forecasts

    def acts(threshold):
        return np.clip((f.values - threshold) / width + 0.5, 0.0, 1.0)

    trusted = max(1.0, 1 / width) * cb.smooth_calibration_error(f)
    assert abs(float(f.residuals @ acts(mu))) <= trusted + 1e-9  # what she expected, and what she got
    for other in np.linspace(-1, 2, 61):
        change = acts(other) - acts(mu)
        regret = float(f.residuals @ change + f.weights @ (change * (f.values - mu)))
        assert regret <= 2 * trusted + width / 16 + 1e-9


@pytest.mark.filterwarnings("ignore::calibrant.LevelSetWarning")
def test_sample_completeness_and_soundness_are_as_the_registry_says():
    """Truthfulness paper, Definitions 2.8 and 2.9: continuous predictions, calibrated and not."""
    rng = np.random.default_rng(0)
    v = rng.random(5_000)
    good, bad = (rng.random(5_000) < v).astype(int), (rng.random(5_000) < v**2).astype(int)
    small, large, off = cb.Forecasts(good[:200], v[:200]), cb.Forecasts(good, v), cb.Forecasts(bad, v)
    for row in cb.measures().values():
        if not row.complete or row.signed:
            continue
        few, many, wrong = (abs(cb.measure(f, row.name).value - row.ideal) for f in (small, large, off))
        if row.sample_complete:
            assert many < max(few / 2, 0.01), row.name  # the small sample may be right by luck
        else:
            assert many > few / 2, row.name
        if row.sample_sound:
            assert wrong > (1.15 * many if row.sample_complete else 0.05), row.name
    assert {row.name for row in cb.measures().values() if row.valid} == {
        "smooth",
        "lower-distance",
        "atb",
        "l1-atb",
    }


@pytest.mark.parametrize(
    "row", [row for row in cb.measures().values() if row.valid], ids=lambda row: row.name
)
def test_valid_measures_tell_errors_of_order_one_over_root_t_from_calibration(row):
    """Truthfulness paper, Definition 2.13: one cutoff accepts calibration and rejects 3 / sqrt(T), 3 in 4."""
    assert row.valid == "1/sqrt(T)"
    rng, draws = np.random.default_rng(7), 40
    for size in (100, 400):
        shift, values = 3 / np.sqrt(size), {True: [], False: []}
        for calibrated in values:
            for _ in range(draws):
                v = rng.uniform(0.2, 0.6, size)
                y = rng.random(size) < v + shift * (not calibrated)
                values[calibrated].append(cb.measure(cb.Forecasts(y, v), row.name).value)
        cutoff = np.quantile(values[True], 0.9)
        assert np.mean(np.array(values[False]) > cutoff) > 0.75
