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
from calibrant.numerals import at_floor, counted, pvalue_text
from calibrant.recalibration.level_losses import SAFE
from calibrant.recalibration.levels_of_columns import LeveledColumn, coded, met
from calibrant.results import Array

SUBPOPULATIONS = 300
DRAWS = 99
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

    @classmethod
    def of(cls, audited: Audit) -> GroupAudit:
        """Keep what a reader compares."""
        pvalue = 1.0 if audited.pvalue is None else audited.pvalue
        return cls(
            audited.metric,
            audited.ratio,
            pvalue,
            tuple(str(group) for group in audited.groups[:WORST]),
        )

    @property
    def written_pvalue(self) -> str:
        """The p-value for people."""
        return pvalue_text(self.pvalue, floor=at_floor(self.pvalue, DRAWS))


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
    off than before, beyond chance, although the group was picked as the worst of `groups`.
    """

    before: GroupAudit
    after: GroupAudit
    least: GroupGain | None
    groups: int

    @property
    def approximate(self) -> tuple[str, ...]:
        """What holds only approximately: folds share records, and the limits are of a limit law."""
        return ("after", "least")

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        return {**asdict(self), "approximate": list(self.approximate)}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> ForWhom:
        """Rebuild from what `to_dict` returned."""
        sides = [GroupAudit(**{**stored[k], "worst": tuple(stored[k]["worst"])}) for k in ("before", "after")]
        least = stored["least"]
        return cls(sides[0], sides[1], None if least is None else GroupGain(**least), int(stored["groups"]))

    def __str__(self) -> str:
        lines = [
            f"M            {self.before.metric:.4g} before, {self.after.metric:.4g} after",
            f"M / sigma_0  {self.before.ratio:.3g} before, {self.after.ratio:.3g} after",
            f"p-value      {self.before.written_pvalue} before, {self.after.written_pvalue} after",
        ]
        if self.rejected:
            lines.append(f"the repaired predictions are still wrong for some: {self.after.worst[0]}")
        return "\n".join([*lines, *([] if self.least is None else [self.least_in_words])])

    @property
    def rejected(self) -> bool:
        """Whether the audit still rejects after the repair."""
        return self.after.pvalue <= 1 - CONFIDENCE

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
    sides = [
        audit(
            outcome,
            prediction,
            groups=named or None,
            covariates=others or None,
            sample_weight=weight,
            subpopulations=SUBPOPULATIONS,
            min_size=smallest,
            draws=DRAWS,
            seed=seed,
        )
        for prediction in (before, after)
    ]
    gains = list(group_gains(_loss(outcome, before) - _loss(outcome, after), weight, covariates, smallest))
    least = min(gains, key=lambda one: one.gain, default=None)
    return ForWhom(GroupAudit.of(sides[0]), GroupAudit.of(sides[1]), least, len(gains))


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
        mean = float(share @ gain[inside])
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
