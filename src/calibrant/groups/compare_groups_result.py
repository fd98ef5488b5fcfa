"""GroupComparison: whether predictions are equally right for sites, leagues or seasons, and any trend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from calibrant.formatting import (
    dropped_note,
    format_points,
    format_pvalue,
    format_value,
    percent,
    pluralize,
    predicted_observed,
    pvalue_phrase,
    pvalue_text,
)
from calibrant.groups.rules import DEFAULT_COLUMN
from calibrant.inference.pvalues import could_flip, holm, is_rejected
from calibrant.results import Result, Table, TableCell, html_paragraphs, number_cell, text_cell

INTERVALS_NOTE = (
    "Difference: observed minus predicted, in points. Each interval is for one group alone: among many "
    "groups some exclude 0 by chance. The tests here ask whether groups differ from each other; "
    "`calibrant audit` says which groups are wrong."
)
TREND_MEANS = (
    "Lowest and highest: observed minus predicted, in points. Trend: the factor by which the odds change "
    "from one group to the next at equal predictions. Adjusted p-values allow for all lines (Holm)."
)
MAX_PAIRS_DESCRIBED = 3
MAX_PAIRS_SHOWN = 15
MIN_PAIRS_SHOWN = 5  # where no pair differs by more than chance


@dataclass(frozen=True, slots=True, repr=False)
class GroupLevel(Result):
    """One group: what was predicted, what was observed, and the factor by which the odds were off."""

    name: str
    n: int
    predicted: float
    happened: float
    gap: float  # `happened` - `predicted`
    lower: float  # of the gap; nan where there is too little data
    upper: float
    odds: float  # observed over predicted: 1 if right on the whole
    odds_lower: float
    odds_upper: float
    brier: float  # like the next two not compared: it depends on how hard records are, too
    miscalibration: float
    discrimination: float


@dataclass(frozen=True, slots=True, repr=False)
class GroupDifference(Result):
    """Two groups: the factor by which the odds of the first exceed the second's at equal predictions."""

    first: str
    second: str
    odds_ratio: float
    lower: float
    upper: float
    pvalue: float  # of this pair alone: at most 1 - confidence exactly where the interval excludes 1
    adjusted: float  # for all pairs (Holm)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Trend(Result):
    """Whether outcomes become more ("up") or less ("down") frequent along the groups at equal predictions."""

    pvalue: float
    odds_ratio: float  # from one group to the next
    direction: str  # not whether predictions get worse: that depends on where they started
    first: str
    last: str


@dataclass(frozen=True, slots=True, eq=False)
class GroupComparison(Result):
    """Groups of different rows compared: is the model as right for one as for another?

    `pvalue` tests whether the outcome depends on the group at equal predictions, and `trend` whether it
    drifts along an ordered column (None without an order). `method` is "permutation" or
    "approximate", and `reason` says why it is approximate. `certain` counts predictions of exactly 0 or 1;
    `wrong` of them did not come true. Unless `comparable`, the groups share no predictions with different
    outcomes, and nothing can be tested. `clusters` says how much clustered rows tell; `method` is then
    "signs". `within` compares the groups again among the rows of each value of `within_column`, without the
    values in `left_out`, which says why.
    """

    approximate: ClassVar[tuple[str, ...]] = (
        "pvalue", "adjusted", "lower", "upper", "odds_lower", "odds_upper"
    )  # fmt: skip

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
    comparable: bool = True
    clusters: str = ""
    within_column: str = ""
    within: tuple[WithinGroup, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def undecided(self) -> bool:
        """Whether other draws could change the verdict."""
        return self.simulated and could_flip(self.pvalue, self.draws, 1 - self.confidence)

    @property
    def simulated(self) -> bool:
        """Whether p-values are shares of draws."""
        return self.method != "approximate" and len(self.groups) > 2

    def to_dict(self) -> dict[str, Any]:
        """Return all fields and the verdict in words, ready for JSON."""
        return {"sentence": str(self), **Result.to_dict(self), "approximate": list(self.approximate)}

    @property
    def real(self) -> tuple[GroupDifference, ...]:
        """The pairs whose adjusted p-value is at most 1 - confidence, the clearest first."""
        found = (pair for pair in self.differences if is_rejected(pair.adjusted, self.confidence))
        return tuple(sorted(found, key=lambda pair: pair.adjusted))

    def __repr__(self) -> str:
        found = self._written(self.pvalue)
        return f"GroupComparison({len(self.groups):,} groups of {self.column!r}, {found})"

    def __str__(self) -> str:
        pairs = []
        for pair in self.real[:MAX_PAIRS_DESCRIBED]:
            high, low = (pair.first, pair.second) if pair.odds_ratio >= 1 else (pair.second, pair.first)
            p = f"Holm-adjusted {pvalue_phrase(pair.adjusted)}"
            pairs.append(f"At equal predictions, the outcome is more likely in {high} than in {low} ({p}).")
        heading = f"All values of {self.within_column} together:" if self.within_column else ""
        overall = [heading, self.sentence(), *pairs, *self._drift(), self._how()]
        return " ".join([*self._within_each(), *filter(None, overall)])

    def _within_each(self) -> list[str]:
        """Say in which values of the second column the groups differ, and in which there is a trend."""
        if not self.within_column:
            return []
        found = {
            f"the groups of {self.column} differ": {part.name: part.adjusted for part in self.within},
            f"there is a trend along {self.column}": {
                part.name: part.trend_adjusted for part in self.within if part.trend_adjusted is not None
            },
        }
        sentences = []
        for what, adjusted in found.items():
            ranked = sorted(adjusted.items(), key=lambda one: one[1])
            sure = [f"{name} ({pvalue_phrase(p)})" for name, p in ranked if is_rejected(p, self.confidence)]
            where = f"in {len(sure):,} of {len(ranked):,}: {', '.join(sure)}"
            where = where if sure else f"in none of {len(ranked):,}"
            sentences += [f"Within {self.within_column}, {what} beyond chance {where}."] if ranked else []
        if sentences:
            sentences.append(f"These p-values are adjusted for all values of {self.within_column} (Holm).")
        undecided = [part.name for part in self.within if part.undecided]
        if undecided:
            sentences.append(f"Undecided, since other draws could change it: {', '.join(undecided)}.")
        if self.left_out:
            why = "; ".join(f"{name} ({reason.rstrip('.')})" for name, reason in self.left_out.items())
            sentences.append(f"Not compared: {why}.")
        return sentences

    def sentence(self) -> str:
        """Say whether the groups differ by more than chance, and which are farthest apart."""
        low = min(self.groups, key=lambda group: group.gap)
        high = max(reversed(self.groups), key=lambda group: group.gap)
        ends = "; ".join(
            f"{group.name} ({pluralize(group.n, 'row')}): "
            f"{predicted_observed(group.predicted, group.happened)}"
            for group in (low, high)
        )
        of_column = "" if self.column == DEFAULT_COLUMN else f" of {self.column}"
        which, p = f"{len(self.groups):,} groups{of_column}", self._written(self.pvalue)
        if not self.comparable:
            same = {group.happened for group in self.groups} in ({0.0}, {1.0})
            why = "every outcome is the same" if same else "their predictions overlap too little"
            why = "every prediction is exactly 0 or 1" if self.certain == self.n else why
            return f"The {which} cannot be compared: {why}. {ends}."
        if self.undecided:
            return f"Undecided whether the {which} differ ({p}). Farthest apart: {ends}."
        if is_rejected(self.pvalue, self.confidence):
            return f"Predictions do not mean the same for the {which} ({p}). Farthest apart: {ends}."
        alone = "Apart from a trend, the" if self._drifts() else "The"
        return (
            f"{alone} {which} do not differ by more than chance ({p}). Farthest apart: {ends}."
            f"{self._power_note()}"
        )

    def _power_note(self) -> str:
        """Say by how much two groups could still differ, as the interval of some pair allows."""
        if not self.differences:  # too many groups for pairs
            return ""
        most = max(max(pair.upper, 1 / pair.lower if pair.lower else np.inf) for pair in self.differences)
        factor = "any factor" if np.isinf(most) else f"a factor of up to {format_value(most, 2)}"
        return f" At equal predictions the odds of two groups could still differ by {factor}."

    def _drifts(self) -> bool:
        return self.trend is not None and is_rejected(self.trend.pvalue, self.confidence)

    def _written(self, pvalue: float) -> str:
        return pvalue_phrase(pvalue, self.draws if self.simulated else 0)

    def _drift(self) -> list[str]:
        trend = self.trend
        if trend is None or not self.comparable:
            return []
        if not self._drifts():
            along = f"along {self.column} from {trend.first} to {trend.last}"
            return [f"No trend {along} beyond chance ({self._written(trend.pvalue)})."]
        more = "more" if trend.direction == "up" else "less"
        gaps = {group.name: format_points(group.gap, group.upper - group.lower) for group in self.groups}
        ends = ", ".join(f"{gaps[name]} points in {name}" for name in (trend.first, trend.last))
        return [
            f"Along {self.column} the outcome becomes {more} frequent at equal predictions: the odds "
            f"change by a factor of {format_value(trend.odds_ratio)} from one group to the next, on average "
            f"({self._written(trend.pvalue)}). Observed minus predicted: {ends}."
        ]

    def trend_phrase(self) -> str:
        """Say in a clause whether there is a trend."""
        if self.trend is None:
            return "no trend was tested"
        found = "there is a trend beyond chance" if self._drifts() else "no trend exceeds chance"
        return f"{found} ({self._written(self.trend.pvalue)})"

    def _how(self) -> str:
        if self.method == "approximate":
            how = f", approximate p-values ({self.reason})"
        else:
            drawn = pluralize(self.draws, "permutation" if self.method == "permutation" else "draw")
            how = ", approximate" + (f", {drawn}, seed {self.seed}" if self.simulated else "")
        sentences = [f"{pluralize(self.n, 'row')}{dropped_note(self.dropped)}{how}."]
        if self.certain:
            wrong = pluralize(self.wrong, "of them was", "of them were") if self.wrong else "none of them was"
            are = pluralize(self.certain, "prediction is", "predictions are")
            sentences.append(f"{are} exactly 0 or 1; {wrong} wrong.")
        return " ".join(filter(None, [*sentences, self.clusters]))

    def rows(self) -> tuple[GroupLevel, ...]:
        """Return what `to_frame` has one row for: the groups."""
        return self.groups

    def group_sheet(self) -> Table:
        """Return the table of the groups, in order."""
        columns = (
            self.column, "records", "predicted", "observed", "difference", "interval", "Brier",
            "miscalibration",
        )  # fmt: skip
        lines = tuple(
            (
                text_cell(group.name),
                number_cell(group.n, f"{group.n:,}"),
                number_cell(group.predicted, percent(group.predicted)),
                number_cell(group.happened, percent(group.happened)),
                number_cell(group.gap, format_points(group.gap, group.upper - group.lower)),
                number_cell(group.lower, _span(group.lower, group.upper)),
                *(number_cell(x, format_value(x)) for x in (group.brier, group.miscalibration)),
            )
            for group in self.groups
        )
        return Table(columns, lines)

    def within_sheet(self) -> Table:
        """Return the table of the values of the second column, each with its groups compared."""
        columns = (
            self.within_column, "records", "groups", "lowest", "highest", "p", "adjusted", "trend",
            "trend p", "trend adjusted",
        )  # fmt: skip
        return Table(columns, tuple(part.cells() for part in self.within))

    def _pairs_shown(self) -> int:
        """Return how many pairs the table shows: all of few, else those beyond chance, or the clearest."""
        if len(self.differences) <= MAX_PAIRS_SHOWN:
            return len(self.differences)
        return min(max(len(self.real), MIN_PAIRS_SHOWN), MAX_PAIRS_SHOWN)

    def pairs_left_out(self) -> str:
        """Say how many pairs the table leaves out, and how many of them differ beyond chance."""
        shown = self._pairs_shown()
        left, real = len(self.differences) - shown, max(0, len(self.real) - shown)
        if not left:
            return ""
        are = pluralize(left, "more pair is", "more pairs are")
        beyond = f"{real:,} of them beyond chance" if real else "none of them beyond chance"
        return f"{are} not shown, {beyond}; to_dict() and --json have all {len(self.differences):,}."

    def pair_sheet(self, top: int | None = None) -> Table:
        """Return the table of the pairs, the clearest first; of many, those worth showing."""
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
        return Table(columns, lines)

    def _repr_html_(self) -> str:
        sheets = self.within_sheet().as_html() if self.within else ""
        sheets += self.group_sheet().as_html() + self.pair_sheet().as_html()
        return html_paragraphs(str(self)) + sheets + html_paragraphs(self.pairs_left_out())


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WithinGroup(Result):
    """The groups compared among the rows of one value of another column: the seasons of one league."""

    name: str
    compared: GroupComparison
    adjusted: float  # for all values of that column (Holm), like the next
    trend_adjusted: float | None  # None without a trend
    undecided: bool  # other draws could put one of them on the other side of 1 - confidence

    @classmethod
    def adjusted_for_all(cls, parts: Mapping[str, GroupComparison]) -> tuple[WithinGroup, ...]:
        """Adjust the p-values of comparisons by name, those of differences and those of trends."""
        differ = [compared.pvalue for compared in parts.values()]
        drift = [compared.trend.pvalue for compared in parts.values() if compared.trend is not None]
        trends = iter(zip(holm(drift), _steps(drift), strict=True))
        made = []
        for (name, one), adjusted, tests in zip(parts.items(), holm(differ), _steps(differ), strict=True):
            level, draws = 1 - one.confidence, one.draws if one.simulated else 0
            close, trend = could_flip(one.pvalue, draws, level / tests), None
            if one.trend is not None:
                trend, tests = next(trends)
                close = close or could_flip(one.trend.pvalue, draws, level / tests)
            made.append(cls(name, one, adjusted, trend, close))
        return tuple(made)

    def cells(self) -> tuple[TableCell, ...]:
        one, trend = self.compared, self.compared.trend
        ends = min(one.groups, key=lambda g: g.gap), max(one.groups, key=lambda g: g.gap)
        shown = (f"{format_points(g.gap, g.upper - g.lower)} in {g.name}" for g in ends)
        pvalues = (one.pvalue, self.adjusted, None if trend is None else trend.pvalue, self.trend_adjusted)
        cells = [number_cell(p, format_pvalue(p)) for p in pvalues]
        odds = (
            number_cell(None, "") if trend is None else number_cell(trend.odds_ratio, _odds(trend.odds_ratio))
        )
        return (
            text_cell(self.name),
            number_cell(one.n, f"{one.n:,}"),
            number_cell(len(one.groups), f"{len(one.groups)}"),
            *map(text_cell, shown),
            *cells[:2],
            odds,
            *cells[2:],
        )


def _steps(pvalues: Sequence[float]) -> list[int]:
    """Return by how many tests Holm multiplies each p-value."""
    ranks = np.argsort(np.argsort(pvalues, kind="stable"), kind="stable")
    return [len(pvalues) - int(rank) for rank in ranks]


def _span(low: float, high: float) -> str:
    if np.isnan(low):
        return "too little data"
    return f"{format_points(low, high - low)} to {format_points(high, high - low)}"


def _odds(value: float) -> str:
    return "any" if np.isposinf(value) else format_value(value)
