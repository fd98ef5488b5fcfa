"""The recipe of days.py on a cluster of two workers on this machine, one of which may be lost on the way.

``python examples/spark/two_workers.py`` starts a master and two workers, each a process of its own, and runs
the recipe on them; with ``lose``, a worker and what runs in it are killed while they work on the first day.
Any worker can make any sketch, so Spark gives the lost work to the other one and the numbers stay the same.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import days

HOST = "127.0.0.1"
MEMORY = "512m"  # of each executor
QUICK = {  # a lost worker is given up after seconds; by default Spark waits for minutes
    "spark.executor.memory": MEMORY,
    "spark.driver.bindAddress": HOST,
    "spark.driver.host": HOST,
    "spark.shuffle.io.maxRetries": "1",
    "spark.shuffle.io.retryWait": "1s",
}


@contextmanager
def cluster(folder: Path) -> Iterator[tuple[str, list[int]]]:
    """Start a master and two workers; yield the master's address and the workers' process numbers."""
    master = f"spark://{HOST}:{_free_port()}"
    port = ["--port", master.rpartition(":")[2]]
    started = [_started(folder / "master", "master.Master", "--host", HOST, *port)]
    try:
        for name in ("one", "two"):
            limits = ["--cores", "1", "--memory", MEMORY, "--work-dir", str(folder / name)]
            started.append(_started(folder / name, "worker.Worker", "--host", HOST, *limits, master))
        yield master, [process.pid for process in started[1:]]
    finally:
        for process in started:
            _end_group(process.pid)
            process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _started(folder: Path, what: str, *arguments: str) -> subprocess.Popen[bytes]:
    """Start a part of Spark in a process group of its own: what it starts ends with it."""
    import pyspark

    home = Path(pyspark.__file__).parent
    folder.mkdir()
    command = [home / "bin" / "spark-class", f"org.apache.spark.deploy.{what}", "--webui-port", "0"]
    settings = {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": HOST, "SPARK_DAEMON_MEMORY": "256m"}
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            [*command, *arguments], env={**os.environ, **settings}, stdout=log, stderr=log,
            start_new_session=True,
        )  # fmt: skip


def _end_group(leader: int) -> None:
    """Kill a part of Spark and all that it started, as when a machine fails."""
    with suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


def lose_when_busy(session: Any, worker: int, lost: list[int]) -> None:
    """Wait until both workers have tasks in hand, then lose one."""
    tracker = session.sparkContext.statusTracker()
    while True:
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        busy = sum(stage.numActiveTasks for stage in stages if stage is not None)
        if busy >= 2:
            _end_group(worker)
            lost.append(worker)
            return
        time.sleep(0.01)


def main(folder: Path, lose: bool) -> dict[str, Any]:
    """Run the recipe and return its numbers."""
    lost: list[int] = []
    with cluster(folder) as (master, workers):
        session = days.local_session(master, **QUICK)
        try:
            if lose:
                watch = threading.Thread(target=lose_when_busy, args=(session, workers[0], lost), daemon=True)
                watch.start()
            whole, found, after = days.main(session, folder)
        finally:
            session.stop()
    smooth = [sketch.measure("smooth").value for sketch in (whole, after)]
    return {"lost": len(lost), "n": whole.n, "metric": found.metric, "pvalue": found.pvalue, "smooth": smooth}


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # ends the cluster
    with tempfile.TemporaryDirectory() as temporary:
        print(json.dumps(main(Path(temporary), "lose" in sys.argv[1:])))
