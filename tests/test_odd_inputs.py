"""Odd values that once passed as numbers or raised raw errors: refused by name, or read as missing."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from cli.typed import calibrant

from calibrant import Sketch, brier_score, recalibrate
from calibrant.errors import InvalidInputError
from calibrant.io.read import read_columns


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (b"0.5", "got the bytes b'0.5' in row 1"),
        (Decimal("sNaN"), "must not be missing"),
        (10**5000, "must fit into a float64"),
        ("0_1", "got the text '0_1'"),
    ],
    ids=["bytes", "signaling NaN", "huge", "underscore"],
)
def test_values_of_object_arrays(value, words):
    p = np.array([0.5, value], dtype=object)
    with pytest.raises(InvalidInputError, match=words):
        brier_score([0, 1], p)


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
