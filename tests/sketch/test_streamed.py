"""Rows streamed into a table of cells: the same cells as DuckDB's group-by gives, whatever the columns."""

from __future__ import annotations

import datetime

import numpy as np
import pytest

from calibrant import InvalidInputError, Sketch
from calibrant.sketch import cells, stream

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

COLUMNS = {
    "whole": [3, 1, 2],
    "text": ["b", "a", None],
    "truth": [True, False, None],
    "float": [0.5, 2.0, float("nan")],
    "moment": [datetime.datetime(2024, 1, 31), datetime.datetime(2024, 1, 31, 12, 30), None],
    "day": [datetime.date(2024, 1, 31), datetime.date(2023, 1, 1), None],
}


def table_of(n, seed=0):
    rng = np.random.default_rng(seed)
    p = np.round(rng.random(n), 3)
    columns = {name: [values[k] for k in rng.integers(0, 3, n)] for name, values in COLUMNS.items()}
    return pa.table({"p": p, "y": (rng.random(n) < p).astype(np.int8), **columns})


def both_ways(path, monkeypatch, **options):
    """Sketch a file by DuckDB's group-by, then by streaming, few rows at a time so that many parts join."""
    how = {"outcome": "y", "prediction": "p", "cells": 64, **options}
    grouped = Sketch.from_file(path, **how)
    seen = []

    def spied(*args):
        seen.append(streamed_cells(*args))
        return seen[-1]

    streamed_cells = stream.streamed_cells
    monkeypatch.setattr("calibrant.sketch.stream.streamed_cells", spied)
    monkeypatch.setattr(cells, "MIN_STREAMED_ROWS", 1)
    monkeypatch.setattr(stream, "ROWS_ADDED_AT_ONCE", 300)
    monkeypatch.setattr(stream, "MAX_BATCH_ROWS", 100)
    return grouped, Sketch.from_file(path, **how), seen[0] is not None


def assert_same(one, other):
    assert one.contents.labels == other.contents.labels
    assert one.rejects == other.rejects
    for name in ("keys", "counts", "low", "high"):
        assert np.array_equal(getattr(one.contents.table, name), getattr(other.contents.table, name)), name
    np.testing.assert_allclose(one.contents.table.sums, other.contents.table.sums, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("by", [*COLUMNS, ["whole", "text"], ["day", "truth", "float"]], ids=str)
def test_the_same_cells_by_any_columns(by, tmp_path, monkeypatch):
    path = tmp_path / "rows.parquet"
    pq.write_table(table_of(2_000), path, row_group_size=170)
    grouped, stream, used = both_ways(path, monkeypatch, by=by)
    assert used
    assert_same(grouped, stream)


def test_the_same_cells_of_a_text_file(tmp_path, monkeypatch):
    path = tmp_path / "rows.csv"
    path.write_text("y,p,g\n" + "".join(f"{k % 2},{k % 11 / 10},00{k % 3}\n" for k in range(900)))
    grouped, stream, used = both_ways(path, monkeypatch, by="g")
    assert used
    assert_same(grouped, stream)


def test_bad_rows_are_counted_and_refused_alike(tmp_path, monkeypatch):
    p = [0.5, None, float("nan"), 1.5, -0.1, 0.25, float("inf"), None, -0.0, 1.0]
    y = [1.0, 1.0, 0.0, 1.0, None, 2.0, -1.0, None, 0.0, 0.5]
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"p": p, "y": y, "g": list("ababababab")}), path)
    how = {"missing": "drop", "invalid": "drop", "by": "g"}
    grouped, stream, used = both_ways(path, monkeypatch, **how)
    assert used
    assert_same(grouped, stream)
    assert stream.dropped == 7
    with pytest.raises(InvalidInputError, match="missing"):
        Sketch.from_file(path, outcome="y", prediction="p", by="g")


def test_too_many_groups_are_left_to_the_group_by(tmp_path, monkeypatch):
    path = tmp_path / "rows.parquet"
    pq.write_table(table_of(2_000).append_column("k", pa.array(range(2_000))), path)
    monkeypatch.setattr(cells, "MAX_DENSE_CELLS", 10_000)
    grouped, stream, used = both_ways(path, monkeypatch, by="k")
    assert not used
    assert_same(grouped, stream)


@pytest.mark.parametrize("how", [{"weight": "whole", "by": "text"}, {}], ids=["weighted", "one group"])
def test_weights_and_single_groups_are_left_to_the_group_by(how, tmp_path, monkeypatch):
    path = tmp_path / "rows.parquet"
    pq.write_table(table_of(500), path)
    grouped, stream, used = both_ways(path, monkeypatch, **how)
    assert not used
    assert_same(grouped, stream)


def test_a_damaged_file_is_refused_in_words(tmp_path, monkeypatch):
    path = tmp_path / "rows.csv"
    path.write_text("y,p,g\n" + "0,0.5,a\n" * 50 + "1,half,b\n")
    monkeypatch.setattr(cells, "MIN_STREAMED_ROWS", 1)
    with pytest.raises(InvalidInputError, match="half"):
        Sketch.from_file(path, outcome="y", prediction="p", by="g")


def test_progress_ends_at_the_whole(tmp_path, monkeypatch):
    path = tmp_path / "rows.parquet"
    pq.write_table(table_of(2_000), path, row_group_size=500)
    monkeypatch.setattr(cells, "MIN_STREAMED_ROWS", 1)
    shares = []
    Sketch.from_file(path, outcome="y", prediction="p", by="text", progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
