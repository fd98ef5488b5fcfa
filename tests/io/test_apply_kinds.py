"""calibrant apply on every kind of Parquet file: other columns are equal in four readers, or refused."""

from __future__ import annotations

import datetime as dt
import warnings
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from calibrant import recalibrate
from calibrant.errors import UnreadableFileError
from calibrant.io.apply_file import apply_file

pytestmark = pytest.mark.filterwarnings(  # fastparquet leaves files open
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)

N = 300
RNG = np.random.default_rng(0)
P = RNG.random(N)
FITTED = recalibrate([0, 1, 0, 1], [0.2, 0.4, 0.6, 0.8], method="platt")
CODES = RNG.integers(0, 3, N)
LETTERS = pa.array(["a", "b", "c"])
LONG = "12345678901234567890123456789012345678901234.{:02d}"


def dictionary(kind, values=LETTERS, ordered=False):
    return pa.DictionaryArray.from_arrays(pa.array(CODES, kind), values, ordered=ordered)


COLUMNS = {
    "bool": pa.array([True, None, False] * 100),
    "int8": pa.array(CODES, pa.int8()),
    "uint32": pa.array(range(N), pa.uint32()),
    "uint64": pa.array([2**64 - 1] * N, pa.uint64()),
    "float16": pa.array(P.astype(np.float16)),
    "nulls": pa.nulls(N),
    "decimal9": pa.array([Decimal(k) / 4 for k in range(N)], pa.decimal128(9, 2)),
    "decimal128": pa.array([Decimal(k) / 4 for k in range(N)], pa.decimal128(38, 2)),
    "decimal256": pa.array([Decimal(LONG.format(k % 100)) for k in range(N)], pa.decimal256(60, 2)),
    "duration ns": pa.array(range(N), pa.duration("ns")),
    "duration ms": pa.array(range(N), pa.duration("ms")),
    "seconds": pa.array(range(N), pa.timestamp("s")),
    "nanoseconds": pa.array(range(N), pa.timestamp("ns")),
    "zone": pa.array(range(N), pa.timestamp("us", "Europe/Paris")),
    "offset": pa.array(range(N), pa.timestamp("ms", "+02:00")),
    "time32": pa.array(range(N), pa.time32("ms")),
    "time64": pa.array(range(N), pa.time64("ns")),
    "date32": pa.array([dt.date(2020, 1, 1)] * N),
    "date64": pa.array([dt.date(2020, 1, 1)] * N, pa.date64()),
    "large text": pa.array(["x"] * N, pa.large_string()),
    "text view": pa.array(["x"] * N, pa.string_view()),
    "bytes": pa.array([b"\xff"] * N),
    "fixed bytes": pa.array([b"abcd"] * N, pa.binary(4)),
    "dictionary": dictionary(pa.int32()),
    "dictionary int8": dictionary(pa.int8()),
    "dictionary ordered": dictionary(pa.int32(), ordered=True),
    "dictionary of numbers": dictionary(pa.int32(), pa.array([5, 6, 7])),
    "map": pa.array([[("a", k)] for k in range(N)], pa.map_(pa.string(), pa.int64())),
    "nested": pa.array([{"a": [{"b": k}]} if k % 3 else None for k in range(N)]),
    "fixed list": pa.array([[1.0, 2.0]] * N, pa.list_(pa.float32(), 2)),
    "large list": pa.array([[1]] * N, pa.large_list(pa.int8())),
    "uuid": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes(range(16))] * N, pa.binary(16))),
    "json": pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a":1}'] * N)),
}
SEVERAL = pa.table(
    {
        "a": range(N),
        "s": pa.array([k * 1000 for k in range(N)], pa.timestamp("ns")),
        "z": pa.array(range(N), pa.timestamp("us", "Europe/Paris")),
        "l": [[k] for k in range(N)],
        "u": pa.array(range(N), pa.uint32()),
        "p": P,
    }
)
OPTIONS = {
    "version 1": {"version": "1.0"},
    "version 2.4": {"version": "2.4"},
    "page index": {"write_page_index": True},
    "pages of version 2": {"data_page_version": "2.0", "compression": "zstd"},
    "no statistics": {"write_statistics": False},
    "no Arrow schema": {"store_schema": False},
    "lists of items": {"use_compliant_nested_type": False},
    "delta encoding": {"use_dictionary": False, "column_encoding": {"a": "DELTA_BINARY_PACKED"}},
    "lz4": {"compression": "lz4"},
    "gzip": {"compression": "gzip"},
    "brotli": {"compression": "brotli"},
    "uncompressed": {"compression": "none"},
    "decimals as integers": {"store_decimal_as_integer": True},
    "one row per group": {"row_group_size": 7},
}
DUCKDB = {
    "json": "'{\"a\":1}'::JSON", "uuid": "uuid()", "zone": "TIMESTAMPTZ '2020-01-01 00:00:00+00'",
    "decimal": "1.5::DECIMAL(9,2)", "decimal38": "1.5::DECIMAL(38,2)", "hugeint": "1::HUGEINT",
    "enum": "'a'::ENUM('a','b')", "blob": "'a'::BLOB", "list": "[1,2]", "struct": "{'a':1}",
    "map": "MAP{'a':1}", "nanoseconds": "TIMESTAMP_NS '2020-01-01 00:00:00.123456789'",
    "seconds": "TIMESTAMP_S '2020-01-01'", "bit": "'101'::BIT", "utinyint": "1::UTINYINT",
    "time with zone": "'01:02:03+02'::TIMETZ", "interval": "INTERVAL '1' DAY",
}  # fmt: skip


def by_pyarrow(table, **options):
    return lambda path: pq.write_table(table, path, **{"row_group_size": 90, **options})


def by_duckdb(expression):
    query = f"SELECT range a, {expression} x, range / 300.0::DOUBLE p FROM range(300)"
    return lambda path: duckdb.sql(f"COPY ({query}) TO '{path}' (FORMAT parquet)")


def pandas_frame():
    frame = SEVERAL.drop(["l"]).to_pandas()
    frame["c"] = pd.Categorical(["u", "v", "w"] * 100)
    frame["text"] = "x"
    frame["i"] = pd.array([1, None, 3] * 100, dtype="Int64")
    return frame


def by_fastparquet(path, **options):
    pytest.importorskip("fastparquet")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pandas_frame().to_parquet(path, engine="fastparquet", **options)


def by_polars(path):
    letters = ["a", "b", "c"] * 100
    frame = pl.DataFrame(
        {
            "p": P,
            "categorical": pl.Series(letters, dtype=pl.Categorical),
            "enum": pl.Series(letters, dtype=pl.Enum(["a", "b", "c"])),
            "duration": pl.Series(range(N)).cast(pl.Duration("us")),
            "decimal": pl.Series([Decimal(k) for k in range(N)]),
            "zone": pl.Series(range(N)).cast(pl.Datetime("us", "Asia/Tokyo")),
            "list": [[k] for k in range(N)],
            "struct": [{"a": k} for k in range(N)],
            "array": pl.Series([[1, 2]] * N, dtype=pl.Array(pl.Int8, 2)),
            "time": pl.Series([dt.time(1, 2, 3)] * N),
            "bytes": [b"x"] * N,
        }
    )
    frame.write_parquet(path, row_group_size=90)


TWINS = pa.table([pa.array(range(N)), pa.array(range(N)), pa.array(P), pa.array(P)], ["a", "a", "p", "P"])
WRITERS = {
    **{name: by_pyarrow(pa.table({"a": range(N), "x": x, "p": P})) for name, x in COLUMNS.items()},
    **{name: by_pyarrow(SEVERAL, **options) for name, options in OPTIONS.items()},
    **{f"duckdb {name}": by_duckdb(text) for name, text in DUCKDB.items()},
    "int96": by_pyarrow(SEVERAL.drop(["z"]), use_deprecated_int96_timestamps=True),
    "equal names": by_pyarrow(TWINS),
    "keys": by_pyarrow(SEVERAL.replace_schema_metadata({"geology": '{"version":"1.0"}', "k": "v"})),
    "field ids": by_pyarrow(pa.table({"p": P}).cast(
        pa.schema([pa.field("p", pa.float64(), metadata={"PARQUET:field_id": "7", "unit": "1"})]))),
    "required": by_pyarrow(pa.table({"p": P}).cast(pa.schema([pa.field("p", pa.float64(), nullable=False)]))),
    "pandas index": lambda path: pandas_frame().set_index("a").to_parquet(path),
    "pandas two indexes": lambda path: pandas_frame().set_index(["a", "text"]).to_parquet(path),
    "polars": by_polars,
    "fastparquet": by_fastparquet,
    "fastparquet int96": lambda path: by_fastparquet(path, times="int96"),
}  # fmt: skip
REFUSED = {"duckdb interval"}


def read_by_pyarrow(path):
    with pq.ParquetFile(path) as file:
        table, keys = file.read(), dict(file.metadata.metadata or {})
    if "q" in table.column_names:
        table = table.remove_column(table.num_columns - 1)
    keys.pop(b"ARROW:schema", None)
    return (
        [(field.name, str(field), field.metadata) for field in table.schema],
        sorted(keys.items()),
        table.to_pylist(),
    )


def read_by_duckdb(path):
    relation = duckdb.sql(f"SELECT * FROM read_parquet('{path}', hive_partitioning = false)")
    kept = [pair for pair in zip(relation.columns, map(str, relation.types), strict=True) if pair[0] != "q"]
    # moments with a zone as text: DuckDB needs another package to make Python's of them
    cells = [f'"{name}"::VARCHAR' if "TIME ZONE" in kind else f'"{name}"' for name, kind in kept]
    return kept, relation.project(", ".join(cells)).fetchall()


def read_by_polars(path):
    frame = pl.read_parquet(path)
    kept = frame.drop("q", strict=False)
    return dict(kept.schema), kept.to_dict(as_series=False)


def read_by_fastparquet(path):
    fastparquet = pytest.importorskip("fastparquet")
    frame = fastparquet.ParquetFile(str(path)).to_pandas()
    frame = frame.drop(columns="q", errors="ignore")
    return frame.dtypes.astype(str).to_dict(), list(frame.index.names), frame.to_dict("list")


READERS = (read_by_pyarrow, read_by_duckdb, read_by_polars, read_by_fastparquet)
UNREADABLE = {
    ("decimal256", read_by_polars), ("equal names", read_by_polars), ("equal names", read_by_fastparquet),
    ("pages of version 2", read_by_fastparquet),
}  # fmt: skip


def tried(read, path):
    """Return what a reader reads, None where it cannot read this kind of file at all."""
    try:
        return repr(read(path))
    except Exception:
        return None


@pytest.mark.parametrize("kind", WRITERS)
def test_other_columns_stay_as_they_are(kind, tmp_path):
    source, target = tmp_path / "in.parquet", tmp_path / "out.parquet"
    WRITERS[kind](source)
    if kind in REFUSED:
        with pytest.raises(UnreadableFileError, match=r"column 'x' of .*unchanged"):
            apply_file(FITTED, source, target, prediction="p", into="q")
        assert list(tmp_path.iterdir()) == [source]
        return
    done = apply_file(FITTED, source, target, prediction="p", into="q")
    assert done.rows == N
    for read in READERS:
        expected = tried(read, source)
        assert (expected is None) == ((kind, read) in UNREADABLE), read.__name__
        assert expected is None or tried(read, target) == expected, read.__name__
    with pq.ParquetFile(target) as file:
        q = file.read().columns[-1].to_numpy()
    with pq.ParquetFile(source) as file:
        table = file.read()
        p = table.column(table.column_names.index("p")).to_numpy()
    assert (q == FITTED.predict(p)).all()


def test_there_are_enough_kinds():
    assert len(WRITERS) >= 50


def test_times_that_nanoseconds_cannot_hold_are_refused(tmp_path):
    source = tmp_path / "in.parquet"
    far = pa.array([dt.datetime(9999, 12, 31)] * 3, pa.timestamp("us"))
    pq.write_table(pa.table({"t": far, "p": [0.1, 0.2, 0.3]}), source, use_deprecated_int96_timestamps=True)
    if pq.ParquetFile(source).schema.column(0).physical_type != "INT96":
        pytest.skip("this pyarrow does not write such times")
    with pytest.raises(UnreadableFileError, match=r"column 't' of .*nanoseconds"):
        apply_file(FITTED, source, tmp_path / "out.parquet", prediction="p", into="q")
    assert list(tmp_path.iterdir()) == [source]


@pytest.mark.parametrize("into", ["P", "p", "A"])
def test_a_name_that_is_taken_in_any_case_is_refused(into, tmp_path):
    pq.write_table(pa.table({"a": [1, 2], "p": [0.1, 0.2]}), tmp_path / "in.parquet")
    with pytest.raises(ValueError, match=f"column '{into}' must not be in the file already"):
        apply_file(FITTED, tmp_path / "in.parquet", tmp_path / "out.parquet", prediction="p", into=into)


def test_large_row_groups_are_written_in_pieces(tmp_path, monkeypatch):
    from calibrant.io import apply_parquet

    monkeypatch.setattr(apply_parquet, "MAX_PIECE_BYTES", 3000)
    SEVERAL_FILE, reported = tmp_path / "in.parquet", []
    pq.write_table(SEVERAL, SEVERAL_FILE, row_group_size=200)
    apply_file(
        FITTED, SEVERAL_FILE, tmp_path / "out.parquet", prediction="p", into="q", progress=reported.append
    )
    assert pq.read_table(tmp_path / "out.parquet").drop(["q"]).equals(SEVERAL)
    assert len(reported) > 3
    assert reported[-1] == 1
    assert reported == sorted(reported)


@pytest.mark.parametrize("sizes", [[1] * 40, [7, 0, 50, 1, 1], [100, 1, 1, 1]])
def test_small_row_groups_are_joined(sizes, tmp_path, monkeypatch):
    from calibrant.io import apply_parquet

    monkeypatch.setattr(apply_parquet, "_rows_of_a_piece", lambda reader: 60)
    rng, tables = np.random.default_rng(len(sizes)), []
    for size in sizes:
        ids = pa.array(rng.integers(0, 3, size), mask=rng.random(size) < 0.2)
        words = pa.array([None if k == 0 else str(k) for k in rng.integers(0, 4, size)], pa.string())
        tables.append(pa.table({"id": ids, "w": words, "x": rng.random(size), "p": rng.random(size)}))
    with pq.ParquetWriter(tmp_path / "in.parquet", tables[0].schema, use_dictionary=False) as writer:
        for table in tables:
            writer.write_table(table)
    apply_file(FITTED, tmp_path / "in.parquet", tmp_path / "out.parquet", prediction="p", into="q")
    written, whole = pq.ParquetFile(tmp_path / "out.parquet"), pa.concat_tables(tables)
    assert written.read().drop(["q"]).equals(whole)
    assert written.read()["q"].to_pylist() == FITTED.predict(whole["p"].to_numpy()).tolist()
    groups = [written.metadata.row_group(k).num_rows for k in range(written.metadata.num_row_groups)]
    assert len(groups) < len(sizes)
    assert all(rows <= 60 for rows in groups)


def test_several_files_become_one(tmp_path):
    parts = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    pq.write_table(SEVERAL, parts[0])
    pq.write_table(SEVERAL.slice(0, 100), parts[1])
    done = apply_file(FITTED, parts, tmp_path / "out.parquet", prediction="p", into="q")
    expected = pa.concat_tables([SEVERAL, SEVERAL.slice(0, 100)])
    assert done.rows == 400
    assert pq.read_table(tmp_path / "out.parquet").drop(["q"]).equals(expected)
    pq.write_table(SEVERAL.drop(["u"]), parts[1])
    with pytest.raises(UnreadableFileError, match="must have the columns of"):
        apply_file(FITTED, parts, tmp_path / "out2.parquet", prediction="p", into="q")


@pytest.mark.slow
def test_files_of_spark(tmp_path):
    """Spark lists the columns in a key of its own: it must see the new one and the old ones unchanged."""
    sql = pytest.importorskip("pyspark.sql")
    spark = sql.SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    try:
        for stamps in ("INT96", "TIMESTAMP_MICROS"):
            spark.conf.set("spark.sql.parquet.outputTimestampType", stamps)
            frame = spark.range(100).selectExpr(
                "id", "id / 100 AS p", "timestamp_seconds(id) AS t", "array(id) AS l", "map('a', id) AS m",
                "named_struct('x', id) AS s", "CAST(id AS DECIMAL(20, 3)) AS d", "CAST(id AS STRING) AS w",
            )  # fmt: skip
            folder = tmp_path / stamps
            frame.coalesce(1).write.parquet(str(folder))
            [source] = folder.glob("*.parquet")
            target = tmp_path / f"{stamps}.parquet"
            apply_file(FITTED, source, target, prediction="p", into="q")
            assert pq.read_table(target).drop(["q"]).equals(pq.read_table(source))
            for read in READERS[1:]:  # the first compares the key that lists the columns too
                assert tried(read, source) is not None
                assert tried(read, target) == tried(read, source), read.__name__
            before, after = spark.read.parquet(str(source)), spark.read.parquet(str(target))
            assert after.columns == [*before.columns, "q"]
            assert after.drop("q").schema == before.schema
            assert after.drop("q").collect() == before.collect()
    finally:
        spark.stop()


@pytest.mark.parametrize("kind", ["duckdb list", "duckdb zone", "duckdb decimal38", "duckdb nanoseconds"])
def test_without_pyarrow_duckdb_writes_what_it_does_not_change(kind, tmp_path, monkeypatch):
    monkeypatch.setattr("calibrant.io.apply_file.find_spec", lambda name: None)
    source, target = tmp_path / "in.parquet", tmp_path / "out.parquet"
    WRITERS[kind](source)
    apply_file(FITTED, source, target, prediction="p", into="q")
    for read in READERS[1:3]:
        assert tried(read, target) == tried(read, source), read.__name__


@pytest.mark.parametrize(
    "kind", ["decimal256", "int96", "equal names", "keys", "duration ns", "float16", "polars", "pandas index"]
)
def test_without_pyarrow_what_duckdb_would_change_is_refused(kind, tmp_path, monkeypatch):
    monkeypatch.setattr("calibrant.io.apply_file.find_spec", lambda name: None)
    source = tmp_path / "in.parquet"
    WRITERS[kind](source)
    with pytest.raises(UnreadableFileError, match=r"unchanged.*pip install pyarrow"):
        apply_file(FITTED, source, tmp_path / "out.parquet", prediction="p", into="q")
    assert list(tmp_path.iterdir()) == [source]


@pytest.mark.parametrize("kind", ["decimal256", "int96", "duration ns"])
def test_text_of_what_duckdb_cannot_read_exactly_is_refused(kind, tmp_path):
    source = tmp_path / "in.parquet"
    WRITERS[kind](source)
    with pytest.raises(UnreadableFileError, match=r"column '[xs]' of .*unchanged"):
        apply_file(FITTED, source, tmp_path / "out.csv", prediction="p", into="q")


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32(), pa.int64()])
def test_scores_on_a_scale_are_read_as_on_the_command_line(kind, tmp_path):
    from calibrant.io.sources import Notation, default_notation

    scores = pa.array([10, 25, 90]).cast(kind)
    pq.write_table(pa.table({"p": scores}), tmp_path / "in.parquet")
    token = default_notation.set(Notation(scale=(0.0, 100.0), scaled=("p",)))
    try:
        apply_file(FITTED, tmp_path / "in.parquet", tmp_path / "out.parquet", prediction="p", into="q")
    finally:
        default_notation.reset(token)
    written = pq.read_table(tmp_path / "out.parquet")
    assert written["p"].equals(pa.chunked_array([scores]))
    assert written["q"].to_pylist() == FITTED.predict([0.1, 0.25, 0.9]).tolist()
