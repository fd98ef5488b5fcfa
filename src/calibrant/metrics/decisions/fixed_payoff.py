"""What trusting the predictions costs with your payoffs; net benefit; swap regret of decisions taken."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, reject_name, reject_rows
from calibrant.fits.crossfit import Recalibrator, Responses
from calibrant.forecasts import Forecasts
from calibrant.formatting import format_value, pluralize
from calibrant.inputs import InputNames, numeric_vector, to_array
from calibrant.metrics.binned import mostly_distinct
from calibrant.metrics.calling import accepts_rows, check_choice, measure_function, shares_parameters
from calibrant.metrics.decisions.payoffs import Convex, Payoff, PayoffTable, Score, table_of, task_of
from calibrant.metrics.decisions.worst_case import responses
from calibrant.metrics.scores import CLIP
from calibrant.records import Missing, check_records
from calibrant.results import Array, Certified, Result

HINDSIGHT = (
    "Mostly noise: hardly any prediction repeats, so that the rates acted on are the outcomes themselves. "
    'Pass recalibrator="isotonic" for what recalibration gains on other records.'
)
Ties = Literal["worst", "first"]


@measure_function
def fixed_decision_loss(
    forecasts: Forecasts,
    *,
    payoff: Payoff,
    ties: Ties = "worst",
    clip: float = CLIP,
    gradient: Convex | None = None,
    recalibrator: Recalibrator | None = None,
    folds: int = 5,
    seed: int = 0,
) -> Certified:
    """Payoff lost per record, in one decision task, by trusting the predictions (CFDL of the survey).

    `payoff` is a table with a row for each action and the columns outcome 0 and outcome 1; a mapping
    from action to such a row; a number, the cost-loss ratio (acting costs it, an outcome 1 that was not
    acted on costs 1); "quadratic" (then it is the squared l2 error), "log" (predictions clipped to
    [clip, 1 - clip]) or "spherical"; or a convex function, with its gradient if you know it. The unit is
    that of the payoffs. decision_report shows the changes of action behind the loss.

    On raw continuous predictions give a `recalibrator`, as for decision_loss: the value is then what
    recalibrating would gain on records that it was not fitted on, and may be negative.

    Parameters
    ----------
    payoff
        The decision task: a table, a mapping, a cost-loss ratio, the name of a score, or a convex function.
    ties
        Where two actions look equally good, take the wrong one ("worst") or the one listed first ("first").
    gradient
        Of a convex function, where it is known.

    Examples
    --------
    >>> round(fixed_decision_loss([0, 0, 0, 1], [0.5] * 4, payoff=0.4), 12)
    0.15
    """
    task = task_of(payoff, clip=clip, gradient=gradient)
    groups = responses(forecasts, "fixed_decision_loss", recalibrator, folds, seed)
    report = report_of(task, groups, forecasts, ties)
    if recalibrator is None and mostly_distinct(forecasts):
        report = replace(report, note=HINDSIGHT)
    return Certified.point(report.loss, report=report)


@dataclass(frozen=True, slots=True, repr=False)
class ActionChange(Result):
    """Records for which another action would have paid more than the one that the prediction suggests.

    For a score the action is the probability acted on, and the change is to a "higher" or a "lower" one.
    """

    trusted: str
    better: str
    share: float  # of all weight
    records: int
    lowest: float  # prediction among them
    highest: float
    gain: float  # mean over all records, so that the gains add up to the loss


@dataclass(frozen=True, slots=True, repr=False)
class DecisionReport(Result):
    """What trusting the predictions earned, what recalibrated ones would have, and where they part.

    All per record and in the unit of the payoffs; `total` is over all records (by weight).
    """

    loss: float
    trusting: float
    recalibrated: float
    total: float
    changes: tuple[ActionChange, ...]
    note: str = ""  # why the numbers say little, where they do

    def __str__(self) -> str:
        noise = 1e-12 * max(abs(self.trusting), abs(self.loss))
        better = 0.0 if abs(self.recalibrated) <= noise else self.recalibrated
        total = f"{self.total:,.0f}" if abs(self.total) >= 1e6 else f"{self.total:.6g}"
        lines = [
            f"trusting the predictions earns {self.trusting:.6g} per record",
            f"recalibrated predictions earn  {better:.6g} per record",
            f"lost by trusting them          {self.loss:.6g} per record, {total} in total",
        ]
        for c in self.changes:
            one = c.lowest == c.highest
            where = f"of {c.lowest:.4g}" if one else f"{c.lowest:.4g} to {c.highest:.4g}"
            what = f"{pluralize(c.records, 'record')}, predictions {where}"
            lines.append(f"  {c.trusted} -> {c.better}: {what}, gain {c.gain:.6g}")
        return "\n".join([*lines, self.note] if self.note else lines)


@accepts_rows
def decision_report(forecasts: Forecasts, /, **options: Any) -> DecisionReport:
    """Return fixed_decision_loss, by its own options, with the changes of action behind it.

    Parameters
    ----------
    **options
        Those of fixed_decision_loss.

    Examples
    --------
    >>> print(decision_report([0, 0, 0, 1], [0.5] * 4, payoff={"wait": (0, -1), "act": (-0.4, -0.4)}))
    trusting the predictions earns -0.4 per record
    recalibrated predictions earn  -0.25 per record
    lost by trusting them          0.15 per record, 0.6 in total
      act -> wait: 4 records, predictions of 0.5, gain 0.15
    """
    return fixed_decision_loss.core(forecasts, **options).details["report"]  # type: ignore[no-any-return]


def report_of(
    task: PayoffTable | Score, groups: Responses, forecasts: Forecasts, ties: Ties
) -> DecisionReport:
    """Compare acting on the trusted predictions with acting on the rates, paid by the actual outcomes."""
    check_choice("ties", ties, ("worst", "first"))
    if isinstance(task, PayoffTable):
        names, by_rate, best = task.names, task.expected(groups.rates), task.best(groups.trusted)
        trusted = np.argmax(best, axis=1)
        if ties == "worst":
            trusted = np.argmin(np.where(best, by_rate, np.inf), axis=1)
        # as good: no change of action
        even = by_rate[np.arange(len(trusted)), trusted] >= by_rate.max(axis=1) - task.even
        better = np.where(even, trusted, np.argmax(by_rate, axis=1))
        earned, possible = task.payoff[trusted].T, task.payoff[better].T
    else:
        names = ("lower", "prediction", "higher")
        trusted = np.ones(len(groups.rates), int)
        better = 1 + np.sign(groups.rates - groups.trusted).astype(int)
        earned, possible = task.earned(groups.trusted), task.earned(groups.rates)
    mass = np.stack((groups.weights - groups.outcomes, groups.outcomes))
    gains = ((possible - earned) * mass).sum(axis=0)
    if isinstance(task, Score) and task.name == "convex":
        _check_convex(gains, groups, max(float(np.abs(earned).max()), float(np.abs(possible).max())))
    kind, changes = trusted * len(names) + better, []
    for k in np.unique(kind[trusted != better]):
        rows, (one, other) = kind == k, divmod(k, len(names))
        share, values = float(groups.weights[rows].sum()), groups.trusted[rows]
        ends = int(groups.counts[rows].sum()), float(values.min()), float(values.max())
        changes.append(ActionChange(names[one], names[other], share, *ends, float(gains[rows].sum())))
    changes.sort(key=lambda change: -change.gain)
    base, loss = float((earned * mass).sum()), float(gains.sum())
    return DecisionReport(loss, base, base + loss, loss * forecasts.total_weight, tuple(changes))


def _check_convex(gains: Array, groups: Responses, largest: float) -> None:
    """Refuse a function whose Bregman divergence is negative by more than a gradient by differences errs."""
    in_hindsight = np.abs(groups.outcomes - groups.weights * groups.rates) <= 1e-12 * groups.weights
    if np.any(in_hindsight & (gains < -1e-6 * largest * groups.weights)):
        worst = int(np.argmin(gains / groups.weights))
        got = f"got a negative divergence at prediction {groups.trusted[worst]:.6g}"
        raise InvalidInputError("payoff", "as a function must be convex on [0, 1]", got)


ROUNDING = 1e-12  # of sums of shares; false positives count up to 1 / (1 - threshold) times


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DecisionCurve(Result):
    """Net benefit at each threshold, in true positives per record (Vickers & Elkin 2006).

    `model`: treat where the prediction reaches the threshold. `treat_all`; treating none has 0.
    `recalibrated`: treat where the outcome rate behind the prediction reaches the threshold; its excess
    over `model` is the threshold loss divided by 1 - threshold. Like every number read off level sets it
    flatters where predictions hardly repeat.
    """

    thresholds: Array
    model: Array
    treat_all: Array
    recalibrated: Array

    @property
    def useful(self) -> npt.NDArray[np.bool_]:
        """Where the model beats both treating all and treating none, by more than rounding."""
        gain = self.model - np.maximum(self.treat_all, 0.0)
        return np.asarray(gain > ROUNDING / (1 - self.thresholds))

    def __str__(self) -> str:
        useful = np.flatnonzero(self.useful)
        count = f"{len(useful)} of {pluralize(len(self.thresholds), 'threshold')}"
        if len(useful) == 0:
            return f"The model beats treating all and treating none at {count}."
        gain = self.model - np.maximum(self.treat_all, 0.0)
        most = int(np.argmax(gain))
        ends = f"{self.thresholds[useful].min():g} to {self.thresholds[useful].max():g}"
        return (
            f"The model beats treating all and treating none at {count} (from {ends}), most at "
            f"{self.thresholds[most]:g}: {format_value(1000 * float(gain[most]))} more net true "
            "positives per 1,000 records."
        )


@accepts_rows
def net_benefit(forecasts: Forecasts, *, thresholds: npt.ArrayLike | None = None) -> DecisionCurve:
    """Return the decision curve: true positives less false positives at the odds of the threshold.

    NB(t) = TP / n - FP / n * t / (1 - t). Thresholds are 0.01, 0.02, ..., 0.99 unless given.
    `net_benefits` has several models, intervals, a frame and a chart.

    Parameters
    ----------
    thresholds
        Predictions from which one acts.

    Examples
    --------
    >>> net_benefit([0, 1, 1, 0], [0.2, 0.4, 0.8, 0.6], thresholds=[0.5]).model.tolist()
    [0.0]
    """
    asked = checked_thresholds(thresholds)
    odds = asked / (1 - asked)
    rate = forecasts.base_rate
    return DecisionCurve(
        asked,
        _benefit(forecasts, forecasts.values, asked, odds),
        rate - (1 - rate) * odds,
        _benefit(forecasts, forecasts.outcomes / forecasts.weights, asked, odds),
    )


def checked_thresholds(thresholds: npt.ArrayLike | None) -> Array:
    if thresholds is None:
        return np.asarray(np.arange(1, 100) / 100)
    asked = numeric_vector(np.atleast_1d(to_array(thresholds, "thresholds")), "thresholds").astype(np.float64)
    reject_rows("thresholds", "must lie in [0, 1)", asked, ~((asked >= 0) & (asked < 1)))
    return asked


def _benefit(forecasts: Forecasts, predictions: Array, thresholds: Array, odds: Array) -> Array:
    """Return TP - FP odds when the records with prediction >= threshold are treated."""
    order = np.argsort(predictions, kind="stable")
    first = np.searchsorted(predictions[order], thresholds)
    ones, zeros = (
        np.append(np.cumsum(mass[order][::-1])[::-1], 0.0)[first]  # beyond the last, nothing is treated
        for mass in (forecasts.outcomes, forecasts.weights - forecasts.outcomes)
    )
    return np.asarray(ones - zeros * odds)


@dataclass(frozen=True, slots=True, repr=False)
class Swap(Result):
    """One action that was taken, and the action that would have been better each time it was."""

    taken: str
    better: str
    share: float  # of all weight
    records: int
    gain: float  # mean over all records


@dataclass(frozen=True, slots=True, repr=False)
class SwapRegret(Result):
    """Mean payoff of the decisions, and what two kinds of hindsight would have added to it.

    `swap`: replace every action by the best one for the records where it was taken. `external`: take one
    and the same best action throughout. External regret can be negative (then the forecasts were worth
    something); swap regret cannot, and is at least as large.
    """

    swap: float
    external: float
    payoff: float
    swaps: tuple[Swap, ...]


@shares_parameters("")
def swap_regret(
    y_true: Any, actions: Any, *, payoff: Payoff, sample_weight: Any = None, missing: Missing = "error"
) -> SwapRegret:
    """Return the swap regret of decisions taken, per record, in the unit of the payoffs.

    `actions` are row numbers of the payoff table, or the names it gives them; a cost-loss ratio names its
    actions "wait" (0) and "act" (1). Decisions that trust predictions have at most the
    fixed_decision_loss of these predictions as swap regret, and so at most their decision_loss.

    Parameters
    ----------
    y_true
        Outcomes.
    actions
        What was done: row numbers of the payoff table, or its names.
    payoff
        The decision task, as for fixed_decision_loss.
    sample_weight
        Non-negative weights, one per record.
    missing
        Refuse rows without an outcome or a weight ("error"), or leave them out ("drop").

    Examples
    --------
    >>> swap_regret([0, 0, 1, 1], ["act", "act", "wait", "wait"], payoff=0.25).swap
    0.5
    """
    task = table_of(payoff)
    taken = to_array(actions, "actions")
    if taken.ndim != 1:
        raise InvalidInputError("actions", "must be one-dimensional", f"got shape {taken.shape}")
    names = InputNames("y_true", "actions", "sample_weight")
    rows = check_records(y_true, np.zeros(len(taken)), sample_weight, missing, names)
    taken = taken if rows.rows is None else taken[rows.rows]
    if taken.dtype.kind in "biu":
        bad = (taken < 0) | (taken >= len(task.names))
        reject_rows("actions", f"must be 0 to {len(task.names) - 1}", taken, bad)
    else:
        place = {name: a for a, name in enumerate(task.names)}
        unknown = [str(item) for item in taken if str(item) not in place]
        if unknown:
            raise reject_name("actions", unknown[0], list(place))
        taken = np.array([place[str(item)] for item in taken], dtype=np.intp)
    w = np.ones(len(taken)) if rows.weight is None else rows.weight / rows.largest
    w = w / w.sum()
    size = len(task.names)
    ones = np.bincount(taken, w * rows.outcome.astype(np.float64), size)
    mass = np.column_stack((np.bincount(taken, w, size) - ones, ones))  # by action taken, by outcome
    possible = mass @ task.payoff.T  # row: taken, column: had it been this one instead
    earned = np.diag(possible)
    better = np.argmax(possible, axis=1)
    gains = np.maximum(possible.max(axis=1) - earned, 0.0)
    counts = np.bincount(taken, minlength=size)
    swaps = [
        Swap(task.names[a], task.names[better[a]], float(mass[a].sum()), int(counts[a]), float(gains[a]))
        for a in np.argsort(-gains, kind="stable")
        if gains[a] > 0
    ]
    total = float(earned.sum())
    return SwapRegret(float(gains.sum()), float(possible.sum(axis=0).max()) - total, total, tuple(swaps))
