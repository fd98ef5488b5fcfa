"""Decision loss: equal to the program over all payoff tables, inside the chain, tight where it should be."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from oracles import decision as oracle
from samples import samples

import calibrant as cb
from calibrant.metrics.decisions.worst_case import curve_of, hindsight, peaks_at_predictions

pytestmark = pytest.mark.filterwarnings("ignore::calibrant.metrics.binned.LevelSetWarning")


@given(sample=samples(max_size=9))
@settings(max_examples=300)
def test_equals_the_program_over_all_payoff_tables(sample):
    assert cb.decision_loss(sample.forecasts) == pytest.approx(oracle.decision_loss(sample), abs=1e-8)


@pytest.mark.parametrize("seed", range(40))
def test_equals_the_program_on_random_cases(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 25))
    sample = oracle.Sample(
        rng.random(n), rng.random(n) ** rng.uniform(0.2, 5), rng.random(n) ** 3 if seed % 2 else None
    )
    assert cb.decision_loss(sample.forecasts) == pytest.approx(oracle.decision_loss(sample), abs=1e-8)


@given(sample=samples())
def test_the_chain_of_inequalities(sample):
    """ECE^2 <= ECE_2^2 <= CDL <= 2 ECE, eq. (4.3) of the survey."""
    f = sample.forecasts
    ece, squared = cb.level_set_error(f), cb.level_set_error(f, norm=2)
    loss = cb.decision_loss(f)
    assert ece**2 <= squared + 1e-12
    assert squared <= loss + 1e-12
    assert loss <= 2 * ece + 1e-12


@given(sample=samples())
def test_the_certificate_closes_and_the_worst_task_earns_what_it_says(sample):
    f = sample.forecasts
    found = cb.measure(f, "cdl")
    assert found.exact
    assert found.lower <= found.value <= found.upper <= found.value + 1e-12
    task = cb.worst_task(f)
    assert task.loss == found.value
    assert task.losses.sum() == pytest.approx(task.loss, abs=1e-15)
    assert len(task.thresholds) <= 2
    assert task.payoff.shape == (len(task.thresholds) + 1, 2)
    assert task.payoff.min() >= 0
    assert task.payoff.max() <= 1
    for k, mu in enumerate(task.thresholds):  # indifferent between neighbouring actions at each threshold
        belief = np.array([1 - mu, mu])
        assert task.payoff[k] @ belief == pytest.approx(task.payoff[k + 1] @ belief, abs=1e-9)


@given(sample=samples(), mu=st.floats(0, 1))
def test_the_curve_is_the_sum_over_levels(sample, mu):
    curve = cb.threshold_loss_curve(sample.forecasts)
    breaks = np.concatenate((curve.thresholds, sample.p))
    assume(np.all((breaks == mu) | (np.abs(breaks - mu) > 1e-9)))
    assert float(curve.at(mu)) == pytest.approx(oracle.threshold_loss(sample, mu), abs=1e-10)


@given(sample=samples())
def test_the_curve_at_the_predictions_includes_the_jump(sample):
    curve = cb.threshold_loss_curve(sample.forecasts)
    for v in sample.p:
        assert float(curve.at(v)) == pytest.approx(oracle.threshold_loss(sample, v), abs=1e-10)
    assert np.all(np.diff(curve.thresholds) > 0)
    assert len(curve.mu) == len(curve.loss) == 2 * len(curve.thresholds)


@given(sample=samples())
def test_no_single_threshold_task_loses_more(sample):
    """A payoff in [0, 1] that changes at mu alone loses h(mu) / max(mu, 1 - mu)."""
    curve = cb.threshold_loss_curve(sample.forecasts)
    single = curve.peaks / np.maximum(curve.thresholds, 1 - curve.thresholds)
    loss = cb.decision_loss(sample.forecasts)
    assert single.max() <= loss + 1e-10
    assert loss <= 2 * curve.peaks.max() + 1e-10  # Theorem A.1 of the survey: V-shaped tasks, slopes -1 and 1


@pytest.mark.parametrize("epsilon", [0.001, 0.03, 0.09])
def test_first_tight_example(epsilon):
    """Appendix A.8: predict 1/2, truth 1/2 + epsilon: ECE_2 = epsilon, CDL = 2 epsilon."""
    f = cb.Forecasts([0.5 + epsilon], [0.5])
    assert cb.level_set_error(f, norm=2, root=True) == pytest.approx(epsilon)
    assert cb.decision_loss(f) == pytest.approx(2 * epsilon, abs=1e-14)


@pytest.mark.parametrize("epsilon", [0.01, 0.05, 0.09])
def test_second_tight_example(epsilon):
    """Appendix A.8: x uniform on [e, 1], truth x - e: ECE = e, CDL = e^2 / (1 - e).

    A grid of step s replaces an integral by a sum that exceeds it by s e / 2, at each threshold.
    """
    points = 200_000
    step = (1 - epsilon) / points
    x = epsilon + step * (np.arange(points) + 0.5)
    f = cb.Forecasts(x - epsilon, x)
    assert cb.level_set_error(f) == pytest.approx(epsilon)
    limit = epsilon**2 / (1 - epsilon)
    assert limit - 1e-12 <= cb.decision_loss(f) <= limit + 2 * step * epsilon / (1 - epsilon)


def test_the_worst_pair_is_found_among_hostile_points():
    """Peaks that crowd towards 1/2, where the slope of the first chords is enormous."""
    gaps = 0.5 ** np.arange(1, 50)
    p = np.sort(np.concatenate((0.5 - gaps / 2, 0.5 + gaps / 2, [0.5])))
    for seed in range(30):
        rng = np.random.default_rng(seed)
        y, w = rng.random(len(p)), 10.0 ** rng.uniform(-8, 0, len(p))
        found = cb.measure(cb.Forecasts(y, p, sample_weight=w), "cdl")
        curve = cb.threshold_loss_curve(y, p, sample_weight=w)
        mu, h = curve.thresholds, curve.peaks
        left, right = mu <= 0.5, mu > 0.5
        share = (mu[right] - 0.5) / (mu[right] - mu[left][:, None])
        brute = (share * h[left][:, None] + (1 - share) * h[right]).max()
        assert found.value == pytest.approx(2 * brute, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("power", [1, 40])
def test_long_data_agrees_with_the_whole_curve(power):
    rng = np.random.default_rng(5)
    p = np.concatenate((rng.random(25_000), [0.0, 1.0])) ** power
    y = np.where(rng.random(len(p)) < 0.2, rng.random(len(p)) < p, rng.random(len(p)))
    groups = hindsight(cb.Forecasts(y, p))
    whole = curve_of(groups).at(groups.trusted)
    assert peaks_at_predictions(groups) == pytest.approx(whole, abs=1e-10)


def test_singletons_draw_a_warning():
    rng = np.random.default_rng(0)
    p = rng.random(200)
    with pytest.warns(cb.LevelSetWarning, match="decision_loss"):
        cb.decision_loss(rng.random(200) < p, p)


@pytest.mark.parametrize("bad", [2.0, -0.1, math.nan, "x", [0.5, 1.5]])
def test_the_curve_is_read_within_its_ends_only(bad):
    curve = cb.threshold_loss_curve([0, 1, 1, 1], [0.5] * 4)
    with pytest.raises(cb.CalibrantError, match="mu must"):
        curve.at(bad)
    assert curve.at(0.5) == 0.25
