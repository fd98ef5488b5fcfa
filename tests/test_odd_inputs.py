"""Odd values that once passed as numbers or raised raw errors: refused by name, or read as missing."""

from __future__ import annotations

import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from cli.typed import calibrant
from read_files import read_columns

import calibrant as cb
from calibrant import Sketch, brier_score, recalibrate
from calibrant.errors import InvalidInputError, Place, SwappedArgumentsWarning, sentence


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (b"0.5", "got the bytes b'0.5' in row 1"),
        (Decimal("sNaN"), "must not be missing"),
        (10**5000, "must fit into a float64"),
        (Fraction(10**400, 3), "must fit into a float64"),
        ("0_1", "got the text '0_1'"),
    ],
    ids=["bytes", "signaling NaN", "huge", "fraction", "underscore"],
)
def test_values_of_object_arrays(value, words):
    p = np.array([0.5, value], dtype=object)
    with pytest.raises(InvalidInputError, match=words):
        brier_score([0, 1], p)


def test_huge_options_are_not_written_out():
    with pytest.raises(
        InvalidInputError, match=r"draws must be a whole number .*got a whole number of 401 digits"
    ):
        cb.calibration_test([0, 1], [0.2, 0.6], draws=10**400)
    with pytest.raises(InvalidInputError, match=r"alpha must .*got a whole number of 401 digits"):
        cb.required_samples(0.1, alpha=10**400)


def test_a_pair_of_arrays_is_not_taken_for_forecasts():
    with pytest.raises(InvalidInputError, match=r"y_prob must be given; got None. Hint: call it with"):
        cb.measure(([0, 1], [0.2, 0.6]), "kuiper")


def test_an_empty_batch_has_no_predictions():
    assert recalibrate([0, 1, 0, 1], [0.2, 0.4, 0.6, 0.8], method="platt").predict([]).shape == (0,)


def test_swapped_arguments_warn_once():
    rng = np.random.default_rng(0)
    p = rng.random(200)
    y = (rng.random(200) < p).astype(float)
    for call in (lambda: cb.compare(p, {"a": y, "b": 1 - y}, draws=20), lambda: cb.evaluate(p, y, draws=20)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
        assert [one.category for one in caught].count(SwappedArgumentsWarning) == 1


def test_hints_of_labels_work_where_they_are_given():
    y, p = ["no", "yes"] * 20, np.linspace(0, 1, 40)
    with pytest.raises(InvalidInputError) as refused:
        cb.evaluate(y, p)
    assert refused.value.option == ("pos_label", "yes")
    assert "if 'yes' counts as 1 and 'no' as 0" in refused.value.hint
    assert cb.evaluate(y, p, pos_label="yes", draws=20).verdict
    from calibrant.sklearn import Recalibrator

    with pytest.raises(InvalidInputError, match=r"Hint: pass options=\{'pos_label': 'yes'\}"):
        Recalibrator("platt").fit(p, y)
    assert Recalibrator("platt", options={"pos_label": "yes"}).fit(p, y).predict([0.5]).shape == (1,)
    with pytest.raises(InvalidInputError, match="compare"):
        cb.evaluate([0, 1] * 20, {"a": p, "b": p})


def test_negative_zero_is_zero_in_group_names():
    rng = np.random.default_rng(0)
    p = rng.random(200)
    y = (rng.random(200) < p).astype(int)
    z = np.where(p > 0.5, -0.0, 1.0)
    assert not [g for g in cb.audit(y, p, groups={"z": z}, draws=20).groups if "-0" in str(g.rule)]


def test_underscores_in_files_are_not_numbers(tmp_path):
    (tmp_path / "rows.csv").write_text("p\n0.5\n0_1\n")
    with pytest.raises(InvalidInputError, match="got the text '0_1' in row 1"):
        read_columns(tmp_path / "rows.csv", ["p"])


def test_equal_names_of_columns_are_refused_by_name():
    frame = pd.DataFrame([[0, 0.5, 0.5], [1, 0.5, 0.5]], columns=["y", "p", "p"])
    with pytest.raises(InvalidInputError, match="must have columns of different names"):
        Sketch.from_frame(frame, outcome="y", prediction="p")


def test_a_column_that_exists_is_not_overwritten():
    fitted = recalibrate([0, 1, 0, 1], [0.2, 0.4, 0.6, 0.8], method="platt")
    frame = pd.DataFrame({"p": [0.2, 0.4], "q": [1, 2]})
    with pytest.raises(InvalidInputError, match="column 'q' must not be in the frame already"):
        fitted.apply(frame, prediction="p", into="q")


@pytest.mark.parametrize(
    "words",
    [
        ("demo", "--rows", "99999999999999999999"),
        ("demo", "--rows", "0"),
        ("apply", "m.json", "x.csv", "-p", "p", "--as", "a\udcff", "-o", "y.csv"),
    ],
    ids=["many", "none", "undecodable"],
)
def test_odd_options_are_not_called_a_defect(words, tmp_path):
    ended = calibrant(*words, cwd=tmp_path)
    assert ended.returncode == 2
    assert "defect" not in ended.stderr


@pytest.mark.parametrize("measured", [cb.brier_score, cb.evaluate, cb.calibration_test, cb.recalibrate])
def test_several_models_are_pointed_to_compare(measured):
    frame = {"y": [0, 1] * 20, "a": [0.2, 0.7] * 20, "b": [0.3, 0.6] * 20}
    with pytest.raises(InvalidInputError, match=r"must be one column .*got 2 columns. Hint: compare\("):
        measured(frame["y"], {"a": frame["a"], "b": frame["b"]})


def test_several_columns_of_a_frame_are_pointed_to_compare():
    frame = {"y": [0, 1] * 20, "a": [0.2, 0.7] * 20, "b": [0.3, 0.6] * 20}
    with pytest.raises(InvalidInputError, match=r"got 2 columns. Hint: compare\("):
        cb.evaluate(frame, outcome="y", prediction=["a", "b"])


@pytest.mark.parametrize("place", [None, Place(3, 2)])
@pytest.mark.parametrize("got", ["", "got 1.", "got 'a.'", "got an ending with dots...", "got 1"])
@pytest.mark.parametrize("hint", ["", "pass one.", "pass one"])
def test_a_sentence_ends_with_one_full_stop(got, hint, place):
    text = sentence("x", "must be text", got, hint, place)
    assert ".." not in text.replace("dots...", "")
    assert text.endswith(".")
    assert text.count("Hint: ") == bool(hint)
