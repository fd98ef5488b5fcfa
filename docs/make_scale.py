"""Write docs/scale.md from docs/scale.in.md and what `python -m benchmarks scale` measured."""

from __future__ import annotations

import json
from pathlib import Path

from calibrant.measures.registry.lookup import measures

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "scale.json"
LARGE = 10**10


def figures() -> dict[str, str]:
    """Everything that the page quotes, by name."""
    saved = json.loads(RESULTS.read_text())
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
        "uncertified": ", ".join(f"`{row.name}`" for row in measures().values() if not row.certified),
    }


def _widths(ours: dict[str, float]) -> str:
    start = "width of the certificate of "
    found = {what.removeprefix(start): width for what, width in ours.items() if what.startswith(start)}
    lines = [f"| `{name}` | {width:.1e} |" for name, width in found.items()]
    return "\n".join(["| measure | width of its interval |", "| --- | ---: |", *lines])


def page() -> str:
    """The page, with every figure filled in."""
    return (ROOT / "docs" / "scale.in.md").read_text().format(**figures())


if __name__ == "__main__":
    (ROOT / "docs" / "scale.md").write_text(page())
