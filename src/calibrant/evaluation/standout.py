"""Which groups are wrong in a way of their own: not merely by the error that everyone shares.

A group whose records fare like others with the same predictions is not singled out: a map for everyone
repairs it too. Among the groups that differ, the one with the largest error in the mean is the worst, and a
combination gives way to its part where it is not clearly worse than that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from calibrant.columns import named_columns
from calibrant.evaluation import wording
from calibrant.groups.rules import Rule
from calibrant.results import Array

if TYPE_CHECKING:
    from calibrant.groups.audit_result import Audit, Group
    from calibrant.records import Records

STRATA = 50  # of records with nearby predictions
TINY = 1e-300
MAX_CANDIDATES = 30  # groups looked at, the largest errors first
ALPHA = 0.05
CLEARLY = 2.0  # standard errors by which a combination must exceed its part


def wrong_groups(audit: Audit, alpha: float = ALPHA) -> list[Group]:
    """Return the groups, other than everyone, that are wrong beyond chance; the largest errors first."""
    named = [group for group in audit.significant(alpha) if group is not audit.everyone]
    return sorted(named, key=_size, reverse=True)


def standouts(audit: Audit, records: Records | None, groups: Any, alpha: float = ALPHA) -> list[Group]:
    """Return the wrong groups that differ from other records with the same predictions, worst first.

    Without `records` (a sketch) each group is compared with the rest by its mean error alone.
    """
    candidates = wrong_groups(audit, alpha)[:MAX_CANDIDATES]
    if not candidates:
        return []
    # two contrasts per group, two-sided
    limit = -float(ndtri(alpha / 4 / len(candidates)))
    if records is None or groups is None:
        differing = [group for group in candidates if abs(_z_of_means(audit, group)) > limit]
    else:
        contrast = _Contrast(records, groups)
        differing = [group for group in candidates if abs(contrast.z(group.rule)) > limit]
    return _simplest(differing)


def ranked(audit: Audit, worst: str | None = None, alpha: float = ALPHA) -> list[Group]:
    """Return everyone, then the wrong groups by the size of their error, then the others by evidence.

    `worst` is the group that the verdict names; it comes first among the groups.
    """
    wrong = sorted(_simplest(wrong_groups(audit, alpha)), key=lambda group: str(group.rule) != worst)
    first = [audit.everyone, *wrong]
    names = {str(group.rule) for group in first}
    return first + [group for group in audit.groups if str(group.rule) not in names]


def audit_sentences(audit: Audit) -> tuple[str, ...]:
    """Return for how many groups predictions are wrong, and for whom they are worst."""
    tested = audit.tested - 1
    if audit.pvalue is None:
        return (f"{tested:,} groups ranked by evidence; without draws there are no p-values.",)
    wrong = wrong_groups(audit)
    if not wrong:
        none = (
            "No group is wrong beyond chance" if tested != 1 else "The one group is not wrong beyond chance"
        )
        return (f"{none} ({tested:,} tested).",)
    worst = (standouts(audit, None, None) or wrong)[0]
    first = f"Wrong beyond chance for {len(wrong):,} of {tested:,} groups."
    return wording.fit((first,), wording.worst_group(worst))


def _size(group: Group) -> float:
    """Return the error of a group in the mean, or the largest over a range where errors cancel."""
    return abs(group.difference) if group.in_the_mean else group.kuiper


def _z_of_means(audit: Audit, group: Group) -> float:
    """Compare the mean error of a group with that of all others, in standard deviations if calibrated."""
    whole, share = audit.everyone, min(group.share, 1.0)
    if share >= 1:
        return 0.0
    rest = (whole.difference - share * group.difference) / (1 - share)
    variance = max(whole.sigma**2 - (share * group.sigma) ** 2, 0.0) / (1 - share) ** 2
    noise = math.sqrt(group.sigma**2 + variance)
    return (group.difference - rest) / noise if noise > 0 else 0.0


def _simplest(groups: Sequence[Group]) -> list[Group]:
    """Put parts before the combinations that are not clearly worse than they are."""
    kept = [group for group in groups if not any(_explains(part, group) for part in groups)]
    return kept + [group for group in groups if group not in kept]


def _explains(part: Group, group: Group) -> bool:
    """Return whether a group is a combination that is not clearly worse than this part of it."""
    some, conditions = set(map(str, part.rule.conditions)), set(map(str, group.rule.conditions))
    if not some < conditions or part.difference * group.difference <= 0:
        return False
    excess = abs(group.difference) - abs(part.difference)
    return excess <= CLEARLY * math.sqrt(group.sigma**2 + part.sigma**2)


def _standardized(terms: Array) -> float:
    noise = math.sqrt(float(terms @ terms))
    return float(terms.sum()) / noise if noise > 0 else 0.0


class _Contrast:
    """Compares groups with other records of the same stratum of predictions."""

    def __init__(self, records: Records, groups: Any) -> None:
        self._columns = dict(named_columns(groups, "groups"))
        self._rows = records.rows
        self._weight = np.asarray(records.weight)
        reached = np.cumsum(self._weight) / self._weight.sum()
        stratum = np.minimum((reached * STRATA - 1e-9).astype(np.int64), STRATA - 1)
        self._stratum = stratum
        self._total = np.bincount(stratum, self._weight, STRATA)
        residual = np.asarray(records.outcome) - np.asarray(records.prediction)
        mean = np.bincount(stratum, self._weight * residual, STRATA) / np.where(
            self._total > 0, self._total, 1
        )
        self._excess = self._weight * (residual - mean[stratum])
        prediction = np.asarray(records.prediction)
        self._slope = prediction - np.average(prediction, weights=self._weight)

    def z(self, rule: Rule) -> float:
        """Return how far a group differs within strata, in its mean or in its slope, in standard errors."""
        inside = self._members(rule)
        share = np.bincount(self._stratum, self._weight * inside, STRATA) / np.maximum(self._total, TINY)
        terms = self._excess * (inside - share[self._stratum])
        return max(abs(_standardized(terms)), abs(_standardized(terms * self._slope)))

    def _members(self, rule: Rule) -> npt.NDArray[np.bool_]:
        used = {condition.column: self._columns[condition.column] for condition in rule.conditions}
        return rule.members(used)[self._rows]
