"""Limits on memory: groups, unpacked sketches, and the number of rows that are measured exactly."""

from __future__ import annotations

import json

import duckdb
import pandas as pd
import pytest
from cli.typed import calibrant

from calibrant import Sketch
from calibrant.errors import InvalidInputError, UnreadableFileError
from calibrant.io import read
from calibrant.sketch import storage

COLUMNS = {"outcome": "y", "prediction": "p"}


@pytest.fixture
def rows(tmp_path):
    path = tmp_path / "rows.parquet"
    query = "SELECT range % 2 AS y, (range % 100) / 100 AS p, range AS id, range % 3 AS g FROM range(5000)"
    duckdb.sql(f"COPY ({query}) TO '{path}' (FORMAT parquet)")
    return path


def test_too_many_groups_are_refused_by_the_column_that_has_them(rows):
    with pytest.raises(
        InvalidInputError, match=r"column 'id' must have at most 1,000 groups; got .*max-groups"
    ):
        Sketch.from_file(rows, **COLUMNS, by=["g", "id"], max_groups=1000)
    with pytest.raises(InvalidInputError, match=r"columns 'g', 'id' must have at most 1,000 groups"):
        Sketch.from_frame(pd.read_parquet(rows), **COLUMNS, by=["g", "id"], max_groups=1000)
    assert len(Sketch.from_file(rows, **COLUMNS, by="g", max_groups=3).groups) == 3
    assert len(Sketch.from_file(rows, **COLUMNS, by="id").groups) == 5000


def test_the_command_has_the_limit_too(rows, tmp_path):
    words = ["sketch", rows, "-y", "y", "-p", "p", "--by", "id", "-o", tmp_path / "x.sketch"]
    ended = calibrant(*words, "--max-groups", 10)
    assert ended.returncode == 2
    assert "column 'id' must have at most 10 groups" in ended.stderr
    assert calibrant(*words).returncode == 0


HEADER = {"version": 2, "cells": 64, "by": [], "labels": [[]], "checksum": "0"}


def parquet_bomb(path, rows, columns=storage.SUMS, **about):
    """Write a small Parquet file that says it is a sketch, and has many rows."""
    names = ["group", "cell", "count", *columns, "low", "high"]
    cells = ", ".join(f'0.0 AS "{name}"' for name in names)
    header = json.dumps(HEADER | about)
    options = f"FORMAT parquet, KV_METADATA {{calibrant_sketch: '{header}'}}"
    duckdb.sql(f"COPY (SELECT {cells} FROM range({rows})) TO '{path}' ({options})")


@pytest.mark.parametrize(
    ("rows", "about", "columns", "message"),
    [
        (30_000, {"cells": 65_536}, storage.SUMS, "bytes after unpacking"),
        (30_000, {}, storage.SUMS, "more rows than its groups have cells"),
        (10, {}, ("w", "more"), "columns that a sketch does not have"),
        (10, {}, storage.SUMS, "a checksum that does not fit"),
        (10, {"labels": [["a"]]}, storage.SUMS, "got the label"),
    ],
)
def test_a_sketch_is_checked_before_its_cells_are_loaded(
    rows, about, columns, message, tmp_path, monkeypatch
):
    monkeypatch.setattr(storage, "MAX_UNPACKED_BYTES", 2**20)
    monkeypatch.setattr(storage, "_rebuilt", lambda *_: pytest.fail("the cells were loaded"))
    path = tmp_path / "bomb.parquet"
    parquet_bomb(path, rows, columns, **about)
    assert path.stat().st_size < 2**18
    with pytest.raises(UnreadableFileError, match=message):
        Sketch.load(path)


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_the_number_of_rows_decides_between_rows_and_sketch(rows, ending, tmp_path, monkeypatch):
    file = rows
    if ending == "csv":
        file = tmp_path / "rows.csv"
        duckdb.sql(f"COPY (FROM '{rows}') TO '{file}'")
    monkeypatch.setattr(read, "MAX_EXACT_ROWS", 5001)
    assert read.fits(file)
    monkeypatch.setattr(read, "MAX_EXACT_ROWS", 4999)
    assert not read.fits(file)


def test_groups_of_a_file_above_the_limit_are_audited_from_a_sketch(rows, monkeypatch):
    exact = calibrant("evaluate", rows, "-y", "y", "-p", "p", "--groups", "g", "--json")
    monkeypatch.setattr(read, "MAX_EXACT_ROWS", 4999)
    sketched = calibrant("evaluate", rows, "-y", "y", "-p", "p", "--groups", "g", "--json")
    assert (exact.returncode, sketched.returncode) == (0, 0)
    assert "measured from a sketch" in sketched.stderr
    first, second = (
        {one["rule"]: one["mean_outcome"] for one in json.loads(run.stdout)["groups"]["groups"]}
        for run in (exact, sketched)
    )
    assert first.keys() == second.keys()
    assert all(second[rule] == pytest.approx(value, abs=1e-12) for rule, value in first.items())


HOLDING = {  # commands that hold rows, and the share of the limit up to which they do
    "stream": (("-y", "y", "-p", "p"), 2),
    "compare": (("-y", "y", "-p", "p", "-p", "q"), 2),
    "abstain": (("-y", "y", "-p", "p", "--risk", "0.2"), 1),
    "classes": (("-y", "y", "-p", "q", "-p", "p", "--labels", "0,1"), 4),
    "distinguish": (("-y", "y", "-p", "p", "--covariates", "g"), 4),
    "distributions": (("-y", "id", "--members", "p,q,g"), 2),
    "evaluate": (("--time", "id", "--event", "y", "--horizon", "9", "-p", "p"), 4),
}


@pytest.mark.parametrize("command", HOLDING)
def test_commands_that_hold_rows_refuse_more_than_two_gigabytes_of_them(command, tmp_path, monkeypatch):
    from click.testing import CliRunner

    from calibrant.cli import rows as cli_rows
    from calibrant.cli.main import calibrant as commands

    words, shares = HOLDING[command]
    file = tmp_path / "rows.parquet"
    query = "SELECT range % 2 AS y, (range % 10) / 10 AS p, 1 - p AS q, range AS id, range % 3 AS g"
    duckdb.sql(f"COPY ({query} FROM range(40)) TO '{file}' (FORMAT parquet)")
    for module in (read, cli_rows):
        monkeypatch.setattr(module, "MAX_EXACT_ROWS", 40 * shares - 1)
    refused = CliRunner().invoke(commands, [command, str(file), *words])
    assert isinstance(refused.exception, InvalidInputError)
    assert f"at most {(40 * shares - 1) // shares:,} rows" in str(refused.exception)
    assert "--state" in str(refused.exception) if command == "stream" else "sample" in str(refused.exception)
    for module in (read, cli_rows):
        monkeypatch.setattr(module, "MAX_EXACT_ROWS", 40 * shares)
    taken = CliRunner().invoke(commands, [command, str(file), *words])
    assert "rows for this command" not in str(taken.exception)


@pytest.mark.parametrize("option", ["--covariates", "--clusters"])
def test_what_needs_single_rows_says_how_many_may_be_given(rows, option, tmp_path):
    Sketch.from_file(rows, **COLUMNS).save(tmp_path / "rows.sketch")
    ended = calibrant("recalibrate", tmp_path / "rows.sketch", option, "g")
    assert ended.returncode == 2
    assert "at most 10,000,000 rows, such as a sample" in ended.stderr
