"""What trusting the predictions can cost: decision loss, U-calibration error and monotone regret.

The threshold-loss curve h(mu): a decision maker acts when the probability exceeds mu. Acting costs mu, not
acting when the outcome is 1 costs 1. A level with prediction v and outcome rate r is handled wrongly when mu
lies between v and r, and each of its records then loses |r - mu|. The curve adds that up; every decision loss
is an integral of it. Rates r are those of the levels, or fitted on other records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.fits.crossfit import Recalibrator, Responses, cross_fitted, name_of
from calibrant.forecasts import Forecasts
from calibrant.inputs import number, probabilities, whole_number
from calibrant.metrics.bibliography import SURVEY
from calibrant.metrics.binned import warn_if_singletons
from calibrant.metrics.calling import accepts_rows, measure_function
from calibrant.metrics.registry import Measure
from calibrant.metrics.scores import isotonic_curve
from calibrant.parallel import recorded_seed
from calibrant.results import NOTHING, Array, Certified, Result


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ThresholdLossCurve(Result):
    """The curve h, exactly: piecewise linear between `thresholds`, with one-sided limits at each.

    In units of the loss of an outcome 1 that was not acted on. `mu` and `loss` trace it for drawing.
    """

    thresholds: Array
    before: Array  # limit from the left
    after: Array  # limit from the right

    @property
    def mu(self) -> Array:
        """Abscissas of the traced curve; a threshold appears twice."""
        return np.repeat(self.thresholds, 2)

    @property
    def loss(self) -> Array:
        """Ordinates of the traced curve."""
        return np.column_stack((self.before, self.after)).ravel()

    @property
    def peaks(self) -> Array:
        """The larger one-sided limit at each threshold: ties are broken against the decision maker."""
        return np.maximum(self.before, self.after)

    @property
    def worst(self) -> tuple[float, float]:
        """The threshold that loses most, and what it loses per record."""
        top = int(np.argmax(self.peaks))
        return float(self.thresholds[top]), float(self.peaks[top])

    def at(self, mu: npt.ArrayLike) -> Array:
        """Return h at any thresholds in [0, 1]; at a jump the larger limit."""
        asked = probabilities(mu, "mu")
        place = np.clip(np.searchsorted(self.thresholds, asked), 1, len(self.thresholds) - 1)
        left, right = self.thresholds[place - 1], self.thresholds[place]
        share = (asked - left) / (right - left)
        inside = (1 - share) * self.after[place - 1] + share * self.before[place]
        exact = np.where(asked == left, self.peaks[place - 1], self.peaks[place])
        return np.where((asked == left) | (asked == right), exact, inside)


def hindsight(forecasts: Forecasts) -> Responses:
    """Return the levels with the outcome rates that their own records show."""
    return _levels(forecasts, np.clip(forecasts.outcomes / forecasts.weights, 0.0, 1.0))


def _levels(forecasts: Forecasts, rates: Array) -> Responses:
    return Responses(forecasts.values, rates, forecasts.weights, forecasts.outcomes, forecasts.counts)


def curve_of(groups: Responses) -> ThresholdLossCurve:
    """Return the curve with all its breakpoints: 0, 1, every prediction and every rate."""
    grid = np.unique(np.concatenate((groups.trusted, groups.rates, (0.0, 1.0))))
    one, other = np.searchsorted(grid, groups.trusted), np.searchsorted(grid, groups.rates)

    def running(amount: Array) -> Array:
        """Sum over the groups with v <= mu < r, less those with r <= mu < v, at each grid point mu."""
        return np.cumsum(np.bincount(one, amount, len(grid)) - np.bincount(other, amount, len(grid)))

    height, slope = running(groups.outcomes), running(groups.weights)  # h is a line to the next grid point
    after, before = height - grid * slope, np.zeros(len(grid))
    before[1:] = height[:-1] - grid[1:] * slope[:-1]
    return ThresholdLossCurve(grid, before, after)


def peaks_at_predictions(groups: Responses) -> Array:
    """Return the peaks of h at the (distinct, ascending) predictions only, in one search."""
    # Between two predictions the curve of hindsight is convex (at a rate it has a kink upwards and no jump):
    # its concave envelope, and with it the decision loss, needs no other point. To the right of mu, h is the
    # sum of (a_k - w_k mu) over v_k <= mu, less the same sum over rates r_k <= mu.
    trusted, outcomes, weights = groups.trusted, groups.outcomes, groups.weights
    m = len(trusted)
    order = np.argsort(groups.rates)  # ascending rates are found several times faster
    reached = np.empty(m, dtype=np.intp)
    reached[order] = np.searchsorted(trusted, groups.rates[order])
    right = np.cumsum(outcomes - np.bincount(reached, outcomes, m + 1)[:m])
    right -= trusted * np.cumsum(weights - np.bincount(reached, weights, m + 1)[:m])
    jump = np.maximum(weights * trusted - outcomes, 0.0)  # where v is too high the peak is to its left
    return np.maximum(right + jump, 0.0)


REMEDY = 'Pass recalibrator="isotonic" to estimate the outcome rates on other records, or round first.'


def responses(
    forecasts: Forecasts, what: str, recalibrator: Recalibrator | None, folds: int, seed: int
) -> Responses:
    """Return the levels as they are, with a warning where they mean nothing, or cross-fitted rates."""
    whole_number("folds", folds, 2)
    recorded_seed(seed)
    if recalibrator is None:
        warn_if_singletons(forecasts, what, REMEDY)
        return hindsight(forecasts)
    return cross_fitted(forecasts, recalibrator, folds, seed)


ROUNDING = 1e-14  # relative; the search for the worst pair ends when no point rises above its chord by more


@measure_function
def decision_loss(
    forecasts: Forecasts, *, recalibrator: Recalibrator | None = None, folds: int = 5, seed: int = 0
) -> Certified:
    """Calibration decision loss (CDL): payoff lost by trusting the predictions, in the worst task.

    The largest gain, over all decision tasks with payoffs in [0, 1], from answering each prediction with
    the best action for the outcomes behind it rather than the best action if it were true. Definition
    4.2 of the survey; 0 only when calibrated. For the payoffs you have, see fixed_decision_loss; for the
    task that attains the value, worst_task.

    On raw continuous predictions the value is noise unless a `recalibrator` estimates the outcome rates;
    estimate_decision_loss adds what a calibrated forecaster would show.

    Examples
    --------
    >>> round(decision_loss([0, 1, 1, 1], [0.5] * 4), 12)
    0.5
    """
    groups = responses(forecasts, "decision_loss", recalibrator, folds, seed)
    if recalibrator is None:
        return certified_worst(groups.trusted, peaks_at_predictions(groups))
    curve = curve_of(groups)
    used = {"recalibrator": name_of(recalibrator), "folds": folds, "seed": seed}
    return certified_worst(curve.thresholds, curve.peaks, used)


@accepts_rows
def threshold_loss_curve(
    forecasts: Forecasts, *, recalibrator: Recalibrator | None = None, folds: int = 5, seed: int = 0
) -> ThresholdLossCurve:
    """Return what acting above a threshold loses by trusting the predictions, for every threshold.

    The loss at mu is that of a decision maker whose cost-loss ratio is mu; a Murphy diagram of the
    miscalibration alone.

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


@accepts_rows
def worst_task(forecasts: Forecasts, /, **options: Any) -> WorstTask:
    """Return the decision task behind decision_loss: which cost ratios are hurt, and by how much.

    Parameters
    ----------
    **options
        Those of decision_loss.

    Examples
    --------
    >>> task = worst_task([0, 1, 1, 1], [0.5] * 4)
    >>> task.thresholds.tolist(), task.payoff.tolist()
    ([0.5], [[1.0, 0.0], [0.0, 1.0]])
    """
    return decision_loss.core(forecasts, **options).details["task"]  # type: ignore[no-any-return]


def worst_of(curve: ThresholdLossCurve) -> Certified:
    return certified_worst(curve.thresholds, curve.peaks)


def worst_task_of(curve: ThresholdLossCurve) -> WorstTask:
    return worst_of(curve).details["task"]  # type: ignore[no-any-return]


def certified_worst(mu: Array, peaks: Array, used: Mapping[str, Any] = NOTHING) -> Certified:
    """Return the largest loss of any task with payoffs in [0, 1], with the task in the details."""
    ends, heights, share, bound = _worst_pair(mu, peaks)
    # curvature 2, split over two thresholds: crossing one earns (1 - mu) mass if y = 1, gives up mu mass if y
    # = 0
    masses = 2.0 * np.array([share, 1.0 - share])
    losses = masses * heights
    value = float(losses.sum())
    felt = losses > 0
    thresholds, kept = np.array(ends)[felt], masses[felt]
    if_one = np.concatenate(([0.0], np.cumsum(kept * (1 - thresholds))))
    if_zero = np.concatenate((np.cumsum((kept * thresholds)[::-1])[::-1], [0.0]))
    payoff = np.clip(np.column_stack((if_zero, if_one)), 0.0, 1.0)
    low, high = (end if counts else None for end, counts in zip(ends, felt, strict=True))
    task = WorstTask(value, thresholds, losses[felt], payoff)
    upper = max(value, 2.0 * bound)
    details = {"threshold_low": low, "threshold_high": high, "task": task, **used}
    return Certified.bounded(value, value, upper, upper - value <= 1e-12, **details)


def _worst_pair(mu: Array, peaks: Array) -> tuple[tuple[float, float], tuple[float, float], float, float]:
    """Maximize over mu_1 <= 1/2 < mu_2 the height over 1/2 of the chord between two points of the curve."""
    # Return the two thresholds, the curve there, the share of the first, and a bound no chord can pass. A
    # payoff in [0, 1] is a curvature nu >= 0 with integral (1 - mu) dnu <= 1 and integral mu dnu <= 1, and
    # its loss is the integral of h dnu (Theorem 4.6 and (4.8) of the survey). So the worst one is twice the
    # concave envelope of h at 1/2. Any slope bounds it from above by the highest point of the tilted curve; a
    # chord whose ends are the highest points on either side, tilted by its own slope, is therefore best.
    # `left` and `right` hold distances from 1/2; 0 and 1, where nothing is lost, serve as ends too.
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
    return ends, (float(on_left[i]), float(on_right[j])), float(share), float(bound)


DECISION_LOSS = Measure(
    "cdl",
    decision_loss,
    words="calibration decision loss",
    family="decisions",
    meaning="payoff lost by trusting the predictions, in the worst task with payoffs between 0 and 1",
    sound=True,
    needs_level_sets=True,
    decision="no task with payoffs in [0, 1] loses more; the worst thresholds are in the details",
    cost="O(m log m)",
    citation="Hu & Wu 2024, Predict to minimize swap regret for all payoff-bounded tasks",
)


SAME = 1e-12  # a base rate this near to a prediction is that prediction but for rounding


@measure_function
def u_calibration_error(forecasts: Forecasts) -> Certified:
    """U-calibration error: payoff lost against the best constant report, in the worst task.

    The largest regret, over all decision tasks with payoffs in [0, 1], of a decision maker who trusts the
    predictions and sees in hindsight that always acting on the base rate would have paid more (Kleinberg,
    Leme, Schneider & Teng 2023). The base rate is the best constant report for every proper score at once.
    0 where the predictions serve every user at least as well as the base rate does; never more than
    decision_loss. No level sets are needed: it means something on raw continuous predictions.

    Examples
    --------
    >>> round(u_calibration_error([0, 1, 1, 1], [0.5] * 4), 12)
    0.5
    >>> u_calibration_error([0, 0, 1, 1], [0.1, 0.2, 0.8, 0.9])
    0.0
    """
    # At a threshold that both equal, base rate and prediction act alike. A rounding error between the two
    # would let one act and not the other, and count a loss that does not exist.
    rate = min(1.0, max(0.0, forecasts.base_rate))
    nearest = float(forecasts.values[int(np.argmin(np.abs(forecasts.values - rate)))])
    rates = np.full(forecasts.levels, nearest if abs(nearest - rate) <= SAME else rate)
    return worst_of(curve_of(_levels(forecasts, rates)))


@measure_function
def monotone_regret(forecasts: Forecasts, *, folds: int = 0, seed: int = 0) -> Certified:
    """Payoff lost against the best non-decreasing recalibration, in the worst task.

    The isotonic fit is the best non-decreasing map of the predictions for every proper score at once, so
    this is decision_loss with isotonic rates in place of the rates of level sets (section 4.4 of the
    survey); it means something on continuous predictions.

    Parameters
    ----------
    folds
        0 to fit on the same records, which flatters a little; 2 or more to fit on the other folds, as
        ``decision_loss(recalibrator="isotonic")`` does.

    Examples
    --------
    >>> round(monotone_regret([0, 1, 1, 1], [0.5] * 4), 12)
    0.5
    """
    recorded_seed(seed)
    if number("folds", folds):
        return worst_of(curve_of(cross_fitted(forecasts, "isotonic", folds, seed)))
    return worst_of(curve_of(_levels(forecasts, isotonic_curve(forecasts))))


U_CALIBRATION_MEASURES = (
    Measure(
        "u-calibration",
        u_calibration_error,
        words="U-calibration error",
        family="decisions",
        meaning="payoff lost against always acting on the base rate, in the worst task (payoffs in [0, 1])",
        decision="0 means that acting on the base rate would never have been better",
        cost="O(m log m)",
        citation="Kleinberg, Leme, Schneider & Teng 2023, U-calibration: forecasting for an unknown agent",
    ),
    Measure(
        "monotone-regret",
        monotone_regret,
        family="decisions",
        meaning="payoff lost against the best monotone recalibration, in the worst task (payoffs in [0, 1])",
        decision="what a monotone recalibration, fitted in hindsight, could gain at most",
        cost="O(m log m)",
        citation=SURVEY + ", section 4.4",
    ),
)
