"""confidence_interval: coverage, resampling against its slow twin, bias reported and removed."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from samples import samples

import calibrant as cb
from calibrant.errors import InvalidInputError, LevelSetWarning, TooFewRecordsError, UnknownNameError
from calibrant.inference.bootstrap import Resampler, seminorm_power
from calibrant.inference.intervals import clopper_pearson
from calibrant.inference.null import TwoPointWeights, max_record_weight, with_options
from calibrant.metrics.distance.lower import transport_deviation

pytestmark = pytest.mark.filterwarnings(f"ignore::{LevelSetWarning.__module__}.LevelSetWarning")


@given(sample=samples(max_size=12))
@settings(max_examples=60)
def test_resamples_are_distributions_on_the_same_levels(sample):
    f = sample.forecasts
    drawn = Resampler(f).draw(np.random.default_rng(1), 5)
    np.testing.assert_allclose(drawn.weights.sum(axis=1), 1)
    assert np.all(drawn.counts.sum(axis=1) == f.n)
    assert np.all(drawn.outcomes <= drawn.weights + 1e-12)
    assert np.all((drawn.counts == 0) == (drawn.weights == 0))


@pytest.mark.parametrize("kind", ["counts", "crowded", "weights", "fractions", "sketch"])
def test_moments_of_resamples(kind, monkeypatch):
    """Mean and variance of a level's weight of y: w_i y_i resampled n times with replacement."""
    rng = np.random.default_rng(2)
    n = 170 if kind == "crowded" else 40
    p = rng.integers(1, 6, n) / 8
    y = rng.random(n) if kind == "fractions" else rng.integers(0, 2, n)
    w = rng.random(n) + 0.5 if kind in ("weights", "sketch") else None
    f = cb.Forecasts(y, p, sample_weight=w)
    if kind == "sketch":
        f = cb.Forecasts.from_levels(
            f.values,
            f.weights,
            f.outcomes,
            squared_weights=f.squared_weights,
            counts=f.counts,
            total_weight=1.0,
        )
    smoothed = Resampler(f)
    monkeypatch.setattr("calibrant.inference.bootstrap.MIXED_IN_RECORDS", 0)
    resampler = Resampler(f)
    assert resampler.exact == (kind != "sketch")
    np.testing.assert_allclose(resampler.center, f.outcomes)
    mean = smoothed.draw(np.random.default_rng(4), 20_000).outcomes.mean(axis=0)
    np.testing.assert_allclose(mean, smoothed.center, atol=0.005)
    drawn = resampler.draw(np.random.default_rng(3), 20_000).outcomes
    np.testing.assert_allclose(drawn.mean(axis=0), f.outcomes, atol=0.005)
    weight = np.full(n, 1 / n) if w is None else w / w.sum()
    terms = weight * y
    slow = np.zeros((2000, f.levels))
    for k in range(len(slow)):
        rows = np.random.default_rng([5, k]).integers(0, n, n)
        for row in rows:
            slow[k, np.searchsorted(f.values, p[row])] += terms[row]
        slow[k] /= weight[rows].sum()
    np.testing.assert_allclose(drawn.std(axis=0), slow.std(axis=0), rtol=0.25 if kind == "sketch" else 0.12)


@given(
    sample=samples(max_size=8, fractional=False, weighted=False), other=samples(max_size=8, fractional=False)
)
@settings(max_examples=80)
def test_the_lower_distance_moves_by_at_most_the_bound(sample, other):
    """Two sets of masses on the same levels: their distances differ by no more than the deviation."""
    f = sample.forecasts
    rng = np.random.default_rng(len(other.p))
    weights = rng.dirichlet(np.ones(f.levels))
    outcomes = weights * rng.random(f.levels)
    g = cb.Forecasts(outcomes / weights, f.values, sample_weight=weights)
    bound = transport_deviation(f, (weights - f.weights)[None], (outcomes - f.outcomes)[None])[0]
    assert abs(cb.lower_distance(f) - cb.lower_distance(g)) <= bound + 1e-5


@pytest.mark.parametrize(
    "name", ["kuiper", "ks", "atb", "l1-atb", "smooth", "emd", "kernel", "kernel-squared"]
)
@given(sample=samples(max_size=8), scale=samples(max_size=8))
@settings(max_examples=30)
def test_declared_powers_are_those_of_a_seminorm(name, sample, scale):
    row = cb.measures()[name]
    f = sample.forecasts
    rng = np.random.default_rng(len(scale.p))
    a, b = rng.normal(size=(2, f.levels))
    na, nb, nab, n3a = row.null.batch(f, np.stack([a, b, a + b, -3 * a]), row.options) ** (1 / row.null.power)
    assert nab <= na + nb + 1e-9
    assert n3a == pytest.approx(3 * na, rel=1e-9)


def shifted(n, shift, rng):
    p = 0.8 * rng.random(n)
    return cb.Forecasts(rng.random(n) < p + shift, p)


def truth(shift, name):
    p = np.linspace(0.0005, 0.7995, 800)
    return cb.measure(cb.Forecasts(p + shift, p), name).value


@pytest.mark.parametrize("shift", [0.0, 0.03, 0.2])
@pytest.mark.parametrize("name", ["atb", "kuiper", "smooth", "brier"])
def test_coverage(name, shift):
    rng = np.random.default_rng(7)
    runs = 100
    if name == "brier":  # fractions would count as expectations: the mean over many records instead
        p = np.linspace(0.0005, 0.7995, 800)
        target = float(np.mean((p + shift) * (1 - p) ** 2 + (1 - p - shift) * p**2))
    else:
        target = truth(shift, name)
    held = [
        target in cb.confidence_interval(shifted(250, shift, rng), measure=name, draws=99, seed=k, threads=1)
        for k in range(runs)
    ]
    assert np.sum(held) >= 84  # 95 per cent, within what 100 runs and 99 draws can tell


@pytest.mark.parametrize("shift", [0.0, 0.1])
def test_coverage_of_binned_squares(shift):
    """Once 88%; the bins are given, since their number is part of what is estimated."""
    p = np.linspace(0.0005, 0.7995, 800)
    target = cb.measure(cb.Forecasts(p + shift, p), "ubse", bins=8).value
    rng, runs = np.random.default_rng(8), 100
    how = {"measure": "ubse", "bins": 8, "draws": 99, "threads": 1}
    held = [target in cb.confidence_interval(shifted(250, shift, rng), seed=k, **how) for k in range(runs)]
    assert np.sum(held) >= 84


def test_the_mean_under_calibration_is_reported():
    rng = np.random.default_rng(1)
    found = [
        cb.confidence_interval(shifted(100, 0.0, rng), measure="atb", draws=19, seed=k, threads=1)
        for k in range(300)
    ]
    mean = np.mean([f.value for f in found])
    assert mean == pytest.approx(np.mean([f.null_mean for f in found]), rel=0.2)


@pytest.mark.parametrize(
    "options",
    [{"measure": "atb"}, {"measure": "ubse", "bins": 1}, {"measure": "kernel-squared", "kernel": "gaussian"}],
)
@pytest.mark.parametrize("weights", [None, [1.0, 2.0, 0.5]])
def test_the_correction_is_unbiased_whatever_the_truth(options, weights):
    """Every sample of three records from a population that is far from calibrated."""
    chance = {(0.25, 0): 0.1, (0.25, 1): 0.4, (0.75, 0): 0.2, (0.75, 1): 0.3}
    v, y = np.array(list(chance)).T
    row = {k: o for k, o in options.items() if k != "measure"}
    population = cb.Forecasts(y, v, sample_weight=list(chance.values()))
    expected = 0.0
    for sample in product(chance, repeat=3):
        p, outcome = zip(*sample, strict=True)
        found = cb.confidence_interval(outcome, p, sample_weight=weights, draws=1, seed=1, **options)
        expected += np.prod([chance[record] for record in sample]) * found.corrected
    assert expected == pytest.approx(cb.measure(population, options["measure"], **row).value)


def test_a_correction_is_given_only_where_it_is_unbiased():
    rng = np.random.default_rng(1)
    f = shifted(100, 0.1, rng)
    for options in (
        {"measure": "kuiper"},
        {"measure": "brier"},
        {"measure": "atb", "norm": 1},
        {"measure": "kernel-squared", "kernel": lambda u, v: 2.0 * np.exp(-np.abs(u - v))},
    ):
        assert cb.confidence_interval(f, draws=3, **options).corrected is None
    fractions = cb.Forecasts([0.2, 0.9, 0.4], [0.1, 0.5, 0.5])
    assert cb.confidence_interval(fractions, draws=3, measure="atb").corrected is not None


@pytest.mark.parametrize("row", list(cb.measures().values()), ids=lambda row: row.name)
def test_every_measure_has_an_interval(row):
    rng = np.random.default_rng(3)
    p = rng.integers(1, 10, 60) / 10
    f = cb.Forecasts(rng.random(60) < p, p)
    found = cb.confidence_interval(f, measure=row.name, draws=9, seed=1)
    assert found.lower <= found.upper
    assert row.signed or found.lower >= 0
    assert row.null.batch is None or found == cb.confidence_interval(f, measure=row.name, draws=9, seed=1)
    assert found.to_dict()["seed"] == 1


def test_bad_numbers_are_refused():
    for options in ({"confidence": 1}, {"draws": 0}, {"measure": "nope"}):
        with pytest.raises(cb.CalibrantError):
            cb.confidence_interval([0, 1], [0.2, 0.8], **options)


def test_nothing_can_be_resampled_of_one_record():
    with pytest.raises(TooFewRecordsError, match="two records"):
        cb.confidence_interval([1], [0.3])
    with pytest.raises(TooFewRecordsError):
        cb.confidence_interval([1, 0], [0.3, 0.4], sample_weight=[1, 0])


def test_unknown_options_and_broken_threads_are_refused():
    y, p = [0, 1], [0.2, 0.8]
    with pytest.raises(UnknownNameError, match="must be one of norm; got 'bogus'"):
        cb.confidence_interval(y, p, measure="atb", bogus=3)
    with pytest.raises(UnknownNameError, match="has no options; got 'bogus'"):
        cb.calibration_test(y, p, bogus=3)
    with pytest.raises(UnknownNameError, match="did you mean 'lipschitz'"):
        cb.smooth_calibration_error(y, p, lipshitz=2)
    for threads in (1.5, True, 0):
        with pytest.raises(InvalidInputError, match="threads must be a whole number"):
            cb.confidence_interval(y, p, threads=threads)


def test_without_events_the_interval_reaches_what_a_binomial_limit_allows():
    """No event in n records is compatible with a rate of about 3 / n."""
    for n in (20, 100, 300):
        found = cb.confidence_interval([0] * n, [0.001] * n, measure="smooth", seed=1)
        assert found.lower == 0
        assert 1 - 0.05 ** (1 / n) <= found.upper + 0.001 <= 6 / n


def test_one_level_of_fractions_is_never_rounded_to_events():
    """A sketch of y = 0.3 p: the interval holds the value, and is not shorter than that of 0/1 outcomes."""
    rng = np.random.default_rng(3)
    p = rng.random(2000)
    f = cb.Sketch.from_arrays(0.3 * p, p, cells=64).forecasts()
    found = cb.confidence_interval(f, measure="in-the-large", seed=1)
    assert found.value == pytest.approx(-0.35, abs=0.01)
    assert found.value in found
    rows = cb.confidence_interval(0.3 * p, p, measure="in-the-large", seed=1)
    assert found.lower <= rows.lower + 1e-3
    assert found.upper >= rows.upper - 1e-3


@pytest.mark.parametrize(
    "options", [{"measure": "atb", "norm": 1}, {"measure": "level-set", "norm": 2, "root": True}]
)
def test_the_power_of_a_seminorm_follows_the_options(options):
    rng = np.random.default_rng(3)
    p = rng.integers(1, 10, 400) / 10
    f = cb.Forecasts(rng.random(400) < 0.7 * p, p)
    name = options.pop("measure")
    row = cb.measures()[name]
    assert seminorm_power(f, with_options(row, options)) == 1
    found = cb.confidence_interval(f, measure=name, seed=1, **options)
    assert found.value in found


@pytest.mark.parametrize("name", ["binned", "brier-mcb", "log-mcb", "ici", "e90", "slope", "kuiper"])
def test_calibration_stays_inside_while_the_exact_test_does_not_reject(name):
    ideal = cb.measures()[name].ideal
    for k in range(6):
        rng = np.random.default_rng([k, 5])
        p = rng.random(80)
        f = cb.Forecasts(rng.random(80) < p, p)
        found = cb.confidence_interval(f, measure=name, draws=99, seed=k)
        if cb.calibration_test(f, measure=name, draws=99, seed=k).pvalue > 0.05:
            assert found.lower <= ideal <= found.upper
        assert (found.note == "") == (found.value in found)


@given(sample=samples(max_size=20, fractional=False))
@settings(max_examples=60)
def test_substitutes_have_the_number_weight_and_squares_of_every_level(sample):
    f = sample.forecasts
    parts = TwoPointWeights.of(f)
    assert np.all(parts.heavy + parts.light == f.counts)
    assert np.all(parts.light_weight >= 0)
    weight = parts.heavy * parts.heavy_weight + parts.light * parts.light_weight
    squares = parts.heavy * parts.heavy_weight**2 + parts.light * parts.light_weight**2
    np.testing.assert_allclose(weight, f.weights, rtol=1e-9)
    np.testing.assert_allclose(squares, f.squared_weights, rtol=1e-6)
    bare = cb.Forecasts.from_levels(
        f.values, f.weights, f.outcomes, squared_weights=f.squared_weights, counts=f.counts, total_weight=1.0
    )
    assert max_record_weight(bare) >= max(max_record_weight(f), max(parts.heavy_weight)) * (1 - 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("truth", [1.0, 2.0])
@pytest.mark.parametrize("spread", [0.3, 1.5])
def test_weighted_sketches_have_the_right_size_and_power(truth, spread):
    """Rare events, weights over several orders: at most 5% false alarms, and nearly the rows' own power.

    With a spread of 1.5 the 2,000 rows count as some 200, so that even the rows see doubled rates in less
    than half of all data sets; a sketch cannot do better than they.
    """
    sketched = rows = 0
    for k in range(200):
        rng = np.random.default_rng([k, 11])
        n = 2000
        p, w = rng.beta(1, 50, n), np.exp(rng.normal(0, spread, n))
        y = rng.random(n) < truth * p
        f = cb.Sketch.from_arrays(y, p, sample_weight=w, cells=512).forecasts()
        sketched += cb.calibration_test(f, draws=99, seed=k, threads=1).pvalue <= 0.05
        f = cb.Forecasts(y, p, sample_weight=w)
        rows += cb.calibration_test(f, draws=99, seed=k, threads=1).pvalue <= 0.05
    if truth == 1:
        assert sketched <= 25  # at 5 % more than that happens once in 100,000 such tests
    else:
        assert sketched >= 0.75 * rows >= 50


def test_clopper_pearson_is_the_beta_quantile():
    low, high = clopper_pearson(np.array([0.0, 3, 10]), np.array([10.0, 10, 10]), 0.05)
    assert low == pytest.approx([0, 0.0667395, 0.6915029], abs=1e-6)
    assert high == pytest.approx([0.3084971, 0.6524529, 1], abs=1e-6)
