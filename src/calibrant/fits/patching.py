"""Patches: shifts of the logit of one group and range of scores at a time (Hébert-Johnson et al. 2018)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from calibrant.fits.levels import expit
from calibrant.results import Array

RANGES = 10  # of scores, of equal mass; all scores together are one more
STEP = 0.7  # of the Newton step
RIDGE = 10.0  # added to the variance
MIN_VARIANCE = 5.0  # of a cell that may be patched
MIN_Z = 2.5
MAX_STALE_STEPS = 10  # steps without a better held-out loss
MAX_PATCHES = 200


@dataclass(frozen=True, slots=True)
class Patch:
    """A shift of the logit of one group, by number, for scores in [low, high)."""

    group: int
    low: float
    high: float
    shift: float
    z: float  # before the patch

    def to_dict(self) -> list[float]:
        return [self.group, self.low, self.high, self.shift, self.z]


def applied(logit: Array, members: npt.NDArray[np.bool_], patch: Patch) -> Array:
    q = expit(logit)
    inside = members & (q >= patch.low) & (q < patch.high)
    return np.asarray(logit + patch.shift * inside)


def patched(
    logit: Array,
    outcome: Array,
    weight: Array,
    members: npt.NDArray[np.bool_],
    held_out: npt.NDArray[np.bool_],
) -> list[Patch]:
    """Patch the cell of largest |z| again and again; keep what the held-out records support."""
    inner = np.unique(np.quantile(expit(logit), np.arange(1, RANGES) / RANGES))
    edges = np.concatenate(([0.0], inner, [1.0 + 1e-9]))
    fitted = weight * ~held_out
    places = [np.flatnonzero(inside) for inside in members]
    patches: list[Patch] = []
    best, kept = _loss(logit, outcome, weight * held_out), 0
    while len(patches) < MAX_PATCHES and len(patches) - kept < MAX_STALE_STEPS:
        patch = _worst(expit(logit), outcome, fitted, places, edges)
        if patch is None:
            break
        logit = applied(logit, members[patch.group], patch)
        patches.append(patch)
        loss = _loss(logit, outcome, weight * held_out)
        if loss < best - 1e-7:
            best, kept = loss, len(patches)
    return patches[:kept]


def _loss(logit: Array, outcome: Array, weight: Array) -> float:
    total = float(weight.sum())
    return float(weight @ (np.logaddexp(0.0, logit) - outcome * logit)) / total if total > 0 else 0.0


def _worst(
    score: Array, outcome: Array, weight: Array, places: Sequence[npt.NDArray[np.intp]], edges: Array
) -> Patch | None:
    cell = np.searchsorted(edges, score, side="right") - 1
    count = len(edges) - 1
    residual, variance = weight * (outcome - score), weight * weight * score * (1.0 - score)
    spread = weight * score * (1.0 - score)
    sums = np.zeros((3, len(places), count + 1))
    for k, inside in enumerate(places):
        for row, numbers in enumerate((residual, variance, spread)):
            sums[row, k, :count] = np.bincount(cell[inside], numbers[inside], count)
    sums[:, :, count] = sums.sum(axis=2)  # all scores
    total, squares, curvature = sums
    z = np.where(curvature > MIN_VARIANCE, total / np.sqrt(np.maximum(squares, 1e-300)), 0.0)
    group, at = np.unravel_index(int(np.argmax(np.abs(z))), z.shape)
    if abs(z[group, at]) < MIN_Z:
        return None
    low, high = (edges[0], edges[-1]) if at == count else (edges[at], edges[at + 1])
    shift = STEP * total[group, at] / (curvature[group, at] + RIDGE)
    return Patch(int(group), float(low), float(high), float(shift), float(z[group, at]))
