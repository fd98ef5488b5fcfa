"""The nearest calibrated distribution, bracketed: solve the chain program on ever better nodes.

The bounds are proven on the data as given, whatever the nodes: `upper` is the cost of a plan that exists,
`lower` the value of potentials feasible on the whole of [0,1]. Nodes only decide how close they come.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.kernels.chain import solve_chain
from calibrant.kernels.chain_bounds import ChainLevels, balanced_plan, split_onto
from calibrant.kernels.chain_certificates import lipschitz, violation
from calibrant.kernels.chain_nodes import chosen_nodes, first_choice
from calibrant.kernels.chain_plans import ChainPlan, followed
from calibrant.kernels.lone_outcome import Zeros, lone_outcome

Floats = npt.NDArray[np.float64]

ROUNDS = 12
FEW = 16  # levels up to which the closed form is tried: its work grows with their square


class Nearest(NamedTuple):
    """Bounds on the lower distance with their proofs: the plan that costs `cost`, and the potentials.

    `potentials` has shape (2, corners): r_0 and r_1 at `corners`, linear between; the mean of r_y(v) over
    the records is `lower`, up to the rounding that the bounds allow for.
    """

    lower: float
    cost: float
    upper: float
    nodes: Floats
    absorbed: Floats
    corners: Floats
    potentials: Floats


def nearest_calibrated(levels: ChainLevels, tolerance: float, max_nodes: int) -> Nearest:
    """Bracket the lower distance of the levels.

    Long data start on few nodes: what lies between two of them is handled exactly by the potentials (see
    split_onto), and nearly so by a plan that follows the records there (see followed), so these mostly
    suffice. Two refinements follow, where they are needed: nodes at more of the values, and cuts where the
    potentials break the calibration constraint between nodes.
    """
    slack = 8 * float(np.finfo(float).eps) * len(levels.values)  # running sums of m terms lose at most this
    bias, apart = levels.total_variation()
    nearest = _from_bias(bias, slack)
    if apart - abs(bias) > slack:
        closed = _closed_form(levels, slack)
        if closed is not None:
            return closed
        nearest = _refine(nearest, levels, tolerance, max_nodes, slack)
    if apart < nearest.cost:  # every level goes to its own mean outcome
        means = np.clip(levels.outcomes / levels.weights, 0.0, 1.0)
        nearest = nearest._replace(cost=apart, upper=apart + slack, nodes=means, absorbed=levels.weights)
    if apart - abs(bias) <= slack:
        return nearest._replace(lower=apart, upper=apart)
    return nearest._replace(lower=min(max(nearest.lower, 0.0), nearest.cost))


def _from_bias(bias: float, slack: float) -> Nearest:
    """|E(y - v)| = |E(u - v)| <= E|u - v|: as potentials, r_y(v) = y - v or v - y."""
    corners = np.array([0.0, 1.0])
    potentials = np.copysign(1.0, bias) * np.array([[0.0, -1.0], [1.0, 0.0]])
    nothing = np.empty(0)
    return Nearest(abs(bias) - slack, np.inf, np.inf, nothing, nothing, corners, potentials)


def _closed_form(levels: ChainLevels, slack: float) -> Nearest | None:
    """Return the exact answer where one of the outcomes stands at a single one of few levels."""
    if len(levels.values) > FEW:
        return None
    zeros, ones = levels.masses(slice(None))
    values = levels.values
    if np.count_nonzero(ones) == 1:
        return _of_lone_ones(values, zeros, ones, slack)
    if np.count_nonzero(zeros) == 1:
        mirror = _of_lone_ones(1 - values[::-1], ones[::-1], zeros[::-1], slack)
        return mirror and mirror._replace(
            nodes=1 - mirror.nodes[::-1],
            absorbed=mirror.absorbed[::-1],
            corners=1 - mirror.corners[::-1],
            potentials=mirror.potentials[::-1, ::-1],
        )
    return None


def _of_lone_ones(values: Floats, zeros: Floats, ones: Floats, slack: float) -> Nearest | None:
    """Return the closed form, provided that plan and potentials prove the same value up to rounding."""
    at = int(ones.argmax())
    others = [Zeros(v, mass) for v, mass in zip(values.tolist(), zeros.tolist(), strict=True) if mass > 0]
    solved = lone_outcome(others, float(ones[at]), float(values[at]))
    cost, parts = solved.plan.cost, (*solved.plan[:2], solved.corners, solved.potentials)
    moved = sum(solved.plan.absorbed)
    if abs(cost - solved.value) > slack or abs(moved - float((zeros + ones).sum())) > slack:
        return None
    return Nearest(cost, cost, cost, *map(np.array, parts))


def _refine(nearest: Nearest, levels: ChainLevels, tolerance: float, max_nodes: int, slack: float) -> Nearest:
    """Solve on better and better nodes until the bounds meet, or the nodes run out."""
    choice = first_choice(levels, tolerance)
    nodes = np.empty(0)
    for _ in range(ROUNDS):
        previous, (nodes, full) = nodes, chosen_nodes(levels, choice, max_nodes)
        if np.array_equal(nodes, previous):
            break
        shared = split_onto(nodes, levels)
        absorbed, potential = solve_chain(nodes, shared, tolerance / 4)
        potential = lipschitz(nodes, potential)
        over = violation(nodes, potential)
        proven = float((shared * potential).sum()) - over.worst - slack
        if proven > nearest.lower:
            nearest = nearest._replace(lower=proven, corners=nodes, potentials=potential - over.worst)
        for plan in _plans(nodes, absorbed, shared, levels):
            cost = plan.cost(levels)
            if cost < nearest.cost:
                places, mass = plan.places(levels)
                nearest = nearest._replace(cost=cost, upper=cost + slack, nodes=places, absorbed=mass)
            if nearest.upper - nearest.lower <= tolerance:
                return nearest
        if full:
            break
        choice = choice.finer(nodes, over, tolerance, nearest.cost - nearest.lower)
    return nearest


def _plans(nodes: Floats, absorbed: Floats, shared: Floats, levels: ChainLevels) -> Iterator[ChainPlan]:
    """Make the plan at the nodes and, where levels lie between them, the one that follows their records."""
    at_nodes = ChainPlan(nodes, balanced_plan(nodes, absorbed, levels))
    yield at_nodes
    if len(nodes) < len(levels.values):
        yield followed(at_nodes, shared, levels)
