"""The gate: limits on measures and groups, each kept, broken, or not decidable with so little data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from calibrant.evaluation.needed_records import FEWEST, records_needed
from calibrant.evaluation.null_reference import Chance
from calibrant.evaluation.rows import Row, chosen, take_all
from calibrant.forecasts import Forecasts
from calibrant.groups.conditions import OneOf
from calibrant.groups.no_evidence import too_small
from calibrant.measures.registry.resolution import no_certificate
from calibrant.numerals import beside, counted, exact, short
from calibrant.results import json_object

if TYPE_CHECKING:
    from calibrant.groups.audit_result import Audit
    from calibrant.scale.sketch import Sketch

Outcome = Literal["pass", "fail", "unclear"]
DRAWS = 999
EXIT_CODES: Mapping[Outcome, int] = {"pass": 0, "fail": 1, "unclear": 3}


@dataclass(frozen=True, slots=True)
class Finding:
    """One limit held against the data: kept or broken when the whole interval is on one side of it."""

    name: str
    limit: float
    value: float | None
    low: float | None  # ends of the interval of `distance`
    high: float | None
    outcome: Outcome
    reason: str
    distance: float | None = None  # from the ideal, which is what the limit is held against
    method: str | None = None  # of the interval

    @property
    def approximate(self) -> tuple[str, ...]:
        """The fields that hold only approximately: the interval, where there is one."""
        return () if self.method is None else ("low", "high")

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        return json_object({**asdict(self), "approximate": self.approximate})


def judge(
    forecasts: Forecasts,
    limits: Mapping[str, float],
    *,
    confidence: float,
    draws: int = DRAWS,
    seed: int,
    fewest: int | None = None,
) -> list[Finding]:
    """Hold limits on measures against the data.

    With fewer records than `fewest` nothing is decided; by default that is FEWEST, unless plain values are
    compared (confidence 0). A measure that cannot be had from a sketch raises NoCertificateError.
    """
    wanted = chosen(list(limits))
    few = too_few(forecasts.n, confidence, fewest)
    if few:
        return [Finding(row.name, limits[row.name], None, None, None, "unclear", few) for row in wanted]
    luck = Chance(forecasts, draws=draws, confidence=confidence, seed=seed)
    for about in wanted:
        if not forecasts.exact and not about.certified:
            raise no_certificate(about.name)
    rows = map(luck.bounded, take_all(forecasts, wanted))
    return [judged_row(row, limits[row.about.name], confidence, forecasts.n) for row in rows]


def too_few(records: int, confidence: float, fewest: int | None) -> str:
    """Say that so few records decide nothing; nothing where there are enough.

    >>> too_few(7, 0.95, None), too_few(7, 0.0, None)
    ('7 records are too few to say; at least 20 are needed', '')
    """
    least = (FEWEST if confidence else 1) if fewest is None else fewest
    are = counted(records, "record is", "records are")
    return f"{are} too few to say; at least {least:,} are needed" if records < least else ""


def judge_sketch_groups(
    groups: Mapping[Any, Sketch], limit: float, few: str = "", by: Sequence[str] = ()
) -> Finding:
    """Judge the worst group of a sketch: z is certain when its bounds lie on one side of the limit.

    `few` says why so few records decide nothing, where they do not; `by` names the columns of the groups.
    """
    filled = {key: part for key, part in groups.items() if part.n}
    if few or not filled:
        none = few or "no group of the sketch holds a record: too little data to say"
        return Finding("group-z", limit, None, None, None, "unclear", none)
    worst, label, least, most = -1.0, None, 0.0, 0.0
    for key, part in filled.items():
        taken, sigma = part.measure("kuiper"), math.sqrt(part.forecasts().null_variance)
        ends = [_quotient(end, sigma) for end in (taken.value, taken.lower, taken.upper)]
        if ends[0] > worst:
            worst, label = ends[0], key
        least, most = max(least, ends[1]), max(most, ends[2])
    who, shown = f"worst group {_rule(by, label)!r}: z = {beside(worst, limit)}", exact(limit)
    if least > limit:
        return Finding("group-z", limit, worst, least, most, "fail", f"{who}, above the limit {shown}")
    if most <= limit:
        return Finding("group-z", limit, worst, least, most, "pass", f"{who}, within the limit {shown}")
    span = f"between {beside(least, limit)} and {beside(most, limit)}"
    reason = f"{who}, {span}: the sketch is too coarse for the limit {shown}"
    return Finding("group-z", limit, worst, least, most, "unclear", reason)


def _rule(by: Sequence[str], label: Any) -> Any:
    """Return the group of a sketch as an audit of rows would name it; its label where no column is named."""
    if not by:
        return label
    values = (label,) if len(by) == 1 else label
    conditions = (
        OneOf(name, () if value is None else (value,), missing=value is None)
        for name, value in zip(by, values, strict=True)
    )
    return " and ".join(map(str, conditions))


def _quotient(value: float, sigma: float) -> float:
    return value / sigma if sigma > 0 else (math.inf if value > 1e-12 else 0.0)


def judge_groups(audit: Audit, limit: float, few: str = "") -> Finding:
    """Judge the worst group by its z, which already counts the noise of a group of its size.

    `few` says why so few records decide nothing, where they do not. Groups too small to be tested are
    counted; where every group is, nothing is decided unless everyone together breaks the limit.
    """
    if few:
        return Finding("group-z", limit, None, None, None, "unclear", few)
    worst, small = audit.worst, audit.not_tested.too_small
    who = "everyone together" if worst is audit.everyone else f"worst group {worst.rule!r}"
    z, shown = f"{who}: z = {beside(worst.z, limit)}", exact(limit)
    untested = f"; {too_small(audit)}" if small else ""
    if worst.z > limit:
        reason = f"{z}, above the limit {shown}{untested}"
        return Finding("group-z", limit, worst.z, None, None, "fail", reason)
    if small and audit.tested == 1 and not audit.not_tested.duplicates:
        reason = f"no group is large enough to be tested ({counted(small, 'group')} too small); {z}"
        return Finding("group-z", limit, worst.z, None, None, "unclear", reason)
    reason = f"{z}, within the limit {shown}{untested}"
    return Finding("group-z", limit, worst.z, None, None, "pass", reason)


def overall(findings: Sequence[Finding]) -> Outcome:
    """Return the worst outcome: a broken limit before an undecided one."""
    outcomes = {finding.outcome for finding in findings}
    return "fail" if "fail" in outcomes else "unclear" if "unclear" in outcomes else "pass"


def judged_row(row: Row, limit: float, confidence: float, records: int) -> Finding:
    """Hold one limit against a measure that was taken and bounded."""
    name = row.about.name
    if row.value is None:
        return Finding(name, limit, None, None, None, "unclear", row.note)
    distance, low, high = _from_ideal(row)
    if confidence and (low is None or high is None):
        reason = f"{short(row.value)}, but no interval: {row.note}"
        return Finding(name, limit, row.value, None, None, "unclear", reason, distance)
    low, high = _widened(row, distance if low is None else low, distance if high is None else high)
    sure, shown = _in_words(row, distance, low, high, limit, confidence), exact(limit)
    outcome: Outcome
    if low > limit:
        outcome, words = "fail", f"above the limit {shown}"
    elif high <= limit:
        outcome, words = "pass", f"within the limit {shown}"
    else:
        needed = records_needed(records, distance, low, high, limit) if confidence else ""
        outcome, words = "unclear", f"too little data to say whether it is within the limit {shown}{needed}"
    note = f" ({row.note})" if row.note else ""
    reason = f"{sure}: {words}{note}"
    return Finding(name, limit, row.value, low, high, outcome, reason, distance, row.interval_method)


def _in_words(row: Row, distance: float, low: float, high: float, limit: float, confidence: float) -> str:
    """Say the value, for a signed measure with its distance from the ideal, and the interval.

    Of a slope of 1.256: "1.26, 0.256 from 1". Digits are those that tell each number from the limit.
    """
    written = beside(distance, limit)
    text = f"{short(row.value)}, {written} from {row.about.ideal:g}" if row.about.signed else written
    if low == high:
        return text
    roughly = "" if row.interval_method is None else "approximately "  # every interval is
    ends = f"between {beside(low, limit)} and {beside(high, limit)}"
    return f"{text}, {roughly}{ends} at confidence {confidence:g}"


def _widened(row: Row, low: float, high: float) -> tuple[float, float]:
    """Widen an interval by how far the exact value can lie from the one taken of a sketch; not below 0."""
    taken = row.measurement
    if taken is None or taken.exact:
        return low, high
    return max(low - (taken.value - taken.lower), min(low, 0.0)), high + taken.upper - taken.value


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
