"""Calibrate a stream on Spark Structured Streaming: micro-batches come in, calibrated predictions go out.

Run it with a local cluster (needs Java): ``python examples/spark/online.py``. Spark reads new files as they
arrive and hands each micro-batch to `Calibrating`. It calibrates the whole batch before it learns any of its
outcomes, writes the result, and keeps the calibrator and the number of the batch in one state file that is
written last. Spark repeats a batch after a failure, with the same number: a batch that the state has seen is
skipped, so every outcome is learned exactly once.
"""

from __future__ import annotations

import csv
import json
import os
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

from calibrant.files import atomic_write, lock_file
from calibrant.online import OnlineCalibrator
from calibrant.online.state import read_text

FILES, ROWS = 4, 500
SCHEMA = "at long, region string, p double, y int"


class Calibrating:
    """What is done with each micro-batch: calibrate, write, learn, save."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.state = folder, folder / "state.json"

    def __call__(self, batch: Any, number: int) -> None:
        """Handle one micro-batch; the driver gets its rows, so keep the batches as small as a day."""
        rows = batch.orderBy("at").collect()
        with lock_file(self.state):
            last, calibrator = self.opened()
            if number <= last or not rows:
                return
            y, p, region = ([row[name] for row in rows] for name in ("y", "p", "region"))
            run = calibrator.run(y, p, by=region, batches=[number] * len(rows))
            lines = [f"{row['at']},{q!r}" for row, q in zip(rows, run.predictions.tolist(), strict=True)]
            atomic_write(
                self.folder / f"calibrated-{number:05}.csv", "\n".join(["at,calibrated", *lines, ""])
            )
            atomic_write(self.state, json.dumps({"batch": number, "calibrator": calibrator.to_json()}))

    def opened(self) -> tuple[int, OnlineCalibrator]:
        """Return the number of the last batch that was learned, and the calibrator after it."""
        if not self.state.exists():
            return -1, OnlineCalibrator(by="region")
        kept = json.loads(read_text(self.state))
        return int(kept["batch"]), OnlineCalibrator.from_json(kept["calibrator"])


def local_session() -> Any:
    """Start Spark on two cores of this machine."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers run the same Python as the driver
    builder = SparkSession.builder.master("local[2]").appName("calibrant")
    return (
        builder.config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "4").getOrCreate()
    )


def arrive(folder: Path, number: int) -> None:
    """Stand in for your stream: one more file, from a model that is too sure of itself in one region."""
    rng = random.Random(number)
    folder.mkdir(exist_ok=True)
    with (folder / f"{number}.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        for row in range(ROWS):
            truth, region = rng.random(), rng.choice(["north", "south"])
            p = truth if region == "north" else truth**2 / (truth**2 + (1 - truth) ** 2)
            writer.writerow([number * ROWS + row, region, p, int(rng.random() < truth)])


def drain(session: Any, folder: Path) -> None:
    """Handle all files that are there, one per micro-batch, going on where the last call stopped."""
    stream = session.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).csv(str(folder / "in"))
    writer = stream.writeStream.foreachBatch(Calibrating(folder)).trigger(availableNow=True)
    writer.option("checkpointLocation", str(folder / "checkpoint")).start().awaitTermination()


def main(session: Any, folder: Path) -> OnlineCalibrator:
    """Let files arrive in two parts, with a stop in between, and return the calibrator at the end."""
    for part in (range(FILES // 2), range(FILES // 2, FILES)):
        for number in part:
            arrive(folder / "in", number)
        drain(session, folder)
    calibrator = Calibrating(folder).opened()[1]
    print(calibrator)
    return calibrator


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        main(local_session(), Path(place))
