"""Sketches: they add up, stream, group, keep what Forecasts keep, and survive a round trip."""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.sketch import cell_sums
from samples import samples

import calibrant as cb
from calibrant import Sketch
from calibrant.errors import InvalidInputError, UnreadableFileError, UnwritableFileError
from calibrant.sketch.cells import SUMS
from calibrant.sketch.sketch import merge

grids = st.sampled_from([1, 3, 10, 65_536])


def columns(sketch):
    table = sketch.contents.table
    return table.keys, table.counts, table.low, table.high, *table.sums


def same(a, b, rel=1e-12):
    assert (a.cells, a.by, a.contents.labels) == (b.cells, b.by, b.contents.labels)
    for x, y in zip(columns(a), columns(b), strict=True):
        np.testing.assert_allclose(x, y, rtol=rel, atol=0)


def of(sample, cells, part=slice(None)):
    w = None if sample.w is None else sample.w[part]
    return Sketch.from_arrays(sample.y[part], sample.p[part], sample_weight=w, cells=cells)


@given(sample=samples(), cells=grids)
def test_the_sums_are_those_of_a_dictionary(sample, cells):
    table = of(sample, cells).contents.table
    expected = cell_sums(sample, cells)
    assert table.keys.tolist() == sorted(expected)
    for place, key in enumerate(table.keys.tolist()):
        cell = expected[key]
        assert (table.counts[place], table.low[place], table.high[place]) == (cell.count, cell.low, cell.high)
        for name, total in zip(SUMS, table.sums[:, place], strict=True):
            assert total == pytest.approx(cell.sums[name], rel=1e-12, abs=1e-300)


@given(sample=samples(min_size=3), cells=grids, seed=st.integers(0, 99))
def test_parts_add_up_in_any_order(sample, cells, seed):
    cuts = np.sort(np.random.default_rng(seed).integers(1, len(sample.p), 2))
    parts = [part for part in np.split(np.arange(len(sample.p)), cuts) if len(part)]
    sketches = [of(sample, cells, part) for part in parts]
    whole = of(sample, cells)
    same(functools.reduce(lambda a, b: a + b, sketches), whole)
    same(sum(sketches), whole)
    same(merge(*reversed(sketches)), whole)
    a, b = sketches[0], sketches[-1]
    for x, y in zip(columns(a + b), columns(b + a), strict=True):
        assert np.array_equal(x, y)  # commutative to the last bit


@given(sample=samples(), cells=grids, size=st.integers(1, 7))
def test_a_stream_gives_the_sketch_of_the_whole(sample, cells, size):
    stream = Sketch(cells)
    for start in range(0, len(sample.p), size):
        part = slice(start, start + size)
        stream.update(sample.y[part], sample.p[part], None if sample.w is None else sample.w[part])
    same(stream, of(sample, cells))


def test_adding_does_not_change_the_parts():
    a, b = (Sketch.from_arrays([0, 1], [0.2, p]) for p in (0.3, 0.4))
    total = a + b
    a.update([1], [0.2])
    assert (a.n, b.n, total.n) == (3, 2, 4)
    frozen = a.forecasts()
    a.update([1], [0.2])
    assert frozen.n == 3


def test_a_stream_needs_constant_memory():
    rng = np.random.default_rng(0)
    stream, sizes = Sketch(1000), []
    for _ in range(30):
        p = rng.random(20_000)
        stream.update(rng.random(20_000) < p, p)
        sizes.append(stream.contents.table.sums.nbytes)
    assert sizes[-1] == sizes[1] <= 8 * 1002 * len(SUMS)
    assert stream.n == 600_000


@given(sample=samples())
def test_forecasts_of_fine_cells_equal_the_exact_ones(sample):
    cells = 2**30
    found, exact = of(sample, cells).forecasts(), sample.forecasts
    if found.levels != exact.levels:
        return  # two predictions closer than a cell
    assert np.array_equal(found.values, exact.values)
    assert np.array_equal(found.counts, exact.counts)
    assert (found.n, found.binary) == (exact.n, exact.binary)
    for name in ("weights", "outcomes", "squared_weights", "curve"):
        np.testing.assert_allclose(getattr(found, name), getattr(exact, name), rtol=1e-10, atol=1e-13)
    assert found.null_variance == pytest.approx(exact.null_variance, rel=1e-10, abs=1e-300)
    assert found.total_weight == pytest.approx(exact.total_weight)


@given(sample=samples())
def test_coarse_cells_keep_the_null_variance_and_the_means(sample):
    found, exact = of(sample, 2).forecasts(), sample.forecasts
    assert found.null_variance == pytest.approx(exact.null_variance, rel=1e-9, abs=1e-15)
    assert found.base_rate == pytest.approx(exact.base_rate, abs=1e-12)
    assert found.mean_prediction == pytest.approx(exact.mean_prediction, abs=1e-12)
    assert np.all(np.diff(found.values) > 0)


def test_zero_and_one_have_cells_of_their_own():
    f = Sketch.from_arrays([0, 0, 1, 1], [0.0, 1e-300, 1 - 1e-16, 1.0], cells=1).forecasts()
    assert f.values.tolist() == [0.0, pytest.approx(0.5), 1.0]
    assert f.extents.tolist() == [0.0, 1 - 2**-53, 0.0]


def test_missing_rows_and_weightless_rows():
    sketch = Sketch.from_arrays(
        [0, 1, np.nan, 1], [0.1, 0.2, 0.3, 0.4], sample_weight=[1, 0, 1, 2], missing="drop"
    )
    assert (sketch.n, sketch.dropped, sketch.forecasts().dropped) == (2, 1, 1)
    with pytest.raises(InvalidInputError, match="y_true must not be missing"):
        Sketch.from_arrays([0, np.nan], [0.1, 0.2])


@pytest.mark.parametrize("cells", [0, -1, 2.5, True, 2**31, "many"])
def test_silly_cells_are_refused(cells):
    with pytest.raises(InvalidInputError, match="cells must be a whole number"):
        Sketch(cells)


def test_sketches_that_do_not_fit_are_refused():
    with pytest.raises(InvalidInputError, match="same cells; got 10 and 20"):
        Sketch(10) + Sketch(20)
    with pytest.raises(InvalidInputError, match="grouped by the same columns"):
        Sketch(10) + Sketch(10, by="a")
    with pytest.raises(InvalidInputError, match="must hold a record"):
        Sketch().forecasts()
    with pytest.raises(InvalidInputError, match="without groups"):
        Sketch(by="a").update([0], [0.1])
    with pytest.raises(TypeError):
        Sketch() + 1
    with pytest.raises(InvalidInputError, match="finite sums of squares"):
        Sketch.from_arrays([0, 1], [0.1, 0.2], sample_weight=[1e200, 1])


FRAME = {
    "y": [0, 1, 1, 0, 1, 0],
    "p": [0.1, 0.9, 0.8, 0.2, 0.5, 0.5],
    "w": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
    "c": ["b", "a", "a", "b", None, "it's"],
    "k": [1, 2, 1, 2, 1, 2],
}


def grouped(by, rows=slice(None)):
    import polars as pl

    return Sketch.from_frame(pl.DataFrame(FRAME)[rows], outcome="y", prediction="p", weight="w", by=by)


def test_groups_add_up_to_the_whole():
    sketch = grouped("c")
    assert set(sketch.groups) == {"a", "b", None, "it's"}
    same(sum(sketch.groups.values()), Sketch.from_arrays(FRAME["y"], FRAME["p"], sample_weight=FRAME["w"]))
    part = sketch.groups["a"]
    same(part, Sketch.from_arrays([1, 1], [0.9, 0.8], sample_weight=[2.0, 3.0]))
    assert sketch.measure("kuiper").value == pytest.approx(
        cb.kuiper_error(FRAME["y"], FRAME["p"], sample_weight=FRAME["w"])
    )
    assert set(grouped(["c", "k"]).groups) == {("b", 1), ("b", 2), ("a", 1), ("a", 2), (None, 1), ("it's", 2)}
    assert not Sketch().groups


def test_days_with_different_groups_merge():
    same(grouped("c", slice(0, 2)) + grouped("c", slice(2, 6)), grouped("c"))
    same(Sketch(by="c") + grouped("c"), grouped("c"))


@pytest.mark.parametrize("by", [None, "c", ["c", "k"]])
@pytest.mark.parametrize("ending", ["sketch", "parquet", "bytes", "arrow"])
def test_round_trips(tmp_path, by, ending):
    sketch = grouped(by)
    if ending == "bytes":
        back = Sketch.from_bytes(sketch.to_bytes())
    elif ending == "arrow":
        back = Sketch.from_arrow(sketch.to_arrow())
    else:
        path = tmp_path / f"it's a day.{ending}"
        sketch.save(path)
        back = Sketch.load(path)
        assert [p.name for p in tmp_path.iterdir()] == [path.name]
    same(back, sketch, rel=0)
    same(back + sketch, sketch + sketch, rel=0)
    if not by:
        back.update([1, 0], [0.9, 0.5])  # a sketch that was read goes on where it stopped
        assert back.n == sketch.n + 2


@settings(max_examples=30)
@given(sample=samples(), cells=grids)
def test_bytes_keep_every_bit(sample, cells):
    sketch = of(sample, cells)
    same(Sketch.from_bytes(sketch.to_bytes()), sketch, rel=0)


def test_an_unweighted_sketch_is_small():
    rng = np.random.default_rng(0)
    p = rng.random(200_000)
    assert len(Sketch.from_arrays(p < 0.5, p).to_bytes()) < 50 * 65_536


def test_foreign_and_damaged_files_are_refused(tmp_path):
    path = tmp_path / "a.sketch"
    with pytest.raises(UnreadableFileError, match="No such file"):
        Sketch.load(path)
    good = grouped("c").to_bytes()
    for bad in (b"", b"hello", good[:-40], good[: len(good) // 2], b"PAR1 but no more"):
        path.write_bytes(bad)
        with pytest.raises(UnreadableFileError, match="must be a sketch"):
            Sketch.load(path)
    import pyarrow as pa

    table = grouped("c").to_arrow()
    with pytest.raises(UnreadableFileError, match="without its header"):
        Sketch.from_arrow(table.replace_schema_metadata({}))
    newer = json.dumps({"version": 99, "cells": 4, "by": [], "labels": [[]]})
    with pytest.raises(UnreadableFileError, match="got version 99"):
        Sketch.from_arrow(table.replace_schema_metadata({"calibrant_sketch": newer}))
    with pytest.raises(UnreadableFileError, match="columns that a sketch does not have"):
        Sketch.from_arrow(pa.table({"a": [1]}).replace_schema_metadata(table.schema.metadata))
    with pytest.raises(UnwritableFileError, match="must exist"):
        grouped("c").save(tmp_path / "nowhere" / "a.sketch")


def test_a_killed_writer_leaves_the_old_sketch_or_the_new_one(tmp_path):
    path = tmp_path / "day.sketch"
    code = """
import sys, numpy as np
from calibrant import Sketch
p = np.random.default_rng(0).random(100_000)
sketch = Sketch.from_arrays(p < 0.5, p)
sketch.save(sys.argv[1])
print("ready", flush=True)
while True:
    sketch.save(sys.argv[1])
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(cb.__file__).parents[1])}
    for wait in (0.0, 0.05, 0.1):
        writer = subprocess.Popen(
            [sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, env=environment
        )
        assert writer.stdout.readline() == b"ready\n"
        time.sleep(wait)
        os.kill(writer.pid, signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        assert Sketch.load(path).n == 100_000


def test_an_empty_text_is_a_group_like_others():
    frame = {"y": [1, 0, 1], "p": [0.2, 0.3, 0.4], "g": ["", "a", ""]}
    sketch = Sketch.from_frame(frame, outcome="y", prediction="p", by="g")
    assert {label: part.n for label, part in sketch.groups.items()} == {"": 2, "a": 1}


def test_no_sketches_have_no_sum():
    with pytest.raises(InvalidInputError, match="sketches must be one or more; got none"):
        merge()
