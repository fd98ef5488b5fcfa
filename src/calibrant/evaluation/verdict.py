"""The verdict: one sentence that answers how far, whether it is real, and where; and what to do next.

Size, direction and p-value come from the part of the test that spoke. The default test looks at Kuiper's
range, which sees stretches of predictions that are wrong, and at Cox's score, which sees predictions that
are too high on the whole or too extreme. Whichever has the smaller p-value is the one quoted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from calibrant.evaluation.certainty import certainty
from calibrant.evaluation.null_reference import Chance
from calibrant.evaluation.recalibration_preview import FEWEST
from calibrant.evaluation.rejection import rejection
from calibrant.evaluation.rows import SIZE, WHERE, Row
from calibrant.forecasts import Forecasts
from calibrant.groups.no_evidence import none_wrong, too_small
from calibrant.groups.people import worst_in_people
from calibrant.inference.engine import TestResult
from calibrant.inference.omnibus import visible_bias
from calibrant.inference.spoken import speaker
from calibrant.inference.upside_down import upside_down
from calibrant.numerals import counted, short

if TYPE_CHECKING:
    from calibrant.groups.audit_result import Audit
    from calibrant.groups.group import Group

Status = Literal["calibrated", "miscalibrated", "groups", "too little data", "untested"]

LEADS: Mapping[Status, str] = {
    "calibrated": "Calibrated within noise.",
    "miscalibrated": "Not calibrated.",
    "groups": "Calibrated on the whole, but not for everyone.",
    "too little data": "Too little data to say.",
    "untested": "Cannot be tested.",
}
ALPHA = 0.05  # the level of the verdict
LARGE = 0.15  # an error of this size must not go unseen, nor half of the mean prediction if that is less
WANTED = 0.05  # what more records should make visible


@dataclass(frozen=True, slots=True)
class Verdict:
    """What to tell somebody who reads one line.

    `status` is "calibrated" when chance alone gives such a deviation with probability above `alpha`,
    "groups" when that holds for everyone together but not for every group, "too little data" when errors
    of a size that matters would go unseen, "untested" when the data allow no test. `calibrated` is True for
    the first alone. `spoke` names the part of the test that rejected: "kuiper", "bias", "slope" or
    "certainty" (a prediction of 0 or 1 that was wrong). `size` is the smooth calibration error, `noise` its
    mean for calibrated forecasts with the same predictions (None for fractional outcomes, which cannot be
    simulated), `unseen` the largest error that the data could hide. Predictions are `direction` ("too high"
    or "too low") on balance between `start` and `stop`, where the residuals add up most.
    """

    sentence: str
    status: Status
    calibrated: bool
    next_step: str
    spoke: str
    pvalue: float | None
    pvalue_is_bound: bool  # no simulated value reached the observed one
    approximate: tuple[str, ...]  # the fields that hold only approximately: the p-value, or nothing
    alpha: float
    size: float
    noise: float | None
    unseen: float
    direction: str
    start: float
    stop: float

    @property
    def lead(self) -> str:
        """The first words: what the sentence then explains."""
        return LEADS[self.status]


def verdict(
    rows: Mapping[str, Row],
    luck: Chance,
    forecasts: Forecasts,
    audit: Audit | None,
    alpha: float,
) -> Verdict:
    """Judge by the default test (or say why there is none); then by the groups, if there are any."""
    size, where, tested = rows[SIZE], rows[WHERE], luck.verdict()
    assert size.measurement is not None  # both exist for any data
    assert where.measurement is not None
    details, unseen = where.measurement.details, largest_unseen(size, forecasts)
    status, spoke = _judged(tested, audit, unseen, forecasts, alpha)
    if spoke == "certainty" and not isinstance(tested, str):
        text = certainty(rows, luck, forecasts, tested, alpha)
    else:
        text = _SENTENCES[status](rows, tested, forecasts, spoke, unseen)
    if audit is not None:
        text += _about_groups(audit, alpha, status)
    known = None if isinstance(tested, str) else tested
    return Verdict(
        sentence=text,
        status=status,
        calibrated=status == "calibrated",
        next_step=_next_step(status, audit, unseen, forecasts),
        spoke=spoke,
        pvalue=known.pvalue if known else None,
        pvalue_is_bound=known is not None and known.pvalue_is_bound,
        approximate=known.approximate if known else (),
        alpha=alpha,
        size=size.measurement.value,
        noise=size.chance,
        unseen=unseen,
        direction=details["predictions"],
        start=details["start"],
        stop=details["stop"],
    )


def largest_unseen(size: Row, forecasts: Forecasts) -> float:
    """Return the largest error the data could hide: the upper confidence limit of the smooth error.

    Never less than a common bias that would be noticed with probability 90 %; that alone where there is no
    interval. Outcomes of 0 or 1 have a variance of at most 1 / 4 whatever was predicted, so predictions of
    exactly 0 and 1 do not make the data look surer than they are: with n records of which none disagrees, a
    rate up to 3 / n is still possible at 95 %.
    """
    return min(1.0, max(visible_bias(forecasts), size.high or 0.0))


def _judged(
    tested: TestResult | str, audit: Audit | None, unseen: float, forecasts: Forecasts, alpha: float
) -> tuple[Status, str]:
    if isinstance(tested, str):
        return "untested", ""
    if tested.pvalue <= alpha:
        return "miscalibrated", speaker(tested.details)
    if audit is not None and _wrong_groups(audit, alpha):
        return "groups", ""
    return ("too little data" if unseen > _matters(forecasts) else "calibrated"), ""


def _matters(forecasts: Forecasts) -> float:
    """Return the size from which on an error must not go unseen: of rare events half of their rate does."""
    mean = forecasts.mean_prediction
    return min(LARGE, max(min(mean, 1 - mean) / 2, 1e-3))


def _calibrated(
    rows: Mapping[str, Row], tested: TestResult | str, forecasts: Forecasts, spoke: str, unseen: float
) -> str:
    assert isinstance(tested, TestResult)
    size = rows[SIZE]
    by_chance = "" if size.chance is None else f"; chance alone would give about {short(size.chance)}"
    records = counted(forecasts.n, "calibrated record")
    return (
        f"The deviation (smooth calibration error {short(size.value)}{by_chance}) is what chance gives "
        f"{records} (omnibus test: {tested.written_pvalue}). An error of up to {short(unseen, 2)} could "
        "still go unseen."
    )


def _too_little(
    rows: Mapping[str, Row], tested: TestResult | str, forecasts: Forecasts, spoke: str, unseen: float
) -> str:
    assert isinstance(tested, TestResult)
    return (
        f"Errors of up to {short(unseen, 2)} would go unseen with {counted(forecasts.n, 'record')}; nothing "
        f"was found beyond chance ({tested.written_pvalue})."
    )


def _untested(
    rows: Mapping[str, Row], tested: TestResult | str, forecasts: Forecasts, spoke: str, unseen: float
) -> str:
    error = short(rows[SIZE].value)
    return f"The smooth calibration error is {error}; whether chance explains it is open: {tested}"


_SENTENCES = {
    "calibrated": _calibrated,
    "groups": _calibrated,
    "too little data": _too_little,
    "untested": _untested,
    "miscalibrated": rejection,
}


def _wrong_groups(audit: Audit, alpha: float) -> list[Group]:
    """Return the groups, other than everyone, that are wrong beyond chance."""
    return [group for group in audit.significant(alpha) if group is not audit.everyone]


def _about_groups(audit: Audit, alpha: float, status: Status) -> str:
    named, tested = _wrong_groups(audit, alpha), counted(audit.tested - 1, "group")
    if not named:
        few = f" ({too_small(audit)})" if audit.not_tested.too_small else ""
        return "" if status == "miscalibrated" else f" {none_wrong(audit, 'wrong beyond chance')}{few}."
    return f" Wrong for {len(named):,} of {tested}. {worst_in_people(audit, named)}"


def _next_step(status: Status, audit: Audit | None, unseen: float, forecasts: Forecasts) -> str:
    if status == "untested":
        return "Measure the raw rows with outcomes of 0 or 1 to have it tested."
    if status == "groups":
        return "Repair it by group: recalibrate with the groups' columns (--groups), then audit again."
    if status == "miscalibrated":
        return _repair(audit, forecasts)
    if status == "too little data":
        records = 1.0 / float(forecasts.squared_weights.sum())
        wanted = min(WANTED, _matters(forecasts))
        more = math.ceil(records * max(1.0, (unseen / wanted) ** 2 - 1))
        return f"Collect about {counted(_rounded(more), 'more record')} to see errors of {wanted:.2g}."
    if audit is None:
        return "Audit groups: predictions that are right on the whole can be wrong for some."
    return "Nothing to repair was found. Monitor new outcomes as they arrive."


def _repair(audit: Audit | None, forecasts: Forecasts) -> str:
    if upside_down(forecasts):
        return "Check whether 1 is the outcome that is predicted: higher predictions go with fewer events."
    if forecasts.n < FEWEST:
        few = counted(forecasts.n, "is", "are")
        return f"Collect {FEWEST} records or more: {few} too few to fit a repair to."
    by_group = ", with the groups' columns (--groups)" if audit and _wrong_groups(audit, ALPHA) else ""
    return f"Recalibrate on records the model was not trained on{by_group}, and check that it helps."


def _rounded(count: int) -> int:
    """Round up to two digits.

    >>> _rounded(1234)
    1300
    """
    unit: int = 10 ** max(0, len(str(count)) - 2)
    return -(-count // unit) * unit
