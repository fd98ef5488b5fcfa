"""Errors on the command line name the line of the file, and options as they are typed."""

from __future__ import annotations

import pickle

import click
import pytest
from typed import calibrant

from calibrant import errors
from calibrant.cli.main import error_text
from calibrant.cli.options import ORIGINAL_FILES
from calibrant.errors import DROP_MISSING, Hint, InvalidInputError, Place

SAID = "column 'p' must lie in [0, 1]; got 1.7 in row 1 (1 row). Hint: divide."
ERROR = InvalidInputError("column 'p'", "must lie in [0, 1]", "got 1.7", "divide", Place(1, 1))


def worded(error, *files):
    return error_text(error, None, {ORIGINAL_FILES: [str(file) for file in files]})


def test_an_error_has_its_parts_as_attributes():
    made = InvalidInputError("y_prob", "must not be missing", "got nan", DROP_MISSING, Place(17, 4))
    for error in (made, pickle.loads(pickle.dumps(made))):
        assert (error.subject, error.rule, error.got) == ("y_prob", "must not be missing", "got nan")
        assert (error.row, error.option) == (17, ("missing", "drop"))
        assert error.hint == 'pass missing="drop" to leave such rows out and have them counted'
        assert str(error).startswith("y_prob must not be missing; got nan in row 17 (4 rows). Hint: pass")
    plain = errors.UnknownNameError("no parts")
    assert (str(plain), plain.subject, plain.row, plain.option) == ("no parts", "", None, None)
    assert worded(plain) == "no parts"
    swapped = made.with_parts(subject="column 'p'")
    assert str(swapped) == str(made).replace("y_prob", "column 'p'")


def test_a_hint_is_worded_with_options_of_the_command():
    has = click.Command("x", params=[click.Option(["--missing"])])
    error = InvalidInputError("y", "must not be missing", "got nan", DROP_MISSING)
    assert "Hint: pass --missing drop to leave" in error_text(error, has, {})
    assert 'Hint: pass missing="drop" in Python to' in error_text(error, click.Command("x"), {})
    odd = Hint("pass {} if '{}' counts as 1", pos_label="{}")
    assert str(odd) == """pass pos_label="{}" if '{}' counts as 1"""


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("y,p\n0,0.2\n1,1.7\n", 3),
        ("y,p\r\n0,0.2\r\n1,1.7\r\n", 3),
        ("y,p\n\n0,0.2\n\n1,1.7\n", 5),
        ('y,p,t\n0,0.2,"two\nlines"\n1,1.7,x\n', 4),
        ('y;p;t\n0;0.2;"two\nlines"\n1;1.7;x\n', 4),
    ],
)
def test_the_line_of_a_row_is_named(tmp_path, content, line):
    path = tmp_path / "rows.csv"
    path.write_bytes(content.encode())
    expected = SAID.replace("(1 row)", f"(1 row), line {line} of rows.csv")
    assert worded(ERROR, path) == expected
    reported = calibrant("evaluate", path, "-y", "y", "-p", "p").stderr
    assert expected.partition(" Hint")[0] in reported


def test_a_state_is_not_a_file_of_rows(tmp_path):
    path, state = tmp_path / "rows.csv", tmp_path / "monitor.json"
    path.write_text("y,p\n0,0.2\n1,1.7\n")
    reported = calibrant("monitor", path, "-y", "y", "-p", "p", "--state", state).stderr
    assert "(1 row), line 3 of rows.csv" in reported


@pytest.mark.parametrize("name", ["rows.csv", "it's.csv"])
def test_a_file_that_the_error_names_is_looked_into(tmp_path, name):
    path = tmp_path / name
    path.write_text("y,p\n0,0.2\n\n1,1.7\n")
    error = InvalidInputError("column 'p'", "must", "got 1.7", "divide", Place(1, 1, str(path)))
    assert worded(error) == str(error).replace(" (1 row)", ", line 4 (1 row)")


def test_nothing_is_added_where_the_line_is_not_known(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("y,p\n0,0.2\n")
    assert worded(ERROR, path) == SAID
    assert worded(ERROR, path, path) == SAID
    assert worded(ERROR, "rows.parquet") == SAID
    path.write_text("y,p\n0,0.2\n1,1.7\n")
    assert worded(ERROR) == SAID
