"""Lower bounds that a Lipschitz weight proves, and couplings that a grid of levels proves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from calibrant.kernels.chain_bounds import Floats, Ints


def lipschitz(nodes: Floats, potential: Floats) -> Floats:
    """Largest potential below the given one that is 1-Lipschitz along the nodes."""
    rising = np.minimum.accumulate(potential - nodes, axis=1) + nodes
    falling = (rising + nodes)[:, ::-1]
    return np.minimum.accumulate(falling, axis=1)[:, ::-1] - nodes


class Violation(NamedTuple):
    """How far (1-u) r_0(u) + u r_1(u) rises above zero between neighbouring nodes, at worst."""

    worst: float
    per_gap: Floats


def violation(nodes: Floats, potential: Floats) -> Violation:
    """Largest value of g(u) = (1-u) r_0(u) + u r_1(u) on every gap, r linear between nodes.

    On a gap of width c, g is the chord of its ends plus k t (c - t), where k is the slope of r_0 less
    that of r_1: its maximum over the gap is explicit, and above the ends' by at most c^2 / 2.
    """
    gaps = np.diff(nodes)
    ends = (1.0 - nodes) * potential[0] + nodes * potential[1]
    left, right = ends[:-1], ends[1:]
    slopes = np.diff(potential, axis=1) / gaps
    bend = np.maximum(slopes[0] - slopes[1], 0.0)
    with np.errstate(over="ignore"):  # a gap that hardly bends has its top at an end
        off_centre = np.divide((right - left) / gaps, 2 * bend, out=np.zeros_like(gaps), where=bend > 0)
    top = np.clip(gaps / 2 + off_centre, 0.0, gaps)
    inside = left + (right - left) * (top / gaps) + bend * top * (gaps - top)
    per_gap = np.maximum(np.maximum(left, right), inside)
    return Violation(float(per_gap.max()), per_gap)


class Coupling(NamedTuple):
    """Rows of a monotone transport: index of the source, index of the target, mass moved."""

    source: Ints
    target: Ints
    mass: Floats


def couple(supply: Floats, demand: Floats) -> Coupling:
    """Match two mass vectors in ascending order, which is optimal on the line."""
    given, taken = np.cumsum(supply), np.cumsum(demand)
    total = min(given[-1], taken[-1])
    cuts = np.unique(np.concatenate([[0.0], given, taken]))
    cuts = cuts[cuts <= total]
    middles = (cuts[:-1] + cuts[1:]) / 2
    return Coupling(np.searchsorted(given, middles), np.searchsorted(taken, middles), np.diff(cuts))
