"""A test for a bent curve: Rao's score test of intercept, slope and bend of the logit together."""

from __future__ import annotations

import numpy as np

from calibrant.fits.levels import Levels
from calibrant.fits.logits import logit

TERMS = 3  # intercept, slope and bend
CLIP = 1e-3  # beyond it the squares of logits would belong to a few predictions
LEAST = 1e-9  # variance of an outcome that the prediction rules out


def bend_pvalue(levels: Levels) -> float:
    """Return how surprising the residuals are if no power of the logit up to the second explains them.

    Cox's test of a line cannot see a curve whose two ends are off to the same side; this one can. The law is
    that of chi squared with three degrees of freedom, for many records.
    """
    from scipy.special import gammaincc

    place = logit(levels.values, CLIP)
    place = place - np.average(place, weights=levels.weights)
    scale = np.sqrt(np.average(place**2, weights=levels.weights))
    powers = (place / max(float(scale), LEAST))[:, None] ** np.arange(TERMS)
    spread = np.maximum(levels.values * (1.0 - levels.values), LEAST)
    score = powers.T @ (levels.weights * (levels.rates - levels.values))
    information = powers.T @ (powers * (levels.weights * spread)[:, None])
    statistic = score @ np.linalg.lstsq(information, score, rcond=1e-10)[0]
    return float(gammaincc(TERMS / 2, max(float(statistic), 0.0) / 2))
