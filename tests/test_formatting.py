"""How numbers are written for people: an example or more of each function."""

from __future__ import annotations

import math

import pytest

from calibrant import formatting as f


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (f.format_mean(0.16995000000000001), "0.1699"),
        (f.format_mean(0.5), "0.5000"),
        (f.format_mean(0.000165), "0.000165"),
        ([f.format_value(x) for x in (0.0123456, 1.5, -0.00000123, 0.0, None)],
         ["0.0123", "1.50", "-0.00000123", "0", "–"]),
        ((f.format_value(25_300.4), f.format_value(6.98e-12)), ("25,300", "<0.0000001")),
        (f.limits_text(0.1, 0.25), "0.100 to 0.250"),
        (f.limits_text(2.5, math.inf), "at least 2.50"),
        (f.limits_text(-math.inf, 0.3), "at most 0.300"),
        (f.limits_text(-math.inf, math.inf), "any number"),
        (f.format_near_limit(0.0500004, 0.05), "0.0500004"),
        (f.format_near_limit(0.04, 0.05), "0.0400"),
        (f.format_near_limit(0.05, 0.05), "0.0500"),
        (f.format_near_limit(25_300.4, 3.0), "25,300"),
        (f.format_near_limit(1e-9, 0.05), "<0.0000001"),
        (f.format_value(2.5e9), "2,500,000,000"),
        ((f.format_limit(0.0200001), f.format_limit(3.0)), ("0.0200001", "3")),
        ([f.pvalue_text(p) for p in (0.0321, 0.6, 2e-13, None)], ["0.032", "0.60", "< 0.001", "–"]),
        (f.pvalue_text(0.0), "< 0.001"),
        (f.pvalue_text(0.00005, floor=True), "< 0.001"),
        (f.pvalue_text(0.005, floor=True), "≤ 0.005"),
        ([f.format_pvalue(p) for p in (0.61, 0.0321, 0.0042, 2e-13, None)],
         ["0.61", "0.03", "0.004", "<0.001", ""]),
        ([f.format_pvalue(p, bound=True) for p in (0.005, 0.001, 0.05, 1e-4)],
         ["<0.01", "≤0.001", "≤0.05", "<0.001"]),
        ((f.at_floor(0.005, 199), f.at_floor(0.01, 199), f.at_floor(0.005, 0)), (True, False, False)),
        (f.pvalue_phrase(0.0321), "p = 0.032"),
        (f.pvalue_phrase(0.005, 199), "p ≤ 0.005 with 199 draws"),
        (f.pvalue_phrase(0.0001, 9999), "p < 0.001"),
        (f.pvalue_phrase(0.03, 999, bound=True), "p ≤ 0.03 with 999 draws"),
        ([f.percent(x) for x in (0.5, 0.1234, 0.00123, 0.0, 1.2e-7)],
         ["50.0%", "12.3%", "0.12%", "0.0%", "<0.0001%"]),
        (f.format_points(0.0312), "+3.1"),
        (f.format_points(-0.00004), "0.0"),
        (f.format_points(-0.00004, 0.0001), "-0.004"),
        ([f.confidence_text(x) for x in (0.95, 0.975, 0.999, 1 - 0.05 / 3, 1 - 1e-7)],
         ["95%", "97.5%", "99.9%", "98.3333%", "99.99999%"]),
        (f.predicted_observed(0.498, 0.6), "50% predicted, 60% observed"),
        (f.predicted_observed(0.50004, 0.49997), "50.004% predicted, 49.997% observed"),
        (f.predicted_observed(0.4084660, 0.4084661), "40.8% predicted, 40.8% observed"),
        (f.percents([0.17008, 0.171, 0.0]), ["17.0%", "17.1%", "0.0%"]),
        (f.percents([0.5, 0.00123]), ["50.00%", "0.12%"]),
        (f.percents([]), []),
        (f.format_pvalue(0.0476), "0.048"),
        (f.format_pvalue(0.0512), "0.051"),
        (f.format_pvalue(0.06), "0.06"),
        (f.percent_pair(0.4412, 0.3821), ("44%", "38%")),
        (f.percent_pair(0.177, 0.2049), ("17.7%", "20.5%")),
        (f.percent_pair(0.17553, 0.16995), ("17.6%", "17.0%")),
        (f.percent_pair(0.00012, 0.00018), ("0.012%", "0.018%")),
        (f.percent_pair(0.5, 0.5), ("50%", "50%")),
        (f.percent_pair(0.999, 0.525), ("99.9%", "52.5%")),
        (f.percent_pair(0.9933, 0.9712), ("99.3%", "97.1%")),
        (f.percent_pair(0.99996, 0.9), ("99.996%", "90.000%")),
        (f.percent_pair(1e-320, 0.23), ("0.00%", "23.00%")),
        ([f.whole_percent(x) for x in (0.3, 0.005, 0.0001)], ["30%", "0.5%", "0.01%"]),
        ([f.points_text(x) for x in (0.0131, 0.25, 0.000123)], ["1.3 points", "25 points", "0.012 points"]),
        (f.rounded_ends(0.2134, 0.4071), (0.21, 0.41)),
        (f.rounded_ends(0.0012, 0.0037), (0.0012, 0.0037)),
        (f.rounded_ends(0.5, 0.5), (0.5, 0.5)),
        (f.between_text(0.2, 0.45), "between 20% and 45%"),
        (f.between_text(0.5, 0.5), "at 50%"),
        ((f.pluralize(1, "row"), f.pluralize(1234, "row")), ("1 row", "1,234 rows")),
        (f.pluralize(0, "class", "classes"), "0 classes"),
        ((f.p_equals("0.05"), f.p_equals("<0.001")), ("p = 0.05", "p < 0.001")),
        (f.round_up(1234), 1300),
    ],
)  # fmt: skip
def test_written(written, expected):
    assert written == expected


def test_the_noise_of_summation_does_not_show():
    """The mean of 20,000 outcomes is often a tie in the fourth decimal; another order of summing moves it."""
    values = (0.4996500000000053, 0.4996499999999947)
    assert [f"{x:.4f}" for x in values] == ["0.4997", "0.4996"]
    assert [f"{f.without_noise(x):.4f}" for x in values] == ["0.4996", "0.4996"]
