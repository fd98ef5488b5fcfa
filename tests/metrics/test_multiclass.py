"""Reductions of several classes, by hand and on real softmax outputs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import calibrant as cb

TABLE = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.3, 0.3, 0.4], [0.4, 0.4, 0.2]])
LABELS = np.array([0, 2, 2, 1])


def test_top_label_by_hand():
    f = cb.top_label(LABELS, TABLE)
    assert f.values.tolist() == [0.4, 0.6, 0.7]
    assert (f.outcomes * 4).tolist() == [1, 0, 1]  # of two equally probable classes the first was wrong
    named = cb.top_label(np.array(list("abc"))[LABELS], TABLE, classes="abc")
    assert named.outcomes.tolist() == f.outcomes.tolist()


def test_each_class_against_the_rest():
    every = cb.class_wise(LABELS, TABLE, sample_weight=[1, 2, 3, 4])
    assert list(every) == [0, 1, 2]
    for label, f in every.items():
        single = cb.one_vs_rest(LABELS, TABLE, label, sample_weight=[1, 2, 3, 4])
        direct = cb.Forecasts(label == LABELS, TABLE[:, label], sample_weight=[1, 2, 3, 4])
        for other in (f, single):
            assert other.values.tolist() == direct.values.tolist()
            assert other.outcomes.tolist() == direct.outcomes.tolist()
    assert sum(cb.calibration_in_the_large(f) for f in every.values()) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(
    ("labels", "table", "options", "message"),
    [
        (LABELS, TABLE[:, 0], {}, "a column for each class"),
        (LABELS, TABLE[:, :1], {}, "a column for each class"),
        (LABELS, TABLE * 2, {}, r"in \[0, 1\]"),
        (LABELS, TABLE / 2, {}, "sum to 1"),
        (LABELS, np.where(TABLE == 0.7, np.nan, TABLE), {}, "must not be missing"),
        (LABELS[:3], TABLE, {}, "one class label per row"),
        ([0, 1, 2, 3], TABLE, {}, "must be one of the classes 0, 1, 2"),
        (LABELS, TABLE, {"classes": "ab"}, "name each column"),
        (LABELS, TABLE, {"classes": "aab"}, "name each column"),
        ([], np.empty((0, 3)), {}, "empty"),
    ],
)
def test_bad_input_is_refused(labels, table, options, message):
    for reduce in (cb.top_label, cb.class_wise):
        with pytest.raises(cb.CalibrantError, match=message):
            reduce(labels, table, **options)


def test_an_unknown_class_is_refused():
    with pytest.raises(cb.CalibrantError, match="label must be one of"):
        cb.one_vs_rest(LABELS, TABLE, 7)


def test_softmax_outputs_of_a_network(shared_data):
    import pyarrow.parquet as pq

    data = pq.read_table(shared_data / "softmax_lenet5_cifar10.parquet").to_pandas()
    table, labels = data[[f"p{k}" for k in range(10)]].to_numpy(), data["label"].to_numpy()
    f = cb.top_label(labels, table)
    assert f.n == len(data)
    assert f.base_rate == pytest.approx(np.mean(table.argmax(axis=1) == labels))
    every = cb.class_wise(labels, table)
    assert sum(g.base_rate for g in every.values()) == pytest.approx(1)


SIX = [[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6]] * 2


def test_the_columns_of_a_frame_name_the_classes():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    named = cb.class_wise(list("abc") * 2, SIX, classes="abc")
    for frame in (pd.DataFrame(SIX, columns=list("abc")), pl.DataFrame(SIX, list("abc"), orient="row")):
        found = cb.class_wise(list("abc") * 2, frame)
        assert list(found) == ["a", "b", "c"]
        assert [found[k].base_rate for k in "abc"] == [named[k].base_rate for k in "abc"]
        assert cb.top_label([0, 1, 2] * 2, frame).base_rate == 1.0  # numbers of the columns serve as well
    nullable = pd.DataFrame(SIX, columns=list("abc")).astype("Float64")
    nullable.iloc[0, 0] = pd.NA
    assert cb.top_label(list("abc") * 2, nullable, missing="drop").dropped == 1


def test_a_row_is_named_as_the_user_counts_it_and_a_missing_weight_is_dropped():
    with pytest.raises(cb.InvalidInputError, match="got 9 in row 4"):
        cb.top_label([None, 1, 2, 0, 9, 2], SIX, missing="drop")
    with pytest.raises(cb.InvalidInputError, match="in row 3"):
        cb.top_label([None, 1, 2, 0, 1, 2], [*SIX[:3], [0.5, 0.1, 0.1], *SIX[4:]], missing="drop")
    assert (
        cb.top_label([0, 1, 2] * 2, SIX, sample_weight=[np.nan, 1, 1, 1, 1, 1], missing="drop").dropped == 1
    )


@pytest.mark.parametrize(
    "change",
    [{"classes": 5}, {"classes": [[1], [2], [3]]}, {"y_true": [{}] * 6}, {"label": None}, {"label": [1]}],
)
def test_names_that_cannot_be_names_are_refused_clearly(change):
    arguments = {"y_true": [0, 1, 2] * 2, "probabilities": SIX, "label": 0}
    with pytest.raises(cb.InvalidInputError, match="must"):
        cb.one_vs_rest(**{**arguments, **change})


def test_rows_that_miss_1_by_a_thousandth_pass_in_any_order_of_columns():
    cells = [[i, j, 1001 - i - j] for i in range(1, 1001, 7) for j in range(0, 1001 - i, 13)]
    table = np.array([*cells, *([a, b, c - 2] for a, b, c in cells if c > 1)]) / 1000
    for order in itertools.permutations(range(3)):
        assert cb.top_label(np.zeros(len(table), dtype=int), table[:, order]).n == len(table)
    with pytest.raises(cb.InvalidInputError, match=r"got 1.002 in row 0 .*Hint: divide each row by its sum"):
        cb.top_label([0], [[0.5, 0.5, 0.002]])


@pytest.mark.parametrize("seed", range(10))
def test_rows_without_a_weight_are_left_out_of_the_low_degree_error(seed):
    rng = np.random.default_rng(seed)
    table, labels = rng.dirichlet(np.ones(3), 12), rng.integers(0, 3, 12)
    weight = np.where(rng.random(12) < 0.3, np.nan, rng.random(12) + 0.1)
    kept = ~np.isnan(weight)
    found = cb.class_low_degree_error(labels, table, sample_weight=weight, missing="drop")
    alone = cb.class_low_degree_error(labels[kept], table[kept], sample_weight=weight[kept])
    assert found == pytest.approx(alone, rel=1e-12)
    with pytest.raises(cb.CalibrantError, match="sample_weight must not be missing"):
        cb.class_low_degree_error(labels, table, sample_weight=np.append(weight[1:], np.nan))
    with pytest.raises(cb.CalibrantError, match="sample_weight and probabilities must have the same length"):
        cb.class_low_degree_error(labels, table, sample_weight=weight[1:])


def test_low_degree_error_of_huge_weights():
    found = cb.class_low_degree_error([0, 1], [[0.5, 0.5], [0.2, 0.8]], sample_weight=[1e308, 1e308])
    assert found == pytest.approx(0.15)
    assert found == pytest.approx(cb.low_degree_error([0, 1], [0.5, 0.8], degree=1))
