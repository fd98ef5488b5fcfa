"""For whom, before and after: the audit of held-out predictions, and the group that loses most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.groups.audit import audit
from calibrant.groups.audit_result import Audit
from calibrant.groups.features import Features
from calibrant.groups.rules import EVERYONE
from calibrant.numerals import at_floor, counted, predicted_happened, pvalue_text
from calibrant.recalibration.group_changes import (
    GroupChange,
    group_changes,
    named_members,
    newly_wrong,
    who_pays,
)
from calibrant.recalibration.level_losses import SAFE
from calibrant.recalibration.levels_of_columns import LeveledColumn, coded, met
from calibrant.results import Array
from calibrant.sums import dot

SUBPOPULATIONS = 300
DRAWS = 99
LEAST_NAMED, DRAWS_OF_NAMED = 10, 199  # as `audit` and `evaluate` have it: one audit behind all sentences
SMALLEST = 100  # records of a group, or a twentieth of all where that is less
RANGES = 4  # into which numbers are cut for the group that loses most
WORST = 5
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class GroupAudit:
    """The audit of some predictions in short: M, M / sigma, the p-value, and the worst groups in words."""

    metric: float
    ratio: float
    pvalue: float
    worst: tuple[str, ...]
    draws: int = DRAWS

    @classmethod
    def of(cls, audited: Audit) -> GroupAudit:
        """Keep what a reader compares."""
        pvalue = 1.0 if audited.pvalue is None else audited.pvalue
        return cls(
            audited.metric,
            audited.ratio,
            pvalue,
            tuple(str(group) for group in audited.groups[:WORST]),
            audited.draws,
        )

    @property
    def rejected(self) -> bool:
        """Whether the predictions are wrong for some group, or for everyone, beyond chance."""
        return self.pvalue <= 1 - CONFIDENCE

    @property
    def written_pvalue(self) -> str:
        """The p-value for people."""
        return pvalue_text(self.pvalue, floor=at_floor(self.pvalue, self.draws))


@dataclass(frozen=True, slots=True)
class GroupGain:
    """What a group gains in mean log loss (negative: it loses); the limits hold for all groups at once."""

    rule: str
    size: int
    gain: float
    lower: float
    upper: float


@dataclass(frozen=True, slots=True)
class ForWhom:
    """The audit of held-out predictions before and after, and the group that gains least.

    The audit may still reject after a repair; then it says so. `least` is the group with the smallest gain
    among all values of the covariates (numbers in four ranges); if its upper limit is below 0 it is worse
    off than before, beyond chance, although the group was picked as the worst of `groups`. `changes` has
    every group before and after: the values of the groups that were named, alone and in pairs, and the values
    of further covariates (numbers in four ranges). `audited` says which groups the audits looked at.
    """

    before: GroupAudit
    after: GroupAudit
    least: GroupGain | None
    groups: int
    changes: tuple[GroupChange, ...] = ()
    audited: str = ""

    @property
    def approximate(self) -> tuple[str, ...]:
        """What holds only approximately: folds share records, and the limits are of a limit law."""
        return ("after", "least", "changes")

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        return {**asdict(self), "approximate": list(self.approximate)}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> ForWhom:
        """Rebuild from what `to_dict` returned."""
        sides = [GroupAudit(**{**stored[k], "worst": tuple(stored[k]["worst"])}) for k in ("before", "after")]
        least = stored["least"]
        return cls(
            sides[0],
            sides[1],
            None if least is None else GroupGain(**least),
            int(stored["groups"]),
            tuple(GroupChange.from_dict(one) for one in stored.get("changes", ())),
            str(stored.get("audited", "")),
        )

    def __str__(self) -> str:
        lines = [
            *([f"audited      {self.audited}"] if self.audited else []),
            f"M            {self.before.metric:.4g} before, {self.after.metric:.4g} after",
            f"M / sigma_0  {self.before.ratio:.3g} before, {self.after.ratio:.3g} after",
            f"p-value      {self.before.written_pvalue} before, {self.after.written_pvalue} after",
            self.finding,
        ]
        return "\n".join([*lines, *(f"who pays, {one}" for one in self.who_pays)])

    @property
    def finding(self) -> str:
        """What the audit says of the repaired predictions: one sentence for every verb and page."""
        if self.rejected:
            still = "still rejects, the predictions are still wrong"
            new = "rejects, which it did not before: the predictions are wrong"
            return (
                f"after the repair the audit {still if self.before.rejected else new} for some"
                f"{self._still_wrong}: {self.after.worst[0]}{self._means_of_worst}"
            )
        left = "for any of these groups, which is no proof that they are right"
        if self.before.rejected:
            return (
                "after the repair the audit no longer rejects: no evidence is left that predictions are "
                f"wrong {left}"
            )
        return (
            "the audit rejects neither before nor after the repair: there is no evidence that predictions "
            f"are wrong {left}"
        )

    @property
    def _still_wrong(self) -> str:
        """For how many of the groups, where their p-values are known."""
        groups = [one for one in self.changes if one.rule != EVERYONE and one.after.pvalue is not None]
        wrong = sum(one.after.wrong for one in groups)
        return f" ({wrong:,} of {counted(len(groups), 'group')} at the 5 % level)" if wrong else ""

    @property
    def _means_of_worst(self) -> str:
        """What was predicted for the worst group after the repair, and what happened."""
        for one in self.changes:
            if self.after.worst[0].startswith(f"{one.rule}: {one.size:,} "):
                return f"; on the whole {predicted_happened(one.after.predicted, one.happened)}"
        return ""

    @property
    def who_pays(self) -> list[str]:
        """For whom the repair makes it worse: in points, by Brier score, by log loss and by the audit."""
        by_log_loss = [] if self.least is None else [f"by log loss: {self.least_in_words}"]
        return [*who_pays(self.changes), *by_log_loss, *newly_wrong(self.changes)]

    @property
    def rejected(self) -> bool:
        """Whether the audit rejects after the repair."""
        return self.after.rejected

    @property
    def least_in_words(self) -> str:
        """Who gains least, or loses most, with the interval."""
        if self.least is None:
            return ""
        least, loses = self.least, self.least.gain < 0
        return (
            f"of {counted(self.groups, 'group')}, {least.rule} {'loses most' if loses else 'gains least'}: "
            f"{least.gain:+.4f} nats (approximately {least.lower:+.4f} to {least.upper:+.4f})"
        )


def smallest_judged(records: int) -> int:
    """Return how many records a group must have to be judged: fewer say nothing."""
    return max(1, min(SMALLEST, records // 20))


def for_whom(
    outcome: Array,
    before: Array,
    after: Array,
    weight: Array,
    covariates: Mapping[str, npt.NDArray[Any]],
    *,
    groups: Sequence[str] = (),
    seed: int,
) -> ForWhom:
    """Audit held-out predictions of both kinds on the same columns, with the same seed.

    The values of the columns in `groups`, alone and in pairs, are groups; the others are split at random.
    """
    smallest = smallest_judged(len(outcome))
    named = {name: column for name, column in covariates.items() if name in groups}
    others = {name: column for name, column in covariates.items() if name not in named}
    sides = before, after
    audits = [
        audit(
            outcome,
            prediction,
            groups=named or None,
            covariates=others or None,
            sample_weight=weight,
            subpopulations=SUBPOPULATIONS,
            seed=seed,
            min_size=smallest if others else LEAST_NAMED,
            draws=DRAWS if others else DRAWS_OF_NAMED,
        )
        for prediction in sides
    ]
    gains = list(group_gains(_loss(outcome, before) - _loss(outcome, after), weight, covariates, smallest))
    least = min(gains, key=lambda one: one.gain, default=None)
    named_rows = named_members(named, len(outcome))
    changes = group_changes(outcome, sides, weight, (audits[0], audits[1]), named_rows, smallest)
    if others:
        changes += _changes_of_values(outcome, sides, weight, others, smallest)
    return ForWhom(
        GroupAudit.of(audits[0]),
        GroupAudit.of(audits[1]),
        least,
        len(gains),
        tuple(changes),
        _looked_at(audits[0], list(named), list(others)),
    )


def _looked_at(audited: Audit, named: Sequence[str], others: Sequence[str]) -> str:
    """Say which groups an audit looked at."""
    values = f"the values of {', '.join(named)}{', alone and in pairs' if len(named) > 1 else ''}"
    splits = f"random splits of {', '.join(others)}"
    ways = [*([values] if named else []), *([splits] if others else [])]
    return f"{' and '.join(ways)}: {audited.looked_at}"


def _changes_of_values(
    outcome: Array,
    sides: tuple[Array, Array],
    weight: Array,
    covariates: Mapping[str, npt.NDArray[Any]],
    smallest: int,
) -> list[GroupChange]:
    """List the values of columns that no audit was asked for, numbers in ranges: differences, no p-values."""
    masks = dict(_groups(covariates))
    first, second = (
        audit(outcome, side, groups=masks, sample_weight=weight, min_size=1, draws=0, seed=0)
        for side in sides
    )
    rows = ((words, np.flatnonzero(inside)) for words, inside in masks.items())
    return group_changes(outcome, sides, weight, (first, second), rows, smallest)


def _loss(outcome: Array, prediction: Array) -> Array:
    q = np.clip(prediction, SAFE, 1.0 - SAFE)
    return np.asarray(-outcome * np.log(q) - (1.0 - outcome) * np.log1p(-q))


def group_gains(
    gain: Array, weight: Array, covariates: Mapping[str, npt.NDArray[Any]], smallest: int
) -> Sequence[GroupGain]:
    """Return the gain of every level of every covariate, with Bonferroni's limits."""
    from scipy.special import ndtri

    members = [(words, inside) for words, inside in _groups(covariates) if inside.sum() >= smallest]
    reach = float(ndtri(1.0 - (1.0 - CONFIDENCE) / (2.0 * max(1, len(members)))))
    collected = []
    for words, inside in members:
        share = weight[inside] / weight[inside].sum()
        mean = dot(share, gain[inside])
        error = float(np.sqrt(np.sum((share * (gain[inside] - mean)) ** 2)))
        collected.append(
            GroupGain(words, int(inside.sum()), mean, mean - reach * error, mean + reach * error)
        )
    return collected


def _groups(covariates: Mapping[str, npt.NDArray[Any]]) -> Sequence[tuple[str, npt.NDArray[np.bool_]]]:
    columns = coded(covariates)
    features = Features.of(columns)
    given = met(features, columns)
    collected = []
    for j, feature in enumerate(features.features):
        column = LeveledColumn.of(feature, given.encoded.rows[:, j], RANGES)
        codes = column.codes(given.encoded.rows[:, j], given.missing[j])
        collected += [(words, codes == level) for level, words in enumerate(column.words())]
    return collected
