"""A penalized spline in the logit, shrunk to the identity: logit q = l + delta(l).

delta is linear between knots (tents, so that the map exports exactly) and constant outside them. Its prior
has two widths, one of level and slope and one of bending, both chosen by the evidence; level 0 and no bending
are the identity. Coefficients are in the prior's own units (level, slope and bends, each divided by its
width): there the curvature of the penalized loss is at least 1 in every direction, so that the evidence keeps
its digits however stiff the bends are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.fits.levels import Levels, end_limit, logit, pooled, worthwhile_clips
from calibrant.fits.logistic import (
    Clip,
    LogisticFit,
    Optimum,
    checked_clip,
    closest_to_certain,
    logistic,
    minimize_loss,
)
from calibrant.results import Array

CELLS = 2048
KNOTS = 32
MIN_KNOT_GAP = 1e-3  # knots nearer to each other than that are one
MIN_KNOTS = 4  # knots; a spline on fewer is a straight line
STARTS = ((-8, -6), (-2, -4), (0, 0), (-4, 2))  # (2 ln tau, 2 ln kappa); the best of them is climbed from
TAU_RANGE, KAPPA_RANGE = range(-14, 5), range(-14, 9)
TIED = 1e-6  # evidence by which widths do not differ: the narrower one is taken, not what rounding prefers


@dataclass(frozen=True, slots=True, eq=False)
class SplineFit:
    knots: Array
    shifts: Array
    clip: float
    level_width: float
    bend_width: float


def spline(levels: Levels, *, knots: int = KNOTS, clip: Clip = "auto") -> SplineFit | LogisticFit:
    """Fit the spline; a shrunk Platt map where predictions are too few, or separate the outcomes."""
    if levels.values[levels.rates < 1].max(initial=0.0) <= levels.values[levels.rates > 0].min(initial=1.0):
        return logistic(levels, "platt", clip=clip)
    clips = worthwhile_clips(levels) if clip == "auto" else (checked_clip(clip),)
    trials = [_Trial(levels, each, knots) for each in clips]
    usable = [trial for trial in trials if len(trial.knots) >= MIN_KNOTS]
    if not usable:
        return logistic(levels, "platt", clip=clip)
    limit = end_limit(levels) if clip == "auto" else 0.0
    best = usable[0]
    best.climb(STARTS, limit)
    for trial in usable[1:]:
        trial.climb((best.peak,), limit)  # the widths hardly depend on the clip
        if trial.evidence > best.evidence + 1e-9:
            best = trial
    return logistic(levels, "platt", clip=clip) if best.evidence == -np.inf else best.finished()


@dataclass(frozen=True, slots=True, eq=False)
class _Tents:
    """A tent spline: each level lies `share` of the way between two knots; `basis` makes shifts there."""

    logits: Array
    left: npt.NDArray[np.intp]
    share: Array
    basis: Array

    @classmethod
    def on(cls, logits: Array, knots: Array) -> _Tents:
        left = np.clip(np.searchsorted(knots, logits, side="right") - 1, 0, len(knots) - 2)
        share = np.clip((logits - knots[left]) / (knots[left + 1] - knots[left]), 0.0, 1.0)
        return cls(logits, left, share, np.eye(len(knots)))

    def predictor(self, beta: Array) -> Array:
        shifts = self.basis @ beta
        return np.asarray(
            self.logits + (1.0 - self.share) * shifts[self.left] + self.share * shifts[self.left + 1]
        )

    def gradient(self, surplus: Array) -> Array:
        return np.asarray(self.under(surplus) @ self.basis)

    def under(self, surplus: Array) -> Array:
        right = self.share * surplus
        return self._summed(surplus - right, self.left) + self._summed(right, self.left + 1)

    def curvature(self, spread: Array) -> Array:
        """Return the products of all pairs of curves; of the tents, only neighbors overlap."""
        right = self.share * spread
        mixed = (1.0 - self.share) * right
        both = self._summed(mixed, self.left)[:-1]
        products, place = np.zeros((len(self.basis), len(self.basis))), np.arange(len(self.basis))
        products[place, place] = self._summed(spread - right - mixed, self.left)
        products[place, place] += self._summed(right - mixed, self.left + 1)
        products[place[:-1], place[1:]] = products[place[1:], place[:-1]] = both
        return np.asarray(self.basis.T @ products @ self.basis)

    def _summed(self, numbers: Array, at: npt.NDArray[np.intp]) -> Array:
        return np.asarray(np.bincount(at, numbers, len(self.basis)), dtype=np.float64)


class _Trial:
    """One clip: knots, penalties, and the pair of widths with the largest evidence."""

    def __init__(self, levels: Levels, clip: float, count: int) -> None:
        places = logit(levels.values, clip)
        self.clip = clip
        self.places, self.cells = pooled(places, levels, CELLS)
        self.knots = _spread_knots(self.places, self.cells.weights, count)
        self.known: dict[tuple[int, int], tuple[float, Array]] = {}
        self.last: Array | None = None  # where the next fit starts
        self.peak, self.evidence = STARTS[0], -np.inf

    @cached_property
    def _tents(self) -> _Tents:
        return _Tents.on(self.places, self.knots)

    @cached_property
    def _knot_weights(self) -> Array:
        return self._tents.under(self.cells.weights) / self.cells.total

    @cached_property
    def _curves(self) -> Array:
        """The shifts at the knots that a level, a slope or a bend of 1 means, one column each."""
        weights = self.cells.weights / self.cells.total
        mean = float(weights @ self.places)
        spread = float(np.sqrt(weights @ (self.places - mean) ** 2))
        basis = np.column_stack([np.ones(len(self.knots)), (self.knots - mean) / spread])
        weighted = basis * self._knot_weights[:, None]
        level = np.linalg.solve(weighted.T @ basis, weighted.T)  # projects shifts on level and slope
        return np.linalg.inv(np.vstack([level, _bend_root(self.knots) * spread**1.5]))

    def at(self, tau: int, kappa: int) -> float:
        """Return the evidence of a pair of widths, exp(tau / 2) and exp(kappa / 2)."""
        if (tau, kappa) not in self.known:
            fitted = self._fitted(tau, kappa, self.last, tolerance=1e-10, steps=30)
            self.last = fitted.beta * self._widths(tau, kappa)
            self.known[tau, kappa] = fitted.evidence(np.ones(len(self.knots))), self.last
        return self.known[tau, kappa][0]

    def _fitted(self, tau: int, kappa: int, start: Array | None, **limits: Any) -> Optimum:
        widths = self._widths(tau, kappa)
        count = len(self.knots)
        return minimize_loss(
            replace(self._tents, basis=self._curves * widths), self.cells.rates, self.cells.weights,
            center=np.zeros(count), precision=np.ones(count), start=None if start is None else start / widths,
            **limits,
        )  # fmt: skip

    def _widths(self, tau: int, kappa: int) -> Array:
        return np.asarray(np.exp(np.repeat((tau / 2, kappa / 2), (2, len(self.knots) - 2))))

    def climb(self, starts: Sequence[tuple[int, int]], limit: float) -> None:
        """Climb to the widths with the largest evidence; a map closer to 0 or 1 than the limit has none."""
        # climbing from every start took 2.5 times as long and reached the same evidence
        self.peak = self._best(starts)
        for step in (2, 1):
            while True:
                tau, kappa = self.peak
                around = [(tau + i, kappa + j) for i in (-step, 0, step) for j in (-step, 0, step)]
                best = self._best([(t, k) for t, k in around if t in TAU_RANGE and k in KAPPA_RANGE])
                if self.at(*best) <= self.at(*self.peak) + TIED:
                    break
                self.peak = best
        self.evidence = self.at(*self.peak)
        if self.clip < limit:
            map_logits = replace(self._tents, basis=self._curves).predictor(self.known[self.peak][1])
            if closest_to_certain(map_logits) < limit:
                self.evidence = -np.inf

    def _best(self, places: Sequence[tuple[int, int]]) -> tuple[int, int]:
        most = max(self.at(*place) for place in places)
        return min(place for place in places if self.at(*place) >= most - TIED)

    def finished(self) -> SplineFit:
        from scipy.optimize import isotonic_regression

        start = self.known[self.peak][1]
        shifts = self._curves @ (self._fitted(*self.peak, start).beta * self._widths(*self.peak))
        rising = isotonic_regression(self.knots + shifts, weights=self._knot_weights + 1e-9).x
        level, bend = (float(np.exp(one / 2)) for one in self.peak)
        return SplineFit(self.knots, rising - self.knots, self.clip, level, bend)


def _spread_knots(places: Array, weights: Array, count: int) -> Array:
    """Return knots at weighted quantiles, extreme places included, at least MIN_KNOT_GAP from each other."""
    wanted = places
    if len(places) > count:
        middle = (np.cumsum(weights) - weights / 2) / weights.sum()
        wanted = np.interp(np.linspace(0.0, 1.0, count), middle, places)
        wanted[0], wanted[-1] = places[0], places[-1]
    away = wanted - (wanted[0] + wanted[-1]) / 2
    # from both ends toward the middle, so that exchanging the outcomes mirrors the knots
    low = _thinned(wanted[away < -MIN_KNOT_GAP / 2])
    high = -_thinned(-wanted[away > MIN_KNOT_GAP / 2][::-1])[::-1]
    central = wanted[np.abs(away) <= MIN_KNOT_GAP / 2]
    center = central[:1] + (central[-1:] - central[:1]) / 2
    ends = np.concatenate((low[-1:], high[:1]))
    kept = center[np.abs(ends[:, None] - center).min(axis=0, initial=np.inf) > MIN_KNOT_GAP]
    return np.concatenate((low, kept, high))


def _thinned(ascending: Array) -> Array:
    kept: list[float] = []
    for place in ascending:
        if not kept or place - kept[-1] > MIN_KNOT_GAP:
            kept.append(float(place))
    return np.array(kept)


def _bend_root(knots: Array) -> Array:
    """Return D: |D b|^2 integrates the squared second derivative of what shifts b at the knots suggest."""
    gaps = np.diff(knots)
    inner = np.arange(len(knots) - 2)
    bends = np.zeros((len(inner), len(knots)))
    bends[inner, inner] = 1.0 / gaps[:-1]
    bends[inner, inner + 1] = -1.0 / gaps[:-1] - 1.0 / gaps[1:]
    bends[inner, inner + 2] = 1.0 / gaps[1:]
    bends /= np.sqrt((gaps[:-1] + gaps[1:]) / 2)[:, None]
    return bends


TERMS = 3  # intercept, slope and bend
CLIP = 1e-3  # beyond it the squares of logits would belong to a few predictions
MIN_VARIANCE = 1e-9  # variance of an outcome that the prediction rules out
MIN_UNEXPLAINED = 1e-8  # part of a column that others must leave unexplained for it to count


def curvature_pvalue(levels: Levels) -> float:
    """Return the p-value of a test for a parabola: Cox's line cannot see both ends off to the same side."""
    from scipy.special import gammaincc

    place = logit(levels.values, CLIP)
    place = place - np.average(place, weights=levels.weights)
    scale = float(np.sqrt(np.average(place**2, weights=levels.weights)))
    powers = (place / max(scale, MIN_VARIANCE))[:, None] ** np.arange(TERMS)
    spread = np.sqrt(np.maximum(levels.values * (1.0 - levels.values), MIN_VARIANCE))
    root = np.sqrt(levels.weights)
    columns = (root * spread)[:, None] * powers
    # the sum of squares that the columns explain; products of columns would lose half the digits
    sizes = np.linalg.norm(columns, axis=0)
    orthogonal, corner = np.linalg.qr(columns / np.where(sizes > 0, sizes, 1.0))
    directions, lengths, _ = np.linalg.svd(corner)
    seen = directions[:, : len(lengths)][:, lengths > MIN_UNEXPLAINED * lengths[0]]
    residuals = root * (levels.rates - levels.values) / spread
    statistic = float(np.sum((seen.T @ (orthogonal.T @ residuals)) ** 2))
    return float(gammaincc(TERMS / 2, statistic / 2))  # chi squared, for many records
