"""A penalised spline in the logit, shrunk to the identity: logit q = l + delta(l).

delta is linear between knots (tents, so that the map exports exactly) and constant outside them. Its prior
has two widths, one of level and slope and one of bending, both chosen by the evidence; level 0 and no bending
are the identity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from calibrant.fits.levels import Levels, pooled
from calibrant.fits.logistic import Clip, LogisticFit, checked_clip, logistic
from calibrant.fits.logits import logit, worthwhile_clips
from calibrant.fits.newton import minimise
from calibrant.results import Array

CELLS = 2048
KNOTS = 32
CLOSEST = 1e-3  # knots nearer to each other than that are one
FEWEST = 4  # knots; a spline on fewer is a straight line
STARTS = ((-8, -6), (-2, -4), (0, 0))  # (2 ln tau, 2 ln kappa), from which the evidence is climbed
TAU_RANGE, KAPPA_RANGE = (-14, 4), (-14, 8)


@dataclass(frozen=True, slots=True, eq=False)
class SplineFit:
    """logit q = l + delta(l), l the logit of the prediction held within [clip, 1 - clip]."""

    knots: Array
    shifts: Array
    clip: float
    level_width: float
    bend_width: float
    evidence: float


def spline(levels: Levels, *, knots: int = KNOTS, clip: Clip = "auto") -> SplineFit | LogisticFit:
    """Fit the spline; a shrunk Platt map where the predictions are too few for one."""
    clips = worthwhile_clips(levels) if clip == "auto" else (checked_clip(clip),)
    trials = [_Trial(levels, each, knots) for each in clips]
    usable = [trial for trial in trials if len(trial.knots) >= FEWEST]
    if not usable:
        return logistic(levels, "platt", clip=clip)
    best = usable[0]
    best.climb(STARTS)
    for trial in usable[1:]:
        trial.climb((best.peak,))  # the widths hardly depend on the clip
        if trial.evidence > best.evidence + 1e-9:
            best = trial
    return best.finished()


@dataclass(frozen=True, slots=True, eq=False)
class _Tents:
    """The design of a tent spline: each level lies `share` of the way from one knot to the next."""

    logits: Array
    left: npt.NDArray[np.intp]
    share: Array
    count: int

    @classmethod
    def on(cls, logits: Array, knots: Array) -> _Tents:
        left = np.clip(np.searchsorted(knots, logits, side="right") - 1, 0, len(knots) - 2)
        share = np.clip((logits - knots[left]) / (knots[left + 1] - knots[left]), 0.0, 1.0)
        return cls(logits, left, share, len(knots))

    def predictor(self, beta: Array) -> Array:
        """Return l + delta(l)."""
        return np.asarray(
            self.logits + (1.0 - self.share) * beta[self.left] + self.share * beta[self.left + 1]
        )

    def gradient(self, surplus: Array) -> Array:
        """Return the surplus under each tent."""
        right = self.share * surplus
        return self._summed(surplus - right, self.left) + self._summed(right, self.left + 1)

    def curvature(self, spread: Array) -> Array:
        """Return the products of the tents: only neighbours overlap."""
        right = self.share * spread
        mixed = (1.0 - self.share) * right
        both = self._summed(mixed, self.left)
        diagonal = self._summed(spread - right - mixed, self.left) + self._summed(
            right - mixed, self.left + 1
        )
        return np.diag(diagonal) + np.diag(both[:-1], 1) + np.diag(both[:-1], -1)

    def _summed(self, numbers: Array, at: npt.NDArray[np.intp]) -> Array:
        return np.bincount(at, numbers, self.count).astype(np.float64)


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
        return self._tents.gradient(self.cells.weights) / self.cells.total

    @cached_property
    def _penalty_roots(self) -> tuple[Array, Array]:
        weights = self.cells.weights / self.cells.total
        mean = float(weights @ self.places)
        spread = float(np.sqrt(weights @ (self.places - mean) ** 2))
        level = _level_root((self.knots - mean) / spread, self._knot_weights)
        return level, _bend_root(self.knots) * spread**1.5

    def at(self, tau: int, kappa: int) -> float:
        """Return the evidence of a pair of widths, exp(tau / 2) and exp(kappa / 2)."""
        if (tau, kappa) not in self.known:
            root = self._root(tau, kappa)
            precision = root.T @ root
            fitted = minimise(
                self._tents, self.cells.rates, self.cells.weights,
                centre=np.zeros(len(self.knots)), precision=precision, root=root, start=self.last,
                tolerance=1e-10, steps=30,
            )  # fmt: skip
            self.last = fitted.beta
            self.known[tau, kappa] = fitted.evidence(precision), fitted.beta
        return self.known[tau, kappa][0]

    def _root(self, tau: int, kappa: int) -> Array:
        """Return R of the prior's precision R'R."""
        level, bend = self._penalty_roots
        return np.vstack([level * np.exp(-tau / 2), bend * np.exp(-kappa / 2)])

    def climb(self, starts: Sequence[tuple[int, int]]) -> None:
        """Find the pair of widths with the largest evidence, climbing from several starts."""
        peaks = [self._climbed(*start) for start in starts]
        self.peak = max(peaks, key=lambda place: self.at(*place))
        self.evidence = self.at(*self.peak)

    def _climbed(self, tau: int, kappa: int) -> tuple[int, int]:
        while True:
            steps = [(tau + i, kappa + j) for i in (-1, 0, 1) for j in (-1, 0, 1)]
            near = [(t, k) for t, k in steps if _within(t, TAU_RANGE) and _within(k, KAPPA_RANGE)]
            best = max(near, key=lambda place: self.at(*place))
            if self.at(*best) <= self.at(tau, kappa) + 1e-6:
                return tau, kappa
            tau, kappa = best

    def finished(self) -> SplineFit:
        """Return the fit, made non-decreasing by pooling knots."""
        from scipy.optimize import isotonic_regression

        root = self._root(*self.peak)
        shifts = minimise(
            self._tents, self.cells.rates, self.cells.weights,
            centre=np.zeros(len(self.knots)), precision=root.T @ root, root=root,
            start=self.known[self.peak][1],
        ).beta  # fmt: skip
        rising = isotonic_regression(self.knots + shifts, weights=self._knot_weights + 1e-9).x
        tau, kappa = self.peak
        return SplineFit(
            self.knots,
            rising - self.knots,
            self.clip,
            float(np.exp(tau / 2)),
            float(np.exp(kappa / 2)),
            self.evidence,
        )


def _within(place: int, limits: tuple[int, int]) -> bool:
    return limits[0] <= place <= limits[1]


def _spread_knots(places: Array, weights: Array, count: int) -> Array:
    """Return knots at weighted quantiles, extreme places included, each at least CLOSEST from the last."""
    wanted = places
    if len(places) > count:
        middle = (np.cumsum(weights) - weights / 2) / weights.sum()
        wanted = np.interp(np.linspace(0.0, 1.0, count), middle, places)
        wanted[0], wanted[-1] = places[0], places[-1]
    kept = [float(wanted[0])]
    for knot in wanted[1:]:
        if knot - kept[-1] > CLOSEST:
            kept.append(float(knot))
    return np.array(kept)


def _level_root(place: Array, weights: Array) -> Array:
    """Return G, which projects the shifts at the knots on level and slope."""
    basis = np.column_stack([np.ones(len(place)), place])
    weighted = basis * weights[:, None]
    return np.asarray(np.linalg.solve(weighted.T @ basis, weighted.T))


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
