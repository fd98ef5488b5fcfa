"""Calibration on Spark: sketch each day by country and device, audit the days, recalibrate them.

Run it in one process (needs Java): ``python examples/spark/days.py``; another master may be named. On a real
cluster only the session and the tables change. Spark scans and groups; the driver gets one row per occupied
cell, a few megabytes, and that is enough to say for whom the predictions are wrong and to fit a correction,
which Spark then applies where the data are.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from calibrant import Audit, Recalibration, Sketch, audit, recalibrate
from calibrant.sketch.sketch import merge

DAYS = 3
ROWS = 20_000  # per day
BY = ["country", "device"]


def local_session(master: str = "local[2]", **settings: str) -> Any:
    """Start Spark on this machine: two threads, or the workers of `master`."""
    import pyspark
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers run the same Python as the driver
    os.environ.setdefault("SPARK_HOME", str(Path(pyspark.__file__).parent))  # where workers find Spark
    builder = SparkSession.builder.master(master).appName("calibrant")
    settings = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "4", **settings}
    return builder.config(map=settings).getOrCreate()


def predictions(session: Any, day: int) -> Any:
    """Stand in for your table: a model that is too sure of itself, most of all in one country."""
    from pyspark.sql import functions as sql

    def one_of(seed: int, *names: str) -> Any:
        place = (sql.rand(seed=seed) * len(names) + 1).cast("int")
        return sql.element_at(sql.array(*map(sql.lit, names)), place)

    # always 4 parts, whatever the cluster: what sql.rand draws depends on the part
    frame = session.range(0, ROWS, 1, 4).select(
        sql.rand(seed=day).alias("p"),
        one_of(day + 100, "de", "fr", "it").alias("country"),
        one_of(day + 300, "phone", "desktop").alias("device"),
        sql.rand(seed=day + 200).alias("u"),
    )
    slope = sql.when(sql.col("country") == "it", 0.6).otherwise(0.9)
    truth = 0.5 + slope * (sql.col("p") - 0.5)
    return frame.select("p", *BY, (sql.col("u") < truth).alias("y"))


def sketch_days(session: Any, folder: Path) -> list[Path]:
    """Sketch every day and save it; in production this is the nightly job."""
    paths = []
    for day in range(DAYS):
        sketch = Sketch.from_frame(predictions(session, day), outcome="y", prediction="p", by=BY)
        paths.append(folder / f"day{day}.sketch")
        sketch.save(paths[-1])
        print(f"{paths[-1].name}: {sketch}")
    return paths


def audited(whole: Sketch) -> Audit:
    """Say for whom the predictions are wrong; every number holds for the raw rows within its bounds."""
    found = audit(whole, seed=1)
    print(found)
    for group in found.significant()[:5]:
        print(f"  {group.rule}: Kuiper in [{group.lower:.5f}, {group.upper:.5f}], p = {group.pvalue:.3g}")
    return found


def recalibrated(session: Any, whole: Sketch) -> tuple[Recalibration, Sketch]:
    """Fit on the sketch, apply on the cluster, and sketch the corrected days."""
    fitted = recalibrate(whole, method="platt", seed=1)
    days = [
        Sketch.from_frame(
            fitted.apply(predictions(session, day), prediction="p", into="q"),
            outcome="y",
            prediction="q",
            by=BY,
        )
        for day in range(DAYS)
    ]
    after = merge(*days)
    for name, sketch in (("before", whole), ("after", after)):
        found = sketch.measure("smooth")
        print(f"{name}: smooth {found.value:.5f}, on the raw rows in [{found.lower:.5f}, {found.upper:.5f}]")
    return fitted, after


def main(session: Any, folder: Path) -> tuple[Sketch, Audit, Sketch]:
    """Go from raw days to sketches, to an audit, to recalibrated days."""
    whole = merge(*(Sketch.load(path) for path in sketch_days(session, folder)))
    print(f"all days: {whole}")
    found = audited(whole)
    _, after = recalibrated(session, whole)
    return whole, found, after


if __name__ == "__main__":
    spark = local_session(*sys.argv[1:2])
    try:
        with tempfile.TemporaryDirectory() as temporary:
            main(spark, Path(temporary))
    finally:
        spark.stop()
