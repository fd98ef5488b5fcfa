"""External validation: the four measures with intervals, and the records that make them precise."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from scipy.special import expit, ndtri
from scipy.stats import binom

import calibrant as cb

RNG = np.random.default_rng(3)
P = RNG.random(300)
Y = (RNG.random(300) < P).astype(int)


def test_the_table_has_the_values_and_intervals_of_the_single_measures():
    found = cb.validation_table(Y, P)
    assert [row.measure for row in found.measures] == ["c-statistic", "o/e", "slope", "intercept"]
    for row in found.measures:
        alone = cb.confidence_interval(Y, P, measure=row.measure, draws=99)
        assert (row.value, row.lower, row.upper) == (alone.value, alone.lower, alone.upper)
        assert row.lower < row.value < row.upper
    assert found.events == pytest.approx(Y.sum())
    assert len(found.to_frame()) == 4


def test_it_prints_a_sentence_and_below_it_one_line_per_measure():
    found = cb.validation_table(Y, P)
    sentence, head, *lines = str(found).splitlines()
    assert sentence == f"300 records, {Y.sum()} events (95% intervals, approximate)." == found.sentence
    assert head.split() == ["measure", "ideal", "estimate", "95%", "interval"]
    assert len(lines) == 4
    for line, row in zip(lines, found.measures, strict=True):
        words, *numbers = re.split(r"  +", line)
        low, high = numbers[-1].split(" to ")
        assert words == row.words
        assert float(numbers[-2].replace("+", "")) == pytest.approx(row.value, rel=0.01, abs=0.001)
        assert (float(low), float(high)) == pytest.approx((row.lower, row.upper), rel=0.02, abs=0.002)
    assert found._repr_html_().count("<tr>") == 5
    assert found.to_dict()["sentence"] == sentence


def test_predictions_of_exactly_0_and_1_are_left_out_of_slope_and_intercept_and_counted():
    p = P.copy()
    p[:7], p[7:10] = 0.0, 1.0
    found = cb.validation_table(Y, p)
    rows = {row.measure: row for row in found.measures}
    assert found.certain == 10
    assert rows["slope"].value == pytest.approx(cb.calibration_slope(Y[10:], P[10:]))
    assert "10 predictions are exactly 0 or 1: slope and intercept leave these records out" in str(found)
    assert rows["c-statistic"].value == pytest.approx(cb.c_statistic(Y, p))
    assert rows["c-statistic"].note == ""


@pytest.mark.parametrize(("y", "p"), [([0, 1] * 20, [0.0, 1.0] * 20), ([0] * 30, [0.1, 0.2, 0.3] * 10)])
def test_what_cannot_be_estimated_is_said(y, p):
    found = cb.validation_table(y, p)
    slope = found.measures[2]
    assert math.isnan(slope.value)
    assert slope.note
    assert "no interval" in str(found)


def test_intervals_of_the_c_statistic_at_its_ends():
    """Newcombe's interval for c = 1 with 10 events and 50 others starts at 0.84; it never leaves [0, 1]."""
    found = cb.confidence_interval([0] * 50 + [1] * 10, [0.1] * 50 + [0.9] * 10, measure="c-statistic")
    assert 0.8 < found.lower < 0.87
    assert found.upper == 1.0
    turned = cb.confidence_interval([1] * 50 + [0] * 10, [0.1] * 50 + [0.9] * 10, measure="c-statistic")
    assert turned.lower == 0.0
    assert turned.upper == pytest.approx(1 - found.lower)


def test_no_events_have_an_upper_limit_of_the_ratio():
    found = cb.confidence_interval([0] * 100, [0.1] * 100, measure="o/e")
    assert found.lower == found.value == 0.0
    assert found.upper == pytest.approx(3.97 / 10, rel=0.05)  # t squared over the events expected


@pytest.mark.parametrize("events", [0, 1, 2, 3, 4, 30, 100])
def test_the_ratio_is_never_negative(events):
    """Few events do not rule out a ratio of 0, and no data support one below it."""
    y = [1] * events + [0] * (100 - events)
    found = cb.confidence_interval(y, [0.1] * 100, measure="o/e")
    assert (found.lower == 0.0) == (events < 4)
    assert 0 <= found.lower <= found.value <= found.upper


@pytest.mark.parametrize(("y", "weight"), [([0, 1, 1], None), ([0, 0, 0], [1, 1, 1e9])])
def test_a_ratio_without_an_upper_limit_has_no_interval(y, weight):
    found = cb.confidence_interval(y, [0.2, 0.4, 0.7], sample_weight=weight, measure="o/e")
    assert (found.lower, found.upper) == (-math.inf, math.inf)
    assert "too few records" in str(found)


def test_the_ratio_is_tested_as_calibration_in_the_large_is():
    for options in ({"method": "exact"}, {"clusters": np.arange(300) // 3}, {"method": "asymptotic"}):
        ratio = cb.calibration_test(Y, P, measure="o/e", draws=199, **options)
        large = cb.calibration_test(Y, P, measure="in-the-large", draws=199, **options)
        assert ratio.pvalue == pytest.approx(large.pvalue)


def test_sample_sizes_are_those_of_the_formulas():
    """LP ~ N(-5, 2.5^2) of the pmvalsampsize manual, with its widths of 0.2, 0.2 and 0.1."""
    predictions = expit(-5 + 2.5 * ndtri((np.arange(50_000) + 0.5) / 50_000))
    plan = cb.validation_sample_size(predictions)
    rate = predictions.mean()
    deviation = math.asinh(0.1) / 1.959964
    assert plan.records["o/e"] == math.ceil((1 - rate) / (rate * deviation**2))
    logit, spread = np.log(predictions / (1 - predictions)), predictions * (1 - predictions)
    information = np.array(
        [
            [spread.mean(), (spread * logit).mean()],
            [(spread * logit).mean(), (spread * logit**2).mean()],
        ]
    )
    assert plan.slope_variance == pytest.approx(np.linalg.inv(information)[1, 1])
    for name, n in plan.records.items():
        assert plan.widths_at(n)[name] <= plan.widths[name] < plan.widths_at(n - 1)[name]
    assert plan.n == max(plan.records.values())


def test_base_rate_and_c_stand_for_normal_logits():
    """The R package sampsizeval has 934 and 1,599 records for these standard errors, by approximations."""
    widths = {"slope_width": 2 * 1.959964 * 0.15, "c_width": 2 * 1.959964 * 0.025}
    plan = cb.validation_sample_size(base_rate=0.057, c=0.77, **widths)
    assert plan.records["slope"] == pytest.approx(934, rel=0.03)
    assert plan.records["c-statistic"] == pytest.approx(1599, rel=0.03)
    assert plan.base_rate == pytest.approx(0.057, abs=1e-6)
    assert plan.c == pytest.approx(0.77, abs=1e-4)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "predictions must be given"),
        ({"base_rate": 0.1}, "predictions must be given"),
        ({"predictions": [0.1, 0.2], "c": 0.7}, "predictions must be given"),
        ({"base_rate": 0.1, "c": 0.4}, "c must lie between 0.5 and"),
        ({"base_rate": 1.5, "c": 0.7}, "base_rate must lie strictly between 0 and 1"),
        ({"predictions": [0.3, 0.3]}, "needs two different predictions"),
        ({"predictions": [0.0, 1.0]}, "needs two different predictions"),
        ({"predictions": [0.3, 1.3]}, "predictions must lie in"),
        ({"base_rate": 0.1, "c": 0.7, "c_width": 0}, "c_width must be a positive number"),
        ({"base_rate": 0.1, "c": 0.7, "slope_width": float("inf")}, "slope_width must be"),
        ({"base_rate": 0.1, "c": 0.7, "ratio_width": 1e-200}, "ratio_width must be"),
        ({"base_rate": 0.1, "c": 0.7, "confidence": 1 - 1e-16}, "confidence must not be so near"),
        ({"base_rate": 0.1, "c": 0.7, "confidence": 1e-300}, "confidence must not be so near"),
    ],
)
def test_bad_plans_are_named(options, words):
    with pytest.raises(cb.CalibrantError, match=words):
        cb.validation_sample_size(**options)


@pytest.mark.parametrize("rate", [1e-6, 1e-12])
def test_a_rare_outcome_can_be_planned(rate):
    found = cb.validation_sample_size(base_rate=rate, c=0.7)
    assert found.widths_at(1)["o/e"] == math.inf
    assert found.records["o/e"] == pytest.approx(1 / rate * (ndtri(0.975) / math.asinh(0.1)) ** 2, rel=1e-5)


DEGENERATE = {
    "equal predictions": ([0, 1, 1, 0, 0.5, 1] * 5, [0.143] * 30),
    "separated": ([0, 0, 0, 1, 1, 1] * 5, [0.1, 0.2, 0.3, 0.6, 0.7, 0.8] * 5),
    "separated the wrong way": ([1, 1, 1, 0, 0, 0] * 5, [0.1, 0.2, 0.3, 0.6, 0.7, 0.8] * 5),
    "0 and 1": ([0, 1] * 15, [0.0, 1.0] * 15),
    "fractions": ([0.2, 0.9, 0.4] * 10, [0.2, 0.5, 0.7] * 10),
}


@pytest.mark.parametrize("case", DEGENERATE)
@pytest.mark.parametrize("spread", [0, 1, 30])
def test_intervals_depend_neither_on_the_order_of_rows_nor_on_the_scale_of_weights(case, spread):
    y, p = (np.array(part, dtype=float) for part in DEGENERATE[case])
    rng = np.random.default_rng(4)
    weight, order = 10.0 ** (spread * rng.random(30)), rng.permutation(30)

    def ends(rows, scale):
        found = cb.validation_table(y[rows], p[rows], sample_weight=scale * weight[rows])
        for row in found.measures:
            assert np.isnan(row.value) or row.lower <= row.value <= row.upper
        return [(row.value, row.lower, row.upper) for row in found.measures[:2]]

    first = ends(np.arange(30), 1.0)
    assert first[0][2] - first[0][1] > 0.05  # never a point, whatever rounding leaves of a variance
    for scale in (1.0, 3.0, 1e-30):
        np.testing.assert_allclose(ends(order, scale), first, rtol=1e-6, atol=1e-6)


def test_one_heavy_record_gives_a_wide_interval_and_no_exception():
    found = cb.validation_table([1] * 60 + [0] * 40, [0.9, 0.8] * 50, sample_weight=[1e200] + [1] * 99)
    assert found.measures[0].upper - found.measures[0].lower > 0.9


def test_the_ratio_may_exceed_one_over_the_largest_prediction():
    """Records predicted at 0 may have events: 10 without any leave up to about 0.3 possible."""
    row = cb.validation_table([0, 1] * 10, [0.0, 1.0] * 10).measures[1]
    assert row.value == 1
    assert 1.2 < row.upper < 1.4
    n, wrong, few = 20, 0, 0.2  # predictions of 0 and 1, of which those of 0 have events in 20 %
    rng = np.random.default_rng(5)
    for _ in range(200):
        p = np.repeat([0.0, 1.0], n // 2)
        y = np.where(p == 1, 1.0, rng.random(n) < few)
        wrong += 1 + few not in cb.confidence_interval(y, p, measure="o/e", draws=19)
    assert wrong <= binom.ppf(1 - 1e-5, 200, 0.06)


def test_too_few_clusters_leave_the_values():
    found = cb.validation_table([0, 1, 1, 0], [0.2, 0.3, 0.4, 0.5], clusters=[1, 1, 2, 2])
    assert [row.value for row in found.measures[:2]] == [0.5, pytest.approx(2 / 1.4)]
    assert all(row.lower == -math.inf and "clusters" in row.note for row in found.measures)
    assert str(found).splitlines()[2].split() == ["c-statistic", "0.500", "no", "interval"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["c-statistic", "o/e"])
@pytest.mark.parametrize("spread", [0.5, 1.2, 3.0])
def test_intervals_cover_when_the_model_is_wrong(name, spread):
    """Logits twice as large as the true ones, with a bend: 95% intervals cover at least 93% on average."""
    rng = np.random.default_rng([7, int(10 * spread)])

    def data(n: int) -> tuple[np.ndarray, np.ndarray]:
        logit = -1 + spread * rng.normal(size=n)
        y = rng.random(n) < expit(logit + 0.5 * np.sin(2 * logit))
        return y.astype(float), expit(2 * logit + 0.5)

    function = {"c-statistic": cb.c_statistic, "o/e": cb.observed_expected_ratio}[name]
    truth = function(*data(1_000_000))
    held = [truth in cb.confidence_interval(*data(n), measure=name, draws=39) for n in [60, 200] * 200]
    assert sum(held) >= binom.ppf(1e-5, len(held), 0.935)
