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
    """Which method gains most among those that seldom harm."""
    limit = 0.05 if n < 1_000 else 0.02
    careful = {name: row["change"] for name, row in rows.items() if row["harm"] <= limit}
    best = min(careful, key=lambda name: careful[name])
    rest = ", ".join(name if name == "as they are" else f"`{name}`" for name in careful if name != best)
    return f"Of what harms in at most {limit:.0%} of fits ({rest}, `{best}`), `{best}` gains most."


def assessed(found: dict[str, Any]) -> str:
    """A row per setting, and what they come to."""
    rows = found["settings"]
    lines = [
        '| method | records | logits times | false "helps" (at most) | gain in interval | samples |',
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in rows:
        n = row["repeats"]
        method = row["method"] + ("" if row["kind"] == "rows" else f", {row['kind']}")
        false = f"{row['false_helps'] / n:.1%} ({row['false_at_most']:.1%})"
        lines.append(
            f"| {method} | {row['n']:,} | {row['slope']:g} | {false} | {row['covered'] / n:.1%} | {n:,} |"
        )
    share = [row["covered"] / row["repeats"] for row in rows]
    worst = rows[share.index(min(share))]
    kind = "" if worst["kind"] == "rows" else f" in {worst['kind']}"
    return "\n".join(
        [
            *lines,
            "",
            f"The interval holds the true gain in {sum(share) / len(share):.1%} of samples on average, least "
            f"({min(share):.1%}) for `{worst['method']}` with {worst['n']:,} records{kind} and logits times "
            f"{worst['slope']:g}.",
            "The gains in smooth and U-calibration error have no interval: those that we tried held the true "
            "gain in as few as 48% of samples.",
        ]
    )


def banded(found: dict[str, Any]) -> str:
    """A row per rounding: mean coverage of the band, the worst prediction, and where that is."""
    lines = ["| scores | mean | worst | where |", "| --- | ---: | ---: | --- |"]
    for step in dict.fromkeys(row["step"] for row in found["bands"]):
        rows = [row for row in found["bands"] if row["step"] == step]
        known = [[share for share in row["covered"] if share is not None] for row in rows]
        worst = min(rows, key=lambda row: min(share for share in row["covered"] if share is not None))
        least = min(share for share in worst["covered"] if share is not None)
        mean = sum(map(sum, known)) / sum(map(len, known))
        at = 0.1 + 0.2 * worst["covered"].index(least)
        where = f"{worst['scores']} scores, {worst['curve']}, n = {worst['n']:,}, at {at:.1f}"
        name = "as they are" if step is None else f"rounded to {step:g}"
        lines.append(f"| {name} | {mean:.1%} | {least:.1%} | {where} |")
    sets = found["bands"][0]["sets"]
    kinds = "four kinds of scores, six curves and n = 200, 1,000 and 5,000"
    return "\n".join([*lines, "", f"{sets} samples for each of {kinds}, at five predictions."])


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
        ("@@ASSESSMENT@@", assessed, "assessment"),
        ("@@BANDS@@", banded, "assessment"),
        ("@@SPEED@@", timed, "recalibration"),
        ("@@APPLY@@", timed, "apply"),
    ):
        text = text.replace(mark, write(json.loads((RESULTS / f"{name}.json").read_text())))
    return text


if __name__ == "__main__":
    (HERE / "fix.md").write_text(page())
