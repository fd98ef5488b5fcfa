"""One group of an audit: who it is, what was predicted, what happened."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from calibrant.groups.rules import Rule
from calibrant.groups.wilson import wilson
from calibrant.numerals import at_floor, counted, points, predicted_happened, pvalue_phrase, short
from calibrant.results import Array

LEVEL = 0.05  # family-wise, of adjusted p-values: above it a finding is within chance
NOTHING = 1e-12  # a statistic so small may be rounding, whose z counts as 0
CONFIDENCE = 0.95  # of the interval of a group's difference
BEHIND = ("interval", "draws", "tested_by")  # fields that are no facts of the group


@dataclass(frozen=True, slots=True)
class Group:
    """One subpopulation. `rule` says who is in it, in words and by `rule.members(frame)` among new rows.

    `name` is its text, or the name of the user's mask.

    `kuiper` is D_k, `gap` the mean residual (outcome minus prediction), `sigma` its deviation if calibrated.
    `z` is the statistic over sigma, kuiper or |gap|, `expected` the mean of that statistic if calibrated, and
    `metric` = z sigma_0 what the group contributes to M. `share`, `mean_prediction` and `mean_outcome` are by
    the records' own weights, whatever the variant. `pvalue` is adjusted for all subpopulations tested (None
    without draws). `predictions` says whether they are "too high", "too low" or neither ("none") for scores
    from `start` to `stop`, the interval where residuals add up most (for the mean, all scores). The statistic
    on the raw rows is at least `lower` and at most `upper`, which differ from it for a sketch alone.
    """

    name: str
    rule: Rule
    size: int
    share: float
    kuiper: float
    gap: float
    expected: float
    sigma: float
    z: float
    metric: float
    pvalue: float | None
    predictions: str
    start: float
    stop: float
    mean_prediction: float
    mean_outcome: float
    lower: float
    upper: float
    interval: tuple[float, float] | None = None  # of the difference, where its rows were looked at
    draws: int = 0  # behind the p-value
    tested_by: str = "kuiper"  # or "mean"

    @property
    def pvalue_is_bound(self) -> bool:
        """Whether no draw reached the observed value, so that the p-value is this or less."""
        return at_floor(self.pvalue, self.draws)

    def means(self) -> str:
        """Say what was predicted and what happened, and where the error is if the means do not show it."""
        said = predicted_happened(self.mean_prediction, self.mean_outcome)
        if self.predictions == "none" or self.in_the_mean:
            return said
        return f"{said}; {self.predictions} {self._where('for scores')}"

    def _where(self, among: str) -> str:
        """Name the scores between which the errors add up, or the one at which they are."""
        if self.start == self.stop:
            return f"at {self.start:.3g}"
        return f"{among} {self.start:.3g} to {self.stop:.3g}"

    @property
    def in_the_mean(self) -> bool:
        """Whether the means show the error; else errors of both signs cancel in them."""
        return 2 * abs(self.difference) >= self.kuiper

    @property
    def within_chance(self) -> bool:
        """Whether the group was tested and is not wrong beyond chance."""
        return self.pvalue is not None and self.pvalue > LEVEL

    def found(self, statistic: str = "kuiper") -> str:
        """Say in which direction predictions are off, and for which scores; chance has no direction."""
        if self.predictions == "none":
            return ""
        if self.within_chance:
            return "within chance"
        return self.predictions if statistic == "mean" else f"{self.predictions} {self._where('from')}"

    @property
    def difference(self) -> float:
        """Mean outcome minus mean prediction."""
        return self.mean_outcome - self.mean_prediction

    @property
    def limits(self) -> tuple[float, float]:
        """The 95 % interval of the difference, for this group by itself.

        It is `interval` where the rows were looked at; else, and for sketches, Wilson's, which takes the
        variance to change with the rate as that of one common prediction would. Responses of any size have
        that of the normal law.
        """
        low, high = self.interval or wilson(
            self.mean_prediction, self.mean_outcome, self.sigma, half=0.5 / max(self.size, 1)
        )
        return min(low, self.difference), max(high, self.difference)  # means differ by rounding

    @property
    def facts(self) -> dict[str, Any]:
        """All fields by name, with the ends of the interval of the difference."""
        low, high = self.limits
        facts = {name: value for name, value in asdict(self).items() if name not in BEHIND}
        facts |= {"difference": self.difference, "low": low, "high": high}
        return facts | {"pvalue_is_bound": self.pvalue_is_bound}

    def written_difference(self) -> tuple[str, str]:
        """Write the difference and its limits, in points; no limits where nothing is known of them."""
        low, high = self.limits
        width = high - low
        known = self.sigma > 0 or self.interval is not None
        span = f"{points(low, width)} to {points(high, width)}" if known else "–"
        return f"{points(self.difference, width)} points", span

    def statistic(self, name: str) -> float:
        """Return what was tested: D_k, or the absolute mean residual."""
        return abs(self.gap) if name == "mean" else self.kuiper

    def metric_of(self, bound: float, sigma_0: float) -> float:
        """Return what the group contributes to M if its statistic is this bound."""
        if self.lower == self.upper or self.sigma == 0:
            return self.metric
        if bound <= self.lower <= NOTHING:
            return 0.0
        return contribution(bound / self.sigma, bound, sigma_0)

    def __str__(self) -> str:
        """Say who this is and what was found: a range of scores, or for the mean by how much on average."""
        real = "" if self.pvalue is None else f", {pvalue_phrase(self.pvalue, self.draws)}"
        if self.tested_by == "mean":
            value, where = f"mean residual {self.gap:+.4f}", f"by {abs(self.gap):.3g} on average"
        else:
            value, where = f"Kuiper {_written(self.kuiper)}", self._where("for scores")
        off = "within chance" if self.within_chance else f"predictions {self.predictions} {where}"
        said = "" if self.predictions == "none" else f"; {off}"
        return f"{self.rule}: {counted(self.size, 'row')}, {value}, z = {self.z:.2f}{real}{said}"


def group_values(group: Group, statistic: str) -> dict[str, Any]:
    """Return a group as plain values, for a table that programs read."""
    numbers = {name: value for name, value in group.facts.items() if name not in ("name", "rule")}
    return {"group": group.name, **numbers, "finding": group.found(statistic)}


def _written(value: float) -> str:
    return f"{value:.4f}" if value == 0 or value >= 0.001 else short(value)


def contribution(z: float, statistic: float, sigma_0: float) -> float:
    """D_k sigma_0 / sigma_k of eq. (4); D_k itself where no prediction leaves any doubt (sigma_0 = 0)."""
    return z * sigma_0 if sigma_0 > 0 else statistic


@dataclass(frozen=True, slots=True, eq=False)
class GroupCurve:
    """The cumulative curve of one subpopulation, thinned for a chart: its extremes are kept.

    `share` is the part of the subpopulation's weight at or below `prediction`; `cumulative` is C there.
    """

    rule: Rule
    share: Array
    prediction: Array
    cumulative: Array


@dataclass(frozen=True, slots=True)
class NotTested:
    """How many subpopulations came up and were not tested, and why.

    Once the limit is reached, groups are counted without a look at them: `over_limit` has those among them
    that are too small or the same as another, and combinations of values that nobody has.
    """

    too_small: int = 0
    duplicates: int = 0
    over_limit: int = 0

    def __str__(self) -> str:
        return (
            f"{self.too_small:,} too small, {self.duplicates:,} with the same members as another, "
            f"{self.over_limit:,} over the limit"
        )


def plain(value: Any) -> Any:
    """Return a value that JSON can say."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
