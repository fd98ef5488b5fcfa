"""Calibration on Spark: sketch each day by country on the cluster, keep the sketches, merge the week.

Run it with a local cluster (needs Java): ``python examples/spark/days.py``. On a real one only the session
and the tables change. Spark scans and groups; the driver gets one row an occupied cell, a few megabytes.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from calibrant import Sketch
from calibrant.scale.sketch import merge

DAYS = 3
ROWS = 20_000


def local_session() -> Any:
    """Start Spark on two cores of this machine."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers run the same Python as the driver
    builder = SparkSession.builder.master("local[2]").appName("calibrant")
    return (
        builder.config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "4").getOrCreate()
    )


def predictions(session: Any, day: int) -> Any:
    """Stand in for your table: predictions of a model that is too sure of itself in one country."""
    from pyspark.sql import functions as sql

    p = sql.rand(seed=day)
    country = sql.element_at(
        sql.array(sql.lit("de"), sql.lit("fr"), sql.lit("it")), (sql.rand(seed=day + 100) * 3 + 1).cast("int")
    )
    frame = session.range(ROWS).select(
        p.alias("p"), country.alias("country"), sql.rand(seed=day + 200).alias("u")
    )
    truth = sql.when(sql.col("country") == "it", 0.5 + 0.7 * (sql.col("p") - 0.5)).otherwise(sql.col("p"))
    return frame.select("p", "country", (sql.col("u") < truth).alias("y"))


def sketch_days(session: Any, folder: Path) -> list[Path]:
    """Sketch every day and save it; in production this is the nightly job."""
    paths = []
    for day in range(DAYS):
        sketch = Sketch.from_frame(predictions(session, day), outcome="y", prediction="p", by="country")
        paths.append(folder / f"day{day}.sketch")
        sketch.save(paths[-1])
        print(f"{paths[-1].name}: {sketch}")
    return paths


def main(session: Any, folder: Path) -> Sketch:
    """Sketch the days, merge them, and show each country with bounds that hold the exact values."""
    whole = merge(*(Sketch.load(path) for path in sketch_days(session, folder)))
    print(f"all days: {whole}")
    for country, sketch in whole.groups.items():
        found = sketch.measure("smooth")
        print(
            f"{country}: smooth {found.value:.5f}, on the raw rows in [{found.lower:.5f}, {found.upper:.5f}]"
        )
    return whole


if __name__ == "__main__":
    spark = local_session()
    try:
        with tempfile.TemporaryDirectory() as temporary:
            main(spark, Path(temporary))
    finally:
        spark.stop()
