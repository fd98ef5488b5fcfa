"""Write the speed table of docs/comparison.md from benchmarks/results; run it after `make bench`."""

from __future__ import annotations

import json
from pathlib import Path

HERE = Path(__file__).parent
TARGET = HERE / "comparison.md"
RESULTS = HERE.parent / "benchmarks" / "results"
START, STOP = "<!-- speed table: made by docs/make_comparison.py -->", "<!-- end of the speed table -->"


def page(text: str) -> str:
    """Return the page with its speed table made anew."""
    head, _, rest = text.partition(START)
    _, _, tail = rest.partition(STOP)
    return f"{head}{START}\n{_table()}{STOP}{tail}"


def _table() -> str:
    lines = ["| what | calibrant | against | theirs | ratio |", "| --- | --- | --- | --- | --- |"]
    for file in sorted(RESULTS.glob("*.json")):
        for row in json.loads(file.read_text())["rows"]:
            if row["ours"] is not None and row["theirs"] is not None:
                cells = [row["what"], _time(row["ours"]), row["yardstick"], _time(row["theirs"])]
                lines.append("| " + " | ".join([*cells, f"{row['ratio']:.3g}"]) + " |")
    return "\n".join(lines) + "\n"


def _time(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 0.1 else f"{1000 * seconds:.3g} ms"


if __name__ == "__main__":
    TARGET.write_text(page(TARGET.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"wrote {TARGET}")
