"""Random signs per cluster: known answers, the oracle, and size under correlation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.signs import kuiper, level_sums, values_of_patterns
from samples import samples, size_bound
from scipy.stats import norm

import calibrant as cb
from calibrant.clusters import Clusters
from calibrant.inference import null as signs


def clustered(rng, number, size, shared, low=False):
    """Calibrated predictions, partly shared, with outcomes correlated within clusters."""
    c = np.repeat(np.arange(number), size)
    n = len(c)
    p = norm.cdf(0.7 * rng.normal(size=number)[c] + 0.7 * rng.normal(size=n))
    p = np.clip(rng.beta(1, 49, n), 1e-4, 1) if low else p
    e = np.sqrt(shared) * rng.normal(size=number)[c] + np.sqrt(1 - shared) * rng.normal(size=n)
    return (norm.cdf(e) < p).astype(float), p, c


def test_two_clusters_give_the_known_values():
    found = values_of_patterns([0.3, 0.3, -0.2, -0.2], ["a", "a", "b", "b"])
    assert np.allclose(found, [0.6, 1.0, 1.0, 0.6])


@given(sample=samples(min_size=2), number=st.integers(1, 6), seed=st.integers(0, 99))
@settings(max_examples=60)
def test_drawn_residuals_are_those_of_the_oracle(sample, number, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, number, len(sample.y))
    f = cb.Forecasts(sample.y, sample.p, sample_weight=sample.w).with_clusters(labels)
    null = signs.SignNull(f)
    drawn = null.residuals(np.random.default_rng(seed), 3)
    flips = signs.draw_signs(np.random.default_rng(seed), f.clusters.number, 3)
    codes = null.clusters.codes  # single records are numbered in their order
    level_of = np.repeat(np.arange(f.levels), f.counts)
    residuals = signs.record_weights(f) * (signs.record_outcomes(f) - f.values[level_of])
    for row, sign in zip(drawn, flips.T, strict=True):
        wanted = level_sums(residuals, level_of, codes, sign, f.levels)
        assert np.allclose(row, wanted, atol=1e-12)
    assert np.allclose(f.residuals, level_sums(residuals, level_of, codes, [1.0] * number, f.levels))


def test_the_pvalue_is_that_of_all_patterns():
    rng = np.random.default_rng(3)
    y, p, c = clustered(rng, 13, 2, 0.0)
    order = np.argsort(p, kind="stable")
    residuals = ((y - p) / 26)[order]
    values = values_of_patterns(residuals, c[order], lambda r: np.ptp(np.r_[0.0, np.cumsum(r)]))
    observed = kuiper(list(residuals))
    exact = np.mean(np.array(values) >= observed - 1e-12)
    found = cb.calibration_test(y, p, clusters=c, measure="kuiper", null="signs", draws=4999)
    assert found.pvalue == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 4999) + 1e-3)
    assert found.method == "signs"
    assert found.approximate == ("pvalue",)


def test_clusters_of_one_record_give_the_exact_test():
    rng = np.random.default_rng(4)
    y, p, _ = clustered(rng, 200, 1, 0.0)
    for measure in ("omnibus", "smooth", "slope"):
        alone = cb.calibration_test(y, p, measure=measure, clusters=np.arange(200), draws=199)
        assert alone.pvalue == cb.calibration_test(y, p, measure=measure, draws=199).pvalue
        assert alone.method != "signs"


def test_the_answer_ignores_the_order_of_rows_and_the_form_of_labels():
    rng = np.random.default_rng(5)
    y, p, c = clustered(rng, 20, 5, 0.3)
    one = cb.calibration_test(y, p, clusters=c, draws=199)
    order = rng.permutation(100)
    other = cb.calibration_test(y[order], p[order], clusters=c[order], draws=199)
    assert one.pvalue == other.pvalue
    names = np.array([f"ward {k:02d}" for k in c])
    frame = {"y": y, "p": p, "ward": names}
    named = cb.calibration_test(frame, outcome="y", prediction="p", clusters="ward", draws=199)
    assert named.pvalue == one.pvalue
    assert named.clusters.name == "ward"


def test_clusters_are_described_and_too_few_refused():
    rng = np.random.default_rng(6)
    y, p, c = clustered(rng, 100, 20, 0.5)
    found = cb.calibration_test(y, p, clusters=c, draws=99)
    assert found.clusters.number == 100
    assert found.clusters.design_effect > 3
    assert "carry as much information as about" in str(found)
    with pytest.raises(cb.TooFewRecordsError, match="at least 10 of equal weight"):
        cb.calibration_test(y, p, clusters=c % 8)
    with pytest.raises(cb.TooFewRecordsError, match="above its prediction"):
        cb.calibration_test(np.where(np.arange(2000) < 2, 1, 0), np.full(2000, 0.01), clusters=c)


def test_effective_number_counts_unequal_clusters_as_fewer():
    size = np.r_[200, np.ones(49, dtype=int)]
    codes = np.repeat(np.arange(50), size)
    rng = np.random.default_rng(7)
    residuals = rng.normal(size=len(codes))
    rows = residuals, np.zeros(len(codes)), np.ones(len(codes))
    found = signs.ClusterSummary.of_rows(Clusters(codes, 50), *rows, checked=False, real=True)
    assert found.effective < 5
    equal = np.repeat(np.arange(50), 5)
    rows = rng.normal(size=250), np.zeros(250), np.ones(250)
    found = signs.ClusterSummary.of_rows(Clusters(equal, 50), *rows, checked=False, real=True)
    assert found.effective == pytest.approx(50)


def test_labels_that_are_missing_are_refused_or_dropped_and_counted():
    y, p = [0, 1] * 30, [0.4, 0.6] * 30
    labels = [f"c{k % 15}" if k else None for k in range(60)]
    with pytest.raises(cb.InvalidInputError, match="clusters must not be missing"):
        cb.calibration_test(y, p, clusters=labels)
    assert cb.calibration_test(y, p, clusters=labels, missing="drop", draws=19).n == 59
    with pytest.raises(cb.InvalidInputError, match="clusters"):
        cb.calibration_test(y, p, clusters=labels[:-1])


def test_statistics_that_need_outcomes_refuse_with_a_hint():
    rng = np.random.default_rng(8)
    y, p, c = clustered(rng, 20, 5, 0.3)
    with pytest.raises(cb.InvalidInputError, match="smooth"):
        cb.calibration_test(y, p, clusters=c, measure="lower-distance")
    with pytest.raises(cb.InvalidInputError, match='null must not be "exact"'):
        cb.calibration_test(y, p, clusters=c, null="exact")
    with pytest.raises(cb.CalibrantError, match="null"):
        cb.calibration_test(y, p, null="robust")


@pytest.mark.parametrize("shared", [0.0, 0.4])
@pytest.mark.parametrize("measure", ["omnibus", "slope"])
def test_size_holds_under_correlation(shared, measure):
    rng = np.random.default_rng(9)
    rejected = 0
    for seed in range(150):
        y, p, c = clustered(rng, 20, 8, shared)
        rejected += cb.calibration_test(y, p, clusters=c, measure=measure, draws=99, seed=seed).rejects()
    assert rejected <= size_bound(0.05, 150)
