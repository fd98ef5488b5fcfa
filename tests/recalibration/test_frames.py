"""Recalibration.apply and to_sql: frames of every kind, lazy ones stay lazy, and what is refused."""

from __future__ import annotations

import datetime as dt
import warnings
from decimal import Decimal

import numpy as np
import pytest

import calibrant as cb
from calibrant.errors import InvalidInputError
from calibrant.recalibration.apply import has_many_pieces
from recalibration.laws import fit, one_per_form
from recalibration.test_recalibrate import X, Y, overconfident

LAZY = ["polars-lazy", "duckdb", "ibis", "dask"]
ENGINES = ["pandas", "pandas-pyarrow", "polars", "pyarrow", *LAZY]


def test_sql_quotes_names_and_thins_on_request():
    y, p = overconfident(3000)
    found = fit(y, p, method="centered-isotonic")
    assert '"a ""b"""' in found.to_sql('a "b"')
    assert "`p`" in found.to_sql("p", "spark")
    assert "FLOAT64" in found.to_sql("p", "bigquery")
    assert "DOUBLE PRECISION" in found.to_sql("p", "postgres")
    thin = found.map.thinned(1e-2)
    assert len(thin.values) < len(found.map.values)
    fine = np.linspace(0, 1, 10_001)
    assert np.abs(thin.predict(fine) - found.predict(fine)).max() <= 1e-2 + 1e-12
    with pytest.raises(cb.CalibrantError, match="dialect must be one of"):
        found.to_sql("p", "oracle")
    with pytest.raises(cb.CalibrantError, match="tolerance"):
        found.to_sql("p", tolerance=-1)


@pytest.mark.parametrize("method", one_per_form())
def test_sql_for_postgres_is_a_double_and_has_no_product_that_vanishes(method):
    """PostgreSQL reads 0.5e0 as a decimal, and stops at the first product that is too small for a double."""
    import duckdb

    found = fit(Y, X, method=method, prevalence=0.01)
    text = found.to_sql("p", "postgres")
    assert text.startswith("CAST(CASE WHEN ")
    assert text.endswith(" END AS DOUBLE PRECISION)")
    column = 'CAST("p" AS DOUBLE PRECISION)'
    assert f"({column} * " not in text
    assert f"({column} - " not in text
    points = np.array([0.0, 5e-324, 1e-300, 0.3, 0.999, 1.0])
    with duckdb.connect() as connection:  # reads the same words
        connection.register("t", {"p": points})
        q = connection.execute(f"SELECT {text} AS q FROM t").fetchnumpy()["q"]
    assert q == pytest.approx(found.predict(points), abs=1e-12)


@pytest.mark.parametrize(("dialect", "name"), [("bigquery", "a`b"), ("bigquery", "a\nb"), ("spark", "a\\b")])
def test_names_that_an_engine_cannot_quote_are_refused(dialect, name):
    found = fit(Y, X, method="platt")
    assert found.to_sql(name, "postgres")
    with pytest.raises(cb.CalibrantError, match="column must be a plain name"):
        found.to_sql(name, dialect)


@pytest.mark.parametrize("method", one_per_form())
@pytest.mark.parametrize("kind", ENGINES)
def test_apply_to_frames(kind, method):
    y, p = overconfident(300)
    found = fit(y, p, method=method)
    frame, back = framed(kind, {"k": np.arange(5.0), "p": np.array([0.0, 0.3, 0.5, 0.999, 1.0])})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cb.RecalibrationWarning)
        out = found.apply(frame, prediction="p", into="q")
    assert type(out) is type(frame)
    q = back(out)
    assert np.asarray(q["q"], float) == pytest.approx(found.predict([0.0, 0.3, 0.5, 0.999, 1.0]), abs=1e-12)
    assert list(q) == ["k", "p", "q"]


@pytest.mark.parametrize("kind", ENGINES)
def test_lazy_engines_are_listed_as_lazy(kind):
    import narwhals as nw

    frame, _ = framed(kind, {"k": np.arange(5.0)})
    assert isinstance(nw.from_native(frame), nw.LazyFrame) == (kind in LAZY), "LAZY gets maps of many pieces"


@pytest.mark.parametrize("method", ["bounded-slope", "venn-abers"])
@pytest.mark.parametrize("kind", LAZY)
def test_long_maps_on_lazy_frames(kind, method):
    """A tree of thousands of choices took these engines minutes to plan."""
    y, p = overconfident(20_000)
    found = fit(y, p, method=method)
    assert has_many_pieces(found.map)
    cuts = found.map.values[:400]
    x = np.concatenate((cuts, np.nextafter(cuts, 2.0), np.nextafter(cuts, -1.0), [0.0, 0.5, 1.0])).clip(0, 1)
    column = np.append(x, [np.nan, -0.1, 1.5])
    taken, _ = framed(kind, {"k": np.arange(float(len(column))), "p": column, "q": column})
    with pytest.raises(InvalidInputError, match="must not be in the frame already"):
        found.apply(taken, prediction="p", into="q")
    frame, back = framed(kind, {"k": np.arange(float(len(column))), "p": column})
    out = found.apply(frame, prediction="p", into="q")
    assert type(out) is type(frame)
    read = back(out)
    assert list(read) == ["k", "p", "q"]
    q = np.array([np.nan if v is None else v for v in read["q"]], dtype=float)
    assert q[:-3] == pytest.approx(found.predict(x), abs=1e-12)
    assert np.isnan(q[-3:]).all()


def framed(kind, columns):
    """A frame of some kind, and how to read it back as a dict of arrays ordered by k."""
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    def by_pandas(frame):
        return dict(frame.sort_values("k").reset_index(drop=True).items())

    if kind == "pandas":
        return pd.DataFrame(columns, index=[9, 4, 7, 1, 0]), by_pandas
    if kind == "pandas-pyarrow":
        return pd.DataFrame(columns).convert_dtypes(dtype_backend="pyarrow"), by_pandas
    if kind == "polars":
        return pl.DataFrame(columns), lambda f: f.to_dict(as_series=False)
    if kind == "polars-lazy":
        return pl.LazyFrame(columns), lambda f: f.collect().to_dict(as_series=False)
    if kind == "pyarrow":
        return pa.table(columns), lambda f: f.to_pydict()
    table = pa.table(columns)
    if kind == "duckdb":
        import duckdb

        return duckdb.from_arrow(table), lambda f: by_pandas(f.df())
    if kind == "ibis":
        import ibis

        return ibis.memtable(table), lambda f: f.order_by("k").to_pyarrow().to_pydict()
    assert kind == "dask", f"framed() makes no {kind} frame: give it a branch above"
    import dask.dataframe as dd

    return dd.from_pandas(pd.DataFrame(columns), npartitions=2), lambda f: by_pandas(f.compute())


def test_apply_counts_rows_without_a_value_and_outside_the_range():
    import polars as pl

    found = fit(Y, X, method="isotonic")
    frame = pl.DataFrame({"p": [0.1, 0.5, None, 1.7, float("nan")]})
    with pytest.warns(cb.RecalibrationWarning) as reported:
        out = found.apply(frame, prediction="p")
    assert [str(w.message).split(" row")[0] for w in reported] == ["3", "1"]
    assert out["p_recalibrated"].to_list() == [0.25, 0.5, None, None, None]
    with pytest.raises(cb.CalibrantError, match="column must be one of p"):
        found.apply(frame, prediction="q")
    with pytest.raises(cb.CalibrantError, match="frame must be a data frame"):
        found.apply([1, 2], prediction="p")


@pytest.mark.parametrize("kind", ["pandas", "polars", "lazy", "arrow"])
@pytest.mark.parametrize("column", [["a", "b"], ["0.1", "0.2"], [dt.date(2024, 1, 1)] * 2, [[0.1], [0.2]]])
def test_a_column_that_holds_no_numbers_is_refused_by_name_in_every_frame(kind, column):
    pd, pl, pa = map(pytest.importorskip, ("pandas", "polars", "pyarrow"))
    make = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "lazy": pl.LazyFrame, "arrow": pa.table}[kind]
    found = cb.recalibrate([0, 1] * 4, [0.2, 0.7] * 4, method="platt")
    with pytest.raises(cb.InvalidInputError, match=r"column 'p' must (be numeric|have one number per row)"):
        found.apply(make({"p": column}), prediction="p")


@pytest.mark.parametrize("bits", ["int64", "uint64"])
@pytest.mark.parametrize("kind", ["numpy", "pyarrow", "polars", "pandas", "pandas-arrow"])
def test_whole_numbers_out_of_range_get_no_value(kind, bits):
    pd, pl, pa = map(pytest.importorskip, ("pandas", "polars", "pyarrow"))
    whole = pa.array([0, 1, 2, 2**63 - 1, None][: 4 if kind == "numpy" else 5], getattr(pa, bits)())
    nullable = {"int64": "Int64", "uint64": "UInt64"}[bits]
    make = {
        "numpy": lambda: pd.DataFrame({"p": whole.to_numpy()}),
        "pyarrow": lambda: pa.table({"p": whole}),
        "polars": lambda: pl.from_arrow(pa.table({"p": whole})),
        "pandas": lambda: pd.DataFrame({"p": pd.array(whole.to_pylist(), dtype=nullable)}),
        "pandas-arrow": lambda: pa.table({"p": whole}).to_pandas(types_mapper=pd.ArrowDtype),
    }[kind]
    found = fit(Y, X, method="platt")
    with pytest.warns(cb.RecalibrationWarning) as reported:
        out = found.apply(make(), prediction="p", into="q")
    assert str(reported[0].message).startswith(f"{len(whole) - 2} rows have no prediction")
    q = pa.table({"q": out["q"]})["q"].to_pandas().to_numpy(dtype=float)
    assert q[:2] == pytest.approx(found.predict([0.0, 1.0]), abs=1e-12)
    assert np.isnan(q[2:]).all()


def test_columns_of_one_name_and_decimals():
    pd, pa = map(pytest.importorskip, ("pandas", "pyarrow"))
    found = cb.recalibrate([0, 1] * 4, [0.3, 0.7] * 4, method="histogram", bins=2)
    with pytest.raises(cb.InvalidInputError, match="columns of different names; got 'p' 2 times"):
        found.apply(pd.DataFrame([[0.1, 0.2]], columns=["p", "p"]), prediction="p")
    with pytest.raises(cb.InvalidInputError, match="column 'p' must be numeric; got the text 'x' in row 1"):
        found.apply(pd.DataFrame({"p": pd.Series([0.1, "x"], dtype=object)}), prediction="p")
    cents = pa.table({"p": [Decimal(k) / 100 for k in range(30, 71)]})
    mapped = found.apply(cents, prediction="p")["p_recalibrated"].to_pylist()
    assert mapped == found.predict([k / 100 for k in range(30, 71)]).tolist()
