"""What an audit found: the numbers, the worst subpopulation in words, and the table of all of them."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from calibrant.groups.group import LEVEL, Group, GroupCurve, NotTested, plain
from calibrant.groups.no_evidence import left_open, none_wrong
from calibrant.groups.people import worst_in_people
from calibrant.numerals import at_floor, counted, left_out, percent, pvalue_phrase, pvalue_text
from calibrant.options import closed_share, whole_number
from calibrant.sheets import Cell, Sheet, number_cell, paragraphs, text_cell

INTERVAL = "95% interval"  # of the difference of a group by itself
EACH_BY_ITSELF = (
    "The intervals are of the mean difference of each group by itself: among many groups some leave out 0 by "
    "chance. p-values allow for all groups, and z also sees errors that cancel in the mean of a group."
)
Z_MEANS = {
    "kuiper": "z is the largest sum of errors over any range of scores, in standard deviations of chance; "
    "calibrated groups have about 1.6 on average.",
    "mean": "z is the mean error of a group, in standard deviations of chance; calibrated groups have "
    "about 0.8 on average.",
}
AUDITED = {"kuiper": "Multi-calibration", "mean": "Multi-accuracy"}

IN_NOTEBOOKS = 15  # groups shown below a cell


@dataclass(frozen=True, slots=True, eq=False)
class Audit:
    """The multi-calibration audit of some predictions.

    `metric` is M of eq. (4), `sigma` is sigma_0, `ratio` = M / sigma_0 is the largest z, `pvalue` the chance
    of so large an M if every prediction were right (None without draws). `ablated` is the largest statistic
    not divided by its deviation, noise mostly and for comparison only, and `ablated_group` the group that has
    it. `groups` are ranked by z; `columns` and `table` hold the same by column. On the raw rows M lies in
    `lower` to `upper`, which differ for a sketch alone; its p-values are simulated on so many `cells`, and
    are those of the statistics of these cells, and approximate, as are those of responses of any size, whose
    null takes errors for symmetric about 0. `approximate` says which fields hold only approximately.
    """

    metric: float
    sigma: float
    pvalue: float | None
    ablated: float
    ablated_group: Group
    groups: tuple[Group, ...]
    curves: tuple[GroupCurve, ...]
    not_tested: NotTested
    n: int
    dropped: int
    draws: int
    seed: int
    variant: str
    statistic: str = "kuiper"
    backend: Any = None
    lower: float = 0.0
    upper: float = math.inf
    cells: int | None = None

    @property
    def ratio(self) -> float:
        """M / sigma_0: the largest z over all subpopulations."""
        return self.groups[0].z

    @property
    def approximate(self) -> tuple[str, ...]:
        """The fields, here and of the groups, that hold only approximately."""
        rough = self.cells is not None or self.variant == "real"
        whole = (
            self.variant == "plain" and self.cells is None and all(group.interval for group in self.groups)
        )
        return (*(("pvalue",) if self.draws and rough else ()), *(() if whole else ("low", "high")))

    @property
    def worst(self) -> Group:
        """The subpopulation with the largest z, which attains M."""
        return self.groups[0]

    @property
    def everyone(self) -> Group:
        """The full population, subpopulation 0."""
        return max(self.groups, key=lambda group: group.size)  # no two have the same members

    @property
    def tested(self) -> int:
        """How many subpopulations were tested, everyone among them."""
        return len(self.groups)

    def significant(self, alpha: float = LEVEL, *, level: float | None = None) -> tuple[Group, ...]:
        """Return the subpopulations whose adjusted p-value is at most `alpha`, worst first.

        `level` is an older name of `alpha`.
        """
        most = closed_share("alpha", alpha if level is None else level)
        return tuple(group for group in self.groups if group.pvalue is not None and group.pvalue <= most)

    @property
    def columns(self) -> dict[str, list[Any]]:
        """The ranking as plain columns by name, worst first."""
        rows = [group.facts for group in self.groups]
        out = {key: [row[key] for row in rows] for key in rows[0]}
        out["pvalue"] = [math.nan if value is None else value for value in out["pvalue"]]
        return out

    @property
    def table(self) -> Any:
        """The ranking as a frame: of the kind that was audited, else pandas, Polars or PyArrow if installed.

        Where none of them is installed this is `columns`.
        """
        import narwhals as nw

        for backend in (self.backend, "pandas", "polars", "pyarrow"):
            if backend is None:
                continue
            try:
                return nw.from_dict(self.columns, backend=backend).to_native()
            except ImportError:
                continue
        return self.columns

    def to_dict(self, top: int | None = None) -> dict[str, Any]:
        """Return everything but the curves, ready for JSON; `top` keeps the worst few groups only.

        An infinite z (an outcome that was predicted to be impossible) is null, as JSON has no word for it.
        """
        if top is not None:
            whole_number("top", top)
        return {
            "metric": plain(self.metric),
            "lower": plain(self.lower),
            "upper": plain(self.upper),
            "sigma": self.sigma,
            "ratio": plain(self.ratio),
            "pvalue": self.pvalue,
            "pvalue_is_bound": at_floor(self.pvalue, self.draws),
            "ablated": self.ablated,
            "ablated_group": {key: plain(value) for key, value in self.ablated_group.facts.items()},
            "n": self.n,
            "dropped": self.dropped,
            "tested": self.tested,
            "not_tested": asdict(self.not_tested),
            "approximate": list(self.approximate),
            "draws": self.draws,
            "cells": self.cells,
            "seed": self.seed,
            "variant": self.variant,
            "statistic": self.statistic,
            "groups": [
                {key: plain(value) for key, value in group.facts.items()} for group in self.groups[:top]
            ],
        }

    def __repr__(self) -> str:
        p = "" if self.pvalue is None else f", {pvalue_phrase(self.pvalue, self.draws)}"
        return f"Audit(M = {self.metric:.4f}{p}, {self.looked_at}, worst: {self.worst.rule})"

    @property
    def verdict(self) -> str:
        """For how many groups the predictions are wrong, for whom by evidence, and for whom by difference."""
        others = counted(self.tested - 1, "group")
        if self.pvalue is None:
            return f"{others} and everyone ranked by z; without draws there are no p-values."
        wrong = self.significant()
        if not wrong:
            return f"{none_wrong(self, 'wrong by more than chance at the 5 % level')}. {left_open(self)}"
        named = [group for group in wrong if group is not self.everyone]
        whole = f"everyone together: {self.everyone.means()}"
        if not named:
            return f"Predictions are wrong at the 5 % level for {whole}. {none_wrong(self, 'wrong alone')}."
        also = f" Also for {whole}." if len(named) < len(wrong) else ""
        return (
            f"Predictions are wrong for {len(named):,} of {others} at the 5 % level. "
            f"{worst_in_people(self, named)}{also}"
        )

    @property
    def looked_at(self) -> str:
        """How many were tested, in words."""
        return f"{counted(self.tested - 1, 'group')} and everyone"

    def sheet(self, top: int = 50, elsewhere: str = "") -> Sheet:
        """Return the table of the worst groups; `elsewhere` says where else the interval of everyone is."""
        means = ("predicted", "happened", "difference", INTERVAL)
        columns = ("group", "records", *means, "z", "p-value", "finding")
        whole = self.everyone if elsewhere else None
        lines = (
            _line(group, self.draws, self.statistic, elsewhere if group is whole else "")
            for group in self.groups[:top]
        )
        return Sheet(columns, tuple(lines))

    def _repr_html_(self) -> str:
        left = len(self.groups) - IN_NOTEBOOKS
        are = counted(left, "more group is", "more groups are")
        more = f"{are} in .groups, the worst first." if left > 0 else ""
        return paragraphs(self.verdict) + self.sheet(IN_NOTEBOOKS).as_html() + paragraphs(more)

    def _of_everyone(self) -> str:
        if self.statistic == "mean":
            return f"mean residual of everyone: {self.everyone.gap:+.6g}"
        return f"Kuiper of everyone: {self.everyone.kuiper:.6g}"

    def _on_raw_rows(self) -> str:
        return "" if self.lower == self.upper else f", on the raw rows {self.lower:.6g} to {self.upper:.6g}"

    def _written(self, pvalue: float) -> str:
        return pvalue_text(pvalue, floor=at_floor(pvalue, self.draws))

    def _drawn(self) -> str:
        of_cells = "" if self.cells is None or not self.draws else f" of {counted(self.cells, 'cell')}"
        roughly = ", approximate" if "pvalue" in self.approximate else ""
        return f"{counted(self.draws, 'draw')}{of_cells}, seed {self.seed}{roughly}"

    def __str__(self) -> str:
        p = "not simulated" if self.pvalue is None else self._written(self.pvalue)
        return "\n".join(
            [
                self.verdict,
                f"{AUDITED[self.statistic]} audit of {counted(self.n, 'row')}{left_out(self.dropped)}, "
                f"{self.looked_at}",
                f"  M          {self.metric:.6g}   ({self._of_everyone()}){self._on_raw_rows()}",
                f"  M/sigma_0  {self.ratio:.4g}",
                f"  p-value    {p}   ({self._drawn()})",
                f"  largest z  {self.worst}",
                f"  not tested {self.not_tested}",
            ]
        )


def _line(group: Group, draws: int, statistic: str, elsewhere: str) -> tuple[Cell, ...]:
    difference, span = group.written_difference()
    return (
        text_cell(str(group.rule)),
        number_cell(group.size, f"{group.size:,}"),
        number_cell(group.mean_prediction, percent(group.mean_prediction)),
        number_cell(group.mean_outcome, percent(group.mean_outcome)),
        number_cell(group.difference, difference),
        number_cell(group.limits[0], elsewhere or span),
        number_cell(group.z, f"{group.z:.2f}"),
        number_cell(group.pvalue, pvalue_text(group.pvalue, floor=at_floor(group.pvalue, draws))),
        text_cell(group.found(statistic)),
    )
