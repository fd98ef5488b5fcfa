"""Boosting from a given start: as many trees as cross-fitting asks for, none where they gain too little."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from calibrant.fits.forest import Forest
from calibrant.fits.growth import Growth
from calibrant.fits.trees import GrowingLogits, boosted_logits
from calibrant.results import Array

STAGE = 10  # trees between two looks at the held-out loss
STRETCH = 40  # trees grown in every fold before it is asked whether more are needed


@dataclass(frozen=True, slots=True, eq=False)
class Boosted:
    """Trees to add to the start, and their cross-fitted gain of log loss with its standard error."""

    forest: Forest
    gain: float
    error: float
    trees: int  # that cross-fitting asked for, whether or not they were kept


def boosted(
    rows: Array,
    outcome: Array,
    start: Array,
    weight: Array,
    fold: npt.NDArray[np.int64],
    growth: Growth,
    *,
    errors: float = 1.0,
) -> Boosted:
    """Grow trees on all records; keep them only if the held-out gain exceeds `errors` standard errors."""
    losses = _held_out(rows, outcome, start, weight, fold, growth)
    share = weight / weight.sum()
    stage = int(np.argmin(share @ losses))
    gains = (np.logaddexp(0.0, start) - outcome * start) - losses[:, stage]
    gain = float(share @ gains)
    error = float(np.sqrt(share @ (gains - gain) ** 2 / weight.sum()))
    trees = STAGE * (stage + 1)
    if gain <= errors * error:
        return Boosted(Forest(()), gain, error, trees)
    forest = boosted_logits(rows, outcome, start, weight, replace(growth, trees=trees))
    return Boosted(forest, gain, error, trees)


def _held_out(
    rows: Array,
    outcome: Array,
    start: Array,
    weight: Array,
    fold: npt.NDArray[np.int64],
    growth: Growth,
) -> Array:
    """Return the log loss of each record after 10, 20, ... trees that did not see it.

    Trees grow a stretch at a time in every fold, until the least loss lies a whole stretch back.
    """
    parts = [(fold != k, fold == k) for k in np.unique(fold)]
    growing = [GrowingLogits(rows[a], outcome[a], start[a], weight[a], growth) for a, _ in parts]
    reached = start.copy()  # logits of all records, by trees that did not see them
    stretches: list[Array] = []
    share = weight / weight.sum()
    for done in range(0, growth.trees, STRETCH):
        count = min(STRETCH, growth.trees - done)
        losses = np.empty((len(rows), count // STAGE))
        for (_, inside), more in zip(parts, growing, strict=True):
            added = more.grow(count).filled(count).staged(rows[inside], STAGE)
            eta = reached[inside, None] + added
            losses[inside] = np.logaddexp(0.0, eta) - outcome[inside, None] * eta
            reached[inside] += added[:, -1]
        stretches.append(losses)
        means = share @ np.hstack(stretches)
        if len(means) - 1 - int(np.argmin(means)) >= STRETCH // STAGE:
            break
    return np.hstack(stretches)
