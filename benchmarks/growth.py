"""How the time of each measure grows with n, from 10^3 to 10^7, on Forecasts built before.

Continuous data, so there are as many levels as records. A measure that has passed a limit is not taken at
the next size.
"""

from __future__ import annotations

import gc
import json
import time
import warnings

import calibrant as cb
from benchmarks.harness import RESULTS, forecast_data, machine

SIZES = [10**k for k in range(3, 8)]
LIMIT = 20.0  # seconds; ten times as many records are then not tried


def main() -> None:
    """Run, print a table and save it as JSON and Markdown."""
    warnings.simplefilter("ignore", cb.LevelSetWarning)
    columns = {"Forecasts": [_build(n) for n in SIZES]}
    for name in cb.measures():
        columns[name] = []
    for n in SIZES:
        y, v = forecast_data(n)
        f = cb.Forecasts(y, v)
        assert len(f.curve) == len(f.residuals) + 1
        for name in cb.measures():
            past = columns[name]
            past.append(None if past and (past[-1] is None or past[-1] > LIMIT) else _taken(f, name))
            print(f"n = {n:>10,}  {name:<16} {past[-1]}", flush=True)
    _save(columns)


def _build(n: int) -> float:
    y, v = forecast_data(n)
    return _best(lambda: cb.Forecasts(y, v))


def _taken(f: cb.Forecasts, name: str) -> float:
    return _best(lambda: cb.measure(f, name))


def _best(action) -> float:
    """Best of up to five runs after one that is not counted, fewer when a run is long."""
    times = []
    for _ in range(6):
        gc.collect()
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
        if sum(times) > 5.0 and len(times) > 1:
            break
    return min(times[1:])


def _save(columns: dict[str, list[float | None]]) -> None:
    RESULTS.mkdir(exist_ok=True)
    data = {"machine": machine(), "sizes": SIZES, "seconds": columns}
    (RESULTS / "growth.json").write_text(json.dumps(data, indent=1) + "\n")
    head = "| | " + " | ".join(f"{n:,}" for n in SIZES) + " |"
    lines = [head, "| --- |" + " ---: |" * len(SIZES)]
    for name, times in columns.items():
        lines.append(f"| {name} | " + " | ".join("" if t is None else f"{t:.2g}" for t in times) + " |")
    text = "# Seconds against the number of records\n\nWritten by `python -m benchmarks growth`.\n\n"
    (RESULTS / "growth.md").write_text(text + "\n".join(lines) + "\n")
