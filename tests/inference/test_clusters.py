"""Clusters in intervals, comparisons, evaluations and commands."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

import calibrant as cb


def clustered(rng, number=40, size=5, shared=0.4):
    c = np.repeat(np.arange(number), size)
    p = norm.cdf(0.7 * rng.normal(size=number)[c] + 0.7 * rng.normal(size=len(c)))
    e = np.sqrt(shared) * rng.normal(size=number)[c] + np.sqrt(1 - shared) * rng.normal(size=len(c))
    return (norm.cdf(e) < p).astype(int), p, c


@pytest.mark.parametrize("measure", ["smooth", "in-the-large", "intercept", "brier", "atb", "ici"])
def test_repeated_rows_widen_intervals_only_with_clusters(measure):
    rng = np.random.default_rng(1)
    p = rng.uniform(0.1, 0.9, 60)
    y = (rng.random(60) < p).astype(int)
    p += rng.uniform(-1e-3, 1e-3, 60)
    rows = np.repeat(np.arange(60), 6)
    how = {"measure": measure, "draws": 199}
    once = cb.confidence_interval(y, p, **how)
    alone = cb.confidence_interval(y[rows], p[rows], **how)
    together = cb.confidence_interval(y[rows], p[rows], clusters=rows, **how)
    width = [found.upper - found.lower for found in (once, alone, together)]
    assert width[1] < 0.75 * width[0]
    assert width[2] > 0.8 * width[0]
    assert together.lower <= together.value <= together.upper
    assert together.clusters.design_effect == pytest.approx(6, rel=1e-6)


def test_intervals_under_correlation_cover():
    rng = np.random.default_rng(2)
    held = alone = 0
    for seed in range(100):
        y, p, c = clustered(rng)
        how = {"measure": "in-the-large", "draws": 99, "seed": seed}
        held += 0.0 in cb.confidence_interval(y, p, clusters=c, **how)
        alone += 0.0 in cb.confidence_interval(y, p, **how)
    assert held >= 89
    assert alone < held


def test_compare_resamples_whole_clusters():
    rng = np.random.default_rng(3)
    y, p, c = clustered(rng, 60, 4)
    q = np.clip(p + 0.15, 0, 1)
    alone = cb.compare(y, p, q, measure="brier", draws=199)
    together = cb.compare(y, p, q, measure="brier", draws=199, clusters={"ward": c})
    widths = [one.differences[0].upper - one.differences[0].lower for one in (alone, together)]
    assert widths[1] > 1.2 * widths[0]
    assert "within ward" in str(together)
    with pytest.raises(cb.TooFewRecordsError):
        cb.compare(y, p, q, clusters=c % 6)


def test_evaluate_and_assert_take_clusters():
    rng = np.random.default_rng(4)
    y, p, c = clustered(rng, 60, 5)
    found = cb.evaluate({"y": y, "p": p, "ward": c}, outcome="y", prediction="p", clusters="ward", draws=39)
    assert "within ward" in found.facts.clusters
    assert {row.pvalue_method for row in found.rows if row.pvalue is not None} == {"signs"}
    cb.assert_calibrated(y, p, max={"smooth": 0.4}, clusters=c)
    with pytest.raises(AssertionError, match="at least 10"):
        cb.assert_calibrated(y, p, max={"smooth": 0.4}, clusters=c % 4)


@pytest.mark.parametrize("null", ["auto", "signs"])
@pytest.mark.parametrize("name", ["kuiper", "smooth", "omnibus"])
def test_clusters_of_one_record_draw_the_signs_of_records(name, null):
    """Also where signs are drawn for every record: fractional outcomes, or on request."""
    rng = np.random.default_rng(5)
    p, labels = rng.integers(1, 10, 60) / 10, rng.permutation(60)
    y = np.round(rng.random(60), 1) if null == "auto" else (rng.random(60) < p).astype(float)
    plain = cb.calibration_test(y, p, measure=name, null=null, draws=99)
    alone = cb.calibration_test(y, p, measure=name, null=null, draws=99, clusters=labels)
    assert plain.method == alone.method == "signs"
    assert alone.pvalue == plain.pvalue
    audited = {"groups": {"g": rng.random(60) < 0.5}, "null": null, "draws": 99}
    audited["variant"] = "real" if null == "auto" else "plain"
    audits = [cb.audit(y, p, clusters=who, **audited) for who in (None, labels)]
    assert audits[0].pvalue == audits[1].pvalue


@pytest.mark.parametrize("ties", [False, True])
def test_neither_labels_of_clusters_nor_the_order_of_rows_matter(ties):
    rng = np.random.default_rng(3)
    y, p, label = clustered(rng)
    p = np.round(p, 1) if ties else p
    named = np.array([f"hospital {number}" for number in rng.permutation(label.max() + 1)])[label]
    order = rng.permutation(len(y))
    rows = [(y, p, label), (y, p, named), (y[order], p[order], named[order])]
    tests = [cb.calibration_test(a, b, clusters=c, draws=99).pvalue for a, b, c in rows]
    assert tests[0] == tests[1] == tests[2]
    intervals = [cb.confidence_interval(a, b, measure="smooth", clusters=c, draws=99) for a, b, c in rows]
    for one in intervals[1:]:
        assert one.lower == pytest.approx(intervals[0].lower, rel=1e-9)
        assert one.upper == pytest.approx(intervals[0].upper, rel=1e-9)


def test_an_interval_of_the_upper_distance_needs_independent_outcomes():
    rng = np.random.default_rng(0)
    p = rng.random(60)
    y = (rng.random(60) < p).astype(float)
    for given in ({"clusters": np.arange(60) // 2}, {}):
        outcomes = y if given else np.clip(y, 0.1, 0.9)
        with pytest.raises(cb.CalibrantError, match="needs independent outcomes of 0 and 1"):
            cb.confidence_interval(outcomes, p, measure="upper-distance", draws=9, **given)


def test_neither_labels_of_clusters_nor_the_order_of_rows_change_a_comparison():
    rng = np.random.default_rng(8)
    p, labels = rng.random(400), np.repeat(np.arange(40), 10)
    q, y = np.clip(p + 0.1 * rng.normal(size=400), 0, 1), (rng.random(400) < p).astype(float)
    renamed, order = rng.permutation(40)[labels], rng.permutation(400)
    for function in (cb.compare, cb.net_benefits):
        found = [
            function(y, p, q, clusters=labels, draws=99),
            function(y, p, q, clusters=renamed, draws=99),
            function(y[order], p[order], q[order], clusters=labels[order], draws=99),
        ]
        first, *others = (one.differences[0] for one in found)
        for other in others:
            assert other.lower == pytest.approx(first.lower, rel=1e-9)
            assert other.upper == pytest.approx(first.upper, rel=1e-9)
            if function is cb.compare:
                assert other.pvalue == first.pvalue
            else:
                assert other.band_upper == pytest.approx(first.band_upper, rel=1e-9)


@pytest.mark.parametrize("weight", [1e150, 1e-150])
def test_the_unit_of_weights_does_not_matter_with_clusters(weight):
    c, y, p, q = list(range(20)) * 2, [0, 1] * 20, [0.2, 0.7] * 20, [0.3, 0.6] * 20
    benefits, compared = (
        [function(y, p, q, sample_weight=[unit] * 40, clusters=c, draws=99) for unit in (weight, 1.0)]
        for function in (cb.net_benefits, cb.compare)
    )
    assert str(benefits[0]) == str(benefits[1])
    assert compared[0].differences == compared[1].differences
    assert compared[0].clusters == compared[1].clusters


def test_labels_of_several_types_are_clusters_as_python_compares_them():
    rng = np.random.default_rng(8)
    p = rng.random(84).round(2)
    y = (rng.random(84) < p).astype(int)
    plain = np.arange(84) % 21
    labels = [[k, float(k)][row % 2] if k else "x" for row, k in enumerate(plain.tolist())]
    as_text = ["1" if k == 2 else k for k in labels]  # 1 and "1" are two clusters
    mixed, other, numbers = (
        cb.calibration_test(y, p, clusters=c, draws=99) for c in (labels, as_text, plain)
    )
    assert mixed.clusters.number == other.clusters.number == numbers.clusters.number == 21
    assert mixed.pvalue == other.pvalue == numbers.pvalue
    turned = cb.calibration_test(y[::-1], p[::-1], clusters=labels[::-1], draws=99)
    assert turned.pvalue == mixed.pvalue
