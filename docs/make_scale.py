"""Write docs/scale.md from docs/scale.in.md and what `python -m benchmarks scale projection` measured."""

from __future__ import annotations

import json
from math import floor, log10
from pathlib import Path

from calibrant.metrics.lookup import measures

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
LARGE = 10**10
TRILLION, MANY_GROUPS, FEW_CELLS, CLUSTER = 10**12, 10**4, 4096, 64  # rows, groups, cells a group, cores
SHARDS = 1_000  # files of the trillion rows, one sketch each


def figures() -> dict[str, str]:
    """Everything that the page quotes, by name."""
    saved = json.loads((RESULTS / "scale.json").read_text())
    ours = {row["what"]: row["ours"] for row in saved["rows"]}
    rows = ours["rows of the Parquet file"]
    whole = next(row for row in saved["rows"] if row["what"].endswith("all certified measures"))
    scan = ours["Parquet file into a sketch"]
    cores = saved["machine"]["cores"]
    return {
        "rows": f"{rows:,.0f}",
        "megabytes": f"{ours['size of the Parquet file']:,.0f}",
        "cores": str(cores),
        "versions": ", ".join(saved["machine"]["packages"]),
        "means": f"{ours['DuckDB: select avg(p), avg(y)']:.2f}",
        "bare": f"{whole['theirs']:.2f}",
        "scan": f"{scan:.2f}",
        "all": f"{whole['ours']:.2f}",
        "ratio": f"{whole['ratio']:.2f}",
        "peak": f"{ours['peak memory of that process']:,.0f}",
        "arrays": f"{ours['sketch of arrays of 10^7 records']:.2f}",
        "update": f"{ours['update by 10,000 records']:.1f}",
        "disk": f"{ours['a full sketch on disk']:.1f}",
        "memory": f"{ours['a full sketch in memory']:.1f}",
        "merge": f"{ours['merge of 30 full sketches']:.2f}",
        "rate": f"{rows / scan / cores / 1e6:.1f}",
        "projected_minutes": f"{scan / rows * LARGE / 60:,.0f}",
        "projected_gigabytes": f"{ours['size of the Parquet file'] / rows * LARGE / 1e3:,.0f}",
        "projected_seconds_on_64": f"{scan / rows * LARGE * cores / 64:,.0f}",
        "widths": _widths(ours),
        **_projection(),
        "billion": _billion(),
        "uncertified": ", ".join(f"`{row.name}`" for row in measures().values() if not row.certified),
    }


def _billion() -> str:
    """Say what a billion rows took, where they were measured."""
    path = RESULTS / "billion.json"
    rows = json.loads(path.read_text())["rows"] if path.exists() else []
    row = {row["what"]: row for row in rows}
    whole = row.get("sketch, all certified measures, audit and report")
    if whole is None:
        return "`make bench-billion` measures that on 10^9 rows in 20 groups, next to the bare group-by."
    return (
        f"`make bench-billion`, 10^9 rows in 20 groups, {row['size of the pieces']['ours']:.1f} GB of "
        f"Parquet: sketch {row['sketch by 20 groups']['ours']:.0f} s; with all certified measures, audit and "
        f"report {whole['ours']:.0f} s, {whole['ratio']:.2f} times the group-by ({whole['theirs']:.0f} s); "
        f"peak memory {row['peak memory of that process']['ours']:.0f} MB."
    )


def _projection() -> dict[str, str]:
    """Carry the slopes, each measured at two sizes, to a trillion rows in ten thousand groups."""
    rows = json.loads((RESULTS / "projection.json").read_text())["rows"]
    slopes: dict[str, list[tuple[str, float]]] = {}
    for row in rows:
        size, _, what = row["what"].partition(": ")
        if not what:
            what, _, size = row["what"].partition(", ")
        slopes.setdefault(what, []).append((size, row["ours"]))
    scan, stored = slopes["scan by groups"][-1][1] * 1e6, slopes["Parquet"][-1][1]
    held, disk, merging = (slopes[name][-1][1] for name in ("a cell in memory", "a cell on disk", "merging"))
    cells = MANY_GROUPS * FEW_CELLS
    core_seconds, merged = TRILLION / scan, SHARDS * cells * merging / 1e9
    return {
        "slopes": _slope_table(slopes),
        "trillion_rate": f"{scan / 1e6:.1f}",
        "trillion_core_hours": f"{core_seconds / 3600:,.0f}",
        "trillion_minutes": f"{core_seconds / CLUSTER / 60:,.0f}",
        "trillion_terabytes": f"{stored * TRILLION / 1e12:.1f}",
        "trillion_bytes": f"{stored:.1f}",
        "many_cells": f"{cells / 1e6:.0f}",
        "many_memory": f"{cells * held / 1e9:.1f}",
        "many_disk": f"{cells * disk / 1e9:.1f}",
        "cell_memory": f"{held:.0f}",
        "cell_disk": f"{disk:.0f}",
        "cell_merging": f"{merging:.0f}",
        "merge_minutes": f"{merged / 60:,.0f}",
        "merge_minutes_apart": f"{merged / CLUSTER / 60:,.1f}",
        "merge_share": f"{100 * merged / core_seconds:.1f}",
    }


def _slope_table(slopes: dict[str, list[tuple[str, float]]]) -> str:
    units = {
        "scan": "million rows per second and core",
        "scan by groups": "million rows per second and core",
        "Parquet": "bytes per row",
        "a cell in memory": "bytes",
        "a cell on disk": "bytes",
        "merging": "ns per cell",
    }
    lines = ["| slope | at the smaller size | at the larger size |", "| --- | ---: | ---: |"]
    for name, unit in units.items():
        ends = " | ".join(f"{value:.3g} ({size})" for size, value in slopes[name])
        lines.append(f"| {name}, {unit} | {ends} |")
    return "\n".join(lines)


def _widths(ours: dict[str, float]) -> str:
    start = "width of the certificate of "
    found = {what.removeprefix(start): width for what, width in ours.items() if what.startswith(start)}
    lines = [f"| `{name}` | {_two_digits(1e6 * width)} |" for name, width in found.items()]
    return "\n".join(["| measure | width of its interval, in millionths |", "| --- | ---: |", *lines])


def _two_digits(x: float) -> str:
    """Write two significant digits without an exponent."""
    return f"{x:,.0f}" if x >= 10 else f"{x:.{1 - floor(log10(x))}f}"


def page() -> str:
    """The page, with every figure filled in."""
    return (ROOT / "docs" / "scale.in.md").read_text().format(**figures())


if __name__ == "__main__":
    (ROOT / "docs" / "scale.md").write_text(page())
