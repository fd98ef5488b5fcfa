"""Write docs/fix.md from docs/fix.in.md and what benchmarks/recalibration.py measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parent / "benchmarks" / "results" / "recalibration_accuracy.json"


def tables(found: dict[str, Any]) -> str:
    """One table: a row per method, two columns per number of records."""
    sizes = list(found["tables"])
    heads = [f"n = {int(n):,} | harm" for n in sizes]
    lines = [f"| method | {' | '.join(heads)} |", "| --- |" + " ---: | ---: |" * len(sizes)]
    for name in found["tables"][sizes[0]]:
        cells = []
        for n in sizes:
            row = found["tables"][n][name]
            cells += [f"{row['change']:+.1f}", f"{row['harm']:.0%} of {row['fits']}"]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", f"Tasks: {', '.join(found['tasks'])}."])


def page() -> str:
    """The whole page."""
    found = json.loads(RESULTS.read_text())
    return (HERE / "fix.in.md").read_text().replace("@@TABLES@@", tables(found))


if __name__ == "__main__":
    (HERE / "fix.md").write_text(page())
