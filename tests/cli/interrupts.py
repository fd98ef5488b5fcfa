"""Interrupt commands at random moments of their first second and a half, and count what they leave.

Run `python tests/cli/interrupts.py 200` for the counts in docs/trust.md; test_interrupts.py runs a few.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

START = "from calibrant_command import main; print(1, flush=True); main()"
COLUMNS = ["rows.csv", "-y", "y", "-p", "p"]
COMMANDS = {
    "measures": ["measures"],
    "evaluate": ["evaluate", *COLUMNS, "--html", "out/report.html"],
    "sketch": ["sketch", *COLUMNS, "-o", "out/day.sketch"],
    "recalibrate": ["recalibrate", *COLUMNS, "-o", "out/map.json"],
    "stream": ["stream", *COLUMNS, "-o", "out/stream.csv", "--state", "out/state.json"],
}
EXPECTED = {signal.SIGINT: 130, signal.SIGTERM: 143}
LONGEST = 1.5  # seconds


def write_rows(folder: Path) -> None:
    rng = np.random.default_rng(2)
    p = rng.random(50_000)
    rows = np.column_stack([rng.random(len(p)) < p, p])
    np.savetxt(folder / "rows.csv", rows, "%.6g", ",", header="y,p", comments="")


def interrupt(folder: Path, name: str, number: signal.Signals, delay: float) -> str:
    """Start a command, send the signal, and return "done", "stopped", or what is wrong."""
    (folder / "out").mkdir(exist_ok=True)
    (folder / "scratch").mkdir(exist_ok=True)
    for old in (folder / "out").iterdir():
        old.unlink()
    began = subprocess.Popen(
        [sys.executable, "-c", START, *COMMANDS[name]],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder / "scratch")},
    )
    began.stdout.readline()  # the script has started
    time.sleep(delay)
    began.send_signal(number)
    _, err = began.communicate(timeout=120)
    if "Traceback" in err or "Exception" in err:
        return f"traceback: {err}"
    if any(path.suffix == ".part" for path in (folder / "out").iterdir()):
        return "partial file"
    if list((folder / "scratch").iterdir()):
        return "scratch folder left"
    if began.returncode == 0:
        return "done"
    if began.returncode != EXPECTED[number]:
        return f"exit code {began.returncode} for {number.name}: {err}"
    return "stopped" if err.endswith("calibrant: stopped\n") else f"message: {err}"


def count(trials: int, seed: int) -> Counter[str]:
    """Return how often each result came up."""
    rng, counts = random.Random(seed), Counter()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_rows(folder)
        for trial in range(trials):
            name = list(COMMANDS)[trial % len(COMMANDS)]
            number = list(EXPECTED)[trial // len(COMMANDS) % 2]
            counts[interrupt(folder, name, number, rng.uniform(0, LONGEST))] += 1
    return counts


if __name__ == "__main__":
    print(json.dumps(count(int(sys.argv[1]), seed=int(sys.argv[2]) if len(sys.argv) > 2 else 0), indent=2))
