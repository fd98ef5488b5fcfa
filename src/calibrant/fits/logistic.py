"""Logistic maps: shift, temperature, Platt (logistic recalibration, Cox) and beta, shrunk toward no change.

All of them are logit q = g + a ln c - b ln(1 - c) with c the clipped prediction: shift has a = b = 1,
temperature g = 0 and a = b, Platt a = b, beta a, b >= 0. The prior is Gaussian around the identity
(a = b = 1, g = 0); its width, and where predictions are clipped, are chosen by the evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from calibrant.errors import InvalidInputError, sentence
from calibrant.fits.levels import Levels, pooled
from calibrant.fits.logits import CLIPS, SMALLEST_CLIP, held, logit, worthwhile_clips
from calibrant.fits.newton import Optimum, Regressors, minimise, polished
from calibrant.results import Array

Family = Literal["shift", "temperature", "platt", "beta"]
Shrink = Literal["auto"] | float | None
Clip = Literal["auto"] | float

CELLS = 4096  # of the logit, in which many levels are pooled before the last, exact steps
WIDTHS = np.geomspace(10.0, 1e-3, 28)  # of the prior, from weak to strong
COARSE = 4  # of this many widths one is tried at first; then the best is climbed to
HARDLY_ANY = 1e-9  # precision of the prior that keeps split outcomes finite when there is no shrinkage
SMALLEST_SCALE = 1e-3
ROUNDING = 1e-12  # relative differences between logits that rounding may have made
CENTRES = {"shift": (0.0,), "temperature": (1.0,), "platt": (0.0, 1.0), "beta": (0.0, 1.0, 1.0)}


@dataclass(frozen=True, slots=True)
class LogisticFit:
    """logit q = intercept + low ln c - high ln(1 - c), c the prediction held within [clip, 1 - clip].

    `width` is that of the prior around no change; infinite where there is none.
    """

    intercept: float
    low: float
    high: float
    clip: float
    width: float
    evidence: float


def logistic(levels: Levels, family: Family, *, shrink: Shrink = "auto", clip: Clip = "auto") -> LogisticFit:
    """Fit one family by penalised maximum likelihood; `shrink` is the width of the prior, None for none."""
    if shows_no_slope(levels):
        family = "shift"
    clips = worthwhile_clips(levels) if clip == "auto" else (checked_clip(clip),)
    widths = _widths(shrink)
    logits = logit(levels.values, clips[0])
    cells = pooled(logits, levels, CELLS)
    best = _Trial(cells, family, clips[0], widths)
    best.climb(range(0, len(widths), COARSE))
    for each in clips[1:]:
        trial = _Trial(cells, family, each, widths)
        trial.climb([best.peak])  # the width hardly depends on the clip
        if trial.evidence > best.evidence + 1e-9:
            best = trial
    return best.finished(levels, held(logits, best.clip))


def shows_no_slope(levels: Levels) -> bool:
    """Return whether all predictions have the same logit, but for rounding."""
    low, high = logit(levels.values[[0, -1]], CLIPS[0])
    return bool(high - low <= ROUNDING * max(1.0, abs(low), abs(high)))


def _widths(shrink: Shrink) -> Sequence[float]:
    if shrink is None:
        return [np.inf]
    if shrink == "auto":
        return list(WIDTHS)
    if isinstance(shrink, bool) or not isinstance(shrink, (int, float)) or not 0 < shrink < np.inf:
        rule = 'must be "auto", None or a positive width of the prior'
        raise InvalidInputError(sentence("shrink", rule, f"got {shrink!r}"))
    return [float(shrink)]


def checked_clip(clip: object) -> float:
    """Return a clip given as a number, or say what it must be."""
    if isinstance(clip, bool) or not isinstance(clip, (int, float)) or not SMALLEST_CLIP <= clip < 0.5:
        rule = f'must be "auto" or a number from {SMALLEST_CLIP:g} to below 0.5'
        raise InvalidInputError(sentence("clip", rule, f"got {clip!r}"))
    return float(clip)


class _Trial:
    """One clip: the prior's width by evidence, on pooled levels; `finished` then fits all of them exactly."""

    def __init__(
        self, pooled_levels: tuple[Array, Levels], family: Family, clip: float, widths: Sequence[float]
    ) -> None:
        self.family, self.clip = family, clip
        self.centre = np.array(CENTRES[family])
        logits, self.cells = pooled_levels
        self.places = held(logits, clip)
        self.scales = _scales(self.places, self.cells.weights, family)
        self.design = _design(self.places, family, range(len(self.centre)))
        self.widths, self.known = widths, dict[int, float]()
        self.start: Array | None = None
        self.peak, self.evidence, self.best = 0, -np.inf, self.centre

    def climb(self, starts: Sequence[int]) -> None:
        """Find the width with the largest evidence: try the starts, then climb from the best of them."""
        for start in starts:
            self._try(start)
        while True:
            peak = self.peak
            for near in (peak - 2, peak - 1, peak + 1, peak + 2):
                if 0 <= near < len(self.widths):
                    self._try(near)
            if self.peak == peak:
                return

    def _try(self, place: int) -> None:
        if place in self.known:
            return
        width = self.widths[place]
        fitted = self._fit_cells(width)
        shrunk = np.isfinite(width)
        self.start = fitted.beta
        self.known[place] = fitted.evidence(self._precision(width)) if shrunk else -fitted.loss
        if self.known[place] > self.evidence:
            self.peak, self.evidence, self.best = place, self.known[place], fitted.beta

    def _precision(self, width: float) -> Array:
        strength = HARDLY_ANY if np.isinf(width) else width**-2
        return np.diag(self.scales**2 * strength)

    def _fit_cells(self, width: float) -> Optimum:
        return minimise(
            self.design, self.cells.rates, self.cells.weights,
            centre=self.centre, precision=self._precision(width), start=self.start, tolerance=1e-9,
        )  # fmt: skip

    def finished(self, levels: Levels, logits: Array) -> LogisticFit:
        """Return the fit on all levels at the chosen width; negative powers of beta are held at 0."""
        free = list(range(len(self.centre)))
        beta = self._exact(levels, logits, free)
        while self.family == "beta" and (negative := [k for k in free if k > 0 and beta[k] < 0]):
            free.remove(min(negative, key=lambda k: beta[k] * self.scales[k]))
            beta = self._exact(levels, logits, free)
        intercept, low, high = _as_beta(beta, self.family)
        width = float(self.widths[self.peak])
        return LogisticFit(intercept, low, high, self.clip, width, float(self.evidence))

    def _exact(self, levels: Levels, logits: Array, free: list[int]) -> Array:
        """Return the coefficients, all but the free ones at 0."""
        precision = self._precision(self.widths[self.peak])[np.ix_(free, free)]
        start, centre = self.best[free], self.centre[free]
        if len(free) < len(self.centre):
            cells = self.cells
            design = _design(self.places, self.family, free)
            start = minimise(design, cells.rates, cells.weights, centre=centre, precision=precision).beta
        design = _design(logits, self.family, free)
        beta = np.zeros(len(self.centre))
        beta[free] = polished(
            design, levels.rates, levels.weights, centre=centre, precision=precision, start=start
        )
        return beta


def _scales(logits: Array, weights: Array, family: Family) -> Array:
    """Return how much a change of each coefficient by 1 moves the logit: root mean squares."""
    design = _design(logits, family, range(len(CENTRES[family])))
    squares = [float(weights @ column**2 / weights.sum()) for column in design.columns]
    return np.maximum(np.sqrt(squares), SMALLEST_SCALE)


def _design(logits: Array, family: Family, free: Sequence[int]) -> Regressors:
    one = np.ones(len(logits))
    if family == "shift":
        return Regressors((one,), offset=logits)
    if family == "temperature":
        return Regressors((logits,))
    if family == "platt":
        return Regressors((one, logits))
    columns = (one, -np.logaddexp(0.0, -logits), np.logaddexp(0.0, logits))
    return Regressors(tuple(columns[k] for k in free))


def _as_beta(beta: Array, family: Family) -> tuple[float, float, float]:
    """Return intercept and the powers of c and of 1 - c."""
    numbers = [float(b) for b in beta]
    if family == "shift":
        return numbers[0], 1.0, 1.0
    if family == "temperature":
        return 0.0, numbers[0], numbers[0]
    if family == "platt":
        return numbers[0], numbers[1], numbers[1]
    return numbers[0], numbers[1], numbers[2]
