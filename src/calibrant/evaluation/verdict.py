"""The verdict: two sentences of counts and means on what is wrong and for whom, and what to do next."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from calibrant.errors import CalibrantError, TooFewClustersError
from calibrant.evaluation import wording
from calibrant.evaluation.repair_preview import MIN_RECORDS
from calibrant.evaluation.rows import LOCATION_MEASURE, SIZE_MEASURE, NullReference, ResultRow
from calibrant.forecasts import Forecasts
from calibrant.formatting import p_equals, pluralize, points_text, pvalue_text, round_up
from calibrant.groups.rules import MaskIs
from calibrant.inference.classic_tests import leading_component, ranks_inverted, visible_bias
from calibrant.inference.testing import TestResult
from calibrant.metrics.cox import calibration_slope
from calibrant.results import Result

if TYPE_CHECKING:
    from calibrant.groups.audit_result import Audit, Group

Status = Literal["calibrated", "miscalibrated", "groups", "too little data", "untested"]
Action = Literal["recalibrate", "collect", "check labels", "check groups", "monitor", "use rows"]

ALPHA = 0.05  # level of the test behind the verdict
MAX_UNSEEN = 0.15  # errors of this size must not go unseen, nor half of the mean prediction if that is less
TARGET_ERROR = 0.05  # what more records should make visible
WHOLE_SHARE = 0.7  # of all records that a stretch must hold to be called a bias


@dataclass(frozen=True, slots=True, repr=False)
class Verdict(Result):
    """What to tell a reader with ten seconds: `what` is wrong, for `whom`, and the `next_step`.

    `status` is "calibrated" when chance alone gives such a deviation with probability above `alpha`,
    "groups" when that holds for all records together but not for every group, "too little data" when errors
    of a size that matters would go unseen, "untested" when the data allow no test.
    """

    DERIVED: ClassVar = ("sentence",)

    what: str
    whom: str
    status: Status
    calibrated: bool  # whether `status` is "calibrated"
    next_step: str
    action: Action
    component: str  # with the most evidence: "kuiper", "bias", "slope", "certainty" (a wrong 0 or 1)
    pvalue: float | None  # of the omnibus test
    pvalue_is_bound: bool  # no simulated value reached the observed one
    approximate: tuple[str, ...]  # fields that hold only approximately: the p-value, or none
    alpha: float
    size: float  # the smooth calibration error
    noise: float | None  # its mean for calibrated forecasts with these predictions; None if not simulated
    unseen: float  # the largest error that the data could hide
    direction: str  # "too high" or "too low", of the predictions from `start` to `stop`
    start: float  # here to `stop`, residuals add up most
    stop: float
    worst_group: str | None = None  # of the second sentence
    group_columns: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        return f"{self.what} {self.whom}".rstrip()


def verdict(rows: Mapping[str, ResultRow], null: NullReference, audit: Audit | None) -> Verdict:
    """Judge by the omnibus test, then by the groups if there are any."""
    forecasts = null.forecasts
    size, where, tested = rows[SIZE_MEASURE], rows[LOCATION_MEASURE], null.verdict()
    assert size.measurement is not None  # both exist for any data
    assert where.measurement is not None
    details = where.measurement.details
    # what the data could hide: the upper limit of the smooth error, and a common bias seen 9 times in 10
    unseen = min(1.0, max(visible_bias(forecasts), size.high or 0.0))
    status = _status(tested, audit, unseen, forecasts)
    result = tested if isinstance(tested, TestResult) else None
    component = leading_component(result.details) if result is not None and status == "miscalibrated" else ""
    worst = () if audit is None else audit.beyond_overall(ALPHA)
    first, second = _sentences(status, component, tested, null, details, unseen)
    second = _about_groups(audit, worst, status) or second
    action, next_step = _next_step(status, audit, worst, unseen, forecasts)
    if isinstance(tested, TooFewClustersError):
        action, next_step = "collect", f"Collect more {tested.subject}."
    what, whom = wording.fit(first, second)
    return Verdict(
        what=what,
        whom=whom,
        status=status,
        calibrated=status == "calibrated",
        next_step=next_step,
        action=action,
        component=component,
        pvalue=result.pvalue if result else None,
        pvalue_is_bound=result is not None and result.pvalue_is_bound,
        approximate=result.approximate if result else (),
        alpha=ALPHA,
        size=size.measurement.value,
        noise=size.chance,
        unseen=unseen,
        direction=details["predictions"],
        start=details["start"],
        stop=details["stop"],
        worst_group=str(worst[0].rule) if worst else None,
        group_columns=_columns(worst),
    )


def _status(
    tested: TestResult | CalibrantError, audit: Audit | None, unseen: float, forecasts: Forecasts
) -> Status:
    if isinstance(tested, CalibrantError):
        return "too little data" if isinstance(tested, TooFewClustersError) else "untested"
    if tested.pvalue <= ALPHA:
        return "miscalibrated"
    if audit is not None and audit.wrong_groups(ALPHA):
        return "groups"
    return "too little data" if unseen > _max_unseen(forecasts) else "calibrated"


def _max_unseen(forecasts: Forecasts) -> float:
    """Return the size from which an error must not go unseen: half of the rate for rare events."""
    mean = forecasts.mean_prediction
    return min(MAX_UNSEEN, max(min(mean, 1 - mean) / 2, 1e-3))


def _sentences(
    status: Status,
    component: str,
    tested: TestResult | CalibrantError,
    null: NullReference,
    details: Mapping[str, Any],
    unseen: float,
) -> tuple[wording.Texts, wording.Texts]:
    """Return the first sentence, and a second one for data without groups."""
    forecasts = null.forecasts
    if isinstance(tested, TooFewClustersError):
        return (f"Too little data: {tested.subject} {tested.rule}; {tested.got}.",), ()
    if isinstance(tested, CalibrantError):
        return (f"Not tested: {str(tested).rstrip('.')}.",), ()
    if status == "groups":
        return wording.but_not_for_all(forecasts), ()
    if status in ("calibrated", "too little data"):
        return wording.nothing_proven(forecasts, unseen, enough=status == "calibrated"), ()
    if component != "certainty":
        return _pattern(component, tested, forecasts, details), ()
    others = null.without_certain
    judged = None if others is None else others.verdict()
    if not isinstance(judged, TestResult) or judged.pvalue > ALPHA:
        return wording.certain(forecasts), ()
    return _pattern(leading_component(judged.details), judged, forecasts, details), wording.certain(forecasts)


def _pattern(
    component: str, tested: TestResult, forecasts: Forecasts, details: Mapping[str, Any]
) -> wording.Texts:
    if ranks_inverted(forecasts):
        return wording.describe_inverted(forecasts, proven=True)
    if component == "slope":
        try:
            slope = calibration_slope.value(forecasts)
        except CalibrantError:  # every outcome is the same, or all predictions are
            slope = 1.0
        if slope < 0:
            return wording.describe_inverted(forecasts, proven=False)
        return wording.extremes(forecasts, over=bool(tested.details["slope_z"] < 0))
    start, stop = details["start"], details["stop"]
    share = float(forecasts.weights[(forecasts.values >= start) & (forecasts.values <= stop)].sum())
    if component == "bias" or share >= WHOLE_SHARE:
        return wording.describe_bias(forecasts)
    return wording.stretch(forecasts, start, stop)


def _about_groups(audit: Audit | None, worst: Sequence[Group], status: Status) -> wording.Texts:
    if audit is None:
        return ()
    if worst:
        return worst[0].worst_texts()
    tested, small = audit.tested - 1, audit.not_tested.too_small
    if tested == 0:
        return ("No group is large enough to test.",) if small else ()
    none = f"None of the {tested:,} groups" if tested > 1 else "The one group tested"
    if status == "miscalibrated":
        return (f"{none} {'stands out' if tested > 1 else 'does not stand out'}.",)
    none += f" is {'' if tested > 1 else 'not '}wrong beyond chance"
    return f"{none} ({small:,} too small to test)." if small else f"{none}.", f"{none}."


def _next_step(
    status: Status, audit: Audit | None, worst: Sequence[Group], unseen: float, forecasts: Forecasts
) -> tuple[Action, str]:
    if status == "untested":
        return "use rows", "Evaluate the rows themselves, with outcomes of 0 or 1."
    if status == "too little data":
        records = 1.0 / float(forecasts.squared_weights.sum())
        target = min(TARGET_ERROR, _max_unseen(forecasts))
        more = round_up(math.ceil(records * max(1.0, (unseen / target) ** 2 - 1)))
        seen = f"to see errors of {points_text(target)}"
        return "collect", f"Collect about {pluralize(more, 'more record')} {seen}."
    if status in ("miscalibrated", "groups"):
        if ranks_inverted(forecasts):
            return (
                "check labels",
                "Check which outcome is coded as 1: higher predictions go with fewer events. "
                "Predictions of the opposite, such as survival, are 1 minus those of the event.",
            )
        if forecasts.n < MIN_RECORDS:
            few = pluralize(forecasts.n, "is", "are")
            return "collect", f"Collect at least {MIN_RECORDS} records: {few} too few to fit a repair."
        columns = " and ".join(_columns(worst)) or ("group" if worst else "")
        by_group = f" by {columns}" if columns else ""
        return "recalibrate", f"Recalibrate{by_group}, on records the model was not trained on."
    if audit is None:
        return "check groups", "Check groups: predictions that are right overall can be wrong for some."
    return "monitor", "Nothing to repair. Monitor new outcomes as they arrive."


def _columns(worst: Sequence[Group]) -> tuple[str, ...]:
    """Return the columns of the worst group; none where it is a mask."""
    conditions = [condition for group in worst[:1] for condition in group.rule.conditions]
    return tuple(dict.fromkeys(one.column for one in conditions if not isinstance(one, MaskIs)))


def disagreement_note(found: Verdict, rows: Sequence[ResultRow]) -> str:
    """Explain rows of the table that seem to contradict the verdict; "" where none does."""
    pvalues = [row.shown.pvalue for row in rows if row.shown.pvalue is not None]
    if found.pvalue is None or not pvalues or found.status == "groups":
        return ""
    rejected = found.pvalue <= found.alpha
    if rejected == any(pvalue <= found.alpha for pvalue in pvalues):
        return ""
    shown = p_equals(pvalue_text(found.pvalue, found.pvalue_is_bound))
    if rejected:
        return f"No single row is unusual; the omnibus test of level, slope and shape is ({shown})."
    return f"A single row can be unusual by chance; the omnibus test, chosen in advance, is not ({shown})."
