"""Newton's method for smooth convex losses, its steps solved by conjugate gradients.

The products are a few small ones per step, so that no threads of a linear algebra library are started for
vectors of a hundred numbers: they cost forty times the work itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from calibrant.results import Array

STEPS = 100
PRODUCTS = 200  # with the Hessian, per step
HALVINGS = 40
LOOSE = 0.1  # how far a step may miss the exact one, far from the minimum
DAMPED = 1e-10  # added to the Hessian: where a loss is flat, steps would be without end
LEVEL = 1e-8  # the largest part of a gradient at which the minimum is reached


class Point(Protocol):
    """A loss where it was looked at."""

    @property
    def value(self) -> float:
        """The loss."""

    @property
    def gradient(self) -> Array:
        """Its gradient."""

    def curved(self, direction: Array) -> Array:
        """Return the Hessian times a direction."""

    def eased(self, gradient: Array) -> Array:
        """Return a gradient divided by something like the Hessian, which is cheap to divide by."""


def lowest(look: Callable[[Array], Point], start: Array) -> Array:
    """Return where a convex loss is least, or as far down as its steps led."""
    numbers, here = start, look(start)
    for _ in range(STEPS):
        if np.abs(here.gradient).max() <= LEVEL:
            break
        found = _shortened(look, numbers, here, _step(here))
        if found is None:
            break
        numbers, here = found
    return numbers


def _shortened(
    look: Callable[[Array], Point], numbers: Array, here: Point, step: Array
) -> tuple[Array, Point] | None:
    """Return where the longest half, quarter, ... of a step leads down; None if none of them does."""
    slope = float(here.gradient @ step)
    if not slope < 0:
        return None
    for halving in range(HALVINGS):
        share = 0.5**halving
        there = look(numbers + share * step)
        if there.value <= here.value + 1e-4 * share * slope:
            return numbers + share * step, there
    return None


def _step(here: Point) -> Array:
    """Return the Newton step to a precision that grows toward the minimum."""
    left = -here.gradient
    eased = here.eased(left)
    size = first = float(left @ eased)
    enough = first * min(LOOSE, np.sqrt(max(first, 0.0))) ** 2
    step, direction = np.zeros_like(left), eased
    for _ in range(min(PRODUCTS, 2 * len(left))):
        if size <= enough:
            break
        product = here.curved(direction) + DAMPED * direction
        curvature = float(direction @ product)
        step = step + size / curvature * direction
        left = left - size / curvature * product
        eased = here.eased(left)
        size, before = float(left @ eased), size
        direction = eased + size / before * direction
    return step
