"""Every number of docs/decisions.md: python docs/examples/decisions.py FOLDER, which holds the data file.

Prints named blocks of Markdown; the page holds each of them word for word, and a test compares.
"""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb
import numpy as np

import calibrant as cb

FILE = "support2_survival.parquet"
THRESHOLDS = (0.1, 0.2, 0.35, 0.5, 0.75)
SEED, DRAWS = 1, 199

Forecasters = dict[str, cb.Forecasts]


def main(folder: str) -> None:
    """Print all blocks."""
    for name, text in blocks(Path(folder)).items():
        print(f"<!-- {name} -->\n{text}\n")


def blocks(folder: Path) -> dict[str, str]:
    """Return every block by name."""
    both = forecasters(folder / FILE)
    return {
        "patients": patients(both),
        "half": half(both["physicians"]),
        "report": report(both["physicians"]),
        "thresholds": thresholds(both),
        "worst": worst(both),
        "task": task(both["physicians"]),
        "curve": curve(both),
        "swap": swap(both["physicians"]),
        "regret": regret(both),
        "dominance": dominance(folder / FILE),
    }


def forecasters(file: Path) -> Forecasters:
    """Risk of death within two months, for the patients for whom physician and model both gave one."""
    died, risks = rows(file)
    return {name: cb.Forecasts(died, risk) for name, risk in risks.items()}


def rows(file: Path) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return who died, and both risks of the same patients."""
    query = f"select 1 - alive2m as died, prg2m, surv2m from '{file}' where prg2m + surv2m is not null"
    data = duckdb.sql(query).fetchnumpy()
    # the file holds 0.8 as 0.799999714: round to what was said
    risks = {"physicians": np.round(1 - data["prg2m"], 2), "model": np.round(1 - data["surv2m"], 3)}
    return data["died"], risks


def table(head: list[str], rows: list[list[str]]) -> str:
    """Lay out a Markdown table."""
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def per_thousand(loss: float) -> str:
    """Write a loss per record as a loss per 1,000 patients."""
    return f"{1000 * loss:.1f}"


def patients(both: Forecasters) -> str:
    """Who forecast what."""
    head = ["forecaster", "patients", "died", "mean forecast", "distinct forecasts", "patients per forecast"]
    rows = [
        [
            name,
            f"{f.n:,}",
            f"{f.base_rate:.1%}",
            f"{f.mean_prediction:.1%}",
            f"{f.levels}",
            f"{f.n / f.levels:.0f}",
        ]
        for name, f in both.items()
    ]
    return table(head, rows)


def half(physicians: cb.Forecasts) -> str:
    """The forecast that physicians give most."""
    f = physicians.between(0.5, 0.5)
    return f'Physicians said "50%" of {f.n:,} patients. Of these, {f.base_rate:.1%} died.'


def report(physicians: cb.Forecasts) -> str:
    """One decision, in the user's own payoffs."""
    payoff = {"usual care": (0, -1), "consultation": (-0.5, -0.5)}
    return f"```text\n{cb.decision_report(physicians, payoff=payoff)}\n```"


def thresholds(both: Forecasters) -> str:
    """Estimated loss of each cost-loss ratio, and what a calibrated forecaster would show."""
    head = [
        "consult from a risk of",
        *(f"{name}{part}" for name in both for part in (": lost", ": noise up to")),
    ]
    rows = []
    for threshold in THRESHOLDS:
        row = [f"{threshold:.0%}"]
        for f in both.values():
            found = cb.estimate_decision_loss(f, payoff=threshold, draws=DRAWS, seed=SEED)
            row += [per_thousand(found.value) + ("*" if found.real else ""), per_thousand(found.null_upper)]
        rows.append(row)
    return table(head, rows)


def worst(both: Forecasters) -> str:
    """Worst case over all payoffs, with and without hindsight."""
    head = ["forecaster", "in hindsight", "of which noise, on average", "cross-fitted", "noise up to"]
    rows = []
    for name, f in both.items():
        plain = cb.estimate_decision_loss(f, recalibrator=None, draws=DRAWS, seed=SEED)
        fitted = cb.estimate_decision_loss(f, draws=DRAWS, seed=SEED)
        star = "*" if fitted.real else ""
        rows.append(
            [
                name,
                per_thousand(plain.value),
                per_thousand(plain.null_mean),
                per_thousand(fitted.value) + star,
                per_thousand(fitted.null_upper),
            ]
        )
    return table(head, rows)


def task(physicians: cb.Forecasts) -> str:
    """The task that loses most."""
    found = cb.worst_task(physicians)
    changes = " and ".join(f"{mu:.0%}" for mu in found.thresholds)
    rows = [[f"action {k}", f"{dies:.2f}", f"{lives:.2f}"] for k, (lives, dies) in enumerate(found.payoff)]
    return f"The action changes at a risk of {changes}.\n\n" + table(
        ["", "patient dies", "patient lives"], rows
    )


def curve(both: Forecasters) -> str:
    """The decision curve."""
    head = [
        "threshold",
        "consult nobody",
        "consult everybody",
        *both,
        "physicians, recalibrated in hindsight",
    ]
    found = {name: cb.net_benefit(f, thresholds=THRESHOLDS) for name, f in both.items()}
    physicians = found["physicians"]
    rows = [
        [
            f"{threshold:.0%}",
            "0",
            per_thousand(physicians.treat_all[k]),
            *(per_thousand(c.model[k]) for c in found.values()),
            per_thousand(physicians.recalibrated[k]),
        ]
        for k, threshold in enumerate(THRESHOLDS)
    ]
    return table(head, rows)


def swap(physicians: cb.Forecasts) -> str:
    """The same loss seen from the decisions that were taken."""
    f = physicians
    found = cb.swap_regret(
        f.outcomes / f.weights, (f.values >= 0.5).astype(int), payoff=0.5, sample_weight=f.weights
    )
    whole = cb.fixed_decision_loss(f, payoff=0.5)
    return (
        f"Swap regret: {per_thousand(found.swap)} per 1,000 patients; "
        f"decision loss of the forecasts behind it: {per_thousand(whole)}."
    )


def regret(both: Forecasters) -> str:
    """Against the base rate, and against the best monotone map."""
    head = [
        "forecaster",
        "against the base rate",
        "against a monotone map, in hindsight",
        "the same, cross-fitted",
    ]
    rows = [
        [
            name,
            per_thousand(cb.u_calibration_error(f)),
            per_thousand(cb.monotone_regret(f)),
            per_thousand(cb.monotone_regret(f, folds=5, seed=SEED)),
        ]
        for name, f in both.items()
    ]
    return table(head, rows)


def dominance(file: Path) -> str:
    """Who loses by using one forecaster instead of the other."""
    died, risks = rows(file)
    lines = []
    for one, other in (("physicians", "model"), ("model", "physicians")):
        found = cb.dominance(died, risks[one], risks[other], names=[one, other], draws=DRAWS, seed=SEED)
        lines.append(f"# {one} instead of {other}\n{found}")
    return "```text\n" + "\n".join(lines) + "\n```"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: python {sys.argv[0]} FOLDER (the folder that holds {FILE})")
    main(sys.argv[1])
