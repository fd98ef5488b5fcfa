"""Every number of docs/audit.md: python docs/examples/audit.py FOLDER, which holds the data files.

Prints named blocks of Markdown; the page holds each of them word for word, and a test compares.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import duckdb

import calibrant as cb
from calibrant.formatting import at_floor, pvalue_text

SEED = 1
ADULT = "adult_predictions.parquet"
ADULT_COVARIATES = ["age", "education_num", "hours_per_week", "capital_gain", "sex", "race", "occupation"]
WORKERS = "acs2018_govworkers_predictions.parquet"
PATIENTS = "support2_survival.parquet"

Columns = dict[str, Any]


def main(folder: str) -> None:
    """Print all blocks."""
    for name, text in blocks(Path(folder)).items():
        print(f"<!-- {name} -->\n{text}\n")


def blocks(folder: Path) -> dict[str, str]:
    """Return every block by name."""
    adult = columns(folder / ADULT, "y, p_lgbm, p_lgbm_iso, p_lr_iso", ADULT_COVARIATES)
    found = adult_audit(adult, "p_lgbm")
    return {
        "summary": f"```text\n{found}\n```",
        "worst": group_table(found.groups[:6]),
        "models": models(adult),
        "search": searched(adult),
        "workers": workers(folder / WORKERS),
        "patients": patients(folder / PATIENTS),
    }


def columns(file: Path, numbers: str, covariates: list[str]) -> Columns:
    """Read columns of a file."""
    chosen = ", ".join(f'"{name}"' for name in covariates)
    taken = duckdb.sql(f"select {numbers}, {chosen} from '{file}'").df()
    return {name: taken[name] for name in taken}


def table(head: list[str], rows: list[list[str]]) -> str:
    """Lay out a Markdown table."""
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def group_table(groups: tuple[Any, ...]) -> str:
    """Lay out subpopulations."""
    head = [
        "subpopulation",
        "rows",
        "predicted",
        "observed",
        "Kuiper",
        "z",
        "p-value",
        "predictions",
        "scores",
    ]
    return table(
        head,
        [
            [
                group.rule,
                f"{group.size:,}",
                f"{group.mean_prediction:.1%}",
                f"{group.mean_outcome:.1%}",
                f"{group.kuiper:.4f}",
                f"{group.z:.1f}",
                written(group.pvalue, group.draws),
                group.predictions,
                f"{group.start:.2f} to {group.stop:.2f}",
            ]
            for group in groups
        ],
    )


def written(pvalue: float, draws: int) -> str:
    """Write a p-value; at the floor of the draws it is a bound."""
    return pvalue_text(pvalue, floor=at_floor(pvalue, draws))


def adult_audit(data: Columns, prediction: str, min_variance: float = 0.0) -> cb.Audit:
    """Audit one column of predictions of income above 50,000."""
    covariates = {name: data[name] for name in ADULT_COVARIATES}
    options = {"covariates": covariates, "min_variance": min_variance, "seed": SEED}
    return cb.audit(data["y"], data[prediction], **options)


def groups_off(found: cb.Audit) -> int:
    """Count the groups that are wrong beyond chance, everyone not among them."""
    return sum(group is not found.everyone for group in found.significant())


def models(data: Columns) -> str:
    """Compare a model before and after isotonic recalibration, overall and for the worst group."""
    rows = []
    for name in ("p_lgbm", "p_lgbm_iso", "p_lr_iso"):
        found = adult_audit(data, name)
        rows.append(
            [
                f"`{name}`",
                f"{found.everyone.kuiper:.4f}",
                f"{found.metric:.4f}",
                f"{found.ratio:.1f}",
                written(found.pvalue, found.draws),
                f"{groups_off(found):,}",
                f"{groups_off(adult_audit(data, name, 5.0)):,}",
                found.worst.rule,
            ]
        )
    head = ["predictions", "Kuiper of everyone", "M", "largest z", "p-value", "groups found"]
    head += ["with `min_variance=5`", "worst"]
    return table(head, rows)


def searched(data: Columns) -> str:
    """Search the recalibrated predictions for the worst group, and confirm it."""
    covariates = {name: data[name] for name in ADULT_COVARIATES}
    found = cb.search_groups(data["y"], data["p_lgbm_iso"], covariates, seed=SEED, rules=5)
    rows = [
        [
            one.rule,
            f"{one.searched_z:.1f}",
            f"{one.group.size:,}",
            f"{one.group.z:.1f}",
            written(one.group.pvalue, one.group.draws),
            one.group.predictions,
        ]
        for one in found.findings
    ]
    head = ["rule", "z where searched", "confirming rows", "z there", "p-value there", "predictions"]
    return (
        f"{found.examined:,} subpopulations of {found.searched:,} rows were searched.\n\n{table(head, rows)}"
    )


def workers(file: Path) -> str:
    """Audit the income model of government workers by groups people ask about."""
    names = ["sex", "race", "nativity", "economic_region"]
    data = columns(file, "y, p_lr", names)
    found = cb.audit(data["y"], data["p_lr"], groups={name: data[name] for name in names}, seed=SEED)
    wrong = groups_off(found)
    return (
        f"{found.looked_at} tested, {wrong:,} of them wrong at the 5% level; "
        f"not tested: {found.not_tested}.\n\n{group_table(found.groups[:6])}"
    )


def patients(file: Path) -> str:
    """Audit physicians and the model, for the patients for whom both gave a chance of survival."""
    names = ["age", "sex", "race", "dzgroup", "num.co"]
    data = columns(file, "alive2m, prg2m, surv2m", names)
    both = data["prg2m"].notna() & data["surv2m"].notna()
    rows = []
    for who, prediction in (("physicians", data["prg2m"].round(2)), ("model", data["surv2m"].round(3))):
        found = cb.audit(
            data["alive2m"][both].to_numpy(),
            prediction[both].to_numpy(),
            groups={name: data[name][both].to_numpy() for name in ("dzgroup", "sex", "race")},
            covariates={name: data[name][both].to_numpy() for name in names},
            seed=SEED,
        )
        worst = found.worst
        rows.append(
            [
                who,
                f"{found.everyone.kuiper:.4f}",
                f"{found.metric:.4f}",
                written(found.pvalue, found.draws),
                f"{groups_off(found):,} of {found.tested - 1:,}",
                worst.rule,
                f"{worst.mean_prediction:.0%}, {worst.mean_outcome:.0%}",
            ]
        )
    head = [
        "forecaster",
        "Kuiper of everyone",
        "M",
        "p-value",
        "groups found",
        "worst",
        "predicted, observed there",
    ]
    return table(head, rows)


if __name__ == "__main__":
    main(sys.argv[1])
