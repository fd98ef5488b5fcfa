"""Errors on the command line name the line of the file."""

from __future__ import annotations

import pytest

from calibrant.cli.main import with_line

SAID = "column 'p' must lie in [0, 1]; got 1.7 in row 1 (1 row). Hint: divide."


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
    told = with_line(SAID, ["evaluate", str(path), "-y", "y"])
    assert told == SAID.replace("(1 row)", f"(1 row), line {line} of rows.csv")


def test_a_state_is_no_file_of_rows(tmp_path):
    path, state = tmp_path / "rows.csv", tmp_path / "monitor.json"
    path.write_text("y,p\n0,0.2\n1,1.7\n")
    state.write_text("{}")
    told = with_line(SAID, ["monitor", str(path), "--state", str(state)])
    assert told == SAID.replace("(1 row)", "(1 row), line 3 of rows.csv")


@pytest.mark.parametrize("name", ["rows.csv", "it's.csv"])
def test_a_file_that_the_message_names_is_looked_into(tmp_path, name):
    path = tmp_path / name
    path.write_text("y,p\n0,0.2\n\n1,1.7\n")
    said = f"got 1.7 in row 1 of {str(path)!r} (1 row). Hint: divide."
    told = with_line(said, ["sketch", str(tmp_path / "*.csv")])
    assert told == said.replace(" (1 row)", ", line 4 (1 row)")


def test_nothing_is_added_where_the_line_is_not_known(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("y,p\n0,0.2\n")
    assert with_line(SAID, [str(path)]) == SAID
    assert with_line(SAID, [str(path), str(path)]) == SAID
    assert with_line(SAID, ["rows.parquet"]) == SAID
    path.write_text("y,p\n0,0.2\n1,1.7\n")
    other = tmp_path / "rows.parquet"
    other.touch()
    assert with_line(SAID, [str(other), "--output", str(path)]) == SAID  # the line of another file
    assert with_line(SAID, ["-", "--output", str(path)]) == SAID
    assert with_line("no such file", [str(path)]) == "no such file"
