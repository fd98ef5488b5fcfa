"""Calibration decision loss: the most that trusting the predictions can cost, over all bounded payoffs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from calibrant.fits.crossfit import Recalibrator, name_of
from calibrant.forecasts import Forecasts
from calibrant.measures.decisions.responses import responses
from calibrant.measures.decisions.thresholds import ThresholdLossCurve, curve_of, peaks_at_predictions
from calibrant.measures.registry.calling import of_rows, public
from calibrant.measures.registry.row import Measure
from calibrant.results import NOTHING, Array, Certified, Result

ROUNDING = 1e-14  # relative; the search for the worst pair ends when no point rises above its chord by more


@public
def decision_loss(
    forecasts: Forecasts, *, recalibrator: Recalibrator | None = None, folds: int = 5, seed: int = 0
) -> Certified:
    """Calibration decision loss (CDL): payoff lost by trusting the predictions, in the worst task.

    The largest gain, over all decision tasks with payoffs in [0, 1], from answering each prediction with
    the best action for the outcomes behind it rather than the best action if it were true. Definition
    4.2 of the survey; 0 only when calibrated. For the payoffs you have, see fixed_decision_loss; for the
    task that attains the value, worst_task.

    Raw continuous predictions have one record each, and the value is then noise. `recalibrator`
    ("isotonic", "binned", or a function that fits one) estimates the outcome rates on other folds of the
    data (`folds`, dealt by `seed`), so that noise is not counted as loss; estimate_decision_loss adds
    what a calibrated forecaster would show.

    Parameters
    ----------
    recalibrator
        "isotonic", "binned", or a function that fits one: outcome rates come from other folds of the data.
        None takes the rates of the level sets.
    folds, seed
        How many folds, and what deals the records to them.

    Returns
    -------
    float
        Payoff lost per record, in units of the largest payoff.

    Examples
    --------
    >>> round(decision_loss([0, 1, 1, 1], [0.5] * 4), 12)
    0.5
    """
    groups = responses(forecasts, "decision_loss", recalibrator, folds, seed)
    if recalibrator is None:
        return _worst_pair(groups.trusted, peaks_at_predictions(groups)).certified()
    curve = curve_of(groups)
    used = {"recalibrator": name_of(recalibrator), "folds": folds, "seed": seed}
    return _worst_pair(curve.thresholds, curve.peaks).certified(used)


@of_rows
def threshold_loss_curve(
    forecasts: Forecasts,
    *,
    recalibrator: Recalibrator | None = None,
    folds: int = 5,
    seed: int = 0,
) -> ThresholdLossCurve:
    """Return what acting above a threshold loses by trusting the predictions, for every threshold.

    The loss at mu is that of a decision maker whose cost-loss ratio is mu; a Murphy diagram of the
    miscalibration alone. The options are those of decision_loss.

    Parameters
    ----------
    recalibrator
        "isotonic", "binned", or a function that fits one: outcome rates come from other folds of the data.
        None takes the rates of the level sets.
    folds, seed
        How many folds, and what deals the records to them.

    Returns
    -------
    ThresholdLossCurve
        Breaks and losses; `at` evaluates it.

    Examples
    --------
    >>> threshold_loss_curve([0, 1, 1, 1], [0.5] * 4).at([0.4, 0.5, 0.6]).round(12).tolist()
    [0.0, 0.25, 0.15]
    """
    return curve_of(responses(forecasts, "threshold_loss_curve", recalibrator, folds, seed))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WorstTask(Result):
    """The decision task with payoffs in [0, 1] that suffers most from trusting the predictions.

    A person who faces it changes action at each of `thresholds` (two at most). `payoff[a, y]` is what
    action a earns when the outcome is y; action 0 is best below the first threshold. `losses` is what
    each threshold contributes; together they make `loss`. At a prediction that equals a threshold both
    actions look equally good, and the wrong one is taken.
    """

    loss: float
    thresholds: Array
    losses: Array
    payoff: Array


@of_rows
def worst_task(forecasts: Forecasts, /, **options: Any) -> WorstTask:
    """Return the decision task behind decision_loss: which cost ratios are hurt, and by how much.

    `options` are those of decision_loss.

    Parameters
    ----------
    **options
        Those of decision_loss.

    Returns
    -------
    WorstTask
        Thresholds and payoffs of the task, and its loss.

    Examples
    --------
    >>> task = worst_task([0, 1, 1, 1], [0.5] * 4)
    >>> task.thresholds.tolist(), task.payoff.tolist()
    ([0.5], [[1.0, 0.0], [0.0, 1.0]])
    """
    task: WorstTask = decision_loss.core(forecasts, **options).details["task"]  # type: ignore[union-attr]
    return task


def worst_task_of(curve: ThresholdLossCurve) -> WorstTask:
    """Return the decision task that loses most by a curve, such as a cross-fitted one."""
    task: WorstTask = _worst_pair(curve.thresholds, curve.peaks).certified().details["task"]
    return task


def certified_worst(curve: ThresholdLossCurve) -> Certified:
    """Return the largest loss of any task with payoffs in [0, 1] by a curve, with the task in the details."""
    return _worst_pair(curve.thresholds, curve.peaks).certified()


def worst_loss(thresholds: Array, peaks: Array) -> float:
    """Return that loss alone, of a curve given by its peaks at ascending thresholds in [0, 1]."""
    pair = _worst_pair(thresholds, peaks)
    return 2.0 * (pair.share * pair.peaks[0] + (1.0 - pair.share) * pair.peaks[1])


@dataclass(frozen=True, slots=True)
class _Pair:
    """The two points of the curve whose chord is highest over 1/2, and a bound no chord can pass."""

    thresholds: tuple[float, float]
    peaks: tuple[float, float]
    share: float  # of the first point
    bound: float

    def certified(self, used: Mapping[str, Any] = NOTHING) -> Certified:
        """Return twice the height over 1/2, and the task: curvature 2 split over the two thresholds."""
        masses = 2.0 * np.array([self.share, 1.0 - self.share])
        losses = masses * self.peaks
        value = float(losses.sum())
        felt = losses > 0
        task = _task(value, np.array(self.thresholds)[felt], masses[felt], losses[felt])
        low, high = (t if f else None for t, f in zip(self.thresholds, felt, strict=True))
        details = MappingProxyType({"threshold_low": low, "threshold_high": high, "task": task, **used})
        upper = max(value, 2.0 * self.bound)
        return Certified(value, value, upper, upper - value <= 1e-12, None, details)


def _task(loss: float, thresholds: Array, masses: Array, losses: Array) -> WorstTask:
    """Build the payoffs: crossing a threshold earns (1 - mu) mass if y = 1 and gives up mu mass if y = 0."""
    steps = np.concatenate(([0.0], np.cumsum(masses * (1 - thresholds))))
    kept = np.concatenate((np.cumsum((masses * thresholds)[::-1])[::-1], [0.0]))
    return WorstTask(loss, thresholds, losses, np.clip(np.column_stack((kept, steps)), 0.0, 1.0))


def _worst_pair(mu: Array, peaks: Array) -> _Pair:
    """Maximise over mu_1 <= 1/2 < mu_2 the height over 1/2 of the chord between two points of the curve.

    A payoff in [0, 1] is a curvature nu >= 0 with integral (1 - mu) dnu <= 1 and integral mu dnu <= 1, and
    its loss is the integral of h dnu (Theorem 4.6 and (4.8) of the survey). So the worst one is twice the
    concave envelope of h at 1/2. Any slope bounds it from above by the highest point of the tilted curve;
    a chord whose ends are the highest points on either side, tilted by its own slope, is therefore best.
    `left` and `right` hold distances from 1/2; 0 and 1, where nothing is lost, serve as ends too.
    """
    middle = int(np.searchsorted(mu, 0.5, side="right"))
    left, right = 0.5 - np.concatenate(([0.0], mu[:middle])), np.concatenate((mu[middle:], [1.0])) - 0.5
    on_left, on_right = np.concatenate(([0.0], peaks[:middle])), np.concatenate((peaks[middle:], [0.0]))
    i, j = int(np.argmax(on_left)), int(np.argmax(on_right))
    a, b, c, d = 0, len(left), 0, len(right)  # the best chord runs from left[a:b] to right[c:d]
    while True:
        share = right[j] / (left[i] + right[j])
        height = share * on_left[i] + (1 - share) * on_right[j]
        slope = (on_right[j] - on_left[i]) / (left[i] + right[j])
        tilted_left = on_left[a:b] + slope * left[a:b]
        tilted_right = on_right[c:d] - slope * right[c:d]
        next_i, next_j = a + int(np.argmax(tilted_left)), c + int(np.argmax(tilted_right))
        tops = tilted_left[next_i - a], tilted_right[next_j - c]
        # the new chord is never lower: its height is a mean of two tilted points, each at least `height`
        if max(tops) <= height * (1 + ROUNDING) or (next_i, next_j) == (i, j):
            break
        i, j = next_i, next_j
        if tops[0] > tops[1]:  # the best slope is smaller, and then both ends lie further right
            a, c = i, j
        else:
            b, d = i + 1, j + 1
    bound = max(np.max(on_left + slope * left), np.max(on_right - slope * right))
    ends = float(0.0 if i == 0 else mu[i - 1]), float(1.0 if j == len(right) - 1 else mu[middle + j])
    return _Pair(ends, (float(on_left[i]), float(on_right[j])), float(share), float(bound))


ROWS = (
    Measure(
        "cdl",
        decision_loss,
        words="calibration decision loss",
        largest=1.0,
        family="decisions",
        meaning="payoff lost by trusting the predictions, in the worst task with payoffs between 0 and 1",
        complete=True,
        sound=True,
        needs_level_sets=True,
        symmetric=True,
        decision="no task with payoffs in [0, 1] loses more; the worst thresholds are in the details",
        cost="O(m log m)",
        citation="Hu & Wu 2024, Predict to minimize swap regret for all payoff-bounded tasks",
    ),
)
