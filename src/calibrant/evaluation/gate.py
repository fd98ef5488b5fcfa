"""The gate: limits on measures and groups, each kept, broken, or undecided; assert_calibrated for tests."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from calibrant.errors import InvalidInputError, reject_name
from calibrant.evaluation.rows import NullReference, ResultRow, measure_rows, select_measures
from calibrant.forecasts import Forecasts
from calibrant.formatting import format_limit, format_near_limit, format_value, pluralize, round_up
from calibrant.groups.audit_result import too_small
from calibrant.inference.pvalues import MORE_DRAWS
from calibrant.inputs import confidence_or_none, number, whole_number
from calibrant.metrics.calling import accepts_clusters
from calibrant.metrics.certificates import no_certificate
from calibrant.metrics.lookup import measures
from calibrant.parallel import DRAWS, check_drawing, recorded_seed
from calibrant.results import Result

if TYPE_CHECKING:
    from calibrant.groups.audit_result import Audit

Outcome = Literal["pass", "fail", "unclear"]
MIN_RECORDS = 20  # records; the gate's errors were measured from there on (docs/guarantees.md)
MAX_FACTOR = 10  # times the records there are: advice to collect more than that helps little
MAX_HALF_WIDTH_SHARE = 0.5  # of the limit: in a narrower interval the value lies on the limit


@dataclass(frozen=True, slots=True)
class Finding(Result):
    """One limit and what the data say about it: decided when the whole interval is on one side of it."""

    DERIVED: ClassVar = ("approximate",)

    name: str
    limit: float
    value: float | None
    low: float | None  # ends of the interval of `distance`; a sketch adds the bounds of its exact value
    high: float | None
    outcome: Outcome
    reason: str
    distance: float | None = None  # from the ideal, which the limit applies to
    method: str | None = None  # of the interval
    undecided: bool = False  # the value lies on its limit: more records would hardly help

    @property
    def word(self) -> str:
        """The outcome in a word or three."""
        unclear = "undecided" if self.undecided else "too little data"
        return {"pass": "pass", "fail": "FAIL", "unclear": unclear}[self.outcome]

    @property
    def approximate(self) -> tuple[str, ...]:
        """The fields that hold only approximately: the interval, where there is one."""
        return () if self.method is None else ("low", "high")


def _undecided(name: str, limit: float, reason: str) -> Finding:
    return Finding(name, limit, None, None, None, "unclear", reason)


def judge(
    forecasts: Forecasts,
    limits: Mapping[str, float],
    *,
    confidence: float,
    draws: int = DRAWS,
    seed: int,
    fewest: int | None = None,
) -> list[Finding]:
    """Check measures against limits; with fewer records than `fewest` nothing is decided."""
    wanted = select_measures(list(limits))
    few = too_few(forecasts.n, confidence, fewest)
    if few:
        return [_undecided(about.name, limits[about.name], few) for about in wanted]
    for about in wanted:
        if not forecasts.exact and not about.certified:
            raise no_certificate(about.name)
    null = NullReference(forecasts, draws=draws, confidence=confidence, seed=seed)
    rows = [null.bounded(row) for row in measure_rows(forecasts, wanted)]
    close = {row.about.name for row in rows if confidence and _may_flip(row, limits[row.about.name], draws)}
    if close and draws >= DRAWS:
        more = NullReference(forecasts, draws=MORE_DRAWS * draws, confidence=confidence, seed=seed)
        rows = [more.bounded(row) if row.about.name in close else row for row in rows]
    findings = []
    for row in rows:
        limit = limits[row.about.name]
        flips = row.about.name in close and _may_flip(row, limit, MORE_DRAWS * draws)
        sketched = not forecasts.exact
        findings.append(judged_row(row, limit, confidence, forecasts.n, sketched=sketched, flips=flips))
    return findings


def _may_flip(row: ResultRow, limit: float, draws: int) -> bool:
    """Return whether simulation error could move an end of the interval across the limit."""
    if row.value is None or row.interval_method is None or "score" in row.interval_method:
        return False
    distance, *ends = _from_ideal(row)
    near = 2 / math.sqrt(draws)  # a normal half-width is known to about 1 / sqrt(draws) of itself
    return any(end is not None and abs(end - limit) < near * abs(end - distance) for end in ends)


def too_few(records: int, confidence: float, fewest: int | None) -> str:
    """Explain that there are too few records to decide; "" where there are enough.

    >>> too_few(7, 0.95, None), too_few(7, 0.0, None)
    ('7 records are too few to say; at least 20 are needed', '')
    """
    least = (MIN_RECORDS if confidence else 1) if fewest is None else fewest
    are = pluralize(records, "record is", "records are")
    return f"{are} too few to say; at least {least:,} are needed" if records < least else ""


def judge_groups(audit: Audit, limit: float, few: str = "") -> Finding:
    """Judge the worst group by its z; for a sketch, z must have both bounds on one side of the limit."""
    if few:
        return _undecided("group-z", limit, few)
    worst, small = audit.worst, audit.not_tested.too_small
    who = "everyone together" if worst is audit.everyone else f"worst group {worst.rule!r}"
    z, shown = f"{who}: z = {format_near_limit(worst.z, limit)}", format_limit(limit)
    untested = f"; {too_small(audit)}" if small else ""
    bounded = [group for group in audit.groups if group.upper > group.lower]  # those of a sketch
    least = max((group.lower / group.sigma for group in bounded), default=worst.z)
    most = max((group.upper / group.sigma for group in bounded), default=worst.z)
    outcome: Outcome
    if least > limit:
        outcome, reason = "fail", f"{z}, above the limit {shown}{untested}"
    elif small and audit.tested == 1 and not audit.not_tested.duplicates:
        none = f"no group is large enough to be tested ({pluralize(small, 'group')} too small)"
        outcome, reason = "unclear", f"{none}; {z}"
    elif most > limit:
        span = f"between {format_near_limit(least, limit)} and {format_near_limit(most, limit)}"
        outcome, reason = "unclear", f"{z}, {span}: the sketch is too coarse for the limit {shown}"
    else:
        outcome, reason = "pass", f"{z}, within the limit {shown}{untested}"
    low, high = (least, most) if bounded else (None, None)
    return Finding("group-z", limit, worst.z, low, high, outcome, reason)


def overall(findings: Sequence[Finding]) -> Outcome:
    outcomes = {finding.outcome for finding in findings}
    return "fail" if "fail" in outcomes else "unclear" if "unclear" in outcomes else "pass"


def judged_row(
    row: ResultRow, limit: float, confidence: float, records: int, *, sketched: bool = True,
    flips: bool = False,
) -> Finding:  # fmt: skip
    """Judge one measure; `flips` says that other draws could move its interval across the limit."""
    name, taken = row.about.name, row.measurement
    if row.value is None or taken is None:
        return _undecided(name, limit, row.note)
    distance, low, high = _from_ideal(row)
    if confidence and (low is None or high is None):
        reason = f"{format_value(row.value)}, but no interval: {row.note}"
        return Finding(name, limit, row.value, None, None, "unclear", reason, distance)
    low, high = distance if low is None else low, distance if high is None else high
    # the exact value can lie that far from the one taken of a sketch; intervals of rows dwarf rounding
    if not flips and not taken.exact and (sketched or not confidence):
        low, high = max(low - (taken.value - taken.lower), min(low, 0.0)), high + taken.upper - taken.value
    outcome: Outcome = "fail" if low > limit else "pass"
    value, shown = format_near_limit(distance, limit), format_limit(limit)
    ends = format_near_limit(low, limit), format_near_limit(high, limit)
    undecided = False
    if flips or low <= limit < high:
        needed = None if flips else records_needed(records, distance, low, high, limit)
        outcome, undecided = "unclear", needed is None
        kind = "Undecided" if undecided else "Too little data"
        reason = f"{kind}: the error is {value} ({' to '.join(ends)})"
        if flips:
            reason += f", and an end of that interval is within simulation error of your limit of {shown}"
        elif undecided:
            reason += f", right at your limit of {shown}"
        else:
            reason += f", and your limit is {shown}; about {needed:,} records would decide"
    else:
        reason = value
        if row.about.signed:  # of a slope of 1.256: "1.26, 0.256 from 1"
            reason = f"{format_value(row.value)}, {value} from {row.about.ideal:g}"
        if low != high:
            roughly = "" if row.interval_method is None else "approximately "  # every interval is
            reason += f", {roughly}between {' and '.join(ends)} at confidence {confidence:g}"
        reason += f": {'above' if low > limit else 'within'} the limit {shown}"
    reason += f" ({row.note})" if row.note else ""
    method = row.interval_method
    return Finding(name, limit, row.value, low, high, outcome, reason, distance, method, undecided)


def records_needed(records: int, distance: float, low: float, high: float, limit: float) -> int | None:
    """Return about how many records would decide if the value stays as it is, None where more hardly help.

    The ends of an interval approach the value as 1 / sqrt(n); the one beyond the limit has to cross it. A
    value outside its interval counts as the nearer end. Fewer than MIN_RECORDS are never advised.

    >>> records_needed(1000, 0.01, 0.0, 0.04, 0.02)
    9000
    >>> records_needed(100_000, 0.0201, 0.0187, 0.0214, 0.02) is None
    True
    >>> records_needed(2, 0.3, 0.0, 0.8, 0.75)
    20
    """
    value = min(max(distance, low), high)
    reach, gap = high - value if value <= limit else value - low, abs(limit - value)
    factor = (reach / gap) ** 2 if gap > 0 else math.inf
    if factor > MAX_FACTOR and (high - low) / 2 <= MAX_HALF_WIDTH_SHARE * limit:
        return None
    return round_up(max(MIN_RECORDS, math.ceil(records * max(1.1, min(factor, 1000.0)) - 1e-6)))


def _from_ideal(row: ResultRow) -> tuple[float, float | None, float | None]:
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


@accepts_clusters
def assert_calibrated(
    forecasts: Forecasts,
    *,
    max: Mapping[str, float],
    confidence: float = 0.95,
    fewest: int | None = None,
    draws: int = DRAWS,
    seed: int | None = 0,
) -> list[Finding]:
    """Raise AssertionError unless every limit is met beyond doubt; for test suites.

    The rules are those of ``calibrant check``: a limit is met, or exceeded, when the whole confidence
    interval lies on one side of it. Undecided limits fail here too, and the message says why.

    Parameters
    ----------
    max
        Largest value allowed per measure; of a signed measure, the largest distance from its ideal.
    confidence
        How sure a verdict must be; 0 compares the plain values.
    fewest
        Fewer records than that decide nothing; 20 by default, 1 with confidence 0.
    draws, seed
        Simulations, and the seed of everything random.

    Returns
    -------
    list of Finding
        One per limit, all of them passed.

    Examples
    --------
    >>> y, p = [0, 0, 0, 1] * 500, [0.25] * 2000
    >>> [finding.outcome for finding in assert_calibrated(y, p, max={"smooth": 0.05}, seed=1)]
    ['pass']
    >>> assert_calibrated(y, [0.5] * 2000, max={"smooth": 0.05}, seed=1)
    Traceback (most recent call last):
    ...
    AssertionError: 1 of 1 limit not kept (2,000 records, seed 1)
    smooth: broken: 0.250, approximately between 0.232 and 0.268 at confidence 0.95: above the limit 0.05
    """
    if not isinstance(max, Mapping) or not max:
        raise InvalidInputError("max", "must map measures to limits", f"got {max!r}", 'max={"smooth": 0.02}')
    for name, limit in max.items():
        if name not in measures():
            raise reject_name("measure of max", name, list(measures()))
        if number(f"limit of {name!r}", limit) < 0:
            raise InvalidInputError(f"limit of {name!r}", "must be 0 or more", f"got {limit!r}")
    confidence_or_none("confidence", confidence)
    if fewest is not None:
        whole_number("fewest", fewest, 1)
    check_drawing(draws, seed, None)
    used = recorded_seed(seed)
    findings = judge(forecasts, max, confidence=confidence, draws=draws, seed=used, fewest=fewest)
    wrong = [finding for finding in findings if finding.outcome != "pass"]
    if wrong:
        lines = [f"{one.name}: {'broken: ' * (one.outcome == 'fail')}{one.reason}" for one in wrong]
        data = f"{pluralize(forecasts.n, 'record')}, seed {used}"
        head = f"{len(wrong)} of {pluralize(len(findings), 'limit')} not kept ({data})"
        raise AssertionError("\n".join([head, *lines]))
    return findings
