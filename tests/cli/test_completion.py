"""The shell completes commands, options, files, columns, methods and measures."""

from __future__ import annotations

import polars as pl
import pytest
from click.shell_completion import BashComplete

from calibrant.cli.main import calibrant


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    frame = pl.DataFrame({"default": [0, 1], "p": [0.1, 0.9], "age": [30, 40], "area": ["n", "s"]})
    frame.write_csv(tmp_path / "loans.csv")
    frame.rename({"age": "years"}).write_parquet(tmp_path / "loans.parquet")
    (tmp_path / "broken.csv").write_bytes(b"\xff\xfe\x00\x00")
    monkeypatch.chdir(tmp_path)


def offered(line: str) -> list[str]:
    """Return what is offered for the last word of a line."""
    *words, last = line.split(" ")
    completer = BashComplete(calibrant, {}, "calibrant", "_CALIBRANT_COMPLETE")
    return [item.value for item in completer.get_completions(words[1:], last)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("calibrant evalu", ["evaluate"]),
        ("calibrant evaluate loans.csv --outcome d", ["default"]),
        ("calibrant evaluate loans.csv -y default -p p --groups a", ["age", "area"]),
        ("calibrant evaluate loans.csv -y default -p p --groups age,a", ["age,area"]),
        ("calibrant audit loans.parquet --covariates y", ["years"]),
        ("calibrant sketch loans.csv --by ar", ["area"]),
        ("calibrant evaluate loans.csv loans.parquet --weight ", ["default", "p", "age", "area", "years"]),
        ("calibrant evaluate --measures smooth,ku", ["smooth,kuiper"]),
        ("calibrant compare loans.csv --measure bri", ["brier", "brier-mcb"]),
        ("calibrant check loans.csv --max smo", ["smooth="]),
        ("calibrant recalibrate loans.csv --method cent", ["centered-isotonic"]),
        ("calibrant recalibrate loans.csv -m aut", ["auto"]),
        ("calibrant evaluate loans.csv --format ma", ["markdown"]),
        ("calibrant evaluate nothing.csv --outcome d", []),
        ("calibrant evaluate broken.csv --outcome d", []),
    ],
)
def test_a_word_is_completed(line, expected):
    assert offered(line) == expected


def test_files_are_left_to_the_shell():
    completer = BashComplete(calibrant, {}, "calibrant", "_CALIBRANT_COMPLETE")
    assert [item.type for item in completer.get_completions(["evaluate"], "lo")] == ["file"]


def test_nothing_is_read_or_copied_while_a_word_is_completed(monkeypatch):
    monkeypatch.setattr("calibrant.cli.reading.copied_table", None)
    assert offered("calibrant evaluate - rows.duckdb --table t --fo") == ["--format"]
