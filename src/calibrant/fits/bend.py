"""A test for a bent curve: Rao's score test of intercept, slope and bend of the logit together."""

from __future__ import annotations

import numpy as np

from calibrant.fits.levels import Levels
from calibrant.fits.logits import logit
from calibrant.results import Array

TERMS = 3  # intercept, slope and bend
CLIP = 1e-3  # beyond it the squares of logits would belong to a few predictions
LEAST = 1e-9  # variance of an outcome that the prediction rules out
DISTINCT = 1e-8  # part of a column that others must leave unexplained for it to count


def bend_pvalue(levels: Levels) -> float:
    """Return how surprising the residuals are if no power of the logit up to the second explains them.

    Cox's test of a line cannot see a curve whose two ends are off to the same side; this one can. The law is
    that of chi squared with three degrees of freedom, for many records.
    """
    from scipy.special import gammaincc

    spread = np.sqrt(np.maximum(levels.values * (1.0 - levels.values), LEAST))
    root = np.sqrt(levels.weights)
    residuals = root * (levels.rates - levels.values) / spread
    statistic = _explained(residuals, (root * spread)[:, None] * _powers(levels))
    return float(gammaincc(TERMS / 2, statistic / 2))


def _powers(levels: Levels) -> Array:
    """Return the powers of the logit, a column each, of its distance from the mean in standard deviations."""
    place = logit(levels.values, CLIP)
    place = place - np.average(place, weights=levels.weights)
    scale = float(np.sqrt(np.average(place**2, weights=levels.weights)))
    return np.asarray((place / max(scale, LEAST))[:, None] ** np.arange(TERMS))


def _explained(residuals: Array, columns: Array) -> float:
    """Return the sum of squares that columns explain; products of columns would lose half the digits."""
    sizes = np.linalg.norm(columns, axis=0)
    orthogonal, corner = np.linalg.qr(columns / np.where(sizes > 0, sizes, 1.0))
    directions, lengths, _ = np.linalg.svd(corner)
    seen = directions[:, : len(lengths)][:, lengths > DISTINCT * lengths[0]]
    return float(np.sum((seen.T @ (orthogonal.T @ residuals)) ** 2))
