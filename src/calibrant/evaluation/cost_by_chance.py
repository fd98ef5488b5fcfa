"""What decisions would seem to lose by chance if the predictions were right: the noise level of a cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.evaluation.recalibration_preview import FOLDS
from calibrant.fits.crossfit import held_out, joined_folds
from calibrant.fits.dealing import why_not_dealt
from calibrant.forecasts import Forecasts
from calibrant.inference.merging import coarse
from calibrant.inference.null_outcomes import NullOutcomes
from calibrant.measures.decisions.thresholds import curve_of
from calibrant.measures.decisions.worst_task import worst_task_of

DRAWS = 19
CELLS = 256  # a mean over so few draws needs no more


@dataclass(frozen=True, slots=True)
class CostByChance:
    """The mean of the largest loss at a threshold, and of the worst task, over calibrated outcomes."""

    threshold: float
    task: float


def cost_by_chance(forecasts: Forecasts, seed: int) -> CostByChance | None:
    """Simulate both losses on calibrated outcomes; None where outcomes cannot be drawn or dealt."""
    cells = coarse(forecasts, CELLS)
    if not cells.binary or why_not_dealt(cells):
        return None
    losses = []
    for drawn in NullOutcomes(cells).forecasts_of(np.random.default_rng(seed), DRAWS):
        curve = curve_of(joined_folds(held_out(drawn, "isotonic", FOLDS, seed)))
        losses.append((curve.worst[1], worst_task_of(curve).loss))
    return CostByChance(*np.mean(losses, axis=0).tolist())
