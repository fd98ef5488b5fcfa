"""How everything here is timed and written down: best of several runs, ratios, versions, one file each."""

from __future__ import annotations

import gc
import importlib
import importlib.metadata
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results"


def seconds(action: Callable[[], Any], repeats: int = 5) -> float:
    """Return the best of several timings, after one run that is not counted (compilation, caches)."""
    action()
    best = float("inf")
    for _ in range(repeats):
        gc.collect()
        start = time.perf_counter()
        action()
        best = min(best, time.perf_counter() - start)
    return best


def medians(actions: Mapping[str, Callable[[], Any]], turns: int) -> dict[str, float]:
    """Return the median time of each action, taken in turns, after one turn that is not counted."""
    times: dict[str, list[float]] = {name: [] for name in actions}
    for turn in range(turns + 1):
        for name, action in actions.items():
            gc.collect()
            start = time.perf_counter()
            action()
            if turn:
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(taken) for name, taken in times.items()}


def memory_at_hand(folder: Path, size: int) -> None:
    """Wait for the disk, then write a file and remove it, so that the system has as much memory at hand.

    A host takes back what its virtual machines do not use. To get it again takes several times as long as to
    write a file, and meets one measurement and spares another.
    """
    os.sync()
    for _ in range(2):
        path = folder / "memory-at-hand"
        with path.open("wb", buffering=0) as file:
            for _ in range(0, size, 2**22):
                file.write(bytes(2**22))
        path.unlink()


def peak_memory() -> float:
    """Return the most memory that this process has held, in MB, as Linux counts it.

    `ru_maxrss` would not do: a child inherits it from its parent.
    """
    status = Path("/proc/self/status").read_text()
    [kilobytes] = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")]
    return int(kilobytes) / 1024


def forecast_data(n: int) -> tuple[np.ndarray, np.ndarray]:
    """The data of the testing paper: v uniform on [0, .99], outcomes drawn at v + .01."""
    rng = np.random.default_rng(0)
    v = rng.uniform(0, 0.99, n)
    return rng.random(n) < v + 0.01, v


def peer(name: str) -> ModuleType | None:
    """Import a peer, or return None: the row is then reported as skipped."""
    try:
        return importlib.import_module(name)
    except Exception:  # a peer that cannot be imported here is a peer that cannot be measured here
        return None


def version(package: str) -> str:
    """Return "package 1.2.3"."""
    return f"{package} {importlib.metadata.version(package)}"


@dataclass
class Report:
    """Rows of one benchmark: what was measured, against what, the ratio and what it had to be."""

    name: str
    rows: list[dict[str, Any]] = field(default_factory=list)

    def ratio(
        self,
        what: str,
        ours: float,
        yardstick: str,
        theirs: float,
        at_most: float | None = None,
        headline: bool = False,
    ) -> None:
        """Record ours / theirs; `at_most` is the requirement, where there is one. README shows headlines."""
        ratio = ours / theirs
        verdict = "" if at_most is None else "met" if ratio <= at_most else "NOT MET"
        self._add(Row(what, ours, yardstick, theirs, ratio, at_most, verdict, headline))

    def figure(self, what: str, value: float, unit: str = "s", at_most: float | None = None) -> None:
        """Record one figure."""
        verdict = "" if at_most is None else "met" if value <= at_most else "NOT MET"
        self._add(Row(what, value, unit, None, None, at_most, verdict))

    def skipped(self, what: str, why: str) -> None:
        """Record that a row could not be measured."""
        self._add(Row(what, None, f"skipped: {why}", None, None, None, ""))

    def _add(self, row: Row) -> None:
        self.rows.append(asdict(row))
        print(row, flush=True)

    def save(self, *, keep: bool = False) -> None:
        """Write the rows, with the machine and the versions, to benchmarks/results/NAME.json.

        With `keep`, rows that were saved before and not measured now stay in the file.
        """
        RESULTS.mkdir(exist_ok=True)
        path = RESULTS / f"{self.name}.json"
        earlier = json.loads(path.read_text())["rows"] if keep and path.exists() else []
        rows = {(row["what"], row["yardstick"]): row for row in (*earlier, *self.rows)}
        text = json.dumps({"machine": machine(), "rows": list(rows.values())}, indent=1)
        path.write_text(text + "\n")


@dataclass
class Row:
    """One line of a benchmark."""

    what: str
    ours: float | None
    yardstick: str
    theirs: float | None
    ratio: float | None
    at_most: float | None
    verdict: str
    headline: bool = False

    def __str__(self) -> str:
        if self.ours is None:
            return f"{self.what:<64} {self.yardstick}"
        limit = "" if self.at_most is None else f" (at most {self.at_most:g}: {self.verdict})"
        if self.theirs is None:
            return f"{self.what:<64} {self.ours:.4g} {self.yardstick}{limit}"
        times = f"{self.ours:.4g} s / {self.theirs:.4g} s {self.yardstick}"
        return f"{self.what:<64} {times} = {self.ratio:.3g}{limit}"


def machine() -> dict[str, Any]:
    """Say what this was measured on."""
    packages = ("calibrant", "numpy", "scipy", "numba", "duckdb")
    return {
        "cores": os.cpu_count(),
        "platform": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": [version(name) for name in packages],
    }
