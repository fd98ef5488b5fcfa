"""Proven bounds on the lower distance, from any approximate answer of the chain program.

A plan is a distribution of calibrated predictions: `absorbed` mass at each of `nodes`. Moving the records
there costs the sum over outcomes y of the earth mover distance between the mass of y and the plan's
share of y, a closed form on the line, so any plan with the right mean gives an upper bound. A pair of
1-Lipschitz potentials on all of [0,1] gives a lower bound by program (12) of distance-from-calibration.
`mass` always has shape (2, levels), row y for outcome y.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


class Violation(NamedTuple):
    """How far (1-u) r_0(u) + u r_1(u) rises above zero between neighbouring nodes, at worst."""

    worst: float
    per_gap: Floats


def thinned(values: Floats, spacing: float) -> Floats:
    """Keep at most one value a cell of width `spacing`, and no two closer than half of it."""
    cell = np.floor(values / spacing)
    kept: Floats = values[np.concatenate([[True], cell[1:] != cell[:-1]])]
    apart: Floats = kept[np.concatenate([[True], np.diff(kept) >= spacing / 2])]
    return apart


def split_onto(nodes: Floats, values: Floats, mass: Floats) -> Floats:
    """Share each value's mass between its two neighbouring nodes, in inverse proportion to distance.

    A potential linear between nodes then earns the same on the shared mass as on the mass itself, so the
    coarse dual bounds the fine program exactly, with no rounding of the data.
    """
    starts = np.searchsorted(values, nodes)
    starts[-1] = len(values)
    filled = np.flatnonzero(np.diff(starts))
    shared = np.zeros((2, len(nodes)))
    for own, onto in zip(mass, shared, strict=True):
        total = np.add.reduceat(own, starts[filled])
        moment = np.add.reduceat(own * values, starts[filled]) - nodes[filled] * total
        right = np.clip(moment / (nodes[filled + 1] - nodes[filled]), 0.0, total)
        onto[filled] += total - right
        onto[filled + 1] += right
    return shared


def balanced(nodes: Floats, absorbed: Floats, mass: Floats) -> Floats:
    """Scale a plan and top it up at 0 and 1 so that it absorbs exactly the mass of either outcome.

    `nodes` must start at 0 and end at 1: what leaves there is all of one outcome.
    """
    plan: Floats = np.maximum(absorbed, 0.0)
    taken = np.array([(1.0 - nodes) @ plan, nodes @ plan])
    wanted = mass.sum(axis=1)
    plan = plan * min(1.0, *(w / t for w, t in zip(wanted, taken, strict=True) if t > 0))
    plan[0] += max(0.0, wanted[0] - (1.0 - nodes) @ plan)
    plan[-1] += max(0.0, wanted[1] - nodes @ plan)
    return plan


def plan_cost(nodes: Floats, absorbed: Floats, values: Floats, mass: Floats) -> float:
    """Cost of moving `mass` at `values` to the plan: an upper bound on the lower distance."""
    at = np.searchsorted(values, nodes)
    gaps = np.diff(np.insert(values, at, nodes))
    cost = 0.0
    for share, own in zip((1.0 - nodes, nodes), mass, strict=True):
        flow = np.cumsum(np.insert(own, at, -share * absorbed))[:-1]
        cost += float(np.abs(flow) @ gaps)
    return cost


def lipschitz(nodes: Floats, potential: Floats) -> Floats:
    """Largest potential below the given one that is 1-Lipschitz along the nodes."""
    rising = np.minimum.accumulate(potential - nodes, axis=1) + nodes
    falling = (rising + nodes)[:, ::-1]
    return np.minimum.accumulate(falling, axis=1)[:, ::-1] - nodes


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
    pull = np.divide((right - left) / gaps, 2 * bend, out=np.full_like(gaps, np.inf), where=bend > 0)
    top = np.clip(gaps / 2 + np.where(bend > 0, pull, 0.0), 0.0, gaps)
    inside = left + (right - left) * (top / gaps) + bend * top * (gaps - top)
    per_gap = np.maximum(np.maximum(left, right), inside)
    return Violation(float(per_gap.max()), per_gap)


class Coupling(NamedTuple):
    """Rows of a monotone transport: index of the source, index of the target, mass moved."""

    source: npt.NDArray[np.intp]
    target: npt.NDArray[np.intp]
    mass: Floats


def couple(supply: Floats, demand: Floats) -> Coupling:
    """Match two mass vectors in ascending order, which is optimal on the line."""
    given, taken = np.cumsum(supply), np.cumsum(demand)
    total = min(given[-1], taken[-1])
    cuts = np.unique(np.concatenate([[0.0], given, taken]))
    cuts = cuts[cuts <= total]
    middles = (cuts[:-1] + cuts[1:]) / 2
    return Coupling(np.searchsorted(given, middles), np.searchsorted(taken, middles), np.diff(cuts))
