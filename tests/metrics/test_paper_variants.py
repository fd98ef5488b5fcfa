"""Options that the papers define in addition to the plain measures, each against its definition."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import distance as oracle
from samples import samples

import calibrant as cb
from calibrant.kernels.partitions import contiguous_groups, grouping_cost
from calibrant.metrics.distance import upper
from calibrant.metrics.distance.lower import level_masses

pytestmark = pytest.mark.filterwarnings("ignore::calibrant.LevelSetWarning")


def neighbouring(f):
    """What the upper distance was before the local search: the cheapest runs, or every level alone."""
    runs = contiguous_groups(level_masses(f), np.arange(f.levels + 1))
    return min(grouping_cost(level_masses(f), runs), float(np.abs(f.residuals).sum()))


def test_local_search_tightens_the_upper_distance_of_most_samples_and_never_loosens_it():
    rng = np.random.default_rng(0)
    better = 0
    for _ in range(60):
        m = int(rng.integers(14, 41))
        f = cb.Forecasts(rng.integers(0, 2, m), rng.random(m))
        found, before = cb.upper_distance.core(f, time_limit=0), neighbouring(f)
        assert found.lower <= found.value <= before + 1e-15
        assert not found.exact
        attained = grouping_cost(level_masses(f), found.details["group"])
        assert attained == pytest.approx(found.value, abs=1e-15)
        better += found.value < before - 1e-6
    assert better > 45


@given(sample=samples(max_size=7))
@settings(max_examples=40)
def test_local_search_stays_between_the_best_grouping_and_the_neighbouring_one(sample):
    f = sample.forecasts
    exact = oracle.upper_distance(f.values, f.weights, f.outcomes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(upper, "EXACT_GROUPS", 0)
        found = cb.upper_distance.core(f, time_limit=0)
    assert exact - 1e-12 <= found.value <= neighbouring(f) + 1e-12
    assert found.lower <= exact + 1e-9


@given(sample=samples(max_size=6), alpha=st.sampled_from([1.0, 1.5, 2.0, 3.0]))
@settings(max_examples=60)
def test_powers_of_the_upper_distance_equal_the_best_of_all_groupings(sample, alpha):
    f = sample.forecasts

    def cost(group):
        group = list(group)
        mean = f.outcomes[group].sum() / f.weights[group].sum()
        return float(f.weights[group] @ np.abs(f.values[group] - mean) ** alpha)

    slow = min(sum(map(cost, grouping)) for grouping in oracle.partitions(range(f.levels)))
    found = cb.upper_distance.core(f, alpha=alpha)
    assert found.value == pytest.approx(slow, abs=1e-12)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(upper, "EXACT_GROUPS", 0)
        bracket = cb.upper_distance.core(f, alpha=alpha, time_limit=0)
    assert bracket.lower - 1e-9 <= slow <= bracket.upper + 1e-12


@given(sample=samples(max_size=6), grades=st.sampled_from([2, 3, 5, 10]), alpha=st.sampled_from([1.0, 2.0]))
@settings(max_examples=40)
def test_the_distance_onto_grades_equals_the_program_over_them(sample, grades, alpha):
    f = sample.forecasts
    targets = np.arange(grades + 1) / grades
    found = cb.lower_distance.core(f, targets=targets, alpha=alpha)
    mass = np.stack([f.weights - f.outcomes, f.outcomes])
    assert found.value == pytest.approx(oracle.lower_distance_on(targets, f.values, mass, alpha)[0], abs=1e-8)
    assert found.lower <= found.value == found.upper
    assert found.upper - found.lower <= 1e-7
    if alpha == 1:
        assert cb.lower_distance.core(f, tolerance=1e-8).lower <= found.value + 1e-7
    assert found.details["calibrated_weights"].sum() == pytest.approx(1.0)


def test_grades_that_allow_no_calibrated_prediction_are_refused():
    with pytest.raises(cb.CalibrantError, match="targets must allow a calibrated prediction"):
        cb.lower_distance([0, 1, 1], [0.2, 0.3, 0.4], targets=[0.1, 0.2])
    with pytest.raises(cb.CalibrantError, match=r"targets must lie in \[0, 1\]; got 1.5 in row 1"):
        cb.lower_distance([0, 1, 1], [0.2, 0.3, 0.4], targets=[0.1, 1.5])
    assert cb.lower_distance([0, 1], [0.4, 0.4], targets=[0.5]) == pytest.approx(0.1)


def test_random_ties_give_the_number_of_example_3_4():
    assert cb.binned_squared_error([0, 1, 1, 0, 1, 0], [0.5] * 6, bins=2, ties="random") == pytest.approx(
        0.025
    )


@given(data=st.data())
@settings(max_examples=40)
def test_random_ties_are_the_mean_over_all_orders(data):
    n = data.draw(st.integers(1, 6))
    bins = data.draw(st.integers(1, 4))
    p = np.sort(data.draw(st.lists(st.sampled_from([0.2, 0.5, 0.5, 0.9]), min_size=n, max_size=n)))
    y = np.array(data.draw(st.lists(st.sampled_from([0.0, 1.0, 0.3]), min_size=n, max_size=n)))
    ends = (np.arange(bins + 1) * n) // bins
    values = []
    for order in itertools.permutations(range(n)):
        order = list(order)
        if np.all(np.diff(p[order]) >= 0):
            sums = np.concatenate([[0], np.cumsum(y[order] - p[order])])[ends]
            values.append(np.sum(np.diff(sums) ** 2) / n**2)
    found = cb.binned_squared_error(y, p, bins=bins, ties="random")
    assert found == pytest.approx(np.mean(values), abs=1e-12)


def binned_at(y, p, ends):
    """The mean over all ways to break ties, for bins that end with these records."""
    values = []
    for order in map(list, itertools.permutations(range(len(p)))):
        if np.all(np.diff(p[order]) >= 0):
            sums = np.concatenate([[0], np.cumsum(y[order] - p[order])])[[0, *ends]]
            values.append(np.sum(np.diff(sums) ** 2) / len(p) ** 2)
    return float(np.mean(values))


@pytest.mark.parametrize("ends", [(2, 5), (3, 5)])
def test_bins_of_unequal_size_are_truthful_wherever_the_odd_record_goes(ends):
    """Lemma 3.3 by enumeration: E[CAL(r, y)] = CAL(r, p) + sum p (1 - p) / n^2 for either rule, with ties."""
    rng = np.random.default_rng(3)
    for _ in range(4):
        truth = rng.random(5)
        report = rng.choice([0.2, 0.5, 0.5, 0.9], 5)
        expected = sum(
            float(np.prod(np.where(y, truth, 1 - truth))) * binned_at(np.array(y), report, ends)
            for y in itertools.product((0, 1), repeat=5)
        )
        noise = float(truth @ (1 - truth)) / 25
        assert expected == pytest.approx(binned_at(truth, report, ends) + noise, abs=1e-12)


def test_two_rules_for_five_records_in_two_bins_differ_and_ours_is_the_documented_one():
    y, p = np.array([0, 1, 1, 0, 1]), np.array([0.2, 0.5, 0.5, 0.5, 0.9])
    found = cb.binned_squared_error(y, p, bins=2, ties="random")
    assert found == pytest.approx(binned_at(y, p, (2, 5)), abs=1e-15)
    assert abs(found - binned_at(y, p, (3, 5))) > 0.001


def test_random_ties_keep_the_mean_under_calibration_and_refuse_weights():
    row, f = cb.measures()["ubse"], cb.Forecasts([0, 1, 1, 0, 1, 0], [0.5, 0.5, 0.5, 0.2, 0.2, 0.9])
    total = 0.0
    for outcome in itertools.product((0, 1), repeat=6):
        chance = np.prod(np.where(outcome, [0.5, 0.5, 0.5, 0.2, 0.2, 0.9], [0.5, 0.5, 0.5, 0.8, 0.8, 0.1]))
        p = [0.5, 0.5, 0.5, 0.2, 0.2, 0.9]
        total += chance * cb.binned_squared_error(list(outcome), p, bins=4, ties="random")
    assert total == pytest.approx(row.null.mean(f, {"ties": "random"}))
    with pytest.raises(cb.CalibrantError, match="records that weigh the same"):
        cb.binned_squared_error([0, 1], [0.5, 0.5], sample_weight=[1, 2], bins=2, ties="random")


@given(sample=samples(max_size=12))
@settings(max_examples=40)
def test_a_partition_of_your_own_is_summed_by_its_labels(sample):
    f = sample.forecasts
    own = cb.binned_squared_error(f, partition=lambda v: np.where(np.abs(v - 0.5) < 0.2, "near", "far"))
    near = np.abs(f.values - 0.5) < 0.2
    assert own == pytest.approx(f.residuals[near].sum() ** 2 + f.residuals[~near].sum() ** 2, abs=1e-12)
    edges = cb.binned_squared_error(f, bins=4, strategy="uniform")
    same = cb.binned_squared_error(f, partition=lambda v: np.minimum(np.floor(v * 4), 3))
    assert same == pytest.approx(edges, abs=1e-12)


@given(sample=samples(max_size=10), bins=st.sampled_from([1, 2, 5, 10]))
@settings(max_examples=40)
def test_shifted_bins_are_the_mean_over_shifts_and_bound_the_upper_distance(sample, bins):
    f = sample.forecasts
    found = cb.binned_calibration_error(f, bins=bins, shift="average")
    slow = oracle.random_interval_error(f.values, f.weights, f.outcomes, 1 / bins)
    assert found == pytest.approx(slow, abs=1e-9)
    widened = cb.binned_calibration_error(f, bins=bins, shift="average", add_width=True)
    assert widened == pytest.approx(found + 1 / bins)
    assert widened >= cb.upper_distance(f) - 1e-9


def test_normalised_cross_entropy_is_1_for_the_base_rate():
    y = [0, 1, 1, 1]
    assert cb.log_loss(y, [0.75] * 4, normalised=True) == pytest.approx(1.0)
    entropy = -(0.75 * np.log(0.75) + 0.25 * np.log(0.25))
    p = [0.2, 0.6, 0.9, 0.7]
    assert cb.log_loss(y, p, normalised=True) == pytest.approx(cb.log_loss(y, p) / entropy)
    with pytest.raises(cb.TooFewRecordsError, match="needs both outcomes"):
        cb.log_loss([1, 1], [0.3, 0.4], normalised=True)


@given(sample=samples(max_size=9))
@settings(max_examples=25)
def test_ids_narrow_the_view_of_distances_to_the_true_one(sample):
    ids = np.unique(sample.p, return_inverse=True)[1] * 2 + np.arange(len(sample.p)) % 2
    view = cb.distances(sample.y, sample.p, sample_weight=sample.w, ids=ids)
    true = cb.distance_to_calibration(sample.y, sample.p, ids, sample_weight=sample.w)
    assert view["distance"].value == true
    assert view.lower - 1e-12 <= true <= view.upper + 1e-12
    plain = cb.distances(sample.y, sample.p, sample_weight=sample.w)
    assert plain.lower - 1e-12 <= view.lower <= view.upper <= plain.upper + 1e-9


@pytest.mark.parametrize(
    ("call", "options"),
    [
        (cb.binned_calibration_error, {"shift": "random"}),
        (cb.binned_calibration_error, {"shift": "average", "norm": 2}),
        (cb.binned_calibration_error, {"shift": "average", "bins": [0, 0.5, 1]}),
        (cb.binned_squared_error, {"ties": "first"}),
        (cb.binned_squared_error, {"ties": "random", "strategy": "uniform"}),
        (cb.binned_squared_error, {"partition": lambda v: v, "bins": 2}),
        (cb.binned_squared_error, {"partition": lambda v: v[:1]}),
        (cb.binned_squared_error, {"partition": lambda v: v, "strategy": "uniform"}),
        (cb.upper_distance, {"alpha": 0.5}),
        (cb.upper_distance, {"alpha": float("nan")}),
        (cb.lower_distance, {"targets": []}),
    ],
)
def test_options_that_make_no_sense_are_refused(call, options):
    with pytest.raises(cb.CalibrantError, match=next(iter(options))):
        call([0, 1, 1], [0.2, 0.3, 0.8], **options)


@given(sample=samples(), bins=st.sampled_from([1, 2, 7, 15]) | st.just([0.0, 0.25, 0.6, 1.0]))
@settings(max_examples=60)
def test_bucketed_error_is_the_level_set_error_of_rounded_predictions(sample, bins):
    edges = np.linspace(0, 1, bins + 1) if isinstance(bins, int) else np.array(bins)
    at = np.clip(np.searchsorted(edges, sample.p, side="right") - 1, 0, len(edges) - 2)
    rounded = (edges[at] + edges[at + 1]) / 2
    slow = cb.level_set_error(sample.y, rounded, sample_weight=sample.w)
    found = cb.expected_calibration_error(
        sample.y, sample.p, sample_weight=sample.w, bins=bins, midpoints=True
    )
    assert found == pytest.approx(slow, abs=1e-9)


@given(sample=samples(max_size=12), width=st.sampled_from([0.07, 0.1, 0.23, 0.5, 0.9]))
@settings(max_examples=40)
def test_shifted_bins_of_any_width(sample, width):
    found = cb.expected_calibration_error(
        sample.y, sample.p, sample_weight=sample.w, bins=width, shift="average"
    )
    f = sample.forecasts
    slow = oracle.random_interval_error(f.values, f.weights, f.outcomes, width)
    assert found == pytest.approx(slow, abs=1e-9)


@pytest.mark.parametrize(
    "options", [{"midpoints": True, "norm": 2}, {"bins": 0.1}, {"bins": 1.5, "shift": "average"}]
)
def test_misuse_of_bins_is_refused(options):
    with pytest.raises(cb.CalibrantError):
        cb.expected_calibration_error([0, 1], [0.2, 0.8], **options)


def test_randomized_partitions_are_averaged_and_keep_the_decomposition():
    """Definition 3.1 and Lemma 3.3: E[UBSE(r, y)] = UBSE(r, p) + sum p (1 - p) / T^2, over all outcomes."""
    report, truth = np.array([0.1, 0.4, 0.4001, 0.8]), np.array([0.3, 0.2, 0.6, 0.9])

    def partition(values):
        return np.array([np.floor(values * 3), np.floor(values * 2 + 0.5), np.zeros(len(values))])

    def error(y):
        return cb.binned_squared_error(y, report, partition=partition)

    one = [cb.binned_squared_error(truth, report, partition=lambda v, k=k: partition(v)[k]) for k in range(3)]
    assert error(truth) == pytest.approx(np.mean(one))
    mean = 0.0
    for outcomes in itertools.product((0, 1), repeat=4):
        y = np.array(outcomes)
        mean += float(np.prod(np.where(y == 1, truth, 1 - truth))) * error(y)
    assert mean == pytest.approx(error(truth) + float(truth @ (1 - truth)) / 16)


FAMILY = {
    "two-bin": "two-bin",
    "laplace": "laplace",
    "own": lambda v, rng: np.floor(v * rng.integers(1, 5) + rng.random()),
    "ends": lambda v, rng: np.abs(v - 0.5) > rng.random() / 2,
    "signs": lambda v, rng: rng.integers(0, 2, len(v)),
}


@pytest.mark.parametrize("name", FAMILY)
def test_every_random_partition_is_truthful_and_keeps_ranks(name):
    """Theorem 3.2 and Lemma 3.3 for laws of partitions, over all outcomes; exact with given draws."""
    truth = np.array([0.3, 0.2, 0.6, 0.9])
    reports = [truth, np.array([0.1, 0.4, 0.4001, 0.8]), np.full(4, 0.5) + 0.01 * np.arange(4), 1 - truth]

    def error(y, report):
        return cb.random_partition_error(y, report, partition=FAMILY[name], draws=20).value

    noise, means = float(truth @ (1 - truth)) / 16, []
    for report in reports:
        mean = 0.0
        for outcomes in itertools.product((0, 1), repeat=4):
            y = np.array(outcomes)
            mean += float(np.prod(np.where(y == 1, truth, 1 - truth))) * error(y, report)
        assert mean == pytest.approx(error(truth, report) + noise, abs=1e-12)
        means.append(mean)
    assert means[0] == pytest.approx(noise, abs=1e-12)
    assert min(means[1:]) >= means[0] - 1e-12


@pytest.mark.parametrize(
    ("name", "exact"),
    [
        ("two-bin", cb.averaged_two_bin_error),
        ("laplace", lambda f: cb.kernel_calibration_error(f, squared=True)),
    ],
)
def test_named_random_partitions_have_the_means_they_promise(name, exact):
    rng = np.random.default_rng(11)
    p = np.round(rng.random(60), 2)
    f = cb.Forecasts(rng.random(60) < 0.2 + 0.5 * p, p, sample_weight=rng.random(60) + 0.1)
    found = cb.random_partition_error(f, partition=name, draws=6_000, seed=3)
    assert abs(found.value - exact(f)) <= 4.5 * found.standard_error
    assert found.standard_error > 0
    assert cb.random_partition_error(f, partition=name).value != found.value


@pytest.mark.parametrize("partition", ["thirds", 3, lambda v, rng: v[:1]])
def test_partitions_that_are_none_are_refused(partition):
    with pytest.raises(cb.CalibrantError, match="partition"):
        cb.random_partition_error([0, 1, 1], [0.2, 0.3, 0.8], partition=partition)
