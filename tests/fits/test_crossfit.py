"""Cross-fitted decision loss: noise is not loss, loss is found, and the folds are those of the records."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import samples

import calibrant as cb
from calibrant.fits import crossfit
from calibrant.fits.crossfit import cross_fitted, held_out, isotonic_interpolation
from calibrant.metrics.decisions.worst_case import curve_of
from calibrant.metrics.scores import isotonic_curve


def draw(n, seed, shift=0.0):
    """Continuous predictions; on the logit scale the truth is off by `shift`."""
    rng = np.random.default_rng(seed)
    p = rng.beta(2, 3, n)
    truth = 1 / (1 + np.exp(-(np.log(p / (1 - p)) + shift)))
    return rng.random(n) < truth, p, truth


@pytest.mark.parametrize("recalibrator", ["isotonic", "binned"])
def test_noise_is_not_loss(recalibrator):
    y, p, _ = draw(4000, 1)
    with pytest.warns(cb.LevelSetWarning, match='recalibrator="isotonic"') as reported:
        plain = cb.decision_loss(y, p)
    assert reported[0].filename == __file__
    assert plain > 0.2  # hindsight on singletons knows every outcome
    assert cb.decision_loss(y, p, recalibrator=recalibrator) < 0.01


@pytest.mark.parametrize("recalibrator", ["isotonic", "binned"])
@pytest.mark.parametrize("payoff", [0.3, "quadratic", {"a": (1, 0), "b": (0.7, 0.5), "c": (0, 2)}])
def test_real_loss_is_found(recalibrator, payoff):
    y, p, truth = draw(20_000, 2, shift=1.0)
    exact = cb.fixed_decision_loss(truth, p, payoff=payoff)
    found = cb.fixed_decision_loss(y, p, payoff=payoff, recalibrator=recalibrator)
    assert found == pytest.approx(exact, rel=0.25, abs=0.004)


def test_the_worst_task_is_found_without_hindsight():
    y, p, truth = draw(20_000, 3, shift=1.0)
    exact = cb.decision_loss(truth, p)
    assert cb.decision_loss(y, p, recalibrator="isotonic") == pytest.approx(exact, rel=0.1)
    task = cb.worst_task(y, p, recalibrator="isotonic")
    gained = cb.fixed_decision_loss(y, p, payoff=task.payoff, recalibrator="isotonic", ties="first")
    assert gained == pytest.approx(task.loss, abs=1e-3)


@given(sample=samples(min_size=6))
def test_folds_part_the_records(sample):
    f = sample.forecasts
    folds = min(3, f.levels)
    if folds < 2:
        return
    groups = cross_fitted(f, "isotonic", folds, 0)
    assert groups.counts.sum() == f.n
    for part, whole in ((groups.weights, f.weights), (groups.outcomes, f.outcomes)):
        sums = [part[groups.trusted == v].sum() for v in f.values]
        assert sums == pytest.approx(whole, abs=1e-12)
    assert np.all((groups.rates >= 0) & (groups.rates <= 1))
    curve = curve_of(groups)
    assert curve.before[0] == pytest.approx(0, abs=1e-12)
    assert curve.after[-1] == pytest.approx(0, abs=1e-12)


@given(sample=samples(min_size=2))
def test_isotonic_rates_between_and_beyond_the_predictions_seen(sample):
    f = sample.forecasts
    asked = np.concatenate((f.values, (f.values[1:] + f.values[:-1]) / 2, [0.0, 1.0]))
    found = isotonic_interpolation(f.values, f.outcomes / f.weights, f.weights)(asked)
    fit = isotonic_curve(f)
    assert found[: f.levels] == pytest.approx(fit, abs=1e-12)
    assert found[-2:] == pytest.approx([fit[0], fit[-1]], abs=1e-12)
    middle = found[f.levels : -2]
    assert np.all(middle >= fit[:-1] - 1e-12)
    assert np.all(middle <= fit[1:] + 1e-12)


def test_a_rate_never_sees_its_own_record():
    """Leave one out with the mean of the others: what each record gets is known by hand."""
    y, p = np.array([0, 1, 1, 0]), np.array([0.2, 0.4, 0.6, 0.8])

    def mean(values, rates, weights):
        return lambda v: np.full(len(v), np.average(rates, weights=weights))

    groups = cross_fitted(cb.Forecasts(y, p), mean, 4, 0)
    assert groups.rates == pytest.approx((2 - y) / 3)


def test_row_order_does_not_matter_and_the_seed_does():
    y, p, _ = draw(500, 4, shift=0.5)
    order = np.random.default_rng(0).permutation(500)
    one = cb.decision_loss(y, p, recalibrator="isotonic", seed=7)
    assert one == cb.decision_loss(y[order], p[order], recalibrator="isotonic", seed=7)
    assert one != cb.decision_loss(y, p, recalibrator="isotonic", seed=8)


def test_weights_are_respected():
    y, p, _ = draw(3000, 5, shift=0.7)
    w = np.where(p > 0.5, 3.0, 0.001)
    f = cb.Forecasts(y, p, sample_weight=w)
    high = cb.Forecasts(y[p > 0.5], p[p > 0.5])
    found = cb.fixed_decision_loss(f, payoff="quadratic", recalibrator="isotonic")
    assert found == pytest.approx(
        cb.fixed_decision_loss(high, payoff="quadratic", recalibrator="isotonic"), abs=0.004
    )


def test_what_makes_no_sense_is_refused():
    y, p, _ = draw(50, 6)
    for options, message in (
        ({"recalibrator": "platt"}, "isotonic, binned"),
        ({"recalibrator": "isotonic", "folds": 1}, "folds"),
        ({"recalibrator": "isotonic", "folds": 51}, "folds"),
        ({"recalibrator": lambda v, y, w: lambda x: x[:1]}, "one finite number"),
    ):
        with pytest.raises(cb.CalibrantError, match=message):
            cb.decision_loss(y, p, **options)
    with pytest.raises(cb.CalibrantError, match="two records"):
        cb.decision_loss([1], [0.5], recalibrator="isotonic")


def test_the_cross_fitted_curve_is_what_each_threshold_gains():
    y, p, _ = draw(800, 8, shift=0.6)
    f = cb.Forecasts(y, p)
    curve = cb.threshold_loss_curve(f, recalibrator="binned", seed=2)
    for mu in (0.123, 0.4, 0.77):
        found = cb.fixed_decision_loss(f, payoff=mu, recalibrator="binned", seed=2)
        assert float(curve.at(mu)) == pytest.approx(found, abs=1e-12)
    details = cb.measure(f, "cdl", recalibrator="binned", seed=2).details
    assert (details["recalibrator"], details["folds"], details["seed"]) == ("binned", 5, 2)
    with pytest.warns(cb.LevelSetWarning) as reported:
        cb.threshold_loss_curve(f)
    assert reported[0].filename == __file__


def test_rates_of_tied_records_are_exact_counts_of_the_other_folds():
    """What remains of a level without a fold is a count of records, not a difference of rounded shares."""
    rng = np.random.default_rng(9)
    p = rng.integers(1, 4, 3000) / 10
    f = cb.Forecasts(rng.random(3000) < p, p)

    def as_seen(values, rates, weights):
        return lambda v: rates[np.searchsorted(values, v)]

    for part in held_out(f, as_seen, 3, 0):
        ones = np.rint(f.outcomes * f.n) - np.rint(part.outcomes * f.n)
        assert part.rates.tolist() == (ones / (f.counts - part.counts)).tolist()


def test_records_of_one_level_are_dealt_one_by_one_whatever_their_weights():
    """One weight of 1.0001 once sent whole levels to one fold, and turned a gain into harm."""
    rng = np.random.default_rng(0)
    p = rng.integers(1, 8, 600) / 8
    y = (rng.random(600) < p**2).astype(float)
    w = np.ones(600)
    w[17] = 1.0001
    fractions = np.where(np.arange(600) == 17, 0.999, y)
    plain, fractional = (
        cb.evaluate(outcomes, p, draws=19, seed=3).recalibration for outcomes in (y, fractions)
    )
    weighted = cb.evaluate(y, p, sample_weight=w, draws=19, seed=3).recalibration
    for other in (weighted, fractional):
        for before, after in (plain.changes["smooth"], other.changes["smooth"]):
            assert after < before / 2
    parts = held_out(cb.Forecasts(y, p, sample_weight=w), "isotonic", 5, 0)
    assert sum(len(part.trusted) for part in parts) > 7 * 4  # every fold has nearly every level
    assert sum(part.counts.sum() for part in parts) == 600


def test_three_levels_are_enough():
    y, p = [0, 1, 1, 0, 1, 0] * 20, [0.2, 0.5, 0.8] * 40
    for w in (None, np.linspace(1, 2, 120)):
        assert len(held_out(cb.Forecasts(y, p, sample_weight=w), "isotonic", 5, 0)) == 5
        cb.estimate_decision_loss(y, p, sample_weight=w, draws=9, seed=1)


def test_where_records_are_not_known_the_preview_says_so():
    rng = np.random.default_rng(1)
    p = rng.random(5000)
    y = rng.random(5000) < p
    known = cb.evaluate(cb.Sketch.from_arrays(y, p).forecasts(), draws=9, seed=1)
    assert known.recalibration is not None
    assert known.to_dict()["recalibration_absent"] is None
    for args, reason in (
        (((y, p), {"sample_weight": 1 + rng.random(5000)}), "weighted records"),
        (((0.3 * p, p), {}), "fractional outcomes"),
        (((y[:30], p[:30]), {}), "fewer than 50"),
    ):
        found = cb.evaluate(cb.Sketch.from_arrays(*args[0], **args[1]).forecasts(), draws=9, seed=1)
        assert found.recalibration is None
        assert reason in found.to_dict()["recalibration_absent"]


def test_very_many_records_are_dealt_by_numbers(monkeypatch):
    rng = np.random.default_rng(12)
    p = np.round(rng.random(20_000), 2)
    forecasts = cb.Forecasts(rng.random(len(p)) < p**1.3, p)
    one_by_one = cross_fitted(forecasts, "isotonic", 5, 1)
    monkeypatch.setattr(crossfit, "MIN_NUMBERED_RECORDS", 10_000)
    dealt = list(crossfit.split_folds(forecasts, 5, 1))
    parts = [part for part, _ in dealt]
    assert len(parts) == 5
    ones = np.rint(forecasts.outcomes * forecasts.n)
    for name, whole in (("counts", forecasts.counts), ("outcomes", ones)):
        added = np.zeros(forecasts.levels)
        for part, rest in dealt:
            added[part.level] += getattr(part, name)
            both = np.zeros(forecasts.levels)
            both[part.level] += getattr(part, name)
            both[rest.level] += getattr(rest, name)
            assert np.array_equal(both, whole)
        assert np.array_equal(added, whole)
    sizes = [part.counts.sum() for part in parts]
    assert np.abs(np.array(sizes) - 4_000).max() < 4.5 * np.sqrt(20_000 * 0.2 * 0.8)
    by_numbers = cross_fitted(forecasts, "isotonic", 5, 1)
    loss = [np.sum(one.weights * one.rates - one.outcomes) for one in (one_by_one, by_numbers)]
    assert loss == pytest.approx([0.0, 0.0], abs=1e-3)
    off = [np.sum(one.weights * (one.rates - one.trusted**1.3) ** 2) for one in (one_by_one, by_numbers)]
    assert off[1] == pytest.approx(off[0], rel=0.3)


@given(st.integers(0, 10**6), st.integers(2, 200), st.integers(1, 30), st.integers(2, 5))
@settings(max_examples=60)
def test_records_known_by_their_numbers_are_dealt_as_if_each_were_known(seed, n, levels, folds):
    rng = np.random.default_rng(seed)
    p = (1 + rng.integers(0, levels, n)) / (levels + 1)
    forecasts = cb.Forecasts(rng.random(n) < p, p)
    ones = np.rint(forecasts.outcomes * n).astype(int)
    level = np.repeat(np.arange(forecasts.levels), forecasts.counts)
    y = np.concatenate([[1] * k + [0] * (m - k) for k, m in zip(ones, forecasts.counts, strict=True)])
    fold = np.random.default_rng(seed).permutation(n) % min(folds, n)
    for k, (part, rest) in enumerate(crossfit.split_folds(forecasts, min(folds, n), seed)):
        for units, own in ((part, fold == k), (rest, fold != k)):
            assert units.level.tolist() == sorted(set(level[own]))
            assert units.counts.tolist() == [np.sum(own & (level == one)) for one in units.level]
            assert units.outcomes.tolist() == [y[own & (level == one)].sum() for one in units.level]


@given(st.integers(0, 10**6), st.sampled_from([3, 9]), st.integers(0, 119))
@settings(max_examples=40)
def test_one_odd_weight_deals_no_other_record_elsewhere(seed, levels, odd):
    rng = np.random.default_rng(seed)
    p = (1 + rng.integers(0, levels, 120)) / (levels + 1)
    y, weight = rng.random(120) < p**1.3, np.ones(120)
    weight[odd] = 1.0001
    plain = held_out(cb.Forecasts(y, p), "isotonic", 5, seed)
    weighted = held_out(cb.Forecasts(y, p, sample_weight=weight), "isotonic", 5, seed)
    for one, other in zip(plain, weighted, strict=True):
        assert one.trusted.tolist() == other.trusted.tolist()
        assert one.counts.tolist() == other.counts.tolist()
        assert one.rates == pytest.approx(other.rates, abs=1e-3)


@pytest.mark.parametrize("recalibrator", ["isotonic", "binned"])
@pytest.mark.parametrize("heavy", [1e3, 1e17, 1e25])
def test_records_beside_a_very_heavy_one_keep_their_weight(recalibrator, heavy):
    """What is left of a level is the sum of what is left, not a difference in which it would be lost."""
    rng = np.random.default_rng(0)
    for seed in range(20):
        p, y = rng.choice([0.1, 0.3, 0.6], 12), rng.integers(0, 2, 12)
        w = np.where(rng.random(12) < 0.3, heavy, 1.0)
        forecasts = cb.Forecasts(y, p, sample_weight=w)
        for _, rest in crossfit.split_folds(forecasts, 3, seed):
            fitted = np.add.reduceat(forecasts.record_weights, np.cumsum(forecasts.counts) - forecasts.counts)
            assert np.all(rest.weights > 0)
            assert np.all(rest.weights <= fitted[rest.level])
            assert np.all(rest.outcomes <= rest.weights)
        assert np.all(np.isfinite(cross_fitted(forecasts, recalibrator, 3, seed).rates))
