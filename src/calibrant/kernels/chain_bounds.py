"""Proven bounds on the lower distance, from any approximate answer of the chain program.

A plan is a distribution of calibrated predictions: `absorbed` mass at each of `nodes`. Moving the records
there costs the sum over outcomes y of the earth mover distance between the mass of y and the plan's
share of y, a closed form on the line, so any plan with the right mean gives an upper bound. A pair of
1-Lipschitz potentials on all of [0,1] gives a lower bound by program (12) of distance-from-calibration.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]

CHUNK = 65_536  # levels handled at a time: what stays in the cache is several times faster


class ChainLevels(NamedTuple):
    """Distinct predictions, ascending, with their weight and their weight of outcome 1."""

    values: Floats
    weights: Floats
    outcomes: Floats

    def masses(self, part: slice) -> tuple[Floats, Floats]:
        """Mass of outcome 0 and of outcome 1."""
        ones = self.outcomes[part]
        return np.maximum(self.weights[part] - ones, 0.0), ones

    def total_variation(self) -> tuple[float, float]:
        """Total residual, and total absolute residual."""
        bias = apart = 0.0
        for part in chunks(len(self.values)):
            residuals = self.outcomes[part] - self.weights[part] * self.values[part]
            bias += float(residuals.sum())
            apart += float(np.abs(residuals).sum())
        return bias, apart


def chunks(count: int) -> Iterator[slice]:
    """Cut 0 .. count-1 into slices of at most CHUNK."""
    return (slice(start, min(start + CHUNK, count)) for start in range(0, count, CHUNK))


def split_onto(nodes: Floats, levels: ChainLevels) -> Floats:
    """Share each level's mass between its two neighbouring nodes, in inverse proportion to distance.

    A potential linear between nodes then earns the same on the shared mass as on the mass itself, so the
    coarse dual bounds the fine program exactly, with no rounding of the data. Returns shape (2, nodes).
    """
    starts = np.searchsorted(levels.values, nodes)
    starts[-1] = len(levels.values)
    shared = np.zeros((2, len(nodes)))
    for cells in _cell_groups(starts):
        part = slice(int(starts[cells[0]]), int(starts[cells[-1] + 1]))
        inner = starts[cells] - part.start
        gaps = nodes[cells + 1] - nodes[cells]
        for own, onto in zip(levels.masses(part), shared, strict=True):
            total = np.add.reduceat(own, inner)
            moment = np.add.reduceat(own * levels.values[part], inner) - nodes[cells] * total
            right = np.clip(moment / gaps, 0.0, total)
            onto[cells] += total - right
            onto[cells + 1] += right
    return shared


def _cell_groups(starts: Ints) -> Iterator[Ints]:
    """Group the cells between nodes that hold levels, about CHUNK levels per group."""
    filled = np.flatnonzero(np.diff(starts))
    limits = np.searchsorted(starts[filled], np.arange(0, starts[-1] + CHUNK, CHUNK))
    return (filled[a:b] for a, b in pairwise(limits) if b > a)


def balanced_plan(nodes: Floats, absorbed: Floats, levels: ChainLevels) -> Floats:
    """Scale a plan and top it up at 0 and 1 so that it absorbs exactly the mass of either outcome.

    `nodes` must start at 0 and end at 1: what leaves there is all of one outcome.
    """
    plan: Floats = np.maximum(absorbed, 0.0)
    share, rest = balance(taken(nodes, plan), levels)
    plan *= share
    plan[[0, -1]] += rest
    return plan


def taken(places: Floats, mass: Floats) -> Floats:
    """Mass of either outcome that leaves with `mass` at `places`."""
    ones = float((places * mass).sum())
    return np.array([float(mass.sum()) - ones, ones])


def balance(leaving: Floats, levels: ChainLevels) -> tuple[float, Floats]:
    """What a plan that takes `leaving` must be scaled by, and then lacks of either outcome."""
    ones = float(levels.outcomes.sum())
    wanted = np.array([max(float(levels.weights.sum()) - ones, 0.0), ones])
    share = min(1.0, *(w / t for w, t in zip(wanted.tolist(), leaving.tolist(), strict=True) if t > 0))
    return share, np.maximum(wanted - share * leaving, 0.0)


def plan_cost(nodes: Floats, absorbed: Floats, levels: ChainLevels, in_place: Floats | None = None) -> float:
    """Cost of moving the levels to the plan: an upper bound on the lower distance.

    Mass leaves at the nodes and, in some plans, at the levels themselves: `in_place` is how much there.
    """
    count = len(levels.values)
    at = np.searchsorted(levels.values, nodes)
    shares = ((1.0 - nodes) * absorbed, nodes * absorbed)
    cost, position, carried = 0.0, 0.0, [0.0, 0.0]
    for part in chunks(count):
        first, last = np.searchsorted(at, [part.start, part.stop if part.stop < count else count + 1])
        inside, where = slice(first, last), at[first:last] - part.start
        places = np.insert(levels.values[part], where, nodes[inside])
        gaps = np.diff(places, prepend=position)
        position = float(places[-1])
        for y, own in enumerate(_remaining(levels, part, in_place)):
            flow = np.cumsum(np.insert(own, where, -shares[y][inside]))
            flow += carried[y]
            # not `@`: in a loop the threads of BLAS cost more than they bring
            cost += abs(carried[y]) * float(gaps[0]) + float((np.abs(flow[:-1]) * gaps[1:]).sum())
            carried[y] = float(flow[-1])
    return cost


def _remaining(levels: ChainLevels, part: slice, in_place: Floats | None) -> tuple[Floats, Floats]:
    """Mass of either outcome less what leaves at its own level."""
    zeros, ones = levels.masses(part)
    if in_place is None:
        return zeros, ones
    leaving, values = in_place[part], levels.values[part]
    return zeros - (1.0 - values) * leaving, ones - values * leaving
