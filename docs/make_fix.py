"""Write docs/fix.md from docs/fix.in.md and what benchmarks/recalibration.py measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parent / "benchmarks" / "results" / "recalibration_accuracy.json"


def tables(found: dict[str, Any]) -> str:
    """One table: a row per method, two columns per number of records; below it, how auto compares."""
    sizes = list(found["tables"])
    heads = [f"n = {int(n):,} | harm (at most)" for n in sizes]
    lines = [f"| method | {' | '.join(heads)} |", "| --- |" + " ---: | ---: |" * len(sizes)]
    for name in found["tables"][sizes[0]]:
        cells = []
        for n in sizes:
            row = found["tables"][n][name]
            cells += [f"{row['change']:+.1f} ± {row['error']:.1f}"]
            cells += [f"{row['harm']:.1%} ({row['harm_at_most']:.1%})"]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    compared = [_compared(int(n), found["tables"][n]) for n in sizes]
    return "\n".join([*lines, "", *compared, "", f"Tasks: {', '.join(found['tasks'])}."])


def _compared(n: int, rows: dict[str, Any]) -> str:
    """How far the best of the others is from auto, on the same fits."""
    others = {name: row for name, row in rows.items() if name != "auto"}
    name = min(others, key=lambda one: others[one]["behind_auto"])
    ahead, error = -others[name]["behind_auto"], others[name]["behind_auto_error"]
    fits, span = f"- n = {n:,}, {rows['auto']['fits']} fits:", f"{abs(ahead):.2f} ± {error:.2f}"
    if ahead <= 0:
        return f"{fits} no method gains more than `auto`; the next is `{name}`, {span} behind."
    return f"{fits} the best other method, `{name}`, gains {span} more than `auto` on the same fits."


def page() -> str:
    """The whole page."""
    found = json.loads(RESULTS.read_text())
    return (HERE / "fix.in.md").read_text().replace("@@TABLES@@", tables(found))


if __name__ == "__main__":
    (HERE / "fix.md").write_text(page())
