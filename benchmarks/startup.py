"""What a person waits for: evaluate at 10^4 rows, its first run on a machine, a report of 10^5 rows.

Each run is a process of its own, with byte code written as for an installed package; commands take turns and
medians are compared. The first run finds no machine code: it has an empty folder for it.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.harness import Report, forecast_data

TURNS = 7
FIRST_RUNS = 3
IMPORTS = "import numba, scipy.optimize, duckdb"
COMMAND = "from calibrant.cli.main import main; main()"


def main() -> None:
    """Run and save."""
    report = Report("startup")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        few, many = written(folder, 10**4), written(folder, 10**5)
        page = ["--html", str(folder / "page.html")]
        evaluated(many, *page)  # byte code and machine code are there from now on
        commands = {
            "few": lambda: evaluated(few),
            "page": lambda: evaluated(many, *page),
            "none": _imported,
        }
        turns = [{name: run() for name, run in commands.items()} for _ in range(TURNS)]
        taken = {name: statistics.median(turn[name] for turn in turns) for name in commands}
        first = statistics.median(
            evaluated(few, NUMBA_CACHE_DIR=str(folder / f"cache{k}")) for k in range(FIRST_RUNS)
        )
    bare = taken["none"]
    report.ratio("evaluate 10^4 rows", taken["few"], IMPORTS, bare, 1.5 + 0.5 / bare, headline=True)
    report.figure("evaluate 10^4 rows, the first run on a machine", first, "s", 6.0)
    report.figure("evaluate --html 10^5 rows", taken["page"], "s", 3.5)
    report.save()


def written(folder: Path, n: int) -> Path:
    """Write this many rows as text."""
    y, v = forecast_data(n)
    path = folder / f"{n}.csv"
    path.write_text("y,p\n" + "".join(f"{a:d},{b}\n" for a, b in zip(y, v, strict=True)))
    return path


def evaluated(path: Path, *options: str, **variables: str) -> float:
    """Return the time of the command in a process of its own, with further variables of its environment."""
    chosen = ["evaluate", str(path), "-y", "y", "-p", "p", "--seed", "1", *options]
    return _timed([sys.executable, "-c", COMMAND, *chosen], variables)


def _imported() -> float:
    return _timed([sys.executable, "-c", IMPORTS], {})


def _timed(command: list[str], more: dict[str, str]) -> float:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    start = time.perf_counter()
    subprocess.run(command, check=True, env={**kept, **more}, capture_output=True)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
