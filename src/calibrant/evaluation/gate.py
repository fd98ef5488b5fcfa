"""The gate: limits on measures and groups, each kept, broken, or not decidable with so little data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from calibrant.evaluation.null_reference import Chance
from calibrant.evaluation.rows import Row, chosen, take
from calibrant.forecasts import Forecasts
from calibrant.numerals import short

if TYPE_CHECKING:
    from calibrant.groups.result import Audit

Outcome = Literal["pass", "fail", "unclear"]
EXIT_CODES: Mapping[Outcome, int] = {"pass": 0, "fail": 1, "unclear": 3}


@dataclass(frozen=True, slots=True)
class Finding:
    """One limit held against the data: kept or broken when the whole interval is on one side of it."""

    name: str
    limit: float
    value: float | None
    low: float | None
    high: float | None
    outcome: Outcome
    reason: str


def judge(
    forecasts: Forecasts, limits: Mapping[str, float], *, confidence: float, draws: int, seed: int
) -> list[Finding]:
    """Hold limits on measures against the data."""
    luck = Chance(forecasts, draws=draws, confidence=confidence, seed=seed)
    rows = (luck.bounded(take(forecasts, about)) for about in chosen(list(limits)))
    return [_measure(row, limits[row.about.name], confidence) for row in rows]


def judge_groups(audit: Audit, limit: float) -> Finding:
    """Judge the worst group by its z, which already counts the noise of a group of its size."""
    worst = audit.worst
    who = f"worst group {worst.rule!r}: z = {worst.z:.2f}"
    if worst.z > limit:
        return Finding("group-z", limit, worst.z, None, None, "fail", f"{who}, above the limit {limit:g}")
    return Finding("group-z", limit, worst.z, None, None, "pass", f"{who}, within the limit {limit:g}")


def overall(findings: Sequence[Finding]) -> Outcome:
    """Return the worst outcome: a broken limit before an undecided one."""
    outcomes = {finding.outcome for finding in findings}
    return "fail" if "fail" in outcomes else "unclear" if "unclear" in outcomes else "pass"


def _measure(row: Row, limit: float, confidence: float) -> Finding:
    name = row.about.name
    if row.value is None:
        return Finding(name, limit, None, None, None, "unclear", row.note)
    value, low, high = _from_ideal(row)
    below, above = _resolution(row)
    if low is None or high is None:
        low = high = value
    low, high = low - below, high + above
    sure = f"{short(value)}, between {short(low)} and {short(high)} at confidence {confidence:g}"
    if low == high:
        sure = short(value)
    if low > limit:
        return Finding(name, limit, value, low, high, "fail", f"{sure}: above the limit {limit:g}")
    if high <= limit:
        return Finding(name, limit, value, low, high, "pass", f"{sure}: within the limit {limit:g}")
    reason = f"{sure}: too little data to say whether it is within the limit {limit:g}"
    return Finding(name, limit, value, low, high, "unclear", reason)


def _resolution(row: Row) -> tuple[float, float]:
    """Return how far the exact value can lie below and above the one that was taken (0 unless a sketch)."""
    taken = row.measurement
    return (
        (0.0, 0.0) if taken is None or taken.exact else (taken.value - taken.lower, taken.upper - taken.value)
    )


def _from_ideal(row: Row) -> tuple[float, float | None, float | None]:
    """Return value and interval; for a signed measure, of its distance from the ideal value."""
    assert row.value is not None
    if not row.about.signed:
        return row.value, row.low, row.high
    value = abs(row.value - row.about.ideal)
    if row.low is None or row.high is None:
        return value, None, None
    ends = row.low - row.about.ideal, row.high - row.about.ideal
    nearest = 0.0 if ends[0] <= 0 <= ends[1] else min(abs(ends[0]), abs(ends[1]))
    return value, nearest, max(abs(ends[0]), abs(ends[1]))
