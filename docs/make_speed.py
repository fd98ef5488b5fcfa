"""Write docs/speed.md from what `make bench` measured (benchmarks/results); `--csv FILE` writes every row."""

# ruff: noqa: E501
from __future__ import annotations

import csv
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"

# What users wait for: the words of the page, the benchmark and its row.
WAITS = [
    ("`calibrant evaluate` on 10,000 rows", "startup", "evaluate 10^4 rows"),
    ("the first run on a machine, which compiles", "startup", "evaluate 10^4 rows, the first run on a machine"),
    ("`calibrant evaluate --html` on 100,000 rows", "startup", "evaluate --html 10^5 rows"),
    ("`evaluate`, 10 million rows in memory", "inference", "evaluate, 10^7 rows"),
    ("`compare` two models, 10 million rows", "inference", "compare, 10^7 rows"),
    (
        "`audit` 64 groups with p-values, 1 million rows",
        "audit",
        "audit with 199 simulated data sets, 1,000,000 rows x 64 segments",
    ),
    (
        "`recalibrate` with three covariates, fit and assessment, 100,000 rows",
        "waiting",
        "auto with three covariates, n = 100,000: fit and assessment",
    ),
    ("`calibrant apply` a logistic map, 100 million rows of six columns", "apply", "six columns: apply, platt"),
    ("`calibrant sketch` and all certified measures, 100 million rows", "scale", "Parquet file into a sketch and all certified measures"),
    ("sketch, audit and report, 1 billion rows in 20 groups", "billion", "sketch, all certified measures, audit and report"),
]  # fmt: skip

# Next to other packages: the words of the page, the benchmark, its row, the name of the other, its yardstick.
COMPARED = [
    ("kernel error (MMCE), 10,000 rows", "distances", "Laplace kernel, 10^4", "netcal 1.4.0", "MMCE of netcal"),
    ("lower distance, 32,768 levels", "distances", "lower distance, m = 32,768", "HiGHS", "HiGHS"),
    ("smooth error, 100,000 rows", "distances", "smooth of sorted forecasts, 10^5 records", "the authors' script, PyPy", "the authors"),
    ("Venn-Abers, fit and predict, 100,000 rows", "recalibration", "venn-abers, fit and predict, n = 100,000", "venn-abers", "venn-abers"),
    ("centered isotonic fit, 1 million rows", "recalibration", "centered-isotonic, n = 1,000,000", "probcal 0.4.0", "probcal"),
    ("convolved error (smooth ECE), 1 million rows", "distances", "convolved, 10^6", "relplot 1.0.3", "relplot"),
    ("the same", "distances", "convolved, 10^6", "probcal 0.4.0", "probcal"),
    ("audit of 64 groups, 1 million rows, no p-values", "audit", "audit without p-values, 1,000,000 rows x 64 segments", "MCGrad 0.1.5", "Multi"),
    ("the same with family-wise p-values", "audit", "audit with p-values, 1,000,000 rows x 64 segments", "MCGrad 0.1.5", "Multi"),
    ("audit of 1,331 groups with p-values, 100,000 rows", "audit", "audit with p-values, 100,000 rows x 1,331 segments", "MCGrad 0.1.5", "Multi"),
    ("logistic fit, 1 million rows", "recalibration", "platt, n = 1,000,000", "scikit-learn sigmoid", "scikit"),
    ("isotonic fit, 1 million rows", "recalibration", "isotonic, n = 1,000,000", "scikit-learn isotonic", "scikit"),
    ("isotonic fit with a bounded slope, 1 million rows", "recalibration", "bounded-slope, n = 1,000,000", "scikit-learn isotonic", "scikit"),
    ("ECE, 15 bins, 1 million rows", "spine", "binned error, 15 bins, 10^6 raw records", "torchmetrics 1.9.0", "torch"),
    ("the same", "spine", "binned error, 15 bins, 10^6 raw records", "netcal 1.4.0", "netcal"),
    ("the same", "spine", "binned error, 15 bins, 10^6 raw records", "MAPIE 1.6.0", "mapie"),
    ("Kuiper error, 1 million rows", "spine", "Kuiper error, 10^6 raw records", "MCGrad 0.1.5", "mcgrad"),
    ("boosted repair by group, Adult census, logistic model", "repair", "adult.p_lr: boost, fit and predict", "MCGrad 0.1.5", "mcgrad"),
    ("the same, ACS income, logistic model", "repair", "acs.p_lr: boost, fit and predict", "MCGrad 0.1.5", "mcgrad"),
    ("repair with three covariates and its assessment, 100,000 rows", "waiting", "auto with three covariates, n = 100,000: fit and assessment", "one LightGBM fit", "lightgbm"),
    ("apply a logistic map, 100 million rows of six columns", "apply", "six columns: apply, platt", "DuckDB copying the same query", "DuckDB"),
    ("the same with two columns", "apply", "two columns: apply, platt", "DuckDB copying the same query", "DuckDB"),
    ("sketch by 20 groups, 1 billion rows", "billion", "sketch by 20 groups", "DuckDB's group-by", "DuckDB"),
    ("sketch and all certified measures, 100 million rows", "scale", "Parquet file into a sketch and all certified measures", "DuckDB's group-by", "DuckDB"),
]  # fmt: skip

MACHINE = "met on the previous machine; on this one the previous version takes as long"
MEMORY = "met in the run before (1,830 MB); the previous version takes as much as this one today"
ORDERED = "tied rows are put in one order, so that results do not depend on the order of rows"
REASONS = {
    "evaluate 10^4 rows": MACHINE,
    "evaluate, everything asked for, 10^5 rows": "met on the previous machine; not compared on this one",
    "decision loss, 10^6 levels, one record each": MACHINE,
    "bounded-slope, n = 1,000,000": "met in the run before, where scikit-learn took twice as long; the previous "
    "version takes as long on this machine",
    "held: evaluate --json, 10,000,000 rows": MEMORY,
    "held: verify, 10,000,000 rows": MEMORY,
    "Forecasts, weighted and tied, 1e6": ORDERED,
    "Forecasts, fractions, tied, 1e6": ORDERED,
    "calibration_test, 1e5": "0.9 milliseconds slower; the reason was not investigated",
    "cdl, 1e5": "0.8 milliseconds slower; the reason was not investigated",
    "evaluate --html, 1e5 rows, command line": "the goal was half the time of an earlier version",
    "report of 10^5 rows": "a hundred times as many rows, with groups compared and repaired",
    "audit without p-values, 1,000,000 rows x 64 segments": "the goal was a tenth of MCGrad's time",
    "auto with three covariates, n = 100,000: fit and assessment": "several candidates are cross-fitted, LightGBM "
    "is fitted once; most of the time goes into the assessment, which runs only when you read it",
}

INTRODUCTION = """# Speed

All times are from `make bench` and `make bench-billion` on two cores. Times in the same row were measured in the same run.

## How long it takes

| what | seconds |
| --- | ---: |
"""
NEXT_TO = """
## Next to other packages

Seconds for the same task on the same data; below a ratio of 1, calibrant is faster.

| what | calibrant | other | seconds | ratio |
| --- | ---: | --- | ---: | ---: |
"""
MISSED = """
## Limits we missed

Benchmarks have limits for times, memory and accuracy. {kept} of {all} limits are met. The others:

| what | measured | limit | why |
| --- | ---: | ---: | --- |
"""
REST = """
## Every row

<p><a href="speed.csv">speed.csv</a> has every row: all public functions at several sizes, memory, streams, nulls
and sketches.</p>

{machine}. Most rows were measured with {version}; the file names the version of each.
"""


def reports() -> dict[str, dict[str, Any]]:
    """Every saved report by name, those of the growth table left out."""
    found = {path.stem: json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))}
    return {name: data for name, data in found.items() if "rows" in data}


def plain(x: float, digits: int = 2) -> str:
    """Write a few significant digits without an exponent."""
    return np.format_float_positional(float(f"{x:.{digits}g}"), trim="-")


def row_of(found: dict[str, dict[str, Any]], name: str, what: str, yardstick: str = "") -> dict[str, Any]:
    """Return a row of a benchmark; one that was renamed is an error."""
    for row in found[name]["rows"]:
        if row["what"] == what and row["yardstick"].startswith(yardstick):
            return dict(row)
    raise SystemExit(
        f"benchmarks/results/{name}.json has no row {what!r}: name the new one in docs/make_speed.py"
    )


def waits(found: dict[str, dict[str, Any]]) -> list[str]:
    """Return the lines of the first table."""
    return [f"| {words} | {plain(row_of(found, name, what)['ours'])} |" for words, name, what in WAITS]


def next_to_others(found: dict[str, dict[str, Any]]) -> list[str]:
    """Return a line for each comparison with another package."""
    lines = []
    for words, name, what, other, yardstick in COMPARED:
        row = row_of(found, name, what, yardstick)
        ratio, ours, theirs = (plain(row[key]) for key in ("ratio", "ours", "theirs"))
        lines.append(f"| {words} | {ours} | {other} | {theirs} | {ratio} |")
    return lines


def missed(row: dict[str, Any]) -> str:
    """Return a line for a limit that was not kept."""
    value = row["ours"] if row["theirs"] is None else row["ratio"]
    of = row["yardstick"] if row["theirs"] is None else f"of {row['yardstick']}"
    reason = REASONS.get(row["what"], "")
    return f"| {row['what']} | {plain(value, 3)} {of} | {plain(row['at_most'], 3)} | {reason} |"


def page() -> str:
    """Return the page."""
    found = reports()
    rows = [row for data in found.values() for row in data["rows"] if row["ours"] is not None]
    limited = [row for row in rows if row["at_most"] is not None]
    broken = [row for row in limited if row["verdict"] == "NOT MET"]
    machine = found["audit"]["machine"]
    words = f"{machine['cores']} cores, Python {machine['python']}, {', '.join(machine['packages'][1:])}"
    counts = Counter(data["machine"]["packages"][0] for data in found.values() for _ in data["rows"])
    parts = [
        INTRODUCTION + "\n".join(waits(found)),
        NEXT_TO + "\n".join(next_to_others(found)),
        MISSED.format(kept=len(limited) - len(broken), all=len(limited)) + "\n".join(map(missed, broken)),
        REST.format(machine=words, version=counts.most_common(1)[0][0]),
    ]
    return "\n".join(parts)


def write_csv(target: Path) -> None:
    """Write every row of every benchmark."""
    with target.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(
            ["benchmark", "what", "calibrant", "unit or yardstick", "other", "ratio", "limit", "version"]
        )
        for name, data in reports().items():
            for row in data["rows"]:
                numbers = [row[key] for key in ("ours", "yardstick", "theirs", "ratio", "at_most")]
                writer.writerow([name, row["what"], *numbers, data["machine"]["packages"][0]])


if __name__ == "__main__":
    if sys.argv[1:2] == ["--csv"]:
        write_csv(Path(sys.argv[2]))
    else:
        (ROOT / "docs" / "speed.md").write_text(page(), encoding="utf-8")
