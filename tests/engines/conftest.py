"""One fixture that hands the same rows over as a frame of every engine; what is not installed is skipped."""

from __future__ import annotations

import os
import shutil
import sys

import pytest

ENGINES = ["pandas", "pandas-pyarrow", "polars", "polars-lazy", "pyarrow", "duckdb", "dask", "ibis"]


def _pandas(rows):
    return pytest.importorskip("pandas").DataFrame(rows)


def _pandas_pyarrow(rows):
    return _pandas(rows).convert_dtypes(dtype_backend="pyarrow")


def _polars(rows):
    return pytest.importorskip("polars").DataFrame(rows, nan_to_null=False, strict=False)


def _polars_lazy(rows):
    return _polars(rows).lazy()


def _pyarrow(rows):
    return pytest.importorskip("pyarrow").table(rows)


def _duckdb(rows):
    duckdb = pytest.importorskip("duckdb")
    table = _pyarrow(rows)
    return duckdb.connect().from_arrow(table)


def _dask(rows):
    return pytest.importorskip("dask.dataframe").from_pandas(_pandas(rows), npartitions=3)


def _ibis(rows):
    return pytest.importorskip("ibis").memtable(_pyarrow(rows))


@pytest.fixture(scope="session")
def spark_session():
    """One local Spark session for all tests; skipped without Spark or Java."""
    pyspark = pytest.importorskip("pyspark.sql")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java")
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    session = (
        pyspark.SparkSession.builder.master("local[2]")
        .appName("calibrant tests")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    yield session
    session.stop()


# of the session: pytest then runs the tests of one engine together, so that Spark starts once
@pytest.fixture(scope="session", params=[*ENGINES, pytest.param("spark", marks=pytest.mark.spark)])
def engine(request):
    """Return a function from rows (a mapping of lists) to a frame of one engine."""
    if request.param == "spark":
        session = request.getfixturevalue("spark_session")

        def frame(rows):
            names = list(rows)
            return session.createDataFrame(list(zip(*rows.values(), strict=True)), schema=names)

        return frame
    maker = "_" + request.param.replace("-", "_")
    assert maker in globals(), f"ENGINES names {request.param}: write {maker}(rows) in this file"
    return globals()[maker]
