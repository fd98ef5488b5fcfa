"""The interval of a group's difference is one and the same wherever it is printed, and it holds."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cb
from calibrant.groups.condensed import LARGE, CondensedRecords
from calibrant.groups.gap_interval import gap_interval, law_of, shift_interval
from calibrant.groups.group_parts import part_of
from calibrant.inference.large_counts import VARIED, normal_shift_interval
from calibrant.records import Records, check_records


def drawn(n, seed, shift=0.0):
    """Return outcomes and predictions whose odds are off by a factor, and ordered groups."""
    rng = np.random.default_rng(seed)
    p = rng.beta(0.8, 1.5, n)
    rate = 1 / (1 + np.exp(-(np.log(p / (1 - p)) + shift)))
    return (rng.random(n) < rate).astype(float), p, rng.integers(2015, 2021, n)


@pytest.mark.parametrize("weighted", [False, True])
def test_audit_compare_and_report_print_one_interval(weighted):
    y, p, year = drawn(600, 1, 0.4)
    weight = np.random.default_rng(2).uniform(1, 3, 600) if weighted else None
    audited = cb.audit(y, p, groups={"year": year}, sample_weight=weight, seed=1, draws=9)
    compared = cb.compare_groups(y, p, {"year": year}, sample_weight=weight, seed=1, draws=9)
    by_name = {str(group.rule): group for group in audited.groups}
    for level in compared.groups:
        low, high = by_name[f"year = {level.name}"].limits
        assert low == pytest.approx(level.lower, abs=1e-9)
        assert high == pytest.approx(level.upper, abs=1e-9)


def test_page_and_comparison_have_one_pvalue_of_a_trend():
    y, p, year = drawn(25_000, 3, 0.05)
    found = cb.evaluate(y, p, groups={"year": year}, measures=["kuiper"], draws=19, seed=5)
    from calibrant.evaluation.group_differences import group_differences

    (on_the_page,) = group_differences(found)
    assert on_the_page.trend.pvalue == cb.compare_groups(y, p, {"year": year}, seed=5).trend.pvalue


def test_intervals_of_small_groups_hold_the_truth():
    held, tries = 0, 600
    for seed in range(tries):
        rng = np.random.default_rng([9, seed])
        p = rng.beta(0.5, 4, 12)
        rate = 1 / (1 + np.exp(-(np.log(p / (1 - p)) + 1)))
        part = part_of("", p, (rng.random(12) < rate).astype(float), None)
        low, high = gap_interval(part, shift_interval(part, True, 0.95), 0.95)
        held += low - 1e-9 <= rate.mean() - p.mean() <= high + 1e-9
    assert held >= 0.95 * tries - 3.7 * np.sqrt(tries * 0.95 * 0.05)


@pytest.mark.parametrize("weighted", [False, True])
def test_intervals_hold_the_truth_where_certain_predictions_are_wrong(weighted):
    """They took predictions of 0 and 1 for right, and were off by what had happened to them."""
    held, tries = 0, 600
    for seed in range(tries):
        rng = np.random.default_rng([10, seed])
        p = np.concatenate([rng.beta(1, 2, 60), np.zeros(50), np.ones(10)])
        rate = np.concatenate([1 / (1 + (1 / p[:60] - 1) * np.exp(-0.5)), np.full(50, 0.2), np.full(10, 0.9)])
        weight = rng.uniform(1, 2, 120) if weighted else np.ones(120)
        part = part_of("", p, (rng.random(120) < rate).astype(float), weight if weighted else None)
        low, high = gap_interval(part, shift_interval(part, not weighted, 0.95), 0.95)
        held += low <= np.average(rate - p, weights=weight) <= high
    assert abs(held - 0.95 * tries) <= 3.7 * np.sqrt(tries * 0.95 * 0.05)


@pytest.mark.parametrize("shape", [(1, 1), (0.4, 2), (3, 0.6), (1, 60)])
@pytest.mark.parametrize("variance", [1.2 * VARIED, 1500])
def test_where_events_vary_much_the_normal_law_is_exact_to_three_digits(shape, variance):
    rng = np.random.default_rng(4)
    p = rng.beta(*shape, 100_000)
    p = p[: np.searchsorted(np.cumsum(p * (1 - p)), variance)]
    part = part_of("", p, (rng.random(len(p)) < p).astype(float), None)
    exact, quick = (
        law_of(part).shift_interval(part.events, 0.95),
        normal_shift_interval(part.logits, part.events, 0.95),
    )
    assert np.allclose(exact, quick, atol=4e-4 * (exact[1] - exact[0]))


@pytest.mark.parametrize("size", [9, 200, 2500])
@pytest.mark.parametrize("rest", [1e-300, 1e-38, 1e-20, 1e-9])
def test_a_model_that_is_as_good_as_sure_has_the_interval_of_its_halves(rest, size):
    """Too few counts were left of the law: ends were 3 % to 110 % too far off, or as far as they can be."""
    p = np.repeat([rest, 1 - 2.0**-53], size)
    ends = levels(np.round(np.r_[p, p]), np.r_[p, p])
    furthest = (
        1 - 0.025 ** (1 / size)
    ) / 2  # where no event of `size` has a probability of 2.5 %, by Clopper
    np.testing.assert_allclose(ends, [[-furthest, furthest]] * 2, rtol=1e-5)


@pytest.mark.parametrize("rest", [1e-9, 1e-4, 1e-3])
def test_large_groups_of_a_model_that_is_nearly_sure_have_the_exact_interval(rest):
    """The normal law divided by a variance of 0, or missed the interval by 3 % of its width."""
    p = np.repeat([rest, 1 - rest], 2500)
    part = part_of("", p, np.round(p), None)
    assert shift_interval(part, True, 0.95) == pytest.approx(
        law_of(part).shift_interval(2500, 0.95), rel=1e-3
    )
    low, high = gap_interval(part, shift_interval(part, True, 0.95), 0.95)
    assert -0.002 < low < 0 < high < 0.002


def test_a_group_that_was_not_looked_at_has_an_interval_too():
    y, p, _ = drawn(3000, 6)
    found = cb.audit(y, p, groups={"g": np.arange(3000) % 100}, draws=0, seed=1)
    assert sum(group.interval is None for group in found.groups) == len(found.groups) - 50
    assert "low" in found.approximate
    for group in found.groups:
        part_low, part_high = group.limits
        assert part_low <= group.difference <= part_high
        assert -group.mean_prediction - 1e-12 <= part_low
        assert part_high <= 1 - group.mean_prediction + 1e-12


def levels(y, p, weight=None, size=None):
    """Return the interval of each group of `size` rows in a row, or of two halves."""
    group = np.arange(len(y)) // (size or len(y) // 2)
    found = cb.compare_groups(y, p, group, sample_weight=weight, ordered=False, draws=1, seed=1)
    return np.array([(level.lower, level.upper) for level in found.groups])


def test_predictions_of_zero_that_were_right_are_not_known_for_certain():
    """Where nothing happened to 30 of them the interval was a point, which seldom is the truth."""
    (low, high), _ = levels(np.zeros(60), np.zeros(60))
    assert low == 0.0
    assert high == pytest.approx(1.959964**2 / (30 + 1.959964**2), abs=1e-6)  # Wilson's, of 0 in 30
    y = (np.random.default_rng(3).random(6000) < 0.02).astype(float)
    ends = levels(y, np.zeros(6000), size=30)
    assert np.mean((ends[:, 0] <= 0.02) & (ends[:, 1] >= 0.02)) >= 0.9


@pytest.mark.parametrize("size", [1, 2, 5, 10])
def test_a_few_fractional_outcomes_leave_doubt(size):
    """One of them had a point for an interval; five held the truth in 84 of 100 samples."""
    rng = np.random.default_rng(size)
    p = rng.uniform(0.1, 0.9, 200 * size)
    ends = levels(rng.beta(6 * p, 6 * (1 - p)), p, size=size)
    assert np.mean((ends[:, 0] <= 0) & (ends[:, 1] >= 0)) >= 0.95 - 3.7 * np.sqrt(0.95 * 0.05 / 200)


def test_outcomes_next_to_zero_have_an_interval():
    ends = levels(np.array([1e-310, 5e-324, 0.5, 0.2]), np.array([0.3, 0.1, 0.2, 0.6]))
    assert np.isfinite(ends).all()


@pytest.mark.parametrize("scale", [1e-170, 1e160])
def test_the_unit_of_weights_does_not_count(scale):
    y, p = np.array([0.0, 1, 1, 0, 1, 0]), np.array([0.0, 0, 1, 0.3, 1, 0.6])
    weight = np.array([1.0, 2, 3, 1, 5, 2])
    np.testing.assert_allclose(levels(y, p, weight * scale), levels(y, p, weight), rtol=1e-12)


def test_one_record_that_outweighs_all_others_says_as_little_whatever_its_outcome():
    """With an event the interval was a point: what a rate lacks of 1 had been rounded off."""
    y, p, weight = np.array([1.0, 0, 1, 0]), np.array([0.75, 0.5, 0.75, 0.5]), np.array([1e200, 1, 1, 1])
    ends, mirrored = levels(y, p, weight), levels(1 - y, 1 - p, weight)
    assert ends[0, 0] == pytest.approx(-0.75)
    np.testing.assert_allclose(mirrored, -ends[:, ::-1], atol=1e-9)


def test_fractions_in_one_group_give_audit_and_comparison_one_interval_of_the_other():
    y, p = np.array([0.0, 1, 0, 1, 0.5, 0.2, 1, 0]), np.array([0.3, 0.4, 0.6, 0.8, 0.2, 0.5, 0.6, 0.1])
    audited = cb.audit(y, p, groups={"half": np.arange(8) // 4}, variant="real", min_size=1, draws=0, seed=1)
    by_name = {str(group.rule): group.limits for group in audited.groups}
    np.testing.assert_allclose([by_name["half = 0"], by_name["half = 1"]], levels(y, p), atol=1e-12)


def test_the_table_prints_the_interval_of_predictions_that_leave_no_doubt():
    """It had a dash for 3 events among 30 predictions of 0, and the JSON of the same audit an interval."""
    y = np.r_[np.ones(3), np.zeros(27)]
    found = cb.audit(y, np.zeros(30), groups={"one": np.zeros(30)}, draws=0, seed=1)
    assert found.groups[0].written_difference() == ("+10.0 points", "+3.5 to +25.6")


@pytest.mark.parametrize(
    "kind", ["uniform", "tenths", "rare", "far off", "certain", "next to 1", "one value"]
)
def test_large_groups_by_cells_have_the_interval_of_their_rows(kind):
    rng = np.random.default_rng(5)
    n = 2 * LARGE
    p = {
        "uniform": rng.random(n),
        "tenths": rng.integers(0, 11, n) / 10,
        "rare": 0.02 * rng.random(n) ** 3,
        "far off": rng.beta(0.3, 3, n),
        "certain": np.where(rng.random(n) < 0.6, rng.integers(0, 2, n), rng.random(n)),
        "next to 1": np.where(rng.random(n) < 0.5, 1 - 2.0**-53, rng.random(n)),
        "one value": np.full(n, 0.3),
    }[kind]
    wrong = rng.random(n) < (0.2 if kind == "far off" else 0.01)
    y = np.where(wrong, rng.random(n) < 0.5, rng.random(n) < p).astype(float)
    inside = rng.random(n) < 0.8
    records = Records.of(check_records(y, p))
    members = np.flatnonzero(inside[records.rows]).astype(np.int32)
    part = part_of("", p[inside], y[inside], None)
    rows = gap_interval(part, shift_interval(part, True, 0.95), 0.95)
    cells = CondensedRecords(records).interval(members, 0.95)
    np.testing.assert_allclose(cells, rows, rtol=0, atol=1e-4 * (rows[1] - rows[0]))
