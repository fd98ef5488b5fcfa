"""Kinds of miscalibration that a plan can assume."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from calibrant.results import Array

Alternative = Callable[[Array], Array]


def all_to_one_side(values: Array) -> Array:
    """Every true probability lies to the same side of its prediction: the side with more room."""
    return np.full(len(values), 1.0 if values.mean() < 0.5 else -1.0)


def overconfident(values: Array) -> Array:
    """True probabilities lie nearer to the middle than predicted."""
    return np.asarray(1 - 2 * values)


def underconfident(values: Array) -> Array:
    """True probabilities lie further from the middle than predicted."""
    return np.asarray(2 * values - 1)


def local(values: Array) -> Array:
    """Only predictions within 0.1 of the median are wrong: a bump."""
    away = np.abs(values - np.median(values))
    return np.asarray(np.maximum(0.0, 1 - away / 0.1))


def alternating(values: Array) -> Array:
    """Neighbours err in opposite ways, with random signs: hard to see, because errors nearly cancel."""
    return random_signs(values, len(values))


def random_signs(values: Array, blocks: int) -> Array:
    """Return one random sign for each of `blocks` stretches of the predictions; always the same signs."""
    signs = np.random.default_rng(blocks).choice([-1.0, 1.0], blocks)
    return np.asarray(signs[np.arange(len(values)) * blocks // len(values)])


ALTERNATIVES: dict[str, Alternative] = {
    "shift": all_to_one_side,
    "overconfident": overconfident,
    "underconfident": underconfident,
    "local": local,
    "alternating": alternating,
}
