"""Write docs/speed.md from what `make bench` measured (benchmarks/results)."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
MEANINGS = {
    "apply": "a map applied to Parquet files of 10^8 rows, next to DuckDB copying them",
    "audit": "audits of 10^6 rows, next to MCGrad",
    "before": "this version next to an earlier one",
    "beyond": "distributions, censored times, abstention",
    "billion": "10^9 rows on disk, next to a bare group-by",
    "billion-small": "the same on fewer rows",
    "decision": "decision losses",
    "distances": "distances to calibration",
    "functions": "every public function",
    "inference": "tests, intervals and comparisons",
    "memory": "peak memory of commands on large files",
    "null": "simulated nulls",
    "online": "streams, next to an empty loop",
    "power": "power of the tests",
    "projection": "slopes at two sizes, for projections",
    "recalibration": "fits, next to other packages",
    "repair": "repairs with covariates",
    "report": "the HTML report",
    "scale": "sketches, next to a bare group-by",
    "spine": "from arrays to Forecasts, next to a sort",
    "startup": "import, first command, first call",
}


def reports() -> dict[str, dict[str, Any]]:
    """Every saved report by name, those of the growth table left out."""
    found = {path.stem: json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))}
    return {name: data for name, data in found.items() if "rows" in data}


def line(row: dict[str, Any]) -> str:
    """One row of a table."""
    if row["ours"] is None:
        return f"| {row['what']} | | {row['yardstick']} | | |"
    limit = "" if row["at_most"] is None else plain(row["at_most"])
    limit += ", missed" if row["verdict"] == "NOT MET" else ""
    if row["theirs"] is None:
        return f"| {row['what']} | {plain(row['ours'])} {row['yardstick']} | | | {limit} |"
    theirs = f"{row['yardstick']}: {plain(row['theirs'])} s"
    return f"| {row['what']} | {plain(row['ours'])} s | {theirs} | {plain(row['ratio'])} | {limit} |"


HEAD = [
    "| what | calibrant | next to it, in the same run | ratio | at most |",
    "| --- | --- | --- | ---: | ---: |",
]


INTRODUCTION = """# Speed

What `make bench` and `make bench-billion` measured. Both sides of a row come from the same run; a ratio is
our time over theirs. "Kept" counts the rows that meet the limit that we set for the ratio, or for the figure
where there is no ratio. Rows with neither a limit nor a peer are left out here; benchmarks/results has them.
"""


def plain(x: float) -> str:
    """Write three significant digits without an exponent."""
    return np.format_float_positional(float(f"{x:.3g}"), trim="-")


def summary(name: str, rows: list[dict[str, Any]]) -> str:
    """One row of the summary: how many limits were kept, and the median ratio to what is next to it."""
    limited = [row for row in rows if row["at_most"] is not None and row["ours"] is not None]
    missed = sum(row["verdict"] == "NOT MET" for row in limited)
    kept = f"{len(limited) - missed} of {len(limited)}" if limited else ""
    ratios = [row["ratio"] for row in rows if row["theirs"] is not None and row["ours"] is not None]
    return f"| {name} | {MEANINGS.get(name, '')} | {kept} | {plain(median(ratios)) if ratios else ''} |"


def page() -> str:
    """The whole page: a summary, then one folded table for each benchmark."""
    found = reports()
    parts = [
        INTRODUCTION,
        "| benchmark | what it measures | kept | median ratio |",
        "| --- | --- | ---: | ---: |",
    ]
    parts += [summary(name, data["rows"]) for name, data in found.items()]
    for name, data in found.items():
        machine = data["machine"]
        shown = [row for row in data["rows"] if row["at_most"] is not None or row["theirs"] is not None]
        parts += ["", "<details>", f"<summary>{name}</summary>", "", *HEAD, *map(line, shown), ""]
        parts += [f"{machine['cores']} cores, Python {machine['python']}, {', '.join(machine['packages'])}."]
        parts += ["", "</details>"]
    return "\n".join(parts) + "\n"


def main() -> None:
    """Write the page."""
    (ROOT / "docs" / "speed.md").write_text(page())


if __name__ == "__main__":
    main()
