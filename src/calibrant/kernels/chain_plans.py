"""Plans of the chain program: at its nodes, or following the records between them.

On few nodes the potentials are nearly optimal, but a plan that absorbs at the nodes only is not: every
record travels to a node. Records of one outcome need not. Where little mass of outcome y passes a node, let
what the node absorbs leave where its records of y are, in proportion: then they hardly move, and the noise
of the other outcome rides on a flow in one direction, where it costs nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from calibrant.kernels.chain_bounds import ChainLevels, Floats, balance, chunks, plan_cost, taken


class ChainPlan(NamedTuple):
    """What leaves at the `nodes` (`absorbed`) and, in some plans, at the levels themselves (`in_place`)."""

    nodes: Floats
    absorbed: Floats
    in_place: Floats | None = None

    def cost(self, levels: ChainLevels) -> float:
        """Cost of moving the levels to the plan."""
        return plan_cost(self.nodes, self.absorbed, levels, self.in_place)

    def places(self, levels: ChainLevels) -> tuple[Floats, Floats]:
        """Return where mass leaves, ascending, and how much."""
        if self.in_place is None:
            return self.nodes, self.absorbed
        used = np.flatnonzero(self.absorbed)
        at = np.searchsorted(levels.values, self.nodes[used])
        values = np.insert(levels.values, at, self.nodes[used])
        return values, np.insert(self.in_place, at, self.absorbed[used])


def followed(plan: ChainPlan, shared: Floats, levels: ChainLevels) -> ChainPlan:
    """Spread a plan at nodes over the levels beside them; `shared` is their mass, as split_onto shares it."""
    nodes, gaps, rates = plan.nodes, np.diff(plan.nodes), _rates(plan, shared)
    absorbed = np.maximum(plan.absorbed - (rates * shared).sum(axis=0), 0.0)
    in_place, leaving = np.empty(len(levels.values)), taken(nodes, absorbed)
    for part in chunks(len(levels.values)):
        values = levels.values[part]
        cell = np.clip(np.searchsorted(nodes, values, side="right") - 1, 0, len(nodes) - 2)
        right = (values - nodes[cell]) / gaps[cell]
        mass = np.zeros(len(values))
        for own, rate in zip(levels.masses(part), rates, strict=True):
            mass += own * ((1.0 - right) * rate[cell] + right * rate[cell + 1])
        leaving += taken(values, mass)
        in_place[part] = mass
    share, rest = balance(leaving, levels)
    absorbed *= share
    absorbed[[0, -1]] += rest
    in_place *= share
    return ChainPlan(nodes, absorbed, in_place)


def _rates(plan: ChainPlan, shared: Floats) -> Floats:
    """What leaves in place per mass of either outcome, by node: shape (2, nodes), one of them 0.

    The outcome to follow is the one of which less passes the node. A node that more of both outcomes passes
    than it absorbs may as well keep its mass: no flow turns round there. Where mass piles up, what comes
    from elsewhere stays at the node.
    """
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
