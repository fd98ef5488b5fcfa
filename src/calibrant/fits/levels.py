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
    """Distinct predictions in ascending order, with the outcome rate and the weight of each."""

    values: Array
    rates: Array
    weights: Array  # their sum is the (effective) number of records: priors and end limits count in records

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
        """Return the levels; sampling weights sum to Kish's effective number, (sum w)^2 / sum w^2."""
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
    """Return the smallest clip, and of the others those that change some level."""
    # No rule fixes the clip in advance: 1e-2 gained 0.04 nats on predictions of physicians, and lost 0.03 on
    # those of a neural network.
    closest = min(float(levels.values[0]), 1.0 - float(levels.values[-1]))
    limit, wrong = max(CLIPS[0], end_limit(levels)), _wrong_at_ends(levels)
    smallest = limit if wrong else CLIPS[0]  # below the limit the fits reject maps that pass it
    clips = {limit, *CLIPS, *(WIDE_CLIPS if wrong else ())}
    return (smallest, *sorted(clip for clip in clips if clip > max(closest, smallest)))


def _wrong_at_ends(levels: Levels) -> bool:
    wrong_zero = levels.values[0] <= 0 and levels.rates[0] > 0
    return bool(wrong_zero or (levels.values[-1] >= 1 and levels.rates[-1] < 1))


def end_limit(levels: Levels) -> float:
    """Return how close to 0 and 1 these records allow predictions, if some are exactly 0 or 1; else 0."""
    if levels.values[0] > 0 and levels.values[-1] < 1:
        return 0.0
    # rounded and human predictions of 0 and 1 are wrong more often than never
    if _wrong_at_ends(levels):
        return min(0.5 / (levels.total + 1.0), MAX_END_LIMIT)  # Krichevsky and Trofimov (1981)
    distance = np.minimum(levels.values, 1.0 - levels.values)
    certain = float(levels.weights[distance <= 0].sum())
    misses = certain * chance_of_first_miss(certain)
    # The limit is the mean rate of misses of all that it moves; those not at 0 or 1 are taken at their word.
    near = np.flatnonzero(distance < MAX_END_LIMIT)
    near = near[np.argsort(distance[near], kind="stable")]
    mass, moment = (np.cumsum(x[near]) for x in (levels.weights, levels.weights * distance))
    return float(min(MAX_END_LIMIT, np.min((misses + moment) / mass)))  # least over how many it moves


def outcome_limits(levels: Levels) -> tuple[float, float]:
    """Return limits of the rates, where one outcome or separated outcomes would drive a fit to 0 or 1."""
    no, yes = levels.values[levels.rates < 1], levels.values[levels.rates > 0]
    limit = end_limit(levels) or 0.5 / (levels.total + 1.0)
    # with one outcome a shift would grow without end; predictions closer to the only outcome stay as they are
    if len(no) == 0:
        return 0.0, 1.0 - min(limit, 1.0 - float(yes[-1]))
    if len(yes) == 0:
        return min(limit, float(no[0])), 1.0
    separated = no[-1] <= yes[0] or yes[-1] <= no[0]
    return (limit, 1.0 - limit) if separated else (0.0, 1.0)


def chance_of_first_miss(right: float) -> float:
    """Return the probability that the next certain prediction is wrong, after `right` of them were right."""

    def all_right(count: float) -> float:  # under the uniform half
        return 2.0 * (1.0 - float(0.5 ** (count + 1.0))) / (count + 1.0)

    # Wrinch and Jeffreys (1919): half the prior says always right, half a uniform rate from 1/2 to 1.
    # Laplace's rule gives "always" no chance. The limit then costs at most 0.18 nats in all if none is wrong.
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
