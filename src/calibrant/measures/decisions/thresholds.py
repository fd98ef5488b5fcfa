"""The threshold-loss curve: what a decision by one threshold loses by trusting the predictions.

Somebody acts when the probability exceeds mu. Acting costs mu, not acting when the outcome is 1 costs 1.
A level with prediction v and outcome rate r is handled wrongly when mu lies between v and r, and each of
its records then loses |r - mu|. The curve h(mu) adds that up; every decision loss is an integral of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from calibrant.fits.crossfit import Responses
from calibrant.forecasts import Forecasts
from calibrant.inputs import probabilities
from calibrant.kernels.compiled import COMPILE_ABOVE
from calibrant.kernels.peaks import peaks
from calibrant.results import Array, Result


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
    rates = np.clip(forecasts.outcomes / forecasts.weights, 0.0, 1.0)
    return Responses(forecasts.values, rates, forecasts.weights, forecasts.outcomes, forecasts.counts)


def curve_of(groups: Responses) -> ThresholdLossCurve:
    """Return the curve with all its breakpoints: 0, 1, every prediction and every rate."""
    grid = np.unique(np.concatenate((groups.trusted, groups.rates, (0.0, 1.0))))
    one, other = np.searchsorted(grid, groups.trusted), np.searchsorted(grid, groups.rates)

    def running(amount: Array) -> Array:
        """Sum over the groups with v <= mu < r, less those with r <= mu < v, at each grid point mu."""
        entering = np.bincount(one, amount, len(grid)) - np.bincount(other, amount, len(grid))
        total: Array = np.cumsum(entering)
        return total

    height, slope = running(groups.outcomes), running(groups.weights)  # h is a line to the next grid point
    after, before = height - grid * slope, np.zeros(len(grid))
    before[1:] = height[:-1] - grid[1:] * slope[:-1]
    return ThresholdLossCurve(grid, before, after)


def peaks_at_predictions(groups: Responses) -> Array:
    """Return the peaks of h at the (distinct, ascending) predictions only, in one search.

    Between two predictions the curve of hindsight is convex: at a rate it has a kink upwards and no jump.
    So its concave envelope, and with it the decision loss, needs no other point. To the right of mu,
    h = sum of (a_k - w_k mu) over v_k <= mu, less the same sum over rates r_k <= mu.
    """
    trusted, outcomes, weights = groups.trusted, groups.outcomes, groups.weights
    m = len(trusted)
    if m >= COMPILE_ABOVE:
        return peaks(trusted, groups.rates, weights, outcomes)
    reached = np.searchsorted(trusted, groups.rates)
    right = np.cumsum(outcomes - np.bincount(reached, outcomes, m + 1)[:m])
    right -= trusted * np.cumsum(weights - np.bincount(reached, weights, m + 1)[:m])
    jump = np.maximum(weights * trusted - outcomes, 0.0)  # where v is too high the peak is to its left
    return np.maximum(right + jump, 0.0)
