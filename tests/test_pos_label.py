"""Outcomes as people have them: text, categories, -1 and 1, pairs of columns; named or refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant as cb
from calibrant.inputs import label_hint, outcomes_of

RNG = np.random.default_rng(5)
P = np.round(RNG.uniform(0.05, 0.95, 200), 2)
Y = (RNG.random(200) < P).astype(int)
WORDS = np.array(["no", "yes"])[Y]
FORMS = {
    "text": (WORDS, "yes"),
    "list": (WORDS.tolist(), "yes"),
    "objects": (WORDS.astype(object), "yes"),
    "pandas": (pd.Series(WORDS), "yes"),
    "categories": (pd.Series(WORDS, dtype="category"), "yes"),
    "polars": (pl.Series(WORDS, dtype=pl.Categorical), "yes"),
    "signs": (2 * Y - 1, 1),
    "truth": (Y.astype(bool), True),
    "other numbers": (Y + 1, 2),
    "bytes": (WORDS.astype("S"), b"yes"),
    "one column": (pd.DataFrame({"label": WORDS}), "yes"),
}


@pytest.mark.parametrize("form", FORMS)
def test_pos_label_names_the_outcome_1(form):
    y, label = FORMS[form]
    assert cb.brier_score(y, P, pos_label=label) == cb.brier_score(Y, P)
    assert cb.Forecasts(y, P, pos_label=label).base_rate == cb.Forecasts(Y, P).base_rate


def test_every_function_takes_it():
    tested = cb.calibration_test(WORDS, P, pos_label="yes", draws=99, seed=1)
    assert tested == cb.calibration_test(Y, P, draws=99, seed=1)
    region = {"region": WORDS}
    found = cb.audit(WORDS, P, groups=region, pos_label="yes", draws=19, seed=1)
    assert found.to_dict() == cb.audit(Y, P, groups=region, draws=19, seed=1).to_dict()
    models = {"a": P, "b": P**2}
    compared = cb.compare(WORDS, models, pos_label="yes", draws=99, seed=1)
    assert compared == cb.compare(Y, models, draws=99, seed=1)
    fitted = cb.recalibrate(WORDS, P, pos_label="yes", method="platt")
    assert fitted.predict([0.3])[0] == cb.recalibrate(Y, P, method="platt").predict([0.3])[0]
    rows = cb.evaluate(WORDS, P, pos_label="yes", draws=19, seed=1, measures=["smooth"]).rows
    assert rows[0].value == cb.smooth_calibration_error(Y, P)
    frame = {"label": WORDS, "p": P}
    assert cb.evaluate(frame, outcome="label", prediction="p", pos_label="yes", draws=19).forecasts.n == 200


@pytest.mark.parametrize("name", list(cb.measures()))
def test_every_measure_takes_it(name):
    row = cb.measures()[name]
    options = {**row.options, **row.law_options}
    assert row.function(WORDS, P, pos_label="yes", **options) == row.function(Y, P, **options)


REFUSED = [
    (WORDS, None, 'y_true must be numeric.*pos_label="(yes|no)"'),
    (WORDS.astype(object), None, r"y_true must be numeric.*pos_label="),
    (2 * Y - 1, None, r"pos_label=1"),
    (WORDS, "Yes", r"pos_label must be one of the labels of y_true; got 'Yes' for 'no', 'yes'"),
    (np.where(P > 0.5, "maybe", WORDS), "yes", r"y_true must hold two labels.*got 3: 'maybe', 'no', 'yes'"),
    (P, 1, r"y_true must hold two labels where pos_label is given; got .*leave pos_label out"),
    (np.array(["0", "1"])[Y], 1, r"pos_label must be one of the labels of y_true; got 1 for '0', '1'"),
]


@pytest.mark.parametrize(("y", "label", "message"), REFUSED)
def test_labels_that_leave_doubt_are_refused(y, label, message):
    with pytest.raises(cb.InvalidInputError, match=message):
        cb.brier_score(y, P, pos_label=label)


def test_one_label_alone_is_enough():
    assert outcomes_of(["no", "no"], "y", "yes").tolist() == [False, False]
    assert outcomes_of(["yes"], "y", "yes").tolist() == [True]
    assert str(outcomes_of(["yes", "no", None], "y", "yes").tolist()) == "[1.0, 0.0, nan]"
    assert label_hint(["no", "yes"]) == """pass pos_label="yes" if 'yes' counts as 1 and 'no' as 0"""


def test_missing_labels_stay_missing():
    y = [*WORDS.tolist()[:-2], None, pd.NA]
    with pytest.raises(cb.InvalidInputError, match=r"y_true must not be missing.*\(2 rows\)"):
        cb.brier_score(y, P, pos_label="yes")
    assert cb.brier_score(y, P, pos_label="yes", missing="drop") == cb.brier_score(Y[:-2], P[:-2])


PAIR = np.column_stack((1 - P, P))


@pytest.mark.parametrize(
    "pair", [PAIR, pd.DataFrame(PAIR), pl.DataFrame(PAIR, schema=["0", "1"]), PAIR.tolist()]
)
def test_the_second_of_two_columns_is_that_of_outcome_1(pair):
    assert cb.brier_score(Y, pair) == cb.brier_score(Y, P)


def test_two_columns_stand_in_the_order_of_the_labels():
    assert cb.brier_score(WORDS, PAIR, pos_label="yes") == cb.brier_score(Y, P)
    assert cb.brier_score(WORDS, PAIR, pos_label="no") == cb.brier_score(1 - Y, 1 - P)
    with pytest.raises(cb.InvalidInputError, match="y_prob must be the column of pos_label"):
        cb.brier_score(["yes"] * 200, PAIR, pos_label="yes")


@pytest.mark.parametrize("column", [P[:, None], pd.DataFrame({"p": P}), pl.DataFrame({"p": P})])
def test_one_column_is_a_vector(column):
    assert cb.brier_score(Y, column) == cb.brier_score(Y, P)
    assert cb.brier_score(Y[:, None], column, sample_weight=np.ones((200, 1))) == cb.brier_score(Y, P)


def test_columns_that_are_no_pair_are_refused():
    with pytest.raises(cb.InvalidInputError, match=r"y_prob must sum to 1 in each row; got .*positive class"):
        cb.brier_score(Y, np.column_stack((P, P)))
    with pytest.raises(cb.InvalidInputError, match=r"one-dimensional; got shape \(200, 3\).*one_vs_rest"):
        cb.brier_score(Y, np.column_stack((P, P, P)))


@given(st.lists(st.sampled_from(["a", "b", None]), min_size=1, max_size=30))
@settings(max_examples=200, deadline=None)
def test_labels_agree_with_their_definition(labels):
    found = outcomes_of(labels, "y", "b").astype(float)
    expected = [np.nan if label is None else float(label == "b") for label in labels]
    np.testing.assert_array_equal(found, expected)
