"""Covariates of every kind at once: constant, empty, mixed, dated, ordered, huge, with gaps."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from calibrant import load_recalibration, recalibrate
from calibrant.recalibration.result import RecalibrationWarning

KINDS = (
    lambda r, n: r.normal(size=n),
    lambda r, n: r.choice(["a", "c é", "missing", ""], n),
    lambda r, n: r.random(n) < 0.3,
    lambda r, n: pd.Categorical(r.choice(["lo", "hi"], n), categories=["lo", "hi"], ordered=True),
    lambda r, n: np.full(n, 3.5),
    lambda r, n: np.full(n, np.nan),
    lambda r, n: pd.Timestamp("2020-01-01") + pd.to_timedelta(r.integers(0, 50, n), unit="D"),
    lambda r, n: np.where(r.random(n) < 0.3, np.nan, r.normal(size=n) * 1e200),
    lambda r, n: np.array([None, "u", "v"], dtype=object)[r.integers(0, 3, n)],
    lambda r, n: np.array([1, "1"], dtype=object)[r.integers(0, 2, n)],
    lambda r, n: pd.array(r.integers(1, 3, n), dtype="Int64"),
    lambda r, n: r.choice([-np.inf, 0.0, 1.0, np.inf], n),
    lambda r, n: np.array([2**64 - 1, 0, 2**63], dtype=np.uint64)[r.integers(0, 3, n)],
)
WEIGHTS = (lambda r, n: None, lambda r, n: r.choice([0, 1e-6, 1, 1e5], n), lambda r, n: r.random(n))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("method", ["hierarchical", "patch"])
def test_any_columns_are_repaired_alike_in_any_order_container_and_file(method, seed, tmp_path):
    r = np.random.default_rng(seed)
    n = (40, 300)[seed % 2]
    frame = pd.DataFrame({f"c{k}": KINDS[k](r, n) for k in r.choice(len(KINDS), 3, replace=False)})
    p, w = np.round(r.random(n), 1 + seed % 3), WEIGHTS[seed % 3](r, n)
    y, order = (r.random(n) < p).astype(int), r.permutation(n)
    turned = None if w is None else w[order]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecalibrationWarning)
        made = recalibrate(y, p, method=method, covariates=frame, sample_weight=w, seed=1)
        again = recalibrate(
            y[order], p[order], method=method, covariates=frame.iloc[order], sample_weight=turned, seed=1
        )
        q = made.predict(p, frame)
        assert np.all((q >= 0) & (q <= 1))
        np.testing.assert_allclose(again.predict(p, frame), q, rtol=0, atol=1e-9)
        np.testing.assert_array_equal(made.predict(p, {name: frame[name].tolist() for name in frame}), q)
        made.with_assessment("not asked for").save(tmp_path / "map.json")
        np.testing.assert_array_equal(load_recalibration(tmp_path / "map.json").predict(p, frame), q)


@pytest.mark.parametrize("method", ["hierarchical", "patch", "boost", "augment"])
@pytest.mark.parametrize("kind", [11, 12])
def test_numbers_without_end_can_be_saved(method, kind, tmp_path):
    if method == "boost":
        pytest.importorskip("lightgbm")
    r = np.random.default_rng(0)
    frame, p = pd.DataFrame({"c": KINDS[kind](r, 200)}), r.random(200)
    options = {"model": "logistic"} if method == "augment" else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecalibrationWarning)
        made = recalibrate(r.random(200) < p, p, method=method, covariates=frame, seed=1, **options)
        made.with_assessment("not asked for").save(tmp_path / "map.json")
        again = load_recalibration(tmp_path / "map.json").predict(p, frame)
    np.testing.assert_array_equal(again, made.predict(p, frame))
    assert np.all((again >= 0) & (again <= 1))


def test_patches_of_a_column_whose_name_holds_signs_are_told_by_their_cut():
    rng = np.random.default_rng(0)
    x, p = rng.normal(size=2000), rng.random(2000)
    y = rng.random(2000) < np.clip(p + 0.3 * (x > 0), 0, 1)
    made = recalibrate(y, p, method="patch", covariates={"a >= b": x}, bins=2, seed=1)
    cut = f"{np.quantile(x, 0.5, method='higher'):.12g}"
    assert {one["rule"] for one in made.details["patches"]} == {f"a >= b >= {cut}", f"a >= b < {cut}"}
