"""Several classes: the names and the order of their columns, gaps, and options that mean nothing there."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import calibrant as cb
from calibrant.files import CHECKSUM, checksum_of
from recalibration.laws import fit
from recalibration.several_classes import SEVERAL, overconfident


def test_errors_name_the_column_of_a_frame():
    labels, table = overconfident(30)
    frame = pd.DataFrame(table, columns=["cat", "dog", "owl"])
    good = fit(labels, frame, method="temperature")
    for value, said in [
        (1.7, r"column 'dog' must lie in \[0, 1\]; got 1.7 in row 4 \(1 row\)"),
        (np.nan, r"column 'dog' must not be missing; got nan in row 4 \(1 row\)"),
        (1.0, "columns 'cat', 'dog' and 'owl' must sum to 1 in each row; got .* in row 4"),
    ]:
        frame.loc[4, "dog"] = value
        for call in (
            lambda: fit(labels, frame),
            lambda: cb.class_table(labels, frame),
            lambda: good.predict(frame),
        ):
            with pytest.raises(cb.CalibrantError, match=said):
                call()
    frame["dog"] = frame["dog"].astype(object)
    frame.loc[4, "dog"] = "x"
    with pytest.raises(cb.CalibrantError, match="column 'dog' must be numeric"):
        fit(labels, frame)


@pytest.mark.parametrize("classes", [None, ["p_cat", "p_dog", "p_owl"]])
def test_the_hint_on_classes_names_the_labels(classes):
    labels, table = overconfident(30)
    words = np.array(["cat", "dog", "owl"])[labels]
    said = "in their order with classes=, by the labels: 'cat', 'dog' and 'owl'"
    for call in (fit, cb.class_table):
        with pytest.raises(cb.CalibrantError, match=said):
            call(words, table, classes=classes)
        call(words, table, classes=["cat", "dog", "owl"])
        with pytest.raises(cb.CalibrantError, match="there are 4 labels and 3 columns"):
            call(["fox", *words[1:]], table, classes=["cat", "dog", "owl"])


def test_names_of_classes_and_bad_tables():
    labels, table = overconfident(100, classes=3)
    named = np.array(["a", "b", "c"])[labels]
    one = fit(named, table, classes="abc", method="temperature").predict(table)
    assert one.tolist() == fit(labels, table, method="temperature").predict(table).tolist()
    with pytest.raises(cb.CalibrantError, match="must be one of the classes"):
        fit(named, table, method="temperature")
    with pytest.raises(cb.CalibrantError, match="takes two classes only"):
        fit(labels, table, method="platt")
    with pytest.raises(cb.CalibrantError, match="must sum to 1"):
        fit(labels, table * 0.9, method="temperature")
    with pytest.raises(cb.CalibrantError, match="must have 3 columns"):
        fit(labels, table, method="temperature").predict([[0.5, 0.5]])
    with pytest.raises(cb.CalibrantError, match="needs probabilities of several classes"):
        fit([0, 1], [0.2, 0.8], method="vector")
    with pytest.warns(cb.RecalibrationWarning, match="Columns 2 never occur"):
        cb.recalibrate(labels[labels < 2], table[labels < 2], method="temperature")


def with_gaps(table, labels):
    """Return table, labels and weights with a gap in rows 3, 5 and 8."""
    table, labels, w = table.copy(), labels.astype(float), np.ones(len(labels))
    table[3, 1] = labels[5] = w[8] = np.nan
    return labels, table, w, ~np.isin(np.arange(len(labels)), [3, 5, 8])


def test_rows_with_a_gap_are_dropped_on_request_and_counted():
    labels, table, w, kept = with_gaps(*overconfident(100)[::-1])
    found = fit(labels, table, sample_weight=w, method="temperature", missing="drop")
    other = fit(labels[kept], table[kept], method="temperature")
    assert found.fit.n == 97
    assert found.details["dropped"] == 3
    assert "dropped" not in other.details
    assert found.map.matrix.tolist() == other.map.matrix.tolist()
    named = np.array(["a", "b", "c", None], dtype=object)[np.where(np.isnan(labels), 3, labels).astype(int)]
    text = fit(named, table, sample_weight=w, method="temperature", missing="drop", classes="abc")
    assert text.map.matrix.tolist() == other.map.matrix.tolist()
    columns = {"y": labels, "w": w} | {f"p{k}": table[:, k] for k in range(3)}
    framed = cb.recalibrate(
        columns, outcome="y", prediction=["p0", "p1", "p2"], weight="w", method="temperature", missing="drop"
    )
    assert framed.map.matrix.tolist() == other.map.matrix.tolist()


@pytest.mark.parametrize(
    ("gap", "message"),
    [
        ("y_prob", r"y_prob must not be missing; got .*nan.* in row 3 \(1 row\).*missing=\"drop\""),
        ("y_true", r"y_true must not be missing; got nan in row 5 \(1 row\).*missing=\"drop\""),
        ("sample_weight", r"sample_weight must not be missing; got nan in row 8 \(1 row\).*missing=\"drop\""),
    ],
)
def test_a_gap_is_named_by_its_row(gap, message):
    labels, table = overconfident(100)
    given = {"y_true": labels, "y_prob": table, "sample_weight": np.ones(100)}
    gaps = dict(zip(given, with_gaps(table, labels)[:3], strict=True))
    with pytest.raises(cb.InvalidInputError, match=message):
        cb.recalibrate(**{**given, gap: gaps[gap]}, method="temperature")


def test_rows_are_counted_as_the_user_counts_them_where_others_are_dropped():
    labels, table, *_ = with_gaps(*overconfident(100)[::-1])
    table[20] = 0.9
    with pytest.raises(cb.InvalidInputError, match=r"must sum to 1 in each row; got .* in row 20"):
        cb.recalibrate(labels, table, missing="drop")
    table[20] = np.nan
    labels[21] = 7
    with pytest.raises(cb.InvalidInputError, match=r"must be one of the classes 0, 1, 2; got 7 in row 21"):
        cb.recalibrate(labels, table, missing="drop")
    with pytest.raises(cb.InvalidInputError, match="must have a row without missing values"):
        cb.recalibrate(labels, np.full_like(table, np.nan), missing="drop")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"missing": "bogus"}, "missing must be one of error, drop; got 'bogus'"),
        ({"pos_label": 1}, r"pos_label must be given for predictions of two classes alone.*classes="),
        ({"prevalence": 0.3}, "prevalence must be given for predictions of two classes alone"),
        ({"clusters": np.arange(100)}, "clusters must be given for predictions of two classes alone"),
        ({"groups": [cb.Rule(())]}, "groups must be given for predictions of two classes alone"),
    ],
)
def test_options_that_mean_nothing_for_several_classes_are_refused_by_name(options, message):
    with pytest.raises(cb.CalibrantError, match=message):
        cb.recalibrate(*overconfident(100), method="temperature", **options)


@pytest.mark.parametrize("method", SEVERAL)
def test_the_order_of_named_columns_does_not_matter(method):
    names, order = np.array(["owl", "cat", "dog", "ape"]), [2, 0, 3, 1]
    for seed in range(4):  # the folds that choose a penalty are the same, too
        labels, table = overconfident(60, classes=4, seed=seed, temperature=1.0)
        one = fit(names[labels], table, method=method, classes=names)
        other = fit(names[labels], table[:, order], method=method, classes=names[order])
        assert other.predict(table[:, order]) == pytest.approx(one.predict(table)[:, order], abs=1e-5)


def test_a_frame_names_its_classes_and_keeps_their_order(tmp_path):
    labels, table = overconfident(150)
    names = np.array(["cat", "dog", "owl"])
    frame = pd.DataFrame(table, columns=names)
    found = fit(names[labels], frame, method="vector")
    expected = fit(names[labels], table, method="vector", classes=names).predict(table)
    whole = frame.assign(seen=names[labels])
    extra = cb.recalibrate(whole, outcome="seen", prediction=list(names), method="vector", seed=0)
    assert found.predict(frame).tobytes() == expected.tobytes() == extra.predict(table).tobytes()
    found.save(tmp_path / "map.json")
    for one in (found, extra, cb.load_recalibration(tmp_path / "map.json")):
        assert one.classes == tuple(names)
        message = "must be in the order of the fit, 'cat', 'dog' and 'owl'; got 'owl', 'cat' and 'dog'"
        with pytest.raises(cb.InvalidInputError, match=message):
            one.predict(frame[["owl", "cat", "dog"]])
        with pytest.raises(cb.InvalidInputError, match="columns must be in the order of the fit"):
            one.to_sql(["owl", "cat", "dog"])
        other_names = frame.rename(columns=lambda name: f"p_{name}")
        assert one.predict(other_names).tobytes() == expected.tobytes()


def test_numbers_of_columns_are_names_too():
    labels, table = overconfident(60)
    numbered = fit(labels, pd.DataFrame(table), method="temperature")
    assert numbered.classes == ("0", "1", "2")
    with pytest.raises(cb.InvalidInputError, match="must be in the order of the fit"):
        numbered.predict(pd.DataFrame(table)[[2, 0, 1]])
    plain = fit(labels, table, method="temperature")
    assert plain.classes == ()
    assert np.array_equal(plain.predict(pd.DataFrame(table, columns=[1, 2, 3])), plain.predict(table))
    assert (
        fit(
            np.array([1, "1", 2], dtype=object)[labels], table, classes=[1, "1", 2], method="temperature"
        ).classes
        == ()
    )


def test_stored_names_of_classes_are_checked():
    labels, table = overconfident(60)
    stored = fit(labels, table, method="temperature").to_dict()
    nameless = {k: v for k, v in stored.items() if k != "classes"}
    with pytest.raises(cb.UnreadableFileError, match="must be as it was written; got another checksum"):
        cb.Recalibration.from_dict(nameless)
    assert cb.Recalibration.from_dict({**nameless, CHECKSUM: checksum_of(nameless)}).classes == ()
    for names in ("abc", ["a", "b"], ["a", "a", "b"], [1, 2, 3]):
        edited = {**stored, "classes": names}
        with pytest.raises(cb.CalibrantError, match="'classes'"):
            cb.Recalibration.from_dict({**edited, CHECKSUM: checksum_of(edited)})
