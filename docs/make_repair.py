"""Write docs/repair.md: one data set from audit to repair to audit again; run it with the folder of data.

python docs/make_repair.py ../shared/data
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import calibrant as cb
from calibrant.formatting import at_floor, pvalue_text

TARGET = Path(__file__).parent / "repair.md"
FILE = "adult_predictions.parquet"
OTHERS = ("row", "y", "fnlwgt")
METHODS = ("spline", "hierarchical", "patch", "boost")
TEMPLATE = Path(__file__).parent / "repair.in.md"
AUDIT = {"subpopulations": 300, "min_size": 100, "draws": 199, "seed": 0}


def main(folder: Path) -> None:
    """Compute, and write the page."""
    warnings.simplefilter("ignore")
    TARGET.write_text(page(folder))


def page(folder: Path) -> str:
    """Return the page."""
    import pandas as pd

    rows = pd.read_parquet(folder / FILE)
    x = rows[[c for c in rows if c not in OTHERS and not c.startswith("p_")]]
    y, p = rows["y"].to_numpy(dtype=float), rows["p_lgbm"].to_numpy()
    order = np.random.default_rng(0).permutation(len(y))
    fit, test = order[: len(y) // 2], order[len(y) // 2 :]
    new, truth, before = x.iloc[test], y[test], p[test]
    audited = cb.audit(truth, before, covariates=new, **AUDIT)
    mean = cb.audit(truth, before, covariates=new, statistic="mean", **AUDIT).worst
    learned = cb.distinguish(truth, before, new, seed=0)
    made = {name: _fitted(name, y[fit], p[fit], x.iloc[fit]) for name in METHODS}
    after = {name: one.predict(before, new) for name, one in made.items()}
    lines = [_method("as it is", truth, before, new)]
    lines += [_method(name, truth, after[name], new) for name in METHODS]
    best = cb.audit(truth, after["boost"], covariates=new, **AUDIT)
    still = "After `boost`, the audit of the judged half still rejects." if (best.pvalue or 1) <= 0.05 else (
        f"After `boost`, the audit of the judged half no longer rejects (p = {best.pvalue:.2g})."
    )  # fmt: skip
    return TEMPLATE.read_text().format(
        n=len(y), fit=len(fit), test=len(test), groups=audited.tested - 1, before=audited,
        mean=mean,
        worst="\n".join(_group(one) for one in audited.groups[:5]),
        advantage=learned.advantage, lower=learned.lower, upper=learned.upper,
        pvalue=f"≤ {learned.pvalue:.3g}" if learned.pvalue_is_bound else f"= {learned.pvalue:.3g}",
        carried=", ".join(f"{name} {share:.0%}" for name, share in list(learned.importance.items())[:4]),
        methods="\n".join(lines), verdict=still, shifts=_shifts(made["hierarchical"]),
        patches=_patches(made["patch"]), ruled=_ruled(y[fit], p[fit], x.iloc[fit]),
        whom=made["hierarchical"].assessment.for_whom,
        smallest=AUDIT["min_size"],
    )  # fmt: skip


def _fitted(name: str, y: Any, p: Any, x: Any) -> cb.Recalibration:
    columns = {"covariates": x} if cb.recalibrations()[name].needs_covariates else {}
    return cb.recalibrate(y, p, method=name, seed=0, **columns)


def _written(pvalue: float) -> str:
    """Write a p-value; at the floor of the draws it is a bound."""
    return pvalue_text(pvalue, floor=at_floor(pvalue, AUDIT["draws"]))


def _group(group: Any) -> str:
    figures = f"{group.size:,} | {group.mean_prediction:.1%} | {group.mean_outcome:.1%} | {group.z:.1f}"
    return f"| {group.rule} | {figures} | {_written(group.pvalue)} |"


def _method(name: str, y: Any, q: Any, x: Any) -> str:
    known = cb.recalibrations()
    meaning = known[name].meaning if name in known else "no change"
    audited = cb.audit(y, q, covariates=x, **AUDIT)
    loss = cb.log_loss(y, np.clip(q, 1e-6, 1 - 1e-6))
    return f"| {name} | {loss:.4f} | {audited.ratio:.1f} | {_written(audited.pvalue)} | {meaning} |"


def _shifts(made: Any) -> str:
    rows = sorted(made.details["shifts"], key=lambda row: -abs(row["shift"] / row["error"]))[:6]
    return "\n".join(
        f"| {row['group']} | {row['shift']:+.2f} | {row['error']:.2f} | {row['records']:,.0f} |"
        for row in rows
    )


def _patches(made: Any) -> str:
    rows = made.details["patches"][:4]
    return "\n".join(f"| {row['rule']} | {row['scores']} | {row['shift']:+.2f} |" for row in rows)


def _ruled(y: Any, p: Any, x: Any) -> str:
    """Return the first patches by the rules that a search confirmed."""
    found = cb.search_groups(y, p, x, seed=0, draws=199)
    made = cb.recalibrate(y, p, covariates=x, groups=found, method="patch", seed=0)
    rows = made.details["patches"][:3]
    return "\n".join(f"{row['rule']}, {row['scores']}: {row['shift']:+.2f}" for row in rows)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
