"""calibrant apply on one Parquet file: a column is added behind the others, which stay as they are."""

from __future__ import annotations

import datetime as dt
import io

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from calibrant import recalibrate
from calibrant.errors import CalibrantError, InvalidInputError
from calibrant.recalibration.maps import long_columns
from calibrant.scale import apply_file as apply_room
from calibrant.scale import parquet_append, parquet_column, parquet_footer, thrift_compact
from calibrant.scale.apply_file import apply_file
from calibrant.scale.parquet_append import append_map
from calibrant.scale.parquet_footer import NotAppendableError, read_footer

RNG = np.random.default_rng(0)
N = 500
X = RNG.random(N)
HOLES = [None if k % 50 == 3 else (np.nan, 1.5, -0.25)[k // 7 % 3] if k % 7 == 0 else X[k] for k in range(N)]
USABLE = np.array([x is not None and 0 <= x <= 1 for x in HOLES])
P = RNG.random(3_000)
FITS = {
    method: recalibrate((RNG.random(3_000) < P**1.5).astype(int), P, method=method, seed=0)
    for method in ("platt", "isotonic", "histogram", "identity", "spline", "venn-abers")
}
PLATT = FITS["platt"]


def rows(kind=None):
    """Return a table with columns of many types; the predictions stand in the middle."""
    days = [dt.datetime(2026, 3, 1, tzinfo=dt.UTC) + dt.timedelta(hours=k) for k in range(N)]
    kind = kind or pa.float64()
    return pa.table(
        {
            "id": pa.array(range(N), pa.int64()),
            "word": pa.array([f"w{k % 9}" for k in range(N)]).dictionary_encode(),
            "long": ["é" * (k % 400) for k in range(N)],
            "list": pa.array([[float(j) for j in range(k % 4)] if k % 5 else None for k in range(N)]),
            "p": pa.array(HOLES, kind, from_pandas=False),
            "pair": pa.array([{"a": k, "b": [str(k)]} if k % 3 else None for k in range(N)]),
            "when": pa.array(days, pa.timestamp("us", "Europe/Paris")),
            "price": pa.array(range(N), pa.decimal128(12, 2)),
            "yes": pa.array([k % 2 == 0 for k in range(N)]),
        }
    )  # fmt: skip


def footer_of(file):
    return read_footer(io.BytesIO(file.read_bytes()))


def applied(source, method="platt", into="q", **options):
    target = source.parent / "out.parquet"
    fitted = FITS[method]
    done = append_map(fitted, [source], target, prediction="p", into=into, **options)
    assert done is not None
    return target, done


def by_pyarrow(**options):
    return lambda table, path: pq.write_table(table, path, **options)


WRITERS = {
    "pyarrow": by_pyarrow(row_group_size=90),
    "page index": by_pyarrow(row_group_size=90, write_page_index=True),
    "format 1": by_pyarrow(version="1.0", use_deprecated_int96_timestamps=True),
    "pages of version 2": by_pyarrow(data_page_version="2.0", compression="zstd"),
    "no statistics": by_pyarrow(write_statistics=False, row_group_size=1),
    "no schema of Arrow": by_pyarrow(store_schema=False),
    "dictionary": by_pyarrow(use_dictionary=["p", "word"]),
    "polars": lambda table, path: pl.from_arrow(table).write_parquet(path, row_group_size=100),
    "pandas": lambda table, path: table.to_pandas().set_index("id").to_parquet(path),
    "duckdb": lambda table, path: duckdb.from_arrow(table).write_parquet(str(path), row_group_size=200),
}


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()], ids=str)
@pytest.mark.parametrize("writer", WRITERS)
def test_all_readers_find_the_old_columns_and_the_new_one(writer, kind, tmp_path):
    source = tmp_path / "in.parquet"
    WRITERS[writer](rows(kind), source)
    target, done = applied(source)
    start = footer_of(source).start
    assert target.read_bytes()[:start] == source.read_bytes()[:start]
    p = np.asarray(pq.read_table(source)["p"].to_numpy(), float)
    assert (done.rows, done.unusable) == (N, N - USABLE.sum())
    expected = np.full(N, np.nan)
    expected[USABLE] = PLATT.predict(p[USABLE])

    before, after = pq.read_table(source), pq.read_table(target)
    assert after.schema.remove(len(after.schema) - 1).equals(before.schema)
    assert after.drop(["q"]).equals(before) or after.drop(["q"]).to_pylist().__repr__() == repr(
        before.to_pylist()
    )
    assert after["q"].null_count == done.unusable
    assert np.array_equal(after["q"].to_numpy(), expected, equal_nan=True)
    old = duckdb.sql(f"SELECT COLUMNS(*)::VARCHAR FROM '{source}'").fetchall()
    new = duckdb.sql(f"SELECT COLUMNS(* EXCLUDE q)::VARCHAR FROM '{target}'").fetchall()
    assert new == old
    frame = pl.read_parquet(target)
    assert frame.drop("q").equals(pl.read_parquet(source))
    assert frame["q"].null_count() == done.unusable
    assert np.array_equal(frame["q"].to_numpy(), expected, equal_nan=True)
    pd.testing.assert_frame_equal(pd.read_parquet(target).drop(columns="q"), pd.read_parquet(source))


@pytest.mark.parametrize("method", FITS)
def test_it_gives_what_writing_anew_gives(method, tmp_path, monkeypatch):
    source = tmp_path / "in.parquet"
    pq.write_table(rows(), source, row_group_size=77)
    target, done = applied(source, method)
    monkeypatch.setattr(apply_room, "append_map", lambda *args, **options: None)
    other = tmp_path / "anew.parquet"
    assert apply_file(FITS[method], source, other, prediction="p", into="q") == done
    mine, theirs = (np.array(pq.read_table(file)["q"].to_pylist(), float) for file in (target, other))
    np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-12)
    assert (mine[USABLE] == FITS[method].predict(X[USABLE])).all()
    assert pq.read_table(target).column_names == pq.read_table(other).column_names


def test_apply_takes_this_way(tmp_path, monkeypatch):
    def unasked(*args):
        raise AssertionError("DuckDB was asked")

    monkeypatch.setattr(apply_room, "_written", unasked)
    source, told = tmp_path / "in.parquet", []
    pq.write_table(rows(), source, row_group_size=100)
    monkeypatch.setattr(parquet_append, "TOGETHER", 100)
    apply_file(PLATT, source, tmp_path / "out.parquet", prediction="p", into="q", progress=told.append)
    assert told == [0.2, 0.4, 0.6, 0.8, 1.0]


@pytest.mark.parametrize("first", [0, 777, 2**30])
@pytest.mark.parametrize("method", sorted(FITS))
def test_memory_that_is_used_again_holds_nothing_of_before(method, first, tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_append, "FIRST", first)
    monkeypatch.setattr(parquet_append, "PIECE", 100)
    monkeypatch.setattr(parquet_append, "TOGETHER", 20)
    monkeypatch.setattr(long_columns, "LONG", 0)
    source = tmp_path / "in.parquet"
    table, start = rows(), 0
    with pq.ParquetWriter(source, table.schema) as writer:
        for count in [1, 90, 3, 0, 120, 7, 60, *[2] * 40, N]:
            writer.write_table(table.slice(start, count), row_group_size=max(count, 1))
            start = min(N, start + count)
    target, _ = applied(source, method)
    kept = footer_of(source).start
    assert target.read_bytes()[:kept] == source.read_bytes()[:kept]
    q = pq.read_table(target)["q"].to_numpy()
    np.testing.assert_allclose(q[USABLE], FITS[method].predict(X[USABLE]), rtol=0, atol=2e-15)
    assert np.isnan(q[~USABLE]).all()


REFUSING = {
    "decimals": lambda t: t.set_column(4, "p", t["id"].cast(pa.decimal128(20, 1))),
    "whole numbers": lambda t: t.set_column(4, "p", pa.array([k % 2 for k in range(N)])),
    "text": lambda t: t.set_column(4, "p", pa.array([str(k / N) for k in range(N)])),
    "half floats": lambda t: t.set_column(4, "p", pa.array(X.astype(np.float16))),
    "other case": lambda t: t.append_column("P", t["id"]),
    "a path": lambda t: t.append_column("p.a", t["id"]),
}


@pytest.mark.parametrize("kind", REFUSING)
def test_other_columns_are_written_anew(kind, tmp_path):
    source, target = tmp_path / "in.parquet", tmp_path / "out.parquet"
    pq.write_table(REFUSING[kind](rows()), source)
    assert append_map(PLATT, [source], target, prediction="p", into="q") is None
    assert list(tmp_path.iterdir()) == [source]
    apply_file(PLATT, source, target, prediction="p", into="q")
    assert "q" in pq.read_table(target).column_names


@pytest.mark.parametrize("limit", ["MOST_ROWS", "LONGEST", "find_spec", "metadata"])
def test_large_row_groups_long_footers_and_no_pyarrow_are_written_anew(limit, tmp_path, monkeypatch):
    source, target = tmp_path / "in.parquet", tmp_path / "out.parquet"
    table = rows()
    pq.write_table(table, source)
    if limit == "find_spec":
        monkeypatch.setattr(parquet_append, limit, lambda name: None)
    elif limit == "metadata":  # a schema of Arrow that cannot be read
        kept = "KV_METADATA {'ARROW:schema': 'nonsense'}"
        duckdb.sql(f"COPY (SELECT range / 500 AS p FROM range(500)) TO '{source}' (FORMAT parquet, {kept})")
    else:
        monkeypatch.setattr(parquet_footer, limit, N - 1)
    assert append_map(PLATT, [source], target, prediction="p", into="q") is None
    assert list(tmp_path.iterdir()) == [source]
    apply_file(PLATT, source, target, prediction="p", into="q")
    assert pq.read_table(target)["q"].null_count == (0 if limit == "metadata" else N - USABLE.sum())


def test_several_files_and_text_are_written_anew(tmp_path):
    parts = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    for part in parts:
        pq.write_table(rows(), part)
    assert append_map(PLATT, parts, tmp_path / "out.parquet", prediction="p", into="q") is None
    (tmp_path / "a.csv").write_text("p\n0.5\n")
    assert append_map(PLATT, [tmp_path / "a.csv"], tmp_path / "o.parquet", prediction="p", into="q") is None
    done = apply_file(PLATT, parts, tmp_path / "out.parquet", prediction="p", into="q")
    assert done.rows == 2 * N


@pytest.mark.parametrize(
    ("field", "where"), [(8, "file"), (9, "file"), (1, "chunk"), (8, "chunk"), (9, "chunk")]
)
def test_encrypted_and_scattered_files_are_not_appended_to(field, where, tmp_path):
    source = tmp_path / "in.parquet"
    pq.write_table(rows(), source)
    footer = footer_of(source)
    struct = footer.struct if where == "file" else footer.groups[0][parquet_footer.COLUMNS][1][1][0]
    struct[field] = (thrift_compact.BINARY, b"x")
    with pytest.raises(NotAppendableError, match="encrypted"):
        parquet_footer.check_appendable(footer, "p", "q")


@pytest.mark.parametrize(
    ("prediction", "into", "words"),
    [
        ("P", "q", "must be one of"),
        ("p", "WORD", "already"),
        ("p", "p", "already"),
        ("none", "q", "must be one"),
    ],
)
def test_names_are_refused_as_ever(prediction, into, words, tmp_path):
    source = tmp_path / "in.parquet"
    pq.write_table(rows(), source)
    with pytest.raises(CalibrantError, match=words):
        apply_file(PLATT, source, tmp_path / "out.parquet", prediction=prediction, into=into)
    assert list(tmp_path.iterdir()) == [source]


@pytest.mark.parametrize("cell", [None, np.nan, 2.0])
def test_no_usable_prediction_is_refused(cell, tmp_path):
    source = tmp_path / "in.parquet"
    pq.write_table(pa.table({"p": pa.array([cell] * 40, pa.float64(), from_pandas=False)}), source)
    with pytest.raises(InvalidInputError, match="column 'p' must hold probabilities; got none in 40 rows"):
        append_map(PLATT, [source], tmp_path / "out.parquet", prediction="p", into="q")
    assert list(tmp_path.iterdir()) == [source]


@pytest.mark.parametrize("groups", [0, 1, 3])
def test_files_without_rows(groups, tmp_path):
    source = tmp_path / "in.parquet"
    with pq.ParquetWriter(source, rows().schema) as writer:
        for _ in range(groups):
            writer.write_table(rows()[:0])
    target, done = applied(source)
    assert done.rows == 0
    assert pq.read_table(target).schema == rows().schema.append(pa.field("q", pa.float64()))
    assert duckdb.sql(f"FROM '{target}'").fetchall() == []
    assert pl.read_parquet(target).columns[-1] == "q"


@pytest.mark.parametrize("name", ["q", "a.b", "Größe 'x' \"y\"", "sehr " * 60])
def test_names_of_all_kinds(name, tmp_path):
    source = tmp_path / "in [1].parquet"
    pq.write_table(rows(), source)
    target, _ = applied(source, into=name)
    assert pq.read_table(target).column_names[-1] == name
    assert pl.read_parquet(target).columns[-1] == name
    assert duckdb.sql(f"DESCRIBE FROM '{target}'").fetchall()[-1][0] == name


@pytest.mark.parametrize("holes", [0, 1, 7, 8, 9, 63, 500])
@pytest.mark.parametrize("method", ["identity", "histogram"])
def test_pages_and_gaps(holes, method, tmp_path, monkeypatch):
    """Row groups without gaps, with some, and with nothing else; several pages each."""
    monkeypatch.setattr(parquet_column, "PAGE", 50)
    rng = np.random.default_rng(holes)
    x = rng.random(1_000)
    x[rng.choice(500, holes, replace=False)] = np.nan
    source = tmp_path / "in.parquet"
    pq.write_table(pa.table({"p": x}), source, row_group_size=130)
    target, done = applied(source, method)
    expected = np.full(1_000, np.nan)
    expected[~np.isnan(x)] = FITS[method].predict(x[~np.isnan(x)])
    assert done.unusable == holes
    for read in (pq.read_table(target)["q"], pl.read_parquet(target)["q"]):
        assert read.null_count == holes if isinstance(read, pa.ChunkedArray) else read.null_count() == holes
        assert np.array_equal(read.to_numpy(), expected, equal_nan=True)
    column = duckdb.sql(f"SELECT q FROM '{target}'").fetchnumpy()["q"]
    assert np.array_equal(np.ma.filled(column, np.nan), expected, equal_nan=True)
    written = pq.ParquetFile(target).metadata
    for k in range(written.num_row_groups):
        values = expected[130 * k :][: min(130, 1_000 - 130 * k)]
        stated = written.row_group(k).column(1).statistics
        assert stated.null_count == np.isnan(values).sum()
        if not np.isnan(values).all():
            assert (stated.min, stated.max) == (np.nanmin(values), np.nanmax(values))


@pytest.mark.parametrize("method", ["identity", "histogram"])
def test_very_few_numbers_have_a_dictionary(method, tmp_path):
    source = tmp_path / "in.parquet"
    x = RNG.random(20_000)
    x[:9] = np.nan
    pq.write_table(pa.table({"p": x}), source, row_group_size=7_000)
    target, _ = applied(source, method)
    written, few = pq.ParquetFile(target).metadata, method == "histogram"
    for k in range(3):
        column = written.row_group(k).column(1)
        assert (column.has_dictionary_page, column.statistics.null_count) == (few, 0 if k else 9)
    for q in (pq.read_table(target)["q"].to_numpy(), pl.read_parquet(target)["q"].to_numpy()):
        assert np.isnan(q[:9]).all()
        assert (q[9:] == FITS[method].predict(x[9:])).all()


def test_the_sign_of_zero_does_not_hide_rows(tmp_path):
    source = tmp_path / "in.parquet"
    pq.write_table(pa.table({"p": [-0.0, 0.0, 0.0, 0.5, 0.25, 0.75] * 3}), source)
    target, _ = applied(source, "identity")
    for test in ("q = 0", "q = -0.0", "q >= 0 AND q < 0.1"):
        assert duckdb.sql(f"SELECT count(*) FROM '{target}' WHERE {test}").fetchall() == [(9,)]
    assert not np.signbit(pq.read_table(target)["q"].to_numpy()).any()


def test_metadata_of_other_schemas_go(tmp_path):
    source = tmp_path / "in.parquet"
    theirs = {"org.apache.spark.sql.parquet.row.metadata": "{}", "pandas": "{}", "avro.schema": "{}"}
    pq.write_table(pa.table({"p": X}).replace_schema_metadata(theirs), source)
    target, _ = applied(source)
    assert set(pq.read_metadata(target).metadata) == {b"ARROW:schema", b"pandas"}


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_what_stops_it_leaves_nothing(error, tmp_path, monkeypatch):
    def stop(share):
        raise error

    source = tmp_path / "in.parquet"
    pq.write_table(rows(), source, row_group_size=1)
    monkeypatch.setattr(parquet_append, "TOGETHER", 1)
    with pytest.raises(error):
        apply_file(PLATT, source, tmp_path / "out.parquet", prediction="p", into="q", progress=stop)
    assert list(tmp_path.iterdir()) == [source]


def spoilt(whole, rng):
    """Cut a file, or change some bytes of its footer or of its pages."""
    kind = rng.integers(4)
    if kind == 0:
        return whole[: rng.integers(1, len(whole))]
    changed = bytearray(whole)
    length = int.from_bytes(whole[-8:-4], "little")
    low, high = [(len(whole) - 8 - length, len(whole) - 8), (4, len(whole) - 8 - length), (-8, 0)][kind - 1]
    for _ in range(rng.integers(1, 4)):
        changed[rng.integers(low, high)] ^= 1 << rng.integers(8)
    return bytes(changed)


def test_spoilt_files_are_refused_or_copied(tmp_path):
    """They end in the library's words, or in a file that is as long as it says."""
    source, target = tmp_path / "in.parquet", tmp_path / "out.parquet"
    pq.write_table(rows().select(["id", "word", "p"])[:60], source, row_group_size=20)
    whole, rng = source.read_bytes(), np.random.default_rng(4)
    refused = 0
    for _ in range(300):
        source.write_bytes(spoilt(whole, rng))
        try:
            done = append_map(PLATT, [source], target, prediction="p", into="q")
        except CalibrantError:
            done = None
        refused += done is None
        if done is not None:
            assert footer_of(target).rows
            target.unlink()
        assert list(tmp_path.iterdir()) == [source]
    assert 100 < refused < 300


def test_a_spoilt_page_of_predictions_is_told_by_who_writes_anew(tmp_path):
    source = tmp_path / "in.parquet"
    pq.write_table(pa.table({"p": np.repeat(X, 4)}), source, use_dictionary=False)
    whole = bytearray(source.read_bytes())
    whole[60:90] = b"\xff" * 30
    source.write_bytes(whole)
    with pytest.raises(CalibrantError, match=r"must be readable as parquet"):
        apply_file(PLATT, source, tmp_path / "out.parquet", prediction="p", into="q")
    assert list(tmp_path.iterdir()) == [source]


@pytest.mark.parametrize("writer", WRITERS)
def test_footers_come_back_byte_by_byte(writer, tmp_path):
    WRITERS[writer](rows(), tmp_path / "in.parquet")
    whole = (tmp_path / "in.parquet").read_bytes()
    footer = read_footer(io.BytesIO(whole))
    assert thrift_compact.write_struct(footer.struct) == whole[footer.start : -8]
