"""NaN in Parquet files: the smallest and largest values that such files state leave it out."""

from __future__ import annotations

import duckdb
import ibis
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from read_files import read_columns

from calibrant import InvalidInputError, Sketch, recalibrate
from calibrant.io.apply_file import apply_file
from calibrant.recalibration.apply import has_many_pieces
from calibrant.sketch import cells

pytestmark = pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")  # Ibis calls it
RNG = np.random.default_rng(0)
P = RNG.uniform(0.1, 0.9, 400)
Y = (RNG.random(400) < P**2).astype(float)
HOLES = P.copy()
HOLES[5] = np.nan
MISSING = {"p": "prediction is missing", "y": "outcome is missing", "w": "weight is missing"}


@pytest.fixture(params=["float64", "float32"])
def file(tmp_path, request):
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"p": HOLES.astype(request.param), "y": Y}), path)
    return path


@pytest.mark.parametrize("method", ["platt", "isotonic", "spline", "histogram", "venn-abers", "identity"])
def test_no_map_gives_nan_a_value(file, method, tmp_path):
    fitted = recalibrate(Y, P, method=method, seed=1)
    known = pq.read_table(file)["p"].to_numpy().astype(float)
    expected = np.full(400, np.nan)
    expected[np.isfinite(known)] = fitted.predict(known[np.isfinite(known)])

    applied = apply_file(fitted, str(file), tmp_path / "out.parquet", prediction="p", into="q")
    assert (applied.rows, applied.unusable) == (400, 1)
    by_file = pq.read_table(tmp_path / "out.parquet")["q"].to_pylist()
    by_sql = duckdb.sql(f"SELECT {fitted.to_sql('p')} AS q FROM '{file}'").fetchall()
    by_relation = fitted.apply(duckdb.sql(f"FROM '{file}'"), prediction="p", into="q").project("q").fetchall()
    table = ibis.duckdb.connect().read_parquet(file)
    by_ibis = fitted.apply(table, prediction="p", into="q").to_pyarrow()["q"].to_pylist()
    by_scan = fitted.apply(pl.scan_parquet(file), prediction="p", into="q").collect()["q"].to_list()
    for found in (by_file, [q for (q,) in by_sql], [q for (q,) in by_relation], by_ibis, by_scan):
        assert found[5] is None
        np.testing.assert_allclose(np.array(found, dtype=float), expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize("column", ["p", "y", "w"])
@pytest.mark.parametrize("by", [None, "g"])
@pytest.mark.parametrize("way", ["group-by", "kernel", "relation", "ibis", "polars", "arrow"])
def test_a_sketch_counts_nan_as_missing(tmp_path, monkeypatch, column, by, way):
    columns = {"p": P.copy(), "y": Y.copy(), "w": 1 + P, "g": np.arange(400) % 3}
    columns[column][5] = np.nan
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table(columns), path)
    names = {"outcome": "y", "prediction": "p", "by": by, "weight": "w" if column == "w" else None}
    if way == "kernel":
        monkeypatch.setattr(cells, "MIN_STREAMED_ROWS", 0)

    def made(**options):
        if way in ("group-by", "kernel"):
            return Sketch.from_file(path, **names, **options)
        frames = {"relation": duckdb.sql(f"FROM '{path}'"), "polars": pl.scan_parquet(path)}
        frames["ibis"] = ibis.duckdb.connect().read_parquet(path)
        return Sketch.from_frame(frames.get(way, pq.read_table(path)), **names, **options)

    said = "no value in row 5 of" if way in ("group-by", "kernel") else "1 row"
    with pytest.raises(InvalidInputError, match=rf"column '{column}' must not be missing; got {said}"):
        made()
    sketch = made(missing="drop")
    assert dict(sketch.rejects) == {MISSING[column]: 1}
    assert sketch.n == 399


def test_columns_are_read_with_nan_as_missing(file):
    read = read_columns([str(file)], ["y", "p"])
    assert np.flatnonzero(np.isnan(read["p"])).tolist() == [5]


def test_long_maps_give_nan_no_value(file):
    rng = np.random.default_rng(1)
    p = rng.random(60_000)
    fitted = recalibrate((rng.random(60_000) < p**2).astype(int), p, method="venn-abers", seed=1)
    assert has_many_pieces(fitted.map)
    by_relation = fitted.apply(duckdb.sql(f"FROM '{file}'"), prediction="p", into="q").project("q").fetchall()
    table = fitted.apply(ibis.duckdb.connect().read_parquet(file), prediction="p", into="q")
    assert by_relation[5] == (None,)
    assert table.to_pyarrow()["q"].to_pylist() == [q for (q,) in by_relation]


@pytest.mark.parametrize("equal", [0.0, 0.3, 1.0])
def test_nan_among_equal_values_is_missing_too(tmp_path, equal):
    """There DuckDB takes the column for that value, and every comparison with it for known."""
    path = tmp_path / "rows.parquet"
    p = np.full(400, equal)
    p[[5, 7, 9]] = np.nan
    pq.write_table(pa.table({"p": p, "y": Y, "w": p + 1}), path)
    names = {"outcome": "y", "prediction": "p", "weight": "w", "missing": "drop"}
    sketches = [Sketch.from_file(path, **names)]
    for frame in (duckdb.sql(f"FROM '{path}'"), ibis.duckdb.connect().read_parquet(path)):
        sketches.append(Sketch.from_frame(frame, **names))
        for method in ("platt", "isotonic", "venn-abers"):
            fitted = recalibrate(Y, P, method=method, seed=1)
            values = fitted.apply(frame, prediction="p", into="q")
            values = values.to_arrow_table() if hasattr(values, "to_arrow_table") else values.to_pyarrow()
            assert [k for k, q in enumerate(values["q"].to_pylist()) if q is None] == [5, 7, 9]
    for sketch in sketches:
        assert dict(sketch.rejects) == {MISSING["p"]: 3}
        assert sketch.n == 397
