"""Labels of groups, from files, arrays and frames: none is rounded, joined with another, or re-typed."""

from __future__ import annotations

from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from read_files import read_categories

from calibrant import Sketch, audit
from calibrant.columns import code_columns, columns_of
from calibrant.errors import InvalidInputError, UnreadableFileError
from calibrant.sketch.labels import plain_label
from calibrant.sketch.stream import GroupNumbers

LONG = [9007199254740992, 9007199254740993]  # one float


def by_group(labels):
    frame = {"y": [0, 1], "p": [0.25, 0.5], "g": labels}
    return Sketch.from_frame(frame, outcome="y", prediction="p", by="g")


def written(path, cells):
    path.write_text("y,p,g\n" + "".join(f"1,0.5,{cell}\n" for cell in cells))
    return path


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ([*LONG, ""], [*LONG, None]),
        (["1234567890123456788", "1234567890123456789"], [1234567890123456788, 1234567890123456789]),
        (["12345678901234567890", "12345678901234567891"], ["12345678901234567890", "12345678901234567891"]),
        (["12345678901234567890", "0.5"], [12345678901234567890.0, 0.5]),
    ],
)
def test_long_identifiers_of_files_are_not_rounded(tmp_path, cells, expected):
    assert read_categories(written(tmp_path / "x.csv", cells), ["g"])["g"].tolist() == expected


def test_long_identifiers_of_parquet_are_not_rounded_beside_a_gap(tmp_path):
    path = tmp_path / "x.parquet"
    pl.DataFrame({"g": [*LONG, None]}).write_parquet(path)
    assert read_categories(path, ["g"])["g"].tolist() == [*LONG, None]


@pytest.mark.parametrize(
    "frame",
    [
        {"g": np.array([*LONG, None], dtype=object)},
        pd.DataFrame({"g": pd.array([*LONG, None], dtype="Int64")}),
        pl.DataFrame({"g": [*LONG, None]}),
        pa.table({"g": [*LONG, None]}),
    ],
    ids=["objects", "pandas", "polars", "pyarrow"],
)
def test_long_identifiers_of_frames_are_not_rounded_beside_a_gap(frame):
    [column] = code_columns(frame, 3, "groups")
    assert [column.labels[code] for code in column.codes] == [*LONG, None]
    assert columns_of(frame, 3)["g"].tolist() == [*LONG, None]  # of recalibrate, clusters among them


LONGER = [12345678901234567890, 12345678901234567891]  # longer than 64 bits


@pytest.mark.parametrize("kind", ["HUGEINT", "DECIMAL(20,0)", "UHUGEINT"])
@pytest.mark.parametrize("numbers", [LONG, LONGER])
def test_whole_numbers_of_wide_types_are_not_rounded(tmp_path, kind, numbers):
    path = tmp_path / "x.parquet"
    listed = ", ".join(f"({number}::{kind})" for number in numbers)
    duckdb.sql(f"SELECT * FROM (VALUES {listed}, (NULL)) AS t(g)").write_parquet(str(path))
    if kind.startswith("DECIMAL"):  # Parquet has no other type as wide
        assert read_categories(path, ["g"])["g"].tolist() == [*numbers, None]
    [relation] = code_columns(duckdb.sql(f"SELECT * FROM (VALUES {listed}) AS t(g)"), 2, "groups")
    assert len(relation.labels) == 2


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"])
def test_long_decimals_of_frames_are_not_rounded(frame):
    labels = [Decimal(number) for number in LONGER]
    for data in (frame({"g": labels}), {"g": labels}):
        [column] = code_columns(data, 2, "groups")
        assert list(column.labels) == LONGER
    [short] = code_columns(frame({"g": [Decimal("0.3"), Decimal("1e17")]}), 2, "groups")
    assert list(short.labels) == [0.3, 1e17]


def test_whole_numbers_of_several_files_are_not_rounded_by_the_fractions_of_one(tmp_path):
    for name, cells in (("a", pl.Series(LONG)), ("b", pl.Series([0.5, 1.0]))):
        pl.DataFrame({"g": cells}).write_parquet(tmp_path / f"{name}.parquet")
    assert read_categories(tmp_path / "*.parquet", ["g"])["g"].tolist() == [*LONG, 0.5, 1.0]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "D"])
@pytest.mark.parametrize("frame", [dict, pd.DataFrame, pl.DataFrame, pa.table])
def test_times_beyond_the_year_2262_keep_their_date(frame, unit):
    times = np.array(["9999-12-31", "2024-02-01"], dtype=f"datetime64[{unit}]")
    times = times if frame is not pl.DataFrame or unit != "s" else times.astype("datetime64[ms]")
    data = frame({"y": [0, 1], "p": [0.25, 0.5], "g": times})
    groups = Sketch.from_frame(data, outcome="y", prediction="p", by="g").groups
    assert list(groups) == ["2024-02-01", "9999-12-31"]
    assert plain_label(times[0]) == "9999-12-31"


def test_true_is_not_silently_joined_with_one(tmp_path):
    path = written(tmp_path / "x.csv", ["true", "1"])
    with pytest.raises(InvalidInputError, match="must not mix truth values and numbers; got True and 1"):
        Sketch.from_file(path, outcome="y", prediction="p", by="g")
    truth, numbers = by_group([True, False]), by_group([0, 1])
    for pair in ([truth, numbers], [numbers, truth]):
        with pytest.raises(InvalidInputError, match="labels of the sketches must not mix"):
            sum(pair)


@pytest.mark.parametrize("unit", ["D", "us", "ns"])
def test_times_of_arrays_are_labelled_like_those_of_frames(unit):
    times = np.array(["2024-01-31", "2024-02-01"], dtype=f"datetime64[{unit}]")
    assert list(by_group(times).groups) == ["2024-01-31", "2024-02-01"]
    spans = np.array([1, 2], dtype="timedelta64[s]").astype(f"timedelta64[{'s' if unit == 'D' else unit}]")
    assert list(by_group(spans).groups) == ["1 s", "2 s"]


def test_groups_of_many_columns_stay_apart():
    """The product of the columns' sizes exceeds 64 bits."""
    rng = np.random.default_rng(0)
    columns = [rng.permutation(20_000) for _ in range(5)]
    numbers = GroupNumbers()
    groups = numbers.of([pa.array(column) for column in columns], 20_000)
    assert [numbers.seen[group] for group in groups] == list(zip(*(c.tolist() for c in columns), strict=True))


def test_values_of_a_mapping_out_of_range_are_refused_in_words():
    with pytest.raises(
        InvalidInputError, match=r"column 'p' must lie in \[0, 1\]; got values from 0.5 to 1.5"
    ):
        Sketch.from_frame({"y": [0, 1], "p": [0.5, 1.5]}, outcome="y", prediction="p")


def test_a_header_longer_than_any_name_is_refused_in_words(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(f"y,p,{'a' * 140_000}\n1,0.5,1\n")
    with pytest.raises(UnreadableFileError, match="must have a header; got a first line with a field larger"):
        Sketch.from_file(path, outcome="y", prediction="p")


def test_a_group_whose_squared_weights_vanish_is_refused():
    """Its null variance would be 0, and any deviation proof of a fault."""
    rng = np.random.default_rng(0)
    p = rng.random(400)
    group = np.arange(400) % 2
    frame = {"y": rng.random(400) < p, "p": p, "g": group, "w": np.where(group, 1e-170, 1.0)}
    sketch = Sketch.from_frame(frame, outcome="y", prediction="p", weight="w", by="g")
    with pytest.raises(InvalidInputError, match=r"must have squares that a float can hold; got .* 2e-168"):
        audit(sketch, seed=0)


def test_large_weights_are_stored_and_read_without_a_warning():
    sketch = Sketch.from_arrays(np.arange(1000) % 2, np.full(1000, 0.3), sample_weight=np.full(1000, 1e152))
    assert Sketch.from_bytes(sketch.to_bytes()).content_id == sketch.content_id
