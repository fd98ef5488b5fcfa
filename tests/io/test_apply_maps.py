"""calibrant apply: every map gives each row what predict gives it, whichever way it is applied."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant import recalibrate, recalibrations
from calibrant.io import apply_file as apply_module
from calibrant.io.apply_file import apply_file
from calibrant.recalibration.apply import LookupAlgebra
from calibrant.recalibration.sql import Sql

N = 12_000
METHODS = [name for name, row in recalibrations().items() if row.fit is not None and not row.needs_covariates]


@pytest.fixture
def without_pyarrow(monkeypatch):
    """Have DuckDB write Parquet files, as it does where pyarrow is not installed."""
    monkeypatch.setattr(apply_module, "find_spec", lambda name: None)


def records(n=3_000):
    rng = np.random.default_rng(0)
    p = rng.beta(0.6, 1.2, n)
    return (rng.random(n) < p**1.3).astype(float), p


def awkward(fitted):
    """Predictions at the cuts of a map, a hair off them, at the ends, and anywhere."""
    x = np.random.default_rng(1).random(N)
    held = [getattr(fitted.map, name, np.array([])) for name in ("values", "edges")]
    cuts = np.concatenate(held)[: N // 4]
    near = np.concatenate((cuts, np.nextafter(cuts, 2.0), np.nextafter(cuts, -1.0)))
    x[: len(near)] = np.clip(near, 0.0, 1.0)
    x[-4:] = 0.0, 1.0, np.nextafter(1.0, 0.0), 5e-324
    return x


def check_file(fitted, folder):
    x = awkward(fitted)
    written = x.astype(object)
    written[7::1000], written[8::1000], written[9::1000], written[10::1000] = None, np.nan, 1.5, -0.25
    table = pa.table({"row": np.arange(N), "p": pa.array(written, pa.float64(), from_pandas=False)})
    pq.write_table(table, folder / "in.parquet", row_group_size=1_000, store_schema=False)
    done = apply_file(fitted, str(folder / "in.parquet"), folder / "out.parquet", prediction="p", into="q")
    again = pq.read_table(folder / "out.parquet")
    assert again["row"].to_pylist() == list(range(N))
    unusable = np.isin(np.arange(N) % 1000, [7, 8, 9, 10])
    assert done.unusable == unusable.sum()
    assert (np.asarray(again["q"].is_null()) == unusable).all()
    q = again["q"].to_numpy()[~unusable]
    np.testing.assert_allclose(q, fitted.predict(x[~unusable]), rtol=0, atol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_every_row_gets_what_predict_says(method, tmp_path, request):
    y, p = records()
    fitted = recalibrate(y, p, method=method, seed=0)
    check_file(fitted, tmp_path)
    request.getfixturevalue("without_pyarrow")
    check_file(fitted, tmp_path)


@pytest.mark.parametrize("source", ["parquet", "csv"])
@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize("arrow", [True, False])
def test_rows_keep_their_order(source, ending, arrow, tmp_path, request):
    import duckdb

    if not arrow:
        request.getfixturevalue("without_pyarrow")
    y, p = records(20_000)
    fitted = recalibrate(y, p, method="bounded-slope")
    x = np.random.default_rng(2).random(400_000)
    rows = f"SELECT row_number() OVER () - 1 AS row, p FROM read_parquet('{tmp_path}/x.parquet')"
    pq.write_table(pa.table({"p": x}), tmp_path / "x.parquet")
    duckdb.sql(f"COPY ({rows}) TO '{tmp_path}/in.{source}' (ROW_GROUP_SIZE 4096)" if source == "parquet"
               else f"COPY ({rows}) TO '{tmp_path}/in.{source}'")  # fmt: skip
    target = tmp_path / f"out.{ending}"
    apply_file(fitted, str(tmp_path / f"in.{source}"), target, prediction="p", into="q")
    query = f"SELECT CAST(row AS BIGINT) AS row, q FROM '{target}'"
    again = duckdb.connect().execute(query).fetchnumpy()
    assert (again["row"] == np.arange(len(x))).all()
    np.testing.assert_allclose(again["q"], fitted.predict(x), rtol=0, atol=1e-12)


@settings(max_examples=40)
@given(st.data())
def test_lists_find_the_piece_that_a_search_finds(data):
    import duckdb

    places = st.floats(0, 1) | st.integers(0, 16).map(lambda k: k / 16) | st.floats(0, 1e-3)
    cuts = np.unique(data.draw(st.lists(places, min_size=1, max_size=60)))
    p = np.concatenate((cuts, np.nextafter(cuts, 2.0), np.nextafter(cuts, -1.0), [0.0, 0.5, 1.0])).clip(0, 1)
    algebra = LookupAlgebra()
    found = algebra.pieces(Sql("p"), cuts, (np.arange(len(cuts) + 1.0),), lambda number: number)
    listed = ", ".join(f"{numbers} AS {name}" for name, numbers in algebra.lists.items())
    rows = f"SELECT unnest($p) AS p, * FROM (SELECT {listed})"
    for name, text in algebra.columns:
        rows = f"SELECT *, {text} AS {name} FROM ({rows})"
    with duckdb.connect() as connection:
        pieces = connection.execute(f"SELECT {found.text} AS k FROM ({rows})", {"p": p.tolist()}).fetchall()
    assert [int(k) for (k,) in pieces] == np.searchsorted(cuts, p, side="right").tolist()


KINDS = ["float64", "float32", "no statistics", "csv"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ending", ["parquet", "parquet without_pyarrow", "csv"])
def test_rows_outside_the_range_seen_are_counted(kind, ending, tmp_path, request):
    """Some row groups lie inside it, some beyond, some hold values that are not predictions."""
    ending, _, way = ending.partition(" ")
    if way:
        request.getfixturevalue(way)
    fitted = recalibrate([0, 1, 0, 1], [0.2, 0.4, 0.6, 0.8], method="platt")
    inside, beyond = [0.2, 0.5, 0.8, np.nan], [0.1, 0.9, 0.19, 0.0, 1.0, 0.5, np.nan]
    unusable = [np.nan, 1.5, -0.5, np.inf, -np.inf, None]
    cells = [*inside * 50, *beyond * 50, *unusable * 10, 0.5]
    kept = pa.array(cells, pa.float32() if kind == "float32" else pa.float64(), from_pandas=False)
    path = tmp_path / ("in.csv" if kind == "csv" else "in.parquet")
    if kind == "csv":
        path.write_text("p,k\n" + "".join(f"{'' if cell is None else cell},1\n" for cell in cells))
    else:
        known = kind != "no statistics"
        pq.write_table(
            pa.table({"p": kept}), path, row_group_size=50, write_statistics=known, store_schema=False
        )
    done = apply_file(fitted, str(path), tmp_path / f"out.{ending}", prediction="p", into="q")
    rounded = 50 if kind == "float32" else 0  # 0.2 and 0.8 as floats lie above 0.2 and 0.8
    assert (done.rows, done.unusable, done.outside) == (len(cells), 50 + 50 + 60, 250 + rounded)
