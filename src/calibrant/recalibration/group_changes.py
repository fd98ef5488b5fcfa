"""Every group before and after a repair: what was predicted, what happened, and who pays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.groups.audit_result import Audit
from calibrant.groups.coding import code_columns
from calibrant.groups.group import LEVEL, Group, plain
from calibrant.groups.rules import EVERYONE
from calibrant.groups.subpopulations import as_masks, combinations, masked
from calibrant.numerals import counted, points, pvalue_text
from calibrant.results import Array
from calibrant.sums import dot

CONFIDENCE = 0.95  # that no limit of any group is wrong
DEPTH = 2  # columns of which combinations of values are groups
Members = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True, slots=True)
class GroupSide:
    """The predictions of a group, as they are or repaired, against what happened.

    `difference` is happened minus predicted, with the 95 % interval `low` to `high` of this group by itself;
    `pvalue` is adjusted for all groups that were tested, and None where the group was listed only.
    """

    predicted: float
    difference: float
    low: float
    high: float
    pvalue: float | None
    pvalue_is_bound: bool
    brier: float

    @classmethod
    def of(cls, group: Group, brier: float) -> GroupSide:
        """Keep what a reader compares."""
        return cls(
            group.mean_prediction,
            group.difference,
            *group.limits,
            None if group.pvalue is None else plain(group.pvalue),
            group.pvalue_is_bound,
            brier,
        )

    @property
    def wrong(self) -> bool:
        """Whether the group was tested and is wrong beyond chance."""
        return self.pvalue is not None and self.pvalue <= LEVEL

    @property
    def written_pvalue(self) -> str:
        """The p-value for a sentence."""
        return f"p {'≤' if self.pvalue_is_bound else '='} {pvalue_text(self.pvalue)}"

    @property
    def in_words(self) -> str:
        """The difference in points, and its direction."""
        size = points(abs(self.difference), self.high - self.low).lstrip("+")
        if float(size) == 0:
            return "0.0 points off"
        return f"{size} points too {'low' if self.difference > 0 else 'high'}"


@dataclass(frozen=True, slots=True)
class Increase:
    """By how much something grew, with limits that hold for all groups at once."""

    value: float
    lower: float
    upper: float

    @property
    def within_noise(self) -> bool:
        """Whether the limits leave open in which direction it went."""
        return self.lower <= 0 <= self.upper


@dataclass(frozen=True, slots=True)
class GroupChange:
    """One group before and after a repair, on records that the repair was not fitted to.

    `farther` is by how much its mean prediction moved away from what happened (negative: closer), `brier` by
    how much its Brier score grew (negative: it gains). Groups that are not `judged` have too few records to
    say more than that.
    """

    rule: str
    size: int
    happened: float
    before: GroupSide
    after: GroupSide
    farther: Increase
    brier: Increase
    judged: bool

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> GroupChange:
        """Rebuild from what `asdict` returned."""
        sides = {name: GroupSide(**stored[name]) for name in ("before", "after")}
        increases = {name: Increase(**stored[name]) for name in ("farther", "brier")}
        return cls(**{**stored, **sides, **increases})

    @property
    def effect(self) -> str:
        """Whether predictions are closer to what happened, in words."""
        return self._sure(self.farther, ("as far as before", "farther", "closer"))

    @property
    def brier_effect(self) -> str:
        """Whether the Brier score is better, in words."""
        return self._sure(self.brier, ("as before", "worse", "better"))

    def _sure(self, increase: Increase, words: tuple[str, str, str]) -> str:
        """Say in which direction something went, and whether the records show it."""
        if increase.value == 0:
            return words[0]
        way = words[1] if increase.value > 0 else words[2]
        if not self.judged:
            return f"{way}, too few records"
        return f"{way}, within noise" if increase.within_noise else way


def group_changes(
    y: Array,
    sides: tuple[Array, Array],
    weight: Array,
    audits: tuple[Audit, Audit],
    members: Iterator[tuple[str, Members]],
    smallest: int,
) -> list[GroupChange]:
    """Return the change of every group that both audits list, in the order of the first."""
    from scipy.special import ndtri

    before, after = ({str(group.rule): group for group in one.groups} for one in audits)
    sums = {
        rule: _Sums.of(weight[inside], y[inside], sides[0][inside], sides[1][inside])
        for rule, inside in members
        if rule in before and rule in after
    }
    judged = sum(before[rule].size >= smallest for rule in sums)
    reach = float(ndtri(1.0 - (1.0 - CONFIDENCE) / (2.0 * max(1, judged))))
    return [
        GroupChange(
            rule,
            group.size,
            group.mean_outcome,
            GroupSide.of(group, sums[rule].brier_before),
            GroupSide.of(after[rule], sums[rule].brier_after),
            sums[rule].farther(reach),
            sums[rule].brier(reach),
            group.size >= smallest,
        )
        for rule, group in before.items()
        if rule in sums
    ]


@dataclass(frozen=True, slots=True)
class _Sums:
    """Means of one group: outcomes, both predictions, both Brier scores, and the errors of their changes."""

    rate: float
    before: float
    after: float
    rate_error: float
    brier_before: float
    brier_after: float
    brier_error: float

    @classmethod
    def of(cls, weight: Array, y: Array, p: Array, q: Array) -> _Sums:
        """Sum up; the error of the rate is that which it has if the rate lies between both predictions."""
        share = weight / weight.sum()
        middle = (p + q) / 2
        old, new = (y - p) ** 2, (y - q) ** 2
        growth = dot(share, new - old)
        return cls(
            rate=dot(share, y),
            before=dot(share, p),
            after=dot(share, q),
            rate_error=float(np.sqrt(np.sum(share**2 * middle * (1 - middle)))),
            brier_before=dot(share, old),
            brier_after=dot(share, new),
            brier_error=float(np.sqrt(np.sum((share * (new - old - growth)) ** 2))),
        )

    def farther(self, reach: float) -> Increase:
        """Return how much farther from the rate the mean prediction is; limits are those of the rate."""
        rates = (self.rate, self.rate - reach * self.rate_error, self.rate + reach * self.rate_error)
        at = [abs(rate - self.after) - abs(rate - self.before) for rate in rates]
        return Increase(at[0], min(at), max(at))

    def brier(self, reach: float) -> Increase:
        """Return by how much the Brier score grew, record by record."""
        growth, half = self.brier_after - self.brier_before, reach * self.brier_error
        return Increase(growth, growth - half, growth + half)


def named_members(named: Mapping[str, npt.NDArray[Any]], rows: int) -> Iterator[tuple[str, Members]]:
    """Yield everyone, and every value of the columns, alone and in pairs, with who is in it."""
    yield EVERYONE, np.arange(rows)
    if not named:
        return
    masks = as_masks(named, rows)
    if masks is not None:
        batches = masked(masks, np.arange(rows))
    else:
        batches = combinations(code_columns(named, rows, "groups"), DEPTH)
    for batch in batches:
        lists = batch.lists
        for k, rule in enumerate(batch.rules):
            yield str(rule), lists.members_of(k)


def who_pays(changes: Sequence[GroupChange]) -> list[str]:
    """Say in points and by Brier score for whom the repair makes it worse, and whether that is noise."""
    groups = [one for one in changes if one.rule != EVERYONE]
    judged = [one for one in groups if one.judged]
    if not judged:
        return []
    few = len(groups) - len(judged)
    listed = "" if not few else f"; {counted(few, 'more has', 'more have')} too few records to be judged"
    return [_in_points(judged, listed), _by_brier(judged)]


def newly_wrong(changes: Sequence[GroupChange]) -> list[str]:
    """Say which groups the audit accuses after the repair and did not before; nothing of none."""
    tested = [one for one in changes if one.rule != EVERYONE and one.after.pvalue is not None]
    new = [one for one in tested if one.after.wrong and not one.before.wrong]
    if not new:
        return []
    most = min(new, key=lambda one: one.after.pvalue or 0.0)
    first = "" if len(new) == 1 else "the smallest p-value has "
    return [
        f"by the audit: {len(new):,} of {counted(len(tested), 'group')} {'is' if len(new) == 1 else 'are'} "
        f"wrong at the 5 % level after the repair and not before: {first}{most.rule} "
        f"({counted(most.size, 'record')}), {most.before.in_words} before ({most.before.written_pvalue}), "
        f"{most.after.in_words} after ({most.after.written_pvalue})"
    ]


def farther_in_short(judged: Sequence[GroupChange]) -> str:
    """Count the groups whose mean prediction is farther from what happened, and say whether that is noise."""
    of = counted(len(judged), "group")
    worse = [one for one in judged if one.farther.value > 0]
    if not worse:
        none = "the mean prediction is not" if len(judged) == 1 else "no mean prediction is"
        return f"of {of}, {none} farther from what happened than before"
    sure = sum(not one.farther.within_noise for one in worse)
    return (
        f"for {len(worse):,} of {of} the mean prediction is farther from what happened than before, "
        f"{_how_many(sure, len(worse))}"
    )


def _in_points(judged: Sequence[GroupChange], listed: str) -> str:
    said = f"in points: {farther_in_short(judged)}{listed}"
    worse = [one for one in judged if one.farther.value > 0]
    if not worse:
        return said
    most = max(worse, key=lambda one: (not one.farther.within_noise, one.farther.value))
    return (
        f"{said}. Most: {most.rule} ({counted(most.size, 'record')}), {most.before.in_words} before, "
        f"{most.after.in_words} after: farther by {_points(most.farther)}, {_noise(most.farther)}"
    )


def _by_brier(judged: Sequence[GroupChange]) -> str:
    of = counted(len(judged), "group")
    worse = [one for one in judged if one.brier.value > 0]
    if not worse:
        return f"by Brier score: none of {of} is worse off"
    most = max(worse, key=lambda one: (not one.brier.within_noise, one.brier.value))
    sure = sum(not one.brier.within_noise for one in worse)
    return (
        f"by Brier score: {len(worse):,} of {of} {'is' if len(worse) == 1 else 'are'} worse off, "
        f"{_how_many(sure, len(worse))}. Most: {most.rule} ({counted(most.size, 'record')}), "
        f"{most.before.brier:.5f} before, {most.after.brier:.5f} after: worse by {most.brier.value:.5f} "
        f"(limits {most.brier.lower:+.5f} to {most.brier.upper:+.5f}), {_noise(most.brier)}"
    )


def _how_many(sure: int, worse: int) -> str:
    if not sure:
        return "within noise" if worse == 1 else "within noise for all of them"
    if worse == 1:
        return "beyond noise"
    return f"beyond noise for {'all' if sure == worse else f'{sure:,}'} of them"


def _points(increase: Increase) -> str:
    """Write by how many points a prediction is farther off, with the limits."""
    width = increase.upper - increase.lower
    value, low, high = (points(x, width) for x in (increase.value, increase.lower, increase.upper))
    return f"{value.lstrip('+')} points (limits {low} to {high})"


def _noise(increase: Increase) -> str:
    return "within noise" if increase.within_noise else "beyond noise"
