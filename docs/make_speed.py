"""Write docs/speed.md from what `make bench` measured (benchmarks/results)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
START, END = "<!-- speed: written by docs/make_speed.py -->", "<!-- end of speed -->"


def reports() -> dict[str, dict[str, Any]]:
    """Every saved report by name, those of the growth table left out."""
    found = {path.stem: json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))}
    return {name: data for name, data in found.items() if "rows" in data}


def line(row: dict[str, Any]) -> str:
    """One row of a table."""
    if row["ours"] is None:
        return f"| {row['what']} | | {row['yardstick']} | | |"
    limit = "" if row["at_most"] is None else f"{row['at_most']:.3g}"
    limit += ", missed" if row["verdict"] == "NOT MET" else ""
    if row["theirs"] is None:
        return f"| {row['what']} | {row['ours']:.3g} {row['yardstick']} | | | {limit} |"
    theirs = f"{row['yardstick']}: {row['theirs']:.3g} s"
    return f"| {row['what']} | {row['ours']:.3g} s | {theirs} | {row['ratio']:.3g} | {limit} |"


HEAD = [
    "| what | calibrant | beside it, in the same run | ratio | at most |",
    "| --- | --- | --- | ---: | ---: |",
]


INTRODUCTION = [
    "Written by `docs/make_speed.py` from what `make bench` and `make bench-billion` measured; both sides",
    "of a row come from the same run. A ratio is our time over theirs; `at most` is the limit that we set",
    'for the ratio, or for the figure where there is no ratio, and "missed" says that it was not kept.',
    "Times are the best or the median of several runs; those of `billion` and `billion-small` are of one.",
]


def page() -> str:
    """The whole page."""
    parts = ["# Speed, as measured", "", *INTRODUCTION, ""]
    for name, data in reports().items():
        machine = data["machine"]
        parts += [f"## {name}", "", *HEAD, *map(line, data["rows"]), ""]
        parts += [
            f"{machine['cores']} cores, Python {machine['python']}, {', '.join(machine['packages'])}.",
            "",
        ]
    return "\n".join(parts)


def main() -> None:
    """Write the page."""
    (ROOT / "docs" / "speed.md").write_text(page())


if __name__ == "__main__":
    main()
