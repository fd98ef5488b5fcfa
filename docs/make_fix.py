"""Write docs/fix.md from docs/fix.in.md and what benchmarks recalibration, assessment and apply measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parent / "benchmarks" / "results"


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
    harm = f"harm {others[name]['harm']:.1%}, against {rows['auto']['harm']:.1%}"
    careful = _among_the_careful(n, rows)
    if ahead <= 0:
        less = f"no method gains more than `auto`; the next is `{name}`, {span} behind ({harm})"
        return f"{fits} {less}. {careful}"
    more = f"the best other method, `{name}`, gains {span} more than `auto` on the same fits ({harm})"
    return f"{fits} {more}. {careful}"


def _among_the_careful(n: int, rows: dict[str, Any]) -> str:
    """Which method gains most among those that rarely harm."""
    limit = 0.05 if n < 1_000 else 0.02
    careful = {name: row["change"] for name, row in rows.items() if row["harm"] <= limit}
    best = min(careful, key=lambda name: careful[name])
    rest = ", ".join(name if name == "as they are" else f"`{name}`" for name in careful if name != best)
    return f"Of the methods that harm in at most {limit:.0%} of fits ({rest}, `{best}`), `{best}` gains most."


def timed(found: dict[str, Any]) -> str:
    """A row per figure: seconds, and times those of the yardstick."""
    lines = ["| what | s | next to it | s | ratio |", "| --- | ---: | --- | ---: | ---: |"]
    for row in found["rows"]:
        if row["theirs"] is not None:
            ratio = f"{row['yardstick']} | {row['theirs']:.3g} | {row['ratio']:.2g}"
            lines.append(f"| {row['what']} | {row['ours']:.3g} | {ratio} |")
        elif row["yardstick"] == "s":
            lines.append(f"| {row['what']} | {row['ours']:.3g} | | | |")
    return "\n".join(lines)


def page() -> str:
    """The whole page."""
    text = (HERE / "fix.in.md").read_text()
    for mark, write, name in (
        ("@@TABLES@@", tables, "recalibration_accuracy"),
        ("@@SPEED@@", timed, "recalibration"),
        ("@@APPLY@@", timed, "apply"),
    ):
        text = text.replace(mark, write(json.loads((RESULTS / f"{name}.json").read_text())))
    return text


if __name__ == "__main__":
    (HERE / "fix.md").write_text(page())
