"""Logits of predictions that may be 0 or 1, and the clips worth trying."""

from __future__ import annotations

import numpy as np

from calibrant.fits.levels import Levels
from calibrant.results import Array

CLIPS = (1e-7, 1e-5, 1e-4, 1e-3, 1e-2)
SMALLEST_CLIP = 1e-16  # 1 less half of it is 1, whose logit is infinite


def logit(values: Array, clip: float) -> Array:
    """Return ln(c / (1 - c)) with c = min(max(value, clip), 1 - clip)."""
    clipped = np.clip(values, clip, 1.0 - clip)
    return np.asarray(np.log(clipped) - np.log1p(-clipped))


def held(logits: Array, clip: float) -> Array:
    """Return the logits of predictions held within [clip, 1 - clip], from those of a smaller clip."""
    ends = np.array([clip, 1.0 - clip])
    low, high = logit(ends, clip)
    return np.clip(logits, low, high)


def worthwhile_clips(levels: Levels) -> tuple[float, ...]:
    """Return the smallest clip, and of the others those that change some level.

    Where predictions of 0 and 1 count as certain is a parameter that no data fix in advance: a clip of 1e-2
    gained 40 thousandths of a nat on physicians' predictions and lost 30 on those of a neural network.
    """
    closest = min(float(levels.values[0]), 1.0 - float(levels.values[-1]))
    return CLIPS[:1] + tuple(clip for clip in CLIPS[1:] if clip > closest)
