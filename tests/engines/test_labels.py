"""One grammar of group labels: the same values give the same labels on every engine and in every file."""

from __future__ import annotations

import datetime
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from calibrant import Sketch
from calibrant.errors import InvalidInputError

PARIS = pd.Timestamp("2024-01-31 12:30", tz="Europe/Paris")
TYPES = {
    "text": (pa.array(["a", "1", None]), ["a", "1", None]),
    "whole": (pa.array([1, 2, None], pa.int32()), [1, 2, None]),
    "fraction": (pa.array([1.0, 2.5, None]), [1, 2.5, None]),
    "truth": (pa.array([True, False, None]), [True, False, None]),
    "date": (
        pa.array([datetime.date(2024, 1, 31), datetime.date(1969, 7, 20), None]),
        ["2024-01-31", "1969-07-20", None],
    ),
    "moment": (
        pa.array([datetime.datetime(2024, 1, 31, 12, 30, 0, 500000), datetime.datetime(2024, 1, 31), None]),
        ["2024-01-31 12:30:00.5", "2024-01-31", None],
    ),
    "nanoseconds": (
        pa.array([1_706_704_200_000_000_001, 1_706_704_200_000_000_000, None], pa.timestamp("ns")),
        ["2024-01-31 12:30:00.000000001", "2024-01-31 12:30:00", None],
    ),
    "zone": (
        pa.array([PARIS.value // 1000, 0, None], pa.timestamp("us", tz="Europe/Paris")),
        ["2024-01-31 11:30:00+00:00", "1970-01-01 00:00:00+00:00", None],
    ),
    "decimal": (pa.array([Decimal("1.50"), Decimal("2.00"), None]), [1.5, 2, None]),
    "long decimal": (
        pa.array([Decimal("0.12345678901234567890"), Decimal("1"), None], pa.decimal128(38, 20)),
        ["0.1234567890123456789", 1, None],
    ),
    "category": (pa.array(["a", "b", None]).dictionary_encode(), ["a", "b", None]),
}


def _dask(frame):
    """Hand a frame to Dask as it is; by default it makes text of Python objects, even of truth values."""
    dask = pytest.importorskip("dask")
    with dask.config.set({"dataframe.convert-string": False}):
        return pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=2)


ENGINES = {
    "pyarrow": lambda table: table,
    "pandas": lambda table: table.to_pandas(),
    "pandas-nullable": lambda table: table.to_pandas().convert_dtypes(),
    "pandas-pyarrow": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": pl.from_arrow,
    "polars-lazy": lambda table: pl.from_arrow(table).lazy(),
    "duckdb": lambda table: duckdb.connect().from_arrow(table),
    "dask": lambda table: _dask(table.to_pandas()),
    "dask-pyarrow": lambda table: _dask(table.to_pandas(types_mapper=pd.ArrowDtype)),
    "ibis": lambda table: pytest.importorskip("ibis").memtable(table),
}
SPARK_TYPES = {  # Spark has no nanoseconds and no categories
    "text": "string",
    "whole": "int",
    "fraction": "double",
    "truth": "boolean",
    "date": "date",
    "moment": "timestamp_ntz",
    "zone": "timestamp",
    "decimal": "decimal(10, 2)",
    "long decimal": "decimal(38, 20)",
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", TYPES)
def test_every_engine_gives_the_same_labels(kind, engine):
    column, expected = TYPES[kind]
    table = pa.table({"y": [0, 1, 1], "p": [0.25, 0.5, 0.75], "g": column})
    _check_labels(ENGINES[engine](table), expected)


def _check_labels(frame, expected):
    found = Sketch.from_frame(frame, outcome="y", prediction="p", by="g")
    assert {label: part.forecasts().values[0] for label, part in found.groups.items()} == dict(
        zip(expected, [0.25, 0.5, 0.75], strict=True)
    )
    assert {type(label) for label in found.groups} == {type(label) for label in expected}


@pytest.mark.spark
@pytest.mark.parametrize("kind", SPARK_TYPES)
def test_spark_gives_the_same_labels(spark_session, kind):
    column, expected = TYPES[kind]
    rows = list(zip([0, 1, 1], [0.25, 0.5, 0.75], column.to_pylist(), strict=True))
    frame = spark_session.createDataFrame(rows, schema=f"y int, p double, g {SPARK_TYPES[kind]}")
    _check_labels(frame, expected)


@pytest.mark.spark
def test_spark_refuses_columns_of_lists_in_words(spark_session):
    frame = spark_session.createDataFrame(
        [(0, 0.25, [1]), (1, 0.5, [2, 3])], schema="y int, p double, g array<int>"
    )
    with pytest.raises(InvalidInputError, match="must hold one value per row"):
        Sketch.from_frame(frame, outcome="y", prediction="p", by="g")


@pytest.mark.parametrize("kind", TYPES)
def test_parquet_gives_the_same_labels(tmp_path, kind):
    import pyarrow.parquet

    column, expected = TYPES[kind]
    pyarrow.parquet.write_table(
        pa.table({"y": [0, 1, 1], "p": [0.25, 0.5, 0.75], "g": column}), tmp_path / "x.parquet"
    )
    found = Sketch.from_file(tmp_path / "x.parquet", outcome="y", prediction="p", by="g")
    assert set(found.groups) == set(expected)


@pytest.mark.parametrize("kind", ["whole", "fraction", "truth", "date", "moment", "category"])
def test_csv_gives_the_same_labels(tmp_path, kind):
    column, expected = TYPES[kind]
    table = pa.table({"y": [0, 1, 1], "p": [0.25, 0.5, 0.75], "g": column})
    table.to_pandas().to_csv(tmp_path / "pandas.csv", index=False)
    found = Sketch.from_file(tmp_path / "pandas.csv", outcome="y", prediction="p", by="g")
    assert set(found.groups) == set(expected)


@pytest.mark.parametrize("engine", ENGINES)
def test_columns_of_lists_are_refused_in_words(engine):
    table = pa.table({"y": [0, 1], "p": [0.25, 0.5], "g": [[1], [2, 3]]})
    with pytest.raises(InvalidInputError, match="must hold one value per row"):
        Sketch.from_frame(ENGINES[engine](table), outcome="y", prediction="p", by="g")


def test_objects_that_are_numbers_are_taken():
    frame = pd.DataFrame(
        {
            "y": np.array([True, None, False], dtype=object),
            "p": np.array([Decimal("0.25"), Decimal("0.5"), Decimal("0.75")], dtype=object),
        }
    )
    found = Sketch.from_frame(frame, outcome="y", prediction="p", missing="drop")
    assert (found.n, found.dropped) == (2, 1)
    with pytest.raises(InvalidInputError, match="text"):
        Sketch.from_frame(frame.assign(y=np.array([1, "0", 1], dtype=object)), outcome="y", prediction="p")
