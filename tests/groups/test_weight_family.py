"""weight_family(): values by definition, p-values against complete enumeration, bad members by name."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from samples import samples

from calibrant import weight_family, weighted_calibration_error
from calibrant.errors import CalibrantError
from calibrant.groups.family import null_sums

FAMILY = {"mean": lambda v: 1.0, "slope": lambda v: 2 * v - 1, "low": lambda v: (v < 0.4).astype(float)}


@settings(max_examples=100)
@given(samples(fractional=False))
def test_each_value_is_the_weighted_error_of_that_function(sample):
    found = weight_family(sample.y, sample.p, FAMILY, sample_weight=sample.w, draws=9, seed=0)
    for one in found.members:
        expected = weighted_calibration_error(
            sample.y, sample.p, sample_weight=sample.w, weight_function=FAMILY[one.name]
        )
        assert abs(one.value) == pytest.approx(expected, abs=1e-12)
    assert found.value == max(abs(one.value) for one in found.members)
    assert found.pvalue == min(one.pvalue for one in found.members)
    assert 0.1 <= found.pvalue <= 1
    assert json.loads(json.dumps(found.to_dict()))["argmax"] == found.argmax


def test_pvalues_approach_complete_enumeration():
    p = np.array([0.1, 0.25, 0.4, 0.4, 0.7, 0.9])
    x = np.array([1.0, -1.0, 1.0, 0.0, -1.0, 0.5])
    family = {**FAMILY, "feature": lambda v, x: x["a"] * v}
    w = np.array([1.0, 2.0, 1.0, 0.5, 1.0, 3.0])
    weights = np.array([np.ones(6), 2 * p - 1, p < 0.4, x * p]) * (w / w.sum())
    rng = np.random.default_rng(0)
    for _ in range(5):
        y = rng.integers(0, 2, 6)
        value = np.abs(weights @ (y - p)).max()
        exact = 0.0
        for outcome in itertools.product((0, 1), repeat=6):
            one = np.array(outcome)
            if np.abs(weights @ (one - p)).max() >= value * (1 - 1e-10):
                exact += float(np.prod(np.where(one == 1, p, 1 - p)))
        found = weight_family(y, p, family, covariates={"a": x}, sample_weight=w, draws=20_000, seed=1)
        assert found.value == pytest.approx(value)
        assert abs(found.pvalue - exact) < 5 * np.sqrt(max(exact * (1 - exact), 0) / 20_000) + 1e-4


def test_simulated_sums_have_the_mean_and_variance_of_the_null():
    rng = np.random.default_rng(2)
    p, load = rng.random(9000), rng.normal(size=(2, 9000))
    sums = null_sums(p, load, 4000, rng)
    deviation = np.sqrt((load**2) @ (p * (1 - p)))
    assert np.all(np.abs(sums.mean(axis=1)) < 5 * deviation / np.sqrt(4000))
    assert sums.std(axis=1) == pytest.approx(deviation, rel=0.06)
    product = (load[0] * load[1]) @ (p * (1 - p)) / deviation.prod()
    assert np.corrcoef(sums)[0, 1] == pytest.approx(product, abs=0.06)


def test_row_order_and_container_change_nothing():
    rng = np.random.default_rng(3)
    p = np.round(rng.random(300), 1)
    y = rng.random(300) < p
    frame = pd.DataFrame({"a": rng.normal(size=300)})
    family = {**FAMILY, "sign": lambda v, x: np.sign(np.asarray(x["a"]))}
    first = weight_family(y, p, family, covariates=frame, seed=4)
    order = rng.permutation(300)
    shuffled = {"a": frame["a"].to_numpy()[order]}
    again = weight_family(y[order], p[order], family, covariates=shuffled, seed=4)
    assert first.pvalue == again.pvalue
    assert [m.name for m in first.members] == [m.name for m in again.members]
    assert [m.value for m in first.members] == pytest.approx([m.value for m in again.members], abs=1e-14)


def test_dropped_rows_are_not_looked_at():
    p = np.array([0.2, np.nan, 0.6, 0.9])
    found = weight_family([0, 1, 1, 1], p, {"v": lambda v: v}, missing="drop", seed=0)
    assert (found.n, found.dropped) == (3, 1)
    kept = weight_family([0, 1, 1], [0.2, 0.6, 0.9], {"v": lambda v: v}, seed=0)
    assert found.value == pytest.approx(kept.value)
    assert "1 with missing values dropped" in str(found)


@pytest.mark.parametrize(
    ("functions", "message"),
    [
        ({}, "functions must have a member"),
        ([np.sign], "functions must be a mapping of names to functions; got list"),
        ({"a": 3}, r"functions\['a'\] must be callable; got int"),
        (
            {"big": lambda v: 2 * v},
            r"functions\['big'\] must return values in \[-1, 1\]; got 1.2 in row 1 \(2",
        ),
        (
            {"nan": lambda v: v * np.nan},
            r"functions\['nan'\] must return values in \[-1, 1\]; got nan in row 0",
        ),
        ({"short": lambda v: v[:2]}, r"must return one number per row; got shape \(2,\) for 3 rows"),
        ({"words": lambda v: ["a"] * 3}, "must return numbers"),
        ({"x": lambda v, x: v}, r"functions\['x'\] takes features .* Hint: pass covariates="),
    ],
)
def test_bad_members_are_refused_by_name(functions, message):
    with pytest.raises(CalibrantError, match=message):
        weight_family([0, 1, 1], [0.2, 0.6, 0.9], functions)


def test_numpy_functions_and_defaults_are_functions_of_the_prediction():
    found = weight_family([0, 1, 1], [0.2, 0.6, 0.9], {"sin": np.sin, "b": lambda v, b=0.5: v * b}, seed=0)
    assert {one.name for one in found.members} == {"sin", "b"}


def test_size_is_at_most_the_level():
    rejected = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        p = rng.beta(2, 3, 80)
        rejected += weight_family(rng.random(80) < p, p, FAMILY, draws=99, seed=seed).pvalue <= 0.05
    assert rejected <= 19  # 10 expected; three deviations above
