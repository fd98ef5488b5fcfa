"""Stored sketches: every field is checked; damage of any kind is refused in words, never believed."""

from __future__ import annotations

import io
import json
import random
import zipfile
from pathlib import Path

import numpy as np
import pytest

from calibrant import Sketch
from calibrant.errors import CalibrantError, InvalidInputError, UnreadableFileError
from calibrant.sketch import sketch as merging
from calibrant.sketch import storage


def sketch():
    rng = np.random.default_rng(3)
    p = np.round(rng.random(500), 2)
    return Sketch.from_arrays(rng.random(500) < p, p, sample_weight=rng.random(500), cells=64)


@pytest.mark.parametrize("ending", ["sketch", "parquet", "sk"])
def test_any_flipped_bit_is_refused_or_changes_nothing(tmp_path, ending, record_property):
    path = tmp_path / f"a.{ending}"
    known = sketch()
    known.save(path)
    data = path.read_bytes()
    draw = random.Random(1)
    refused = 0
    for _ in range(90):
        place = draw.randrange(len(data))
        path.write_bytes(data[:place] + bytes([data[place] ^ (1 << draw.randrange(8))]) + data[place + 1 :])
        try:
            found = Sketch.load(path)
        except UnreadableFileError:
            refused += 1
            continue
        assert np.array_equal(found.contents.table.sums, known.contents.table.sums)
        assert np.array_equal(found.contents.table.counts, known.contents.table.counts)
    assert refused > 30
    record_property("tried", 90)


def test_any_cut_is_refused(tmp_path):
    for ending in ("sketch", "parquet"):
        path = tmp_path / f"a.{ending}"
        sketch().save(path)
        data = path.read_bytes()
        for size in (0, 1, 4, 30, len(data) // 2, len(data) - 1):
            path.write_bytes(data[:size])
            with pytest.raises(UnreadableFileError):
                Sketch.load(path)


def edited(**changes):
    """Return the compact form with some columns replaced, under a checksum that fits."""
    stored = sketch().contents
    columns = {name: column.copy() for name, column in storage._columns(stored).items()}
    about = {"version": storage.VERSION, "cells": 64, "by": [], "labels": [[]]}
    for name, change in changes.items():
        if name in columns:
            change(columns[name])
        else:
            about[name] = change
    header = json.dumps({**about, "checksum": storage._checksum(about, sorted(columns.items()))})
    buffer = io.BytesIO()
    np.savez(buffer, calibrant_sketch=np.frombuffer(header.encode(), dtype=np.uint8), **columns)
    return buffer.getvalue()


def put(place, value):
    def change(column):
        column[place] = value

    return change


LIES = [
    {"count": put(0, 0)},
    {"count": put(3, -5)},
    {"w": put(0, np.nan)},
    {"w": put(0, -1.0)},
    {"w": put(0, 1e9)},
    {"wy": put(5, np.inf)},
    {"wy": put(5, 1e6)},
    {"wv": put(5, 1e6)},
    {"wv": put(-1, 0.0)},
    {"wyv": put(5, 1e3)},
    {"ww": put(5, 0.0)},
    {"low": put(5, 0.999)},
    {"high": put(5, 0.0)},
    {"low": put(5, np.nan)},
    {"cell": put(5, 10_000)},
    {"cell": put(5, -1)},
    {"cell": put(5, 0)},
    {"group": put(5, 1)},
    {"group": put(5, -1)},
    {"cells": -1},
    {"cells": "many"},
    {"cells": 32},
    {"labels": []},
    {"labels": [[], []]},
    {"labels": [["a"]]},
    {"by": ["g"]},
    {"by": [1], "labels": [["a"]]},
    {"by": ["g"], "labels": [[{"a": 1}]]},
    {"parts": [1]},
    {"parts": ["day 1"]},
    {"parts": 7},
    {"version": 99},
    {"version": None},
    {"version": True},
]


@pytest.mark.parametrize("lie", LIES, ids=[f"{k} {' and '.join(lie)}" for k, lie in enumerate(LIES)])
def test_fields_that_no_sketch_has_are_refused(lie):
    assert Sketch.from_bytes(edited()).n == 500
    with pytest.raises(UnreadableFileError, match="must be as calibrant writes it"):
        Sketch.from_bytes(edited(**lie))


def test_a_bomb_is_refused_before_it_is_unpacked():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as bomb:
        for k in range(3):
            with bomb.open(f"x{k}.npy", "w", force_zip64=True) as entry:
                for _ in range(8):
                    entry.write(b"\0" * 2**20)
    data = bytearray(buffer.getvalue())
    with pytest.raises(UnreadableFileError):
        Sketch.from_bytes(bytes(data))
    header = np.lib.format.magic(1, 0)
    text = b"{'descr': '<f8', 'fortran_order': False, 'shape': (100000000000000,), }\n"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as liar:
        liar.writestr("w.npy", header + len(text).to_bytes(2, "little") + text)
    with pytest.raises(UnreadableFileError):
        Sketch.from_bytes(buffer.getvalue())


def test_the_first_version_is_still_read():
    columns = storage._columns(sketch().contents)
    header = json.dumps({"version": 1, "cells": 64, "by": [], "labels": [[]]})
    buffer = io.BytesIO()
    np.savez(buffer, calibrant_sketch=np.frombuffer(header.encode(), dtype=np.uint8), **columns)
    assert Sketch.from_bytes(buffer.getvalue()).n == 500


def test_sums_of_one_sketch_share_nothing():
    one = sketch()
    total = sum([one])
    total.update([1], [0.5])
    assert (one.n, total.n) == (500, 501)


def test_labels_that_read_alike_are_not_kept_apart_in_silence():
    import polars as pl

    frame = pl.DataFrame({"y": [0, 1], "p": [0.1, 0.9], "g": [1, 2]})
    numbers = Sketch.from_frame(frame, outcome="y", prediction="p", by="g")
    words = Sketch.from_frame(
        frame.with_columns(pl.col("g").cast(pl.String)), outcome="y", prediction="p", by="g"
    )
    with pytest.raises(InvalidInputError, match="must have labels of one type"):
        numbers + words
    assert issubclass(InvalidInputError, CalibrantError)


GOLDEN = sorted((Path(__file__).parent / "golden").glob("version*"))


@pytest.mark.parametrize("file", GOLDEN, ids=lambda file: file.name)
def test_files_of_earlier_releases_are_read(file):
    """The promise: what one release writes, every later one reads, to the same numbers."""
    found = Sketch.load(file)
    assert (found.n, found.cells, found.by) == (5, 64, ("g",))
    frame = {"y": [0, 1, 1, 0, 1], "p": [0.1, 0.1, 0.8, 0.0, 1.0], "w": [1.0, 2.0, 0.5, 1.0, 1.0]}
    frame["g"] = ["a", "b", "a", "b", None]
    fresh = Sketch.from_frame(frame, outcome="y", prediction="p", weight="w", by="g", cells=64)
    assert found.content_id == fresh.content_id
    assert len(found.parts) == (2 if "merged" in file.name else 0)
    assert found.measure("kuiper").to_dict() == fresh.measure("kuiper").to_dict()


def test_contents_have_one_name_whatever_the_format(tmp_path):
    one = sketch()
    for name in ("a.sketch", "a.parquet"):
        one.save(tmp_path / name)
        assert Sketch.load(tmp_path / name).content_id == one.content_id
    other = sketch()
    other.update([1], [0.5])
    assert other.content_id != one.content_id


@pytest.mark.parametrize("name", ["a.sketch", "a.parquet"])
def test_a_sum_remembers_what_was_added_up(tmp_path, name):
    days = [Sketch.from_arrays([0, 1], [0.25, day / 10], cells=64) for day in range(1, 6)]
    ids = [day.content_id[:16] for day in days]
    (days[0] + days[1]).save(tmp_path / name)
    week = Sketch.load(tmp_path / name)
    assert list(week.parts) == ids[:2]
    week.update([1], [0.5])
    later = sum([days[2], Sketch(cells=64), days[3]])
    assert list((week + later + days[4]).parts) == ids
    assert list((week + days[0]).parts) == [ids[1], ids[0]]  # each once, the latest last
    assert days[0].parts == Sketch(cells=64).parts == ()


def test_a_sum_remembers_no_more_than_the_latest_parts(monkeypatch):
    monkeypatch.setattr(merging, "MAX_PARTS_KEPT", 3)
    days = [Sketch.from_arrays([0, 1], [0.25, day / 10], cells=64) for day in range(1, 6)]
    assert list(sum(days).parts) == [day.content_id[:16] for day in days[2:]]


def test_a_device_that_never_ends_is_no_sketch():
    with pytest.raises(CalibrantError, match="folder, device or pipe"):
        Sketch.load("/dev/zero")
