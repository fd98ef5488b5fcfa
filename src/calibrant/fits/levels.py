"""Levels: one number per distinct prediction; their logits, the clips worth trying, and their costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from calibrant.forecasts import Forecasts
from calibrant.parallel import dot
from calibrant.results import Array


@dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """Distinct predictions in ascending order, the outcome rate of each, and how many records it counts for.

    The weights sum to the number of records, or to the effective number where records weigh differently:
    priors and end corrections compare them with one record.
    """

    values: Array
    rates: Array
    weights: Array

    def __len__(self) -> int:
        return len(self.values)

    @property
    def total(self) -> float:
        return float(self.weights.sum())

    @property
    def ones(self) -> Array:
        return self.weights * self.rates

    @property
    def base_rate(self) -> float:
        return float(self.ones.sum() / self.weights.sum())

    @property
    def both_outcomes(self) -> bool:
        return bool(np.any(self.rates > 0) and np.any(self.rates < 1))

    @classmethod
    def of(cls, forecasts: Forecasts, *, frequency: bool = False) -> Levels:
        """Return the levels of forecasts.

        Sampling weights are rescaled to sum to Kish's effective number of records, (sum w)^2 / sum w^2: their
        scale does not matter. Frequency weights count records.
        """
        count = forecasts.total_weight if frequency else 1.0 / float(forecasts.squared_weights.sum())
        rates = np.clip(forecasts.outcomes / forecasts.weights, 0.0, 1.0)
        return cls(forecasts.values, rates, forecasts.weights * count)


def levels_of_sorted(values: Array, outcomes: Array, weights: Array) -> Levels:
    starts = np.flatnonzero(np.diff(values, prepend=-1.0))
    if len(starts) == len(values):
        return Levels(values, outcomes.astype(np.float64), weights)
    mass = np.add.reduceat(weights, starts)
    ones = np.add.reduceat(weights * outcomes, starts)
    return Levels(values[starts], np.clip(ones / mass, 0.0, 1.0), mass)


def pooled(places: Array, levels: Levels, cells: int) -> tuple[Array, Levels]:
    if len(places) <= cells:
        return places, levels
    low, width = places[0], places[-1] - places[0]
    share = (places - low) / width if width > 0 else np.zeros(len(places))
    cell = np.minimum((share * cells).astype(np.int64), cells - 1)
    starts: npt.NDArray[np.intp] = np.flatnonzero(np.diff(cell, prepend=-1))
    mass = np.add.reduceat(levels.weights, starts)

    def mean(of: Array) -> Array:
        return np.asarray(np.add.reduceat(levels.weights * of, starts) / mass)

    rates = np.clip(mean(levels.rates), 0.0, 1.0)
    return mean(places), Levels(mean(levels.values), rates, mass)


MAX_END_LIMIT = 0.05
CLIPS = (1e-7, 1e-5, 1e-4, 1e-3, 1e-2)
WIDE_CLIPS = (0.03, 0.05)  # tried only if predictions of exactly 0 or 1 were wrong
MIN_CLIP = 1e-16  # 1 less half of it is 1, whose logit is infinite


def logit(values: Array, clip: float) -> Array:
    clipped = np.clip(values, clip, 1.0 - clip)
    return np.asarray(np.log(clipped) - np.log1p(-clipped))


def expit(logits: Array) -> Array:
    from scipy.special import expit as rates  # not before it is needed: it takes long to import

    return np.asarray(rates(logits), dtype=np.float64)


def held(logits: Array, clip: float) -> Array:
    """Return the logits of predictions held within [clip, 1 - clip], from those of a smaller clip."""
    ends = np.array([clip, 1.0 - clip])
    low, high = logit(ends, clip)
    return np.clip(logits, low, high)


def worthwhile_clips(levels: Levels) -> tuple[float, ...]:
    """Return the smallest clip, and of the others those that change some level.

    Where predictions of 0 and 1 count as certain is a parameter that no data fix in advance: a clip of 1e-2
    gained 40 thousandths of a nat on physicians' predictions and lost 30 on those of a neural network. If
    predictions of exactly 0 or 1 were wrong, no clip is below `end_limit`, and wide clips are worth trying
    too. If all of them were right, smaller clips are tried, but a map must keep its own values within it.
    """
    closest = min(float(levels.values[0]), 1.0 - float(levels.values[-1]))
    limit, wrong = max(CLIPS[0], end_limit(levels)), _wrong_at_ends(levels)
    smallest = limit if wrong else CLIPS[0]
    clips = {limit, *CLIPS, *(WIDE_CLIPS if wrong else ())}
    return (smallest, *sorted(clip for clip in clips if clip > max(closest, smallest)))


def _wrong_at_ends(levels: Levels) -> bool:
    wrong_zero = levels.values[0] <= 0 and levels.rates[0] > 0
    return bool(wrong_zero or (levels.values[-1] >= 1 and levels.rates[-1] < 1))


def end_limit(levels: Levels) -> float:
    """Return how close to 0 and 1 these records allow predictions, if some are exactly 0 or 1; else 0.

    Rounded and human predictions of 0 and 1 are wrong more often than never. If some of these were, n
    records leave a rate of 0.5 / (n + 1) for a miss (Krichevsky and Trofimov 1981). If none was, the next
    one is wrong with the probability of `chance_of_first_miss`. All other predictions that the limit moves
    are taken at their word, and the limit is the mean rate of misses of all that it moves.
    """
    if levels.values[0] > 0 and levels.values[-1] < 1:
        return 0.0
    if _wrong_at_ends(levels):
        return min(0.5 / (levels.total + 1.0), MAX_END_LIMIT)
    distance = np.minimum(levels.values, 1.0 - levels.values)
    certain = float(levels.weights[distance <= 0].sum())
    misses = certain * chance_of_first_miss(certain)
    # the largest of the linear pieces of the sum of w (limit - distance) is to be equal to the misses
    near = np.flatnonzero(distance < MAX_END_LIMIT)
    near = near[np.argsort(distance[near], kind="stable")]
    mass, moment = (np.cumsum(x[near]) for x in (levels.weights, levels.weights * distance))
    return float(min(MAX_END_LIMIT, np.min((misses + moment) / mass)))


def outcome_limits(levels: Levels) -> tuple[float, float]:
    """Return the least and the largest rate that the records support, where no slope is too steep for them.

    So it is if predictions separate the outcomes: the limits are then those of `end_limit`, or of n records
    after a miss. With one outcome, which a shift follows without end, what is more certain already stays so.
    """
    no, yes = levels.values[levels.rates < 1], levels.values[levels.rates > 0]
    limit = end_limit(levels) or 0.5 / (levels.total + 1.0)
    if len(no) == 0:
        return 0.0, 1.0 - min(limit, 1.0 - float(yes[-1]))
    if len(yes) == 0:
        return min(limit, float(no[0])), 1.0
    separated = no[-1] <= yes[0] or yes[-1] <= no[0]
    return (limit, 1.0 - limit) if separated else (0.0, 1.0)


def chance_of_first_miss(right: float) -> float:
    """Return the probability that the next certain prediction is wrong, when `right` of them were all right.

    Laplace's rule of succession gives a general law no chance to be true. With Wrinch and Jeffreys (1919)
    half the prior says that certain predictions are always right, and half that their rate is uniform between
    a coin's and 1. The limit then costs at most 0.18 nats in all even if no such prediction is ever wrong.
    """

    def all_right(count: float) -> float:  # under the uniform half
        return 2.0 * (1.0 - float(0.5 ** (count + 1.0))) / (count + 1.0)

    return (all_right(right) - all_right(right + 1.0)) / (1.0 + all_right(right))


def likeliest_limit(levels: Levels) -> float:
    """Return the limit under which predictions that change in no other way have the least log loss."""
    clips = worthwhile_clips(levels) if _wrong_at_ends(levels) else (end_limit(levels),)
    return min(clips, key=lambda clip: costs(levels, np.clip(levels.values, clip, 1.0 - clip), "log").mean)


LOSS_CLIP = 1e-6  # predictions closer to 0 and 1 are charged as this: one miss costs 14 nats, not 36


@dataclass(frozen=True, slots=True, eq=False)
class Costs:
    """The loss of each level under outcome 1 and under outcome 0, with what the level holds."""

    if_one: Array
    if_zero: Array
    rates: Array
    weights: Array

    @property
    def total(self) -> float:
        return float(self.weights.sum())

    @property
    def expected(self) -> Array:
        return np.asarray(self.rates * self.if_one + (1.0 - self.rates) * self.if_zero)

    @property
    def mean(self) -> float:
        return dot(self.weights, self.expected) / self.total

    @property
    def squares(self) -> Array:
        mean = self.mean
        one, zero = (self.if_one - mean) ** 2, (self.if_zero - mean) ** 2
        return np.asarray(self.rates * one + (1.0 - self.rates) * zero)

    @property
    def variance(self) -> float:
        return dot(self.weights, self.squares) / self.total

    def standard_error_against(self, other: Costs) -> float:
        one, zero = self.if_one - other.if_one, self.if_zero - other.if_zero
        return math.sqrt(Costs(one, zero, self.rates, self.weights).variance / self.total)


def costs(levels: Levels, predictions: Array, loss: str, clip: float = LOSS_CLIP) -> Costs:
    if loss == "brier":
        return Costs((1.0 - predictions) ** 2, predictions**2, levels.rates, levels.weights)
    safe = np.clip(predictions, clip, 1.0 - clip)
    return Costs(-np.log(safe), -np.log1p(-safe), levels.rates, levels.weights)


def joined_costs(parts: Sequence[Costs]) -> Costs:
    names = ("if_one", "if_zero", "rates", "weights")
    return Costs(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))
