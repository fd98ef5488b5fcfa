"""Proven bounds on the lower distance, from any approximate answer of the chain program.

A plan is a distribution of calibrated predictions: `absorbed` mass at each of `nodes`. Moving the records
there costs the sum over outcomes y of the earth mover distance between the mass of y and the plan's share of
y, a closed form on the line: an upper bound for any plan with the right mean. Potentials that are 1-Lipschitz
on all of [0, 1] give a lower bound by program (12) of distance-from-calibration.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from calibrant.kernels.partitions import Floats, Ints, LevelMasses

CHUNK = 65_536  # levels handled at a time: what stays in the cache is several times faster


def chunks(count: int) -> Iterator[slice]:
    return (slice(start, min(start + CHUNK, count)) for start in range(0, count, CHUNK))


def total_variation(levels: LevelMasses) -> tuple[float, float]:
    """Return the sum of the residuals, and the sum of their absolute values."""
    bias = apart = 0.0
    for part in chunks(len(levels.values)):
        residuals = levels.outcomes[part] - levels.weights[part] * levels.values[part]
        bias += float(residuals.sum())
        apart += float(np.abs(residuals).sum())
    return bias, apart


def split_onto(nodes: Floats, levels: LevelMasses) -> Floats:
    """Share each level's mass between its two neighboring nodes, in inverse proportion to distance."""
    # A potential linear between nodes earns the same on the shared mass as on the mass itself, so the coarse
    # dual bounds the fine program exactly, with no rounding of the data
    starts = np.searchsorted(levels.values, nodes)
    starts[-1] = len(levels.values)
    shared = np.zeros((2, len(nodes)))
    filled = np.flatnonzero(np.diff(starts))  # the cells between nodes that hold levels
    limits = np.searchsorted(starts[filled], np.arange(0, starts[-1] + CHUNK, CHUNK))
    for cells in (filled[a:b] for a, b in pairwise(limits) if b > a):
        part = slice(int(starts[cells[0]]), int(starts[cells[-1] + 1]))
        inner = starts[cells] - part.start
        gaps = nodes[cells + 1] - nodes[cells]
        for own, onto in zip(levels.of_outcomes(part), shared, strict=True):
            total = np.add.reduceat(own, inner)
            moment = np.add.reduceat(own * levels.values[part], inner) - nodes[cells] * total
            right = np.clip(moment / gaps, 0.0, total)
            onto[cells] += total - right
            onto[cells + 1] += right
    return shared


def taken(places: Floats, mass: Floats) -> Floats:
    """Mass of either outcome that leaves with `mass` at `places`."""
    ones = float((places * mass).sum())
    return np.array([float(mass.sum()) - ones, ones])


def lipschitz(nodes: Floats, potential: Floats) -> Floats:
    """Largest potential below the given one that is 1-Lipschitz along the nodes."""
    rising = np.minimum.accumulate(potential - nodes, axis=1) + nodes
    falling = (rising + nodes)[:, ::-1]
    return np.minimum.accumulate(falling, axis=1)[:, ::-1] - nodes


def violation(nodes: Floats, potential: Floats) -> Floats:
    """Largest value of g(u) = (1-u) r_0(u) + u r_1(u) on every gap, r linear between nodes."""
    # On a gap of width c, g is the chord of its ends plus k t (c - t), k the slope of r_0 less that of r_1
    gaps = np.diff(nodes)
    ends = (1.0 - nodes) * potential[0] + nodes * potential[1]
    left, right = ends[:-1], ends[1:]
    slopes = np.diff(potential, axis=1) / gaps
    bend = np.maximum(slopes[0] - slopes[1], 0.0)
    with np.errstate(over="ignore"):  # a gap that hardly bends has its top at an end
        off_center = np.divide((right - left) / gaps, 2 * bend, out=np.zeros_like(gaps), where=bend > 0)
    top = np.clip(gaps / 2 + off_center, 0.0, gaps)
    inside = left + (right - left) * (top / gaps) + bend * top * (gaps - top)
    return np.asarray(np.maximum(np.maximum(left, right), inside))


def couple(supply: Floats, demand: Floats) -> tuple[Ints, Ints, Floats]:
    """Match two mass vectors in ascending order, which is optimal on the line: places in both, and mass."""
    given, taken = np.cumsum(supply), np.cumsum(demand)
    total = min(given[-1], taken[-1])
    cuts = np.unique(np.concatenate([[0.0], given, taken]))
    cuts = cuts[cuts <= total]
    middles = (cuts[:-1] + cuts[1:]) / 2
    return np.searchsorted(given, middles), np.searchsorted(taken, middles), np.diff(cuts)


class ChainPlan(NamedTuple):
    """What leaves at the `nodes` (`absorbed`) and, in some plans, at the levels themselves (`in_place`)."""

    nodes: Floats
    absorbed: Floats
    in_place: Floats | None = None

    def cost(self, levels: LevelMasses) -> float:
        """Cost of moving the levels to the plan: an upper bound on the lower distance."""
        count, nodes = len(levels.values), self.nodes
        at = np.searchsorted(levels.values, nodes)
        shares = ((1.0 - nodes) * self.absorbed, nodes * self.absorbed)
        cost, position, carried = 0.0, 0.0, [0.0, 0.0]
        for part in chunks(count):
            first, last = np.searchsorted(at, [part.start, part.stop if part.stop < count else count + 1])
            inside, where = slice(first, last), at[first:last] - part.start
            places = np.insert(levels.values[part], where, nodes[inside])
            gaps = np.diff(places, prepend=position)
            position = float(places[-1])
            remaining = levels.of_outcomes(part)
            if self.in_place is not None:
                leaving, values = self.in_place[part], levels.values[part]
                remaining = remaining[0] - (1.0 - values) * leaving, remaining[1] - values * leaving
            for y, own in enumerate(remaining):
                flow = np.cumsum(np.insert(own, where, -shares[y][inside]))
                flow += carried[y]
                # not `@`: in a loop the threads of BLAS cost more than they bring
                cost += abs(carried[y]) * float(gaps[0]) + float((np.abs(flow[:-1]) * gaps[1:]).sum())
                carried[y] = float(flow[-1])
        return cost

    def places(self, levels: LevelMasses) -> tuple[Floats, Floats]:
        if self.in_place is None:
            return self.nodes, self.absorbed
        used = np.flatnonzero(self.absorbed)
        at = np.searchsorted(levels.values, self.nodes[used])
        values = np.insert(levels.values, at, self.nodes[used])
        return values, np.insert(self.in_place, at, self.absorbed[used])


def balanced(plan: ChainPlan, leaving: Floats, levels: LevelMasses) -> ChainPlan:
    """Scale a plan that takes `leaving`, and top it up, so that it takes just the mass of either outcome."""
    ones = float(levels.outcomes.sum())
    wanted = np.array([max(float(levels.weights.sum()) - ones, 0.0), ones])
    share = min(1.0, *(w / t for w, t in zip(wanted.tolist(), leaving.tolist(), strict=True) if t > 0))
    absorbed = share * plan.absorbed
    absorbed[[0, -1]] += np.maximum(wanted - share * leaving, 0.0)  # there all is of one outcome
    return ChainPlan(plan.nodes, absorbed, None if plan.in_place is None else share * plan.in_place)


def followed(plan: ChainPlan, shared: Floats, levels: LevelMasses) -> ChainPlan:
    """Spread a plan at nodes over the neighboring levels; `shared` is their mass, as split_onto shares it."""
    # Where little mass of outcome y passes a node, what it absorbs may leave where its records of y are: they
    # hardly move, and the noise of the other outcome rides on a flow in one direction, where it costs nothing
    nodes, gaps, rates = plan.nodes, np.diff(plan.nodes), _rates(plan, shared)
    absorbed = np.maximum(plan.absorbed - (rates * shared).sum(axis=0), 0.0)
    in_place, leaving = np.empty(len(levels.values)), taken(nodes, absorbed)
    for part in chunks(len(levels.values)):
        values = levels.values[part]
        cell = np.clip(np.searchsorted(nodes, values, side="right") - 1, 0, len(nodes) - 2)
        right = (values - nodes[cell]) / gaps[cell]
        mass = np.zeros(len(values))
        for own, rate in zip(levels.of_outcomes(part), rates, strict=True):
            mass += own * ((1.0 - right) * rate[cell] + right * rate[cell + 1])
        leaving += taken(values, mass)
        in_place[part] = mass
    return balanced(ChainPlan(nodes, absorbed, in_place), leaving, levels)


def _rates(plan: ChainPlan, shared: Floats) -> Floats:
    """What leaves in place per mass of either outcome, by node: shape (2, nodes), one of them 0."""
    # Follow the outcome of which less passes the node. A node that more of both outcomes passes than it
    # absorbs may as well keep its mass, and where mass piles up, what comes from elsewhere stays
    share = np.stack([1.0 - plan.nodes, plan.nodes])
    leaving = share * plan.absorbed
    passing = np.abs(np.cumsum(shared - leaving, axis=1))
    before = np.concatenate([np.zeros((2, 1)), passing[:, :-1]], axis=1)
    turns = (np.minimum(passing, before) < leaving).any(axis=0)
    ones = np.where(shared.min(axis=0) > 0, passing[1] < passing[0], shared[1] > shared[0])
    chosen = np.stack([~ones, ones]) & turns & (shared > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        rates: Floats = np.where(chosen, np.minimum(plan.absorbed / shared, 1.0 / share), 0.0)
    return rates
