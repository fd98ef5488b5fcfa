"""Write docs/measures.md from the registry: run it after adding or changing a row."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from calibrant.metrics.bibliography import entry_of
from calibrant.metrics.lookup import measures
from calibrant.metrics.registry import Measure

DOI = "https://doi.org/"
TARGET = Path(__file__).parent / "measures.md"
FAMILIES = {
    "distances": "Distances to calibration",
    "distance": "Errors that are equivalent to the distance",
    "curve": "Functionals of the cumulative curve",
    "truthful": "Truthful errors, for ranking models",
    "levels": "Errors over the distinct predictions",
    "bins": "Binned errors",
    "kernel": "Kernel errors",
    "decisions": "Decision loss",
    "scores": "Proper scores and their miscalibration part",
    "regression": "Recalibration summaries of clinical statistics",
}
HEAD = """# Choosing a measure

- **How far from calibrated am I?** `smooth`: exact, needs no bins, and within a factor 2 of the lower distance to
  calibration, which is how far the predictions would have to move. `lower-distance` is that distance itself.
- **Is it real, and where?** `kuiper`: its law for calibrated data is known, and it names the interval of predictions where
  the residuals add up most.
- **Which of two models is better calibrated?** `atb`: truthful, so no model gains by distorting its predictions.
- **What does it cost me?** `cdl`: the most that anyone who acts on the predictions can lose, over all decisions with payoffs
  between 0 and 1. It needs predictions that repeat, or a recalibration first.
- **My field expects the usual number.** `ece`, with 15 bins. It depends on the bins, jumps when a prediction moves by a
  hair, and can be 0 for forecasts that are badly off.

## Properties

| property | meaning |
| --- | --- |
| continuous | a small change of the predictions changes the value little |
| complete | 0 (or the ideal value) for perfectly calibrated forecasts, and samples of them tend to it; "population": samples do not |
| sound | 0 (or the ideal value) only for those |
| valid | a test by it tells smooth errors above this rate in the number of records T from 0 |
| truthful | "strict": only the truth is best; "batch": the truth is never beaten when all predictions come first; "approximate": beaten by a constant factor at most, again when all predictions come first ([more](truthful.md)) |
| consistent (c, s) | the value lies between the powers s and c of the distance to calibration, up to constants |
| Lipschitz | the value changes by at most this constant times the mean change of the predictions |
| certified | a [sketch](scale.md) proves bounds on the value of the rows it was made from |
| cost | after the sort, for m distinct predictions |
"""  # noqa: E501


def page() -> str:
    """Return the page."""
    rows = list(measures().values())
    parts = [HEAD, _properties(rows)]
    for family in dict.fromkeys(row.family for row in rows):
        members = [row for row in rows if row.family == family]
        parts.append(f"## {FAMILIES.get(family, family.capitalize())}\n")
        parts.extend(_entry(row) for row in members)
    return "\n".join(parts)


def _properties(rows: list[Measure]) -> str:
    shown = [["measure", "key", "continuous", "complete", "sound", "truthful", "certified"]]
    theory = [["key", "valid", "consistent (c, s)", "Lipschitz", "cost"]]
    for row in rows:
        key = f"`{row.name}`"
        shown.append(
            [
                row.words,
                key,
                "yes" if row.continuous else "",
                "yes" if row.sample_complete else "population" if row.complete else "",
                "yes" if row.sound else "",
                "" if row.truthful == "no" else row.truthful,
                "yes" if row.certified else "",
            ]
        )
        consistent = "" if row.consistency is None else "({:g}, {:g})".format(*row.consistency)
        lipschitz = "" if row.lipschitz is None else f"{row.lipschitz:g}"
        theory.append([key, row.valid, consistent, lipschitz, row.cost])
    fold = "<details>\n<summary>Rates, constants and cost</summary>\n\n"
    return f"{_table(shown)}\n{fold}{_table(theory)}\n</details>\n"


def _table(lines: list[list[str]]) -> str:
    head, *rest = lines
    return "".join("| " + " | ".join(line) + " |\n" for line in [head, ["---"] * len(head), *rest])


def _entry(row: Measure) -> str:
    options = "".join(f", {key}={value!r}" for key, value in row.options.items())
    lines = [
        f"### {row.words[0].upper()}{row.words[1:]} (`{row.name}`)\n",
        f"{row.meaning[0].upper()}{row.meaning[1:]}.\n",
    ]
    lines.append(f"`calibrant.{row.function.__name__}(y_true, y_prob{options})`\n")
    if row.decision:
        lines.append(f"For decisions: {row.decision}.\n")
    if row.needs_level_sets:
        lines.append("Needs predictions that repeat.\n")
    entry = entry_of(row.citation)
    doi = f" ([DOI]({DOI}{quote(entry.field('doi'))}))" if entry else ""
    lines.append(f"Source: {row.citation}{doi}.\n")
    return "\n".join(lines)


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
    print(f"wrote {TARGET}")
