"""Run the Spark recipe on two workers, and end one of them in the middle if told to; print what came out.

A script of its own: a process can have one Spark only. Arguments: folder, and "lose" or "keep".
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

RECIPE = Path(__file__).parents[2] / "examples" / "spark" / "days.py"
MASTER = "local-cluster[2,1,1024]"


def workers(parent: int) -> list[int]:
    """Return the processes below `parent` that run tasks."""
    listed = subprocess.run(["ps", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in listed.splitlines()[1:]]
    below = {parent}
    for _ in range(6):
        below |= {int(pid) for pid, above, _ in rows if int(above) in below}
    return [int(pid) for pid, _, what in rows if int(pid) in below and "CoarseGrainedExecutorBackend" in what]


def lose_one(lost: list[int]) -> None:
    """Wait until both workers are up and busy for a while, then end one of them at once."""
    while len(running := workers(os.getpid())) < 2:
        time.sleep(0.5)
    time.sleep(2)
    os.kill(running[0], signal.SIGKILL)
    lost.append(running[0])


def main(folder: Path, lose: bool) -> None:
    """Run the recipe and print its numbers as the last line."""
    spec = importlib.util.spec_from_file_location("days", RECIPE)
    recipe = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(recipe)
    session, lost = recipe.local_session(MASTER), []
    if lose:
        threading.Thread(target=lose_one, args=(lost,), daemon=True).start()
        while not lost:  # tasks keep both workers busy until one of them is gone
            session.range(10**6).selectExpr("sum(id)").collect()
    whole, found, after = recipe.main(session, folder)
    numbers = [
        whole.n,
        found.metric,
        found.pvalue,
        whole.measure("smooth").value,
        after.measure("smooth").value,
    ]
    session.stop()
    print(json.dumps({"numbers": numbers, "lost": len(lost)}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] == "lose")
