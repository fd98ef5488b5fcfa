"""The metric: closed forms of Appendix F, the definition on ugly data, eq. (6)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import multicalibration as oracle
from samples import Sample, samples

from calibrant import kuiper_error
from calibrant.groups.audit import audit
from calibrant.groups.statistics import SUMS, Variant
from calibrant.groups.subpopulations import Lists
from calibrant.kernels.groups import segment_curves, successive_variances


@pytest.mark.parametrize("q", range(1, 100, 2))
def test_closed_forms_of_appendix_f(q):
    y, p, middle = oracle.synthetic(q)
    masks = middle or {"all": np.ones(len(y), bool)}
    found = audit(y, p, groups=masks, min_size=1, draws=0, seed=0)
    by_name = {group.name: group for group in found.groups}
    n = q * (q + 1)
    numerator, denominator = 2 * np.arange(1, n + 1) + q, 2 * (q + 1) ** 2  # whole numbers: exact sums
    variance = numerator * (denominator - numerator)
    for k in range((q - 1) // 2 + 1):
        group = by_name["everyone" if k == 0 else f"k={k}"]
        size = (q - 2 * k) * (q + 1)
        assert group.size == size
        assert group.kuiper == pytest.approx((2 * q + 3) / (8 * size), abs=1e-12)  # (17), (23)
        exact = math.sqrt(variance[k * (q + 1) : n - k * (q + 1)].sum()) / denominator / size  # (5)
        assert group.sigma == pytest.approx(exact, abs=1e-12)
    top = 2 * q**5 + 12 * q**4 + 27 * q**3 + 29 * q**2 + 16 * q + 4
    bottom = 3 * q**6 + 15 * q**5 + 29 * q**4 + 27 * q**3 + 13 * q**2 + 3 * q
    expected = (2 * q + 3) / (8 * (q + 1)) * math.sqrt(top / bottom)  # (29)
    assert found.metric == pytest.approx(expected, abs=1e-12)
    assert found.ablated == pytest.approx((2 * q + 3) / (8 * (q + 1)), abs=1e-12)  # (30)
    assert found.worst.name == ("everyone" if q == 1 else f"k={(q - 1) // 2}")
    assert found.ratio == pytest.approx(expected / found.sigma, rel=1e-12)
    assert found.not_tested.duplicates == (1 if q == 1 else 0)
    # the curve of the middle block leaves 0 at its first record and peaks at index q (q + 1) / 2
    assert found.worst.start == p[(q - 1) // 2 * (q + 1)]
    assert found.worst.stop == p[q * (q + 1) // 2 - 1]
    assert found.worst.predictions == "too low"


@given(samples(fractional=False, min_size=2, max_size=14), st.data())
def test_metric_is_the_definition_on_ugly_data(sample: Sample, data):
    n = len(sample.p)
    masks = [np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n))) for _ in range(3)]
    named = {f"g{k}": mask for k, mask in enumerate(masks)}
    found = audit(sample.y, sample.p, sample_weight=sample.w, groups=named, min_size=1, draws=0, seed=0)
    expected = oracle.metric(sample.y, sample.p, sample.weights, [mask for mask in masks if mask.any()])
    assert found.metric == pytest.approx(expected, rel=1e-9, abs=1e-11)
    for group in found.groups:
        inside = named.get(group.name, np.ones(n, bool))
        own = sample.y[inside], sample.p[inside], sample.weights[inside]
        assert group.kuiper == pytest.approx(oracle.kuiper(*own), abs=1e-12)
        assert group.sigma == pytest.approx(oracle.sigma(*own[1:]), rel=1e-9, abs=1e-15)
        assert group.kuiper == pytest.approx(kuiper_error(own[0], own[1], sample_weight=own[2]), abs=1e-12)


@given(samples(fractional=False, min_size=2, max_size=20))
def test_the_interval_attains_the_metric_in_its_direction(sample: Sample):
    found = audit(sample.y, sample.p, sample_weight=sample.w, groups={"all": sample.p >= 0}, draws=0).worst
    inside = (sample.p >= found.start) & (sample.p <= found.stop)
    total = float(np.sum((sample.weights * (sample.y - sample.p))[inside]))
    sign = {"too low": 1, "too high": -1, "none": 0}[found.predictions]
    if sign:
        assert sign * total == pytest.approx(found.kuiper, abs=1e-12)
    else:
        assert found.kuiper == 0


@given(
    st.lists(
        st.tuples(st.floats(-50, 50), st.floats(-50, 50), st.sampled_from([1e-4, 0.5, 1.0])),
        min_size=2,
        max_size=20,
        unique_by=lambda row: row[1],
    )
)
def test_real_responses_use_the_printed_estimate(rows):
    rows = sorted(rows, key=lambda row: row[1])
    r, s, w = (np.array(column) for column in zip(*rows, strict=True))
    found = audit(r, s, sample_weight=w, groups={"all": s == s}, variant="real", draws=0).worst
    assert found.sigma == pytest.approx(oracle.successive_sigma(r, s, w), rel=1e-7, abs=1e-9)


def test_constant_outcomes_that_were_certain_are_fine_and_impossible_ones_are_infinite():
    right = audit([0, 1, 0, 1], [0, 1, 0, 1], groups={"a": np.array([True, True, False, False])}, min_size=1)
    assert right.metric == 0
    assert right.pvalue == 1
    wrong = audit(
        [0, 1, 1, 1], [0.5, 0.5, 0, 1], groups={"a": np.array([False, False, True, True])}, min_size=1
    )
    assert wrong.worst.z == math.inf
    assert wrong.worst.name == "a"
    assert wrong.pvalue == pytest.approx(1 / 200)


@pytest.mark.parametrize("variant", ["plain", "real"])
def test_machine_code_says_the_same_as_plain_python(variant):
    rng = np.random.default_rng(3)
    n = 3000
    p = np.sort(np.round(rng.random(n), 2))
    y = rng.integers(0, 2, n).astype(float)
    batch = Lists.of(["a", "b"], [np.flatnonzero(rng.random(n) < c).astype(np.int32) for c in (0.3, 0.9)])
    terms = Variant(variant).terms(p, y, rng.random(n))
    found = {}
    for how in ("plain", "machine_code"):
        sums, ends, variance = np.zeros((2, SUMS)), np.zeros((2, 4), dtype=np.int64), np.zeros(2)
        curves = segment_curves.plain if how == "plain" else segment_curves.machine_code()
        curves(batch.members, batch.offsets, terms.rows, sums, ends)
        estimate = successive_variances.plain if how == "plain" else successive_variances.machine_code()
        estimate(batch.members, batch.offsets, terms.rows, variance)
        found[how] = np.concatenate([sums.ravel(), ends.ravel(), variance])
    np.testing.assert_allclose(found["plain"], found["machine_code"], rtol=1e-12)
