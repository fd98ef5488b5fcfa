"""Groups before and after a repair, on held-out records: the audit, every change, and who pays."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, product
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from calibrant.fits.levels import Levels, costs
from calibrant.formatting import (
    at_floor,
    format_points,
    p_equals,
    pluralize,
    predicted_observed,
    pvalue_text,
)
from calibrant.groups.audit import audit
from calibrant.groups.audit_result import Audit, Group
from calibrant.groups.rules import EVERYONE
from calibrant.inference.pvalues import LEVEL, bonferroni
from calibrant.metrics.scores import CLIP
from calibrant.parallel import dot
from calibrant.recalibration.maps.columns import binned_columns, coded, codes_of, encoded_sample
from calibrant.results import Array, Result, Table, number_cell, text_cell

CONFIDENCE = 0.95  # of audits, and that no limit of any group is wrong
SUBPOPULATIONS, DRAWS = 300, 99  # of audits by covariates
MIN_NAMED_RECORDS, NAMED_DRAWS = 10, 199  # those of `audit` and `evaluate`, so that sentences agree
MIN_GROUP_RECORDS = 100  # records of a group, or a twentieth of all where that is less
MIN_MOVE = 0.1  # of the difference, below which a repair makes a group neither better nor worse
RANGES = 4  # into which numbers are cut
MAX_PAIRS = 400  # of values of two covariates that are judged, largest first
MAX_WORST = 5  # groups named in an audit
Members = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, repr=False)
class GroupSide(Result):
    """The predictions of a group, as they are or repaired, against the outcomes."""

    predicted: float
    difference: float  # observed minus predicted
    low: float  # of the 95% interval of this group alone
    high: float
    pvalue: float | None  # adjusted for all groups tested; None where the group was listed only
    pvalue_is_bound: bool
    brier: float

    @classmethod
    def of(cls, group: Group, brier: float) -> GroupSide:
        tested = group.pvalue, group.pvalue_is_bound
        return cls(group.mean_prediction, group.difference, *group.limits, *tested, brier)

    @property
    def wrong(self) -> bool:
        return self.pvalue is not None and self.pvalue <= LEVEL

    @property
    def written_pvalue(self) -> str:
        return p_equals(pvalue_text(self.pvalue, self.pvalue_is_bound))

    @property
    def with_interval(self) -> str:
        """The difference with its interval, in points: "+2.9 (1.8 to 4.1)"."""
        width = self.high - self.low
        if math.isnan(width):  # too few records for an interval
            return format_points(self.difference)
        low, high = (format_points(end, width).lstrip("+") for end in (self.low, self.high))
        return f"{format_points(self.difference, width)} ({low} to {high})"

    @property
    def in_words(self) -> str:
        size = format_points(abs(self.difference), self.high - self.low).lstrip("+")
        if float(size) == 0:
            return "0.0 points off"
        return f"{size} points too {'low' if self.difference > 0 else 'high'}"


@dataclass(frozen=True, slots=True, repr=False)
class ChangeInterval(Result):
    """By how much something grew, with limits that hold for all groups at once."""

    value: float
    lower: float
    upper: float

    @property
    def within_noise(self) -> bool:
        return self.lower <= 0 <= self.upper


@dataclass(frozen=True, slots=True, repr=False)
class GroupChange(Result):
    """One group before and after a repair, on records that the repair was not fitted to."""

    rule: str
    size: int
    happened: float
    before: GroupSide
    after: GroupSide
    farther: ChangeInterval  # of the mean prediction, from the observed frequency
    brier: ChangeInterval  # its growth: negative is a gain
    judged: bool  # whether the records are enough for words on it

    @property
    def effect(self) -> str:
        """One word for the mean prediction: "fixed", "better", "worse" or "open"."""
        before, after = self.before, self.after
        if self.judged and (before.low > 0 or before.high < 0) and after.low <= 0 <= after.high:
            return "fixed"
        off_before, off_after = abs(before.difference), abs(after.difference)
        if not self.judged or abs(off_after - off_before) < MIN_MOVE * max(off_before, off_after):
            return "open"
        if off_after < off_before:
            return "better"
        return "worse" if self.farther.lower > 0 else "open"

    @property
    def brier_effect(self) -> str:
        """One word for the Brier score: "better", "worse", or "open" where chance could explain it."""
        if not self.judged or self.brier.within_noise:
            return "open"
        return "worse" if self.brier.value > 0 else "better"


def group_changes(
    y: Array,
    sides: tuple[Array, Array],
    weight: Array,
    audits: Sequence[Audit],
    members: Mapping[str, Members],
    smallest: int,
) -> list[GroupChange]:
    """Return the change of every group that both audits list, its limits holding for all groups at once."""
    before, after = ({str(group.rule): group for group in one.groups} for one in audits)
    groups = {rule: group for rule, group in before.items() if rule in after and rule in members}
    reach = _reach(sum(group.size >= smallest for group in groups.values()))
    collected = []
    for rule, group in groups.items():
        w, outcome, p, q = (x[members[rule]] for x in (weight, y, *sides))
        share, middle = w / w.sum(), (p + q) / 2  # the error is taken as if the true rate lay between p and q
        rate, error = dot(share, outcome), float(np.sqrt(np.sum(share**2 * middle * (1 - middle))))
        means = dot(share, p), dot(share, q)
        rates = (rate, rate - reach * error, rate + reach * error)
        moved = [abs(one - means[1]) - abs(one - means[0]) for one in rates]
        old, new = (outcome - p) ** 2, (outcome - q) ** 2
        scores = dot(share, old), dot(share, new)
        half, growth = _mean_limits(new - old, share, reach)[1], scores[1] - scores[0]
        collected.append(
            GroupChange(
                rule=rule,
                size=group.size,
                happened=group.mean_outcome,
                before=GroupSide.of(group, scores[0]),
                after=GroupSide.of(after[rule], scores[1]),
                farther=ChangeInterval(moved[0], min(moved), max(moved)),
                brier=ChangeInterval(growth, growth - half, growth + half),
                judged=group.size >= smallest,
            )
        )
    return collected


def _reach(groups: int) -> float:
    """Return how many standard errors two limits of each group are away, for all to hold at once."""
    from scipy.special import ndtri

    return float(ndtri(bonferroni(CONFIDENCE, 2 * max(1, groups))))


def _mean_limits(values: Array, share: Array, reach: float) -> tuple[float, float]:
    mean = dot(share, values)
    return mean, reach * float(np.sqrt(np.sum((share * (values - mean)) ** 2)))


def audited_members(audited: Audit, covariates: Mapping[str, npt.NDArray[Any]]) -> dict[str, Members]:
    columns = {column.name: column for column in coded(covariates)}
    everyone = np.ones(len(next(iter(covariates.values()))), dtype=bool)

    @cache
    def holds(condition: Any) -> Any:
        column = columns[condition.column]
        return np.array(condition.holds_each(list(column.labels)), dtype=bool)[column.codes]

    return {
        str(group.rule): np.flatnonzero(np.logical_and.reduce([everyone, *map(holds, group.rule.conditions)]))
        for group in audited.groups
    }


def groups_worse_off(changes: Sequence[GroupChange]) -> list[str]:
    groups = [one for one in changes if one.rule != EVERYONE]
    judged = [one for one in groups if one.judged]
    if not judged:
        return []
    few = len(groups) - len(judged)
    listed = "" if not few else f"; {pluralize(few, 'more has', 'more have')} too few records to be judged"
    return [_in_points(judged, listed), _by_brier(judged)]


def newly_wrong(changes: Sequence[GroupChange]) -> list[str]:
    tested = [one for one in changes if one.rule != EVERYONE and one.after.pvalue is not None]
    new = [one for one in tested if one.after.wrong and not one.before.wrong]
    if not new:
        return []
    most = min(new, key=lambda one: one.after.pvalue or 0.0)
    first = "" if len(new) == 1 else "the smallest p-value has "
    return [
        f"by the audit: {len(new):,} of {pluralize(len(tested), 'group')} {'is' if len(new) == 1 else 'are'} "
        f"wrong at the 5% level after the repair and not before: {first}{most.rule} "
        f"({pluralize(most.size, 'record')}), {most.before.in_words} before ({most.before.written_pvalue}), "
        f"{most.after.in_words} after ({most.after.written_pvalue})"
    ]


def _in_points(judged: Sequence[GroupChange], few: str) -> str:
    of, worse = pluralize(len(judged), "group"), [one for one in judged if one.farther.value > 0]
    if not worse:
        none = "the mean prediction is not" if len(judged) == 1 else "no mean prediction is"
        return f"in points: of {of}, {none} farther from the observed frequency than before{few}"
    most = max(worse, key=lambda one: (not one.farther.within_noise, one.farther.value))
    increase = most.farther
    width = increase.upper - increase.lower
    by, low, high = (format_points(x, width) for x in (increase.value, increase.lower, increase.upper))
    return (
        f"in points: for {len(worse):,} of {of} the mean prediction is farther from the observed frequency "
        f"than before, {_beyond_noise([one.farther for one in worse])}{few}. Most: {most.rule} "
        f"({pluralize(most.size, 'record')}), {most.before.in_words} before, {most.after.in_words} after: "
        f"farther by {by.lstrip('+')} points (limits {low} to {high}), {_beyond_noise([increase])}"
    )


def _by_brier(judged: Sequence[GroupChange]) -> str:
    of, worse = pluralize(len(judged), "group"), [one for one in judged if one.brier.value > 0]
    if not worse:
        return f"by Brier score: none of {of} is worse off"
    most = max(worse, key=lambda one: (not one.brier.within_noise, one.brier.value))
    return (
        f"by Brier score: {len(worse):,} of {of} {'is' if len(worse) == 1 else 'are'} worse off, "
        f"{_beyond_noise([one.brier for one in worse])}. Most: {most.rule} "
        f"({pluralize(most.size, 'record')}), {most.before.brier:.5f} before, {most.after.brier:.5f} after: "
        f"worse by {most.brier.value:.5f} (limits {most.brier.lower:+.5f} to {most.brier.upper:+.5f}), "
        f"{_beyond_noise([most.brier])}"
    )


def _beyond_noise(increases: Sequence[ChangeInterval]) -> str:
    sure, of = sum(not one.within_noise for one in increases), len(increases)
    if of == 1:
        return "beyond chance" if sure else "within chance"
    if not sure:
        return "within chance for all of them"
    return f"beyond chance for {'all' if sure == of else f'{sure:,}'} of them"


@dataclass(frozen=True, slots=True, repr=False)
class GroupAudit(Result):
    """The audit of some predictions in short: M, M / sigma, the p-value, and the worst groups in words."""

    metric: float
    ratio: float
    pvalue: float
    worst: tuple[str, ...]
    draws: int = DRAWS

    @classmethod
    def of(cls, audited: Audit) -> GroupAudit:
        pvalue = 1.0 if audited.pvalue is None else audited.pvalue
        worst = tuple(str(group) for group in audited.groups[:MAX_WORST])
        return cls(audited.metric, audited.ratio, pvalue, worst, audited.draws)

    @property
    def rejected(self) -> bool:
        return self.pvalue <= 1 - CONFIDENCE

    @property
    def written_pvalue(self) -> str:
        return p_equals(pvalue_text(self.pvalue, at_floor(self.pvalue, self.draws)))


@dataclass(frozen=True, slots=True, repr=False)
class GroupGain(Result):
    """What a group gains in mean log loss (negative: it loses); the limits hold for all groups at once."""

    rule: str
    size: int
    gain: float
    lower: float
    upper: float


@dataclass(frozen=True, slots=True, repr=False)
class GroupAssessment(Result):
    """The audit of held-out predictions before and after, and the group that gains least."""

    before: GroupAudit
    after: GroupAudit
    least: GroupGain | None  # its limits allow for its being picked as the worst of `groups`
    groups: int  # all values of the covariates, numbers in four ranges
    changes: tuple[GroupChange, ...] = ()  # of groups named, alone and in pairs, and of further covariates
    audited: str = ""  # which groups the audits looked at

    # folds share records, and the limits are of a limit law
    approximate: ClassVar[tuple[str, ...]] = ("after", "least", "changes")
    DERIVED: ClassVar[tuple[str, ...]] = ("approximate",)

    def __str__(self) -> str:
        audited = f"audit of {self.audited}" if self.audited else "audit"
        before, after = self.before.written_pvalue, self.after.written_pvalue
        lines = [f"{audited}: {before} before, {after} after", self.finding]
        return "\n".join([*lines, *(f"who pays, {one}" for one in self.who_pays)])

    @property
    def finding(self) -> str:
        """What the audit says of the repaired predictions: one sentence for every command and page."""
        if self.after.rejected:
            still = "still rejects, the predictions are still wrong"
            new = "rejects, which it did not before: the predictions are wrong"
            return (
                f"after the repair the audit {still if self.before.rejected else new} for some"
                f"{self._still_wrong}: {self.after.worst[0]}{self._means_of_worst}"
            )
        left = "for any of these groups, which does not prove them right"
        if self.before.rejected:
            return (
                "after the repair the audit no longer rejects: no evidence is left that predictions are "
                f"wrong {left}"
            )
        return (
            "the audit rejects neither before nor after the repair: nothing suggests that predictions "
            f"are wrong {left}"
        )

    @property
    def _still_wrong(self) -> str:
        groups = [one for one in self.changes if one.rule != EVERYONE and one.after.pvalue is not None]
        wrong = sum(one.after.wrong for one in groups)
        return f" ({wrong:,} of {pluralize(len(groups), 'group')} at the 5% level)" if wrong else ""

    @property
    def _means_of_worst(self) -> str:
        for one in self.changes:
            if self.after.worst[0].startswith(f"{one.rule}: {one.size:,} "):
                return f"; on the whole {predicted_observed(one.after.predicted, one.happened)}"
        return ""

    @property
    def who_pays(self) -> list[str]:
        """For whom the repair makes it worse: in points, by Brier score, by log loss and by the audit."""
        by_log_loss, least = list[str](), self.least
        if least is not None:
            by_log_loss.append(
                f"by log loss: of {pluralize(self.groups, 'group')}, {least.rule} "
                f"{'loses most' if least.gain < 0 else 'gains least'}: {least.gain:+.4f} nats "
                f"(approximately {least.lower:+.4f} to {least.upper:+.4f})"
            )
        return [*groups_worse_off(self.changes), *by_log_loss, *newly_wrong(self.changes)]


def for_whom(
    outcome: Array,
    before: Array,
    after: Array,
    weight: Array,
    covariates: Mapping[str, npt.NDArray[Any]],
    *,
    groups: Sequence[str] = (),
    seed: int,
) -> GroupAssessment:
    """Audit both kinds of predictions by the values of `groups`, and by random splits of other columns."""
    smallest = max(1, min(MIN_GROUP_RECORDS, len(outcome) // 20))  # records of a group that is judged
    named = {name: column for name, column in covariates.items() if name in groups}
    others = {name: column for name, column in covariates.items() if name not in named}
    sides = before, after
    how: dict[str, Any] = {
        "groups": named or None, "covariates": others or None, "sample_weight": weight,
        "subpopulations": SUBPOPULATIONS, "seed": seed, "min_size": smallest if others else MIN_NAMED_RECORDS,
        "draws": DRAWS if others else NAMED_DRAWS,
    }  # fmt: skip
    audits = [audit(outcome, prediction, **how) for prediction in sides]
    values = value_groups(covariates, smallest)
    losses = [costs(Levels(one, outcome, weight), one, "log", CLIP).expected for one in sides]
    gains = group_gains(losses[0] - losses[1], weight, values, smallest)
    least = min(gains, key=lambda one: one.gain, default=None)
    inside = audited_members(audits[0], covariates)
    changes = group_changes(outcome, sides, weight, audits, inside, smallest)
    if others:  # and the values of columns: differences, without p-values
        how = {"groups": values, "sample_weight": weight, "min_size": 1, "draws": 0, "seed": 0}
        listed = [audit(outcome, prediction, **how) for prediction in sides]
        rows = {words: np.flatnonzero(mask) for words, mask in values.items()}
        more = group_changes(outcome, sides, weight, listed, rows, smallest)
        changes += [one for one in more if one.rule not in {known.rule for known in changes}]
    pairs = ", alone and in pairs" if len(named) > 1 else ""
    ways = [f"the values of {', '.join(named)}{pairs}"] if named else []
    ways += [f"random splits of {', '.join(others)}"] if others else []
    audited = f"{' and '.join(ways)}: {audits[0].looked_at}"
    first, last = map(GroupAudit.of, audits)
    return GroupAssessment(first, last, least, len(gains), tuple(changes), audited)


def group_gains(gain: Array, weight: Array, groups: Mapping[str, Mask], smallest: int) -> Sequence[GroupGain]:
    judged = {words: inside for words, inside in groups.items() if inside.sum() >= smallest}
    collected, reach = [], _reach(len(judged))
    for words, inside in judged.items():
        mean, half = _mean_limits(gain[inside], weight[inside] / weight[inside].sum(), reach)
        collected.append(GroupGain(words, int(inside.sum()), mean, mean - half, mean + half))
    return collected


def value_groups(covariates: Mapping[str, npt.NDArray[Any]], smallest: int) -> dict[str, Mask]:
    """Return the values of every column, numbers in ranges, and the largest pairs of values of two."""
    given = encoded_sample(covariates)
    columns = binned_columns(given, RANGES)
    by_column: list[dict[str, Mask]] = [
        {words: codes == code for code, words in enumerate(column.words())}
        for column, codes in zip(columns, codes_of(columns, given), strict=True)
    ]
    pairs = []
    for first, second in combinations(by_column, 2):
        for (words, inside), (more, other) in product(first.items(), second.items()):
            size = int(np.count_nonzero(inside & other))
            if size >= smallest and size < np.count_nonzero(inside):
                pairs.append((size, f"{words} and {more}", inside, other))
    pairs.sort(key=lambda one: -one[0])
    largest = {words: inside & other for _, words, inside, other in pairs[:MAX_PAIRS]}
    return {**{words: inside for one in by_column for words, inside in one.items()}, **largest}


WORDS_OF_CHANGE = (
    "Fixed: wrong before, within chance after. Better: closer to the truth. Worse: farther from it, beyond "
    "chance. Open: neither, or by less than a tenth."
)
HELD_OUT = (
    "Each record was repaired by a map fitted to others. Differences are observed minus predicted, in "
    f"percentage points: positive where predictions are too low. {WORDS_OF_CHANGE}"
)


def change_table(changes: Sequence[GroupChange]) -> Table:
    columns = ("group", "records", "difference before → after", "change")
    lines = (
        (
            text_cell(one.rule),
            number_cell(one.size, f"{one.size:,}"),
            number_cell(one.before.difference, f"{one.before.with_interval} → {one.after.with_interval}"),
            text_cell(one.effect),
        )
        for one in changes
    )
    return Table(columns, tuple(lines))


def score_sheet(changes: Sequence[GroupChange]) -> Table:
    columns = ("group", "records", "p before", "p after", "Brier before", "Brier after", "Brier change")
    lines = []
    for one in changes:
        sides = one.before, one.after
        tests = [number_cell(x.pvalue, pvalue_text(x.pvalue, floor=x.pvalue_is_bound)) for x in sides]
        scores = [number_cell(x.brier, f"{x.brier:.4f}") for x in sides]
        who = text_cell(one.rule), number_cell(one.size, f"{one.size:,}")
        lines.append((*who, *tests, *scores, text_cell(one.brier_effect)))
    return Table(columns, tuple(lines))
