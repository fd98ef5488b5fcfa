"""GroupComparison: whether predictions are equally right for sites, leagues or seasons, and any trend."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from calibrant.frames import frame_of
from calibrant.numerals import (
    counted,
    left_out,
    percent,
    points,
    predicted_happened,
    pvalue_phrase,
    pvalue_text,
    short,
)
from calibrant.results import Result
from calibrant.sheets import Sheet, number_cell, paragraphs, text_cell

ROUGH = ("pvalue", "adjusted", "lower", "upper", "odds_lower", "odds_upper")  # unless they are exact
BY_ITSELF = (
    "The interval is of the mean difference of each group by itself: among many groups some leave out 0 by "
    "chance. Who is off is decided by p-values adjusted for all groups (calibrant audit); the tests here say "
    "whether groups differ from each other."
)
UNNAMED = "group"  # the column of groups that came without a name
SAID = 3  # pairs told in words
MOST_PAIRS = 15  # in the table
FEW_PAIRS = 5  # that are shown where none differs beyond chance


@dataclass(frozen=True, slots=True, repr=False)
class GroupLevel(Result):
    """One group: what was predicted, what happened, and by which factor the odds were off.

    `gap` is `happened` - `predicted`, between `lower` and `upper`. `odds` is the factor between the odds of
    the outcome and what was predicted, 1 if right on the whole, between `odds_lower` and `odds_upper`.
    `brier`, `miscalibration` and `discrimination` are its score and parts; they depend on how hard the
    records of a group are, so that the gap alone is compared.
    """

    name: str
    n: int
    predicted: float
    happened: float
    gap: float
    lower: float
    upper: float
    odds: float
    odds_lower: float
    odds_upper: float
    brier: float
    miscalibration: float
    discrimination: float


@dataclass(frozen=True, slots=True, repr=False)
class GroupDifference(Result):
    """Two groups: by which factor the odds of the first, given its predictions, exceed those of the second.

    `pvalue` is for this pair alone and at most 1 - confidence exactly where the interval leaves out 1;
    `adjusted` allows for all pairs looked at (Holm).
    """

    first: str
    second: str
    odds_ratio: float
    lower: float
    upper: float
    pvalue: float
    adjusted: float


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Trend(Result):
    """Whether the outcome happens more often ("up") or less often ("down") along the ordered groups.

    That is meant at equal predictions: whether those become worse or better depends on where they started.
    `odds_ratio` is the factor of the odds, given the predictions, from one group to the next.
    """

    pvalue: float
    odds_ratio: float
    direction: str
    first: str
    last: str


@dataclass(frozen=True, slots=True, eq=False)
class GroupComparison(Result):
    """Groups of different rows compared: is the model as right, on the whole, for one as for another?

    `pvalue` is the chance of groups so different if the odds of all were off by one common factor, and
    `trend` the same for a steady drift along an ordered column (None where there is no order). `method` is
    "exact" or "approximate", and `reason` says why it is not exact. `certain` counts predictions of exactly
    0 or 1, which no factor changes: they count in the rates of their group and in no test. `wrong` of them
    did not come true.
    """

    column: str
    groups: tuple[GroupLevel, ...]
    differences: tuple[GroupDifference, ...]
    pvalue: float
    trend: Trend | None
    ordered: bool
    confidence: float
    method: str
    n: int
    dropped: int
    certain: int
    wrong: int
    draws: int
    seed: int
    reason: str = ""

    @property
    def approximate(self) -> tuple[str, ...]:
        """The fields, here and of groups and differences, that hold only approximately."""
        return () if self.method == "exact" else ROUGH

    def to_dict(self) -> dict[str, Any]:
        """Return all fields and the verdict in words, ready for JSON."""
        return {"sentence": str(self), **Result.to_dict(self), "approximate": list(self.approximate)}

    @property
    def real(self) -> tuple[GroupDifference, ...]:
        """The pairs whose adjusted p-value is at most 1 - confidence, the surest first."""
        most = 1 - self.confidence + 1e-12
        return tuple(sorted((d for d in self.differences if d.adjusted <= most), key=lambda d: d.adjusted))

    def __repr__(self) -> str:
        return (
            f"GroupComparison({len(self.groups):,} groups of {self.column!r}, {self._written(self.pvalue)})"
        )

    def __str__(self) -> str:
        return " ".join([self.sentence(), *map(self._pair, self.real[:SAID]), *self._drift(), self._how()])

    def sentence(self) -> str:
        """Say whether the groups differ by more than chance, and which are farthest apart."""
        low = min(self.groups, key=lambda group: group.gap)
        high = max(reversed(self.groups), key=lambda group: group.gap)
        ends = "; ".join(
            f"{group.name} ({counted(group.n, 'row')}): {predicted_happened(group.predicted, group.happened)}"
            for group in (low, high)
        )
        of_column = "" if self.column == UNNAMED else f" of {self.column}"
        which, p = f"{len(self.groups):,} groups{of_column}", self._written(self.pvalue)
        if self.certain == self.n:
            return f"Whether the {which} differ cannot be tested: every prediction is exactly 0 or 1. {ends}."
        if self.pvalue <= 1 - self.confidence + 1e-12:
            return f"Predictions are not equally right for the {which} ({p}). Farthest apart: {ends}."
        alone = "Apart from a trend, the" if self._drifts() else "The"
        return (
            f"{alone} {which} do not differ by more than chance ({p}). Farthest apart: {ends}."
            f"{self._left_open()}"
        )

    def _left_open(self) -> str:
        """Say by how much two groups could still differ, as the interval of some pair allows."""
        if not self.differences:  # too many groups for pairs
            return ""
        most = max(max(pair.upper, 1 / pair.lower if pair.lower else np.inf) for pair in self.differences)
        factor = "any factor" if np.isinf(most) else f"a factor of up to {short(most, 2)}"
        return f" At equal predictions the odds of two groups could still differ by {factor}."

    def _drifts(self) -> bool:
        return self.trend is not None and self.trend.pvalue <= 1 - self.confidence + 1e-12

    def _written(self, pvalue: float) -> str:
        simulated = self.method == "exact" and len(self.groups) > 2
        return pvalue_phrase(pvalue, self.draws if simulated else 0)

    def _pair(self, pair: GroupDifference) -> str:
        high, low = (pair.first, pair.second) if pair.odds_ratio >= 1 else (pair.second, pair.first)
        return (
            f"At equal predictions, the outcome is more likely in {high} than in {low} "
            f"(Holm-adjusted {pvalue_phrase(pair.adjusted)})."
        )

    def _drift(self) -> list[str]:
        trend = self.trend
        if trend is None:
            return []
        if not self._drifts():
            along = f"along {self.column} from {trend.first} to {trend.last}"
            return [f"No trend {along} beyond chance ({self._written(trend.pvalue)})."]
        more = "more" if trend.direction == "up" else "less"
        gaps = {group.name: points(group.gap, group.upper - group.lower) for group in self.groups}
        ends = ", ".join(f"{gaps[name]} points in {name}" for name in (trend.first, trend.last))
        return [
            f"Along {self.column} the outcome tends to happen {more} often at equal predictions: the odds "
            f"change by a factor of {short(trend.odds_ratio)} from one group to the next, on average "
            f"({self._written(trend.pvalue)}). Happened minus predicted: {ends}."
        ]

    def trend_phrase(self) -> str:
        """Say in a clause whether there is a trend."""
        if self.trend is None:
            return "no trend was tested"
        found = "there is a trend beyond chance" if self._drifts() else "there is no trend beyond chance"
        return f"{found} ({self._written(self.trend.pvalue)})"

    def _how(self) -> str:
        exact = self.method == "exact"
        how = (
            f"{counted(self.draws, 'draw')}, seed {self.seed}"
            if exact
            else f"approximate p-values and intervals ({self.reason})"
        )
        aside = ""
        if self.certain:
            certain = f"{counted(self.certain, 'prediction')} of exactly 0 or 1"
            failed = f"{self.wrong:,}" if self.wrong else "none"
            aside = f" In no test: {certain}, of which {failed} {'was' if self.wrong <= 1 else 'were'} wrong."
        return f"{counted(self.n, 'row')}{left_out(self.dropped)}, {how}.{aside}"

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return the groups as a frame of the library named: "pandas", "polars" or "pyarrow"."""
        names = [part.name for part in fields(GroupLevel)]
        return frame_of({name: [getattr(group, name) for group in self.groups] for name in names}, backend)

    def group_sheet(self) -> Sheet:
        """Return the table of the groups, in order."""
        columns = (self.column, "records", "predicted", "happened", "difference", "interval", "Brier",
                   "miscalibration", "discrimination")  # fmt: skip
        lines = tuple(
            (
                text_cell(group.name),
                number_cell(group.n, f"{group.n:,}"),
                number_cell(group.predicted, percent(group.predicted)),
                number_cell(group.happened, percent(group.happened)),
                number_cell(group.gap, f"{points(group.gap, group.upper - group.lower)} points"),
                number_cell(group.lower, _span(group.lower, group.upper)),
                *map(number_cell, (group.brier, group.miscalibration, group.discrimination)),
            )
            for group in self.groups
        )
        return Sheet(columns, lines)

    def _pairs_shown(self) -> int:
        """Return how many pairs are worth a line: all of few, else those beyond chance, or the surest."""
        if len(self.differences) <= MOST_PAIRS:
            return len(self.differences)
        return min(max(len(self.real), FEW_PAIRS), MOST_PAIRS)

    def pairs_left_out(self) -> str:
        """Say how many pairs the table leaves out, and whether any of them differ beyond chance."""
        shown = self._pairs_shown()
        left, real = len(self.differences) - shown, max(0, len(self.real) - shown)
        if not left:
            return ""
        are = counted(left, "more pair is", "more pairs are")
        beyond = f"{real:,} of them beyond chance" if real else "none of them beyond chance"
        return f"{are} not shown, {beyond}; to_dict() and --json have all {len(self.differences):,}."

    def pair_sheet(self, top: int | None = None) -> Sheet:
        """Return the table of the pairs, the surest first; of many, those that are worth a line."""
        columns = ("first", "second", "odds ratio", "from", "to", "p-value", "adjusted")
        ranked = sorted(self.differences, key=lambda pair: (pair.adjusted, pair.pvalue))
        ranked = ranked[: self._pairs_shown() if top is None else top]
        lines = tuple(
            (
                text_cell(pair.first),
                text_cell(pair.second),
                *(number_cell(x, _odds(x)) for x in (pair.odds_ratio, pair.lower, pair.upper)),
                number_cell(pair.pvalue, pvalue_text(pair.pvalue)),
                number_cell(pair.adjusted, pvalue_text(pair.adjusted)),
            )
            for pair in ranked
        )
        return Sheet(columns, lines)

    def _repr_html_(self) -> str:
        sheets = self.group_sheet().as_html() + self.pair_sheet().as_html()
        return paragraphs(str(self)) + sheets + paragraphs(self.pairs_left_out())


def _span(low: float, high: float) -> str:
    return f"{points(low, high - low)} to {points(high, high - low)}"


def _odds(value: float) -> str:
    return "any" if np.isposinf(value) else short(value)
