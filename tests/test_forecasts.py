"""Forecasts: what goes in, what is refused, and that sorting and merging lose nothing."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from oracles.levels import levels
from samples import samples

import calibrant as cb
from calibrant import Forecasts
from calibrant.inference.bootstrap import levels_to_simulate

Y = [0, 1, 1, 0, 1]
P = [0.2, 0.7, 0.7, 0.7, 1.0]


@given(sample=samples())
def test_levels_equal_those_of_a_dictionary(sample):
    f = sample.forecasts
    expected = levels(sample)
    assert f.values.tolist() == [v for v, _, _ in expected]
    np.testing.assert_allclose(f.weights, [w for _, w, _ in expected], rtol=1e-12)
    np.testing.assert_allclose(f.outcomes, [a for _, _, a in expected], rtol=1e-12, atol=1e-300)
    squares = [float(np.sum(sample.weights[sample.p == v] ** 2)) for v in f.values]
    np.testing.assert_allclose(f.squared_weights, squares, rtol=1e-12)
    assert f.counts.sum() == f.n == len(sample.p)
    assert f.curve[0] == 0.0
    assert f.curve[-1] == pytest.approx(f.base_rate - f.mean_prediction, abs=1e-12)


@given(sample=samples(min_size=2))
def test_record_weights_follow_the_levels(sample):
    f = sample.forecasts
    if f.record_weights is None:
        assert sample.w is None or len(set(sample.w)) == 1
        return
    ends = np.cumsum(f.counts)
    for level, (start, end) in enumerate(zip(ends - f.counts, ends, strict=True)):
        assert f.record_weights[start:end].sum() == pytest.approx(f.weights[level], rel=1e-12)


@pytest.mark.parametrize(
    "make",
    [
        np.array,
        list,
        tuple,
        pd.Series,
        pl.Series,
        pa.array,
        lambda x: pa.chunked_array([x]),
        lambda x: np.ma.masked_array(x, mask=False),
        lambda x: pd.array(x, dtype="Float64"),
    ],
)
def test_every_kind_of_array_gives_the_same(make):
    f = Forecasts(make([float(y) for y in Y]), make(P))
    assert f.values.tolist() == [0.2, 0.7, 1.0]
    assert f.outcomes.tolist() == [0.0, 0.4, 0.2]


@pytest.mark.parametrize(
    "backend", [pd.DataFrame, pl.DataFrame, pa.table, lambda d: pl.DataFrame(d).lazy(), dict]
)
def test_every_kind_of_frame_gives_the_same(backend):
    f = Forecasts.from_frame(
        backend({"y": Y, "p": P, "w": [1.0] * 5}), outcome="y", prediction="p", weight="w"
    )
    assert f.counts.tolist() == [1, 3, 1]


def test_a_duckdb_relation_is_a_frame():
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        table = connection.sql("select 1 as y, 0.3::double as p union all select 0, 0.4::double")
        assert Forecasts.from_frame(table, outcome="y", prediction="p").levels == 2


def test_torch_tensors_in_bfloat16_are_taken_as_they_are():
    torch = pytest.importorskip("torch")
    p = torch.tensor([0.25, 0.5, 0.75], dtype=torch.bfloat16)
    assert Forecasts([0, 1, 1], p).values.tolist() == [0.25, 0.5, 0.75]
    fine = torch.tensor([0.1, 0.2, 0.3], dtype=torch.bfloat16)  # rounded by torch alone
    assert Forecasts([0, 1, 1], fine).values.tolist() == fine.double().tolist()


def test_torch_tensors_that_track_gradients_are_taken():
    torch = pytest.importorskip("torch")
    p = torch.tensor(P, dtype=torch.float64, requires_grad=True)
    assert Forecasts(torch.tensor(Y), p).levels == 3


def test_negative_zero_is_zero():
    assert Forecasts([0, 1], [-0.0, 0.0]).levels == 1
    assert Forecasts([0, 0.5], [-0.0, 0.0]).levels == 1


def test_float32_is_taken_as_it_is():
    p = np.array([0.1, 0.2, 0.2], dtype=np.float32)
    assert Forecasts([0, 1, 1], p).values.tolist() == [float(p[0]), float(p[1])]


def test_it_cannot_be_changed():
    f = Forecasts(Y, P)
    with pytest.raises(AttributeError, match="cannot be changed"):
        f.n = 3
    for name in ("values", "outcomes", "counts", "weights", "residuals", "curve"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(f, name)[0] = 9


def test_the_arrays_of_the_user_are_left_alone():
    y, p = np.array([1.0, 0.5]), np.array([0.9, 0.1])
    Forecasts(y, p)
    y[0] = p[0] = 0.3
    assert p.tolist() == [0.3, 0.1]


@given(sample=samples(min_size=3))
def test_a_slice_is_the_forecasts_of_its_records(sample):
    f = sample.forecasts
    low, high = f.values[0], f.values[f.levels // 2]
    inside = (sample.p >= low) & (sample.p <= high)
    part = f.between(low, high)
    direct = Forecasts(
        sample.y[inside], sample.p[inside], sample_weight=None if sample.w is None else sample.w[inside]
    )
    np.testing.assert_allclose(part.weights, direct.weights, rtol=1e-9)
    np.testing.assert_allclose(part.residuals, direct.residuals, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(part.squared_weights, direct.squared_weights, rtol=1e-9)
    assert part.n == direct.n
    assert part.total_weight == pytest.approx(direct.total_weight, rel=1e-9)


def test_zero_weights_carry_nothing():
    f = Forecasts([0, 1, 1], [0.2, 0.7, 0.9], sample_weight=[1, 2, 0])
    assert f.n == 2
    assert f.total_weight == 3


def test_huge_weights_do_not_overflow():
    f = Forecasts([0, 1], [0.2, 0.7], sample_weight=[1e308, 1e308])
    assert f.weights.tolist() == [0.5, 0.5]


def test_it_can_be_pickled():
    f = pickle.loads(pickle.dumps(Forecasts(Y, P)))
    assert f.values.tolist() == [0.2, 0.7, 1.0]


def test_a_million_rows_are_sorted_and_merged_rightly():
    rng = np.random.default_rng(0)
    p = rng.random(10**6).round(5)
    y = rng.random(10**6) < p
    f = Forecasts(y, p)
    values, inverse = np.unique(p, return_inverse=True)
    assert np.array_equal(f.values, values)
    np.testing.assert_allclose(f.outcomes * 10**6, np.bincount(inverse, weights=y))


BAD = [
    ({"y_prob": [0.1, np.nan, 0.2, np.nan]}, r"y_prob must not be missing; got nan in row 1 \(2 rows\)"),
    ({"y_prob": [0.1, 0.2, 1.7, 0.2]}, r"y_prob must lie in \[0, 1\]; got 1.7 in row 2 \(1 row\)"),
    ({"y_prob": [0.1, 0.2, -3.0, 4.0]}, r"row 2 \(2 rows\).*logits"),
    ({"y_prob": [10, 20, 30, 40]}, r"percentages must be divided by 100"),
    ({"y_prob": [0.1, 0.2, 0.3, 1 + 1e-9]}, r"rounding errors"),
    ({"y_prob": [0.1, 0.2, 0.3, np.inf]}, r"got inf in row 3"),
    ({"y_prob": [0.1, 0.2]}, r"y_true and y_prob must have the same length; got 4 and 2 rows"),
    ({"y_prob": [[0.1, 0.8]] * 4}, r"must sum to 1 in each row; got 0.9 in row 0.*\[:, 1\]"),
    ({"y_prob": [[0.1, 0.2, 0.7]] * 4}, r"top_label"),
    ({"y_prob": 0.3}, r"must be one-dimensional"),
    ({"y_prob": ["a", "b", "c", "d"]}, r"y_prob must be numeric"),
    ({"y_prob": [0.1, None, 0.3, "x"]}, r"y_prob must be numeric; got the text 'x' in row 3"),
    ({"y_prob": np.array(["2020"] * 4, dtype="datetime64[Y]")}, r"must be numeric; got dtype"),
    ({"y_true": [-1, 1, 1, -1]}, r"y_true must lie in \[0, 1\]; got -1 in row 0.*pos_label=1"),
    ({"y_true": [0, 1, 2, 0]}, r"y_true must lie in \[0, 1\]; got 2 in row 2"),
    ({"y_true": [], "y_prob": []}, r"y_true must not be empty"),
    ({"sample_weight": [1, 1, -1, 1]}, r"sample_weight must not be negative; got -1.0 in row 2"),
    ({"sample_weight": [0, 0, 0, 0]}, r"sample_weight must have a positive total"),
    ({"sample_weight": [1, 1, np.inf, 1]}, r"sample_weight must be finite"),
    ({"sample_weight": [1, 1, 1]}, r"same length"),
    ({"missing": "ignore"}, r"missing must be one of error, drop"),
    (
        {"y_true": [np.nan] * 4, "missing": "drop"},
        r"y_true must have a row without missing values; got 4 rows",
    ),
    (
        {"y_prob": [np.nan] * 4, "missing": "drop"},
        r"y_prob must have a row without missing values; got 4 rows",
    ),
]


@pytest.mark.parametrize(("change", "message"), BAD)
def test_bad_input_is_refused_in_plain_words(change, message):
    arguments = {"y_true": [0, 1, 1, 0], "y_prob": [0.1, 0.2, 0.3, 0.4], **change}
    with pytest.raises(cb.CalibrantError, match=message):
        Forecasts(arguments.pop("y_true"), arguments.pop("y_prob"), **arguments)


def test_missing_rows_are_dropped_on_request_and_counted():
    f = Forecasts([0, 1, None, 1], [0.1, np.nan, 0.3, 0.4], missing="drop")
    assert (f.n, f.dropped) == (2, 2)


def test_frames_name_the_column():
    frame = pd.DataFrame({"y": [0, 1], "p": [0.2, 1.5]})
    with pytest.raises(cb.CalibrantError, match=r"column 'p' must lie in \[0, 1\]; got 1.5 in row 1"):
        Forecasts.from_frame(frame, outcome="y", prediction="p")
    with pytest.raises(cb.CalibrantError, match="column must be one of y, p; got 'q'"):
        Forecasts.from_frame(frame, outcome="y", prediction="q")
    with pytest.raises(cb.CalibrantError, match="frame must be a data frame; got int"):
        Forecasts.from_frame(3, outcome="y", prediction="q")


def test_the_two_call_forms_do_not_mix():
    f = Forecasts(Y, P)
    with pytest.raises(cb.CalibrantError, match="hold outcomes, predictions"):
        cb.kuiper_error(f, P)
    with pytest.raises(cb.CalibrantError, match="y_prob must be given"):
        cb.kuiper_error(Y)


def test_a_measure_can_be_pickled_like_a_function():
    assert pickle.loads(pickle.dumps(cb.kuiper_error)) is cb.kuiper_error


def test_other_outcomes_forget_how_many_levels_were_merged():
    p = np.linspace(0.01, 0.99, 3000)
    f = Forecasts(np.random.default_rng(0).random(3000) < p**2, p)
    smooth = cb.measures()["smooth"]
    assert levels_to_simulate(f, smooth).base_rate == pytest.approx(f.base_rate)
    other = f.with_outcomes(f.weights * f.values)
    assert levels_to_simulate(other, smooth).base_rate == pytest.approx(other.base_rate) != f.base_rate
