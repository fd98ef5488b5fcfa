"""The nearest calibrated distribution, bracketed: solve the chain program on ever better nodes.

The bounds are proven on the data as given, whatever the nodes: `upper` is the cost of a plan that exists,
`lower` the value of potentials feasible on the whole of [0,1]. Nodes only decide how close they come.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.kernels.chain import solve_chain
from calibrant.kernels.chain_bounds import (
    balanced,
    lipschitz,
    plan_cost,
    split_onto,
    thinned,
    violation,
)

Floats = npt.NDArray[np.float64]

COARSE = 2_048  # nodes of the first attempt on long data; enough for 1e-4 on any data
ROUNDS = 12
CUTS_PER_GAP = 64


class Nearest(NamedTuple):
    """Bounds on the lower distance, and the plan that attains `cost`."""

    lower: float
    cost: float
    upper: float
    nodes: Floats
    absorbed: Floats


def nearest_calibrated(values: Floats, mass: Floats, tolerance: float, max_nodes: int) -> Nearest:
    """Bracket the lower distance of `mass` (shape (2, m), row y for outcome y) at ascending `values`.

    Long data start on a coarse chain: records between two nodes are handled exactly (see split_onto), so
    few nodes often suffice. Two refinements follow, where they are needed: nodes at more of the values,
    and cuts where the potentials break the calibration constraint between nodes.
    """
    slack = 8 * float(np.finfo(float).eps) * len(values)  # running sums of m terms lose at most this much
    bias = abs(float(mass[1] @ (1.0 - values) - mass[0] @ values))  # |E(y-v)| = |E(u-v)| <= E|u-v|
    weights = mass.sum(axis=0)
    means = np.clip(mass[1] / weights, 0.0, 1.0)
    recalibrated = float(weights @ np.abs(means - values))
    if recalibrated - bias <= slack:
        return Nearest(recalibrated, recalibrated, recalibrated, means, weights)
    best = Nearest(bias - slack, recalibrated, recalibrated + slack, means, weights)
    long = len(values) > 2 * COARSE
    spacing = max(1.0 / COARSE, tolerance / 8) if long else tolerance / 8
    cuts = np.linspace(0.0, 1.0, COARSE // 2 + 1 if long else 65)
    nodes = np.empty(0)
    for _ in range(ROUNDS):
        previous, (nodes, full) = nodes, _choose_nodes(values, cuts, spacing, max_nodes)
        if np.array_equal(nodes, previous):
            break
        shared = split_onto(nodes, values, mass)
        absorbed, potential = solve_chain(nodes, shared, tolerance / 4)
        absorbed = balanced(nodes, absorbed, mass)
        potential = lipschitz(nodes, potential)
        over = violation(nodes, potential)
        cost = plan_cost(nodes, absorbed, values, mass)
        proven = float((shared * potential).sum()) - over.worst - slack
        if cost < best.cost:
            best = best._replace(cost=cost, upper=cost + slack, nodes=nodes, absorbed=absorbed)
        best = best._replace(lower=max(best.lower, proven))
        if best.upper - best.lower <= tolerance or full:
            break
        cuts = _cut(nodes, over.per_gap, cuts, tolerance)
        if cost - proven - max(over.worst, 0.0) > tolerance / 2:  # not the cuts: too few nodes
            spacing *= min(1.0, max(0.4 * tolerance / (cost - proven), 1e-3))
    return best._replace(lower=min(max(best.lower, 0.0), best.cost))


def _choose_nodes(values: Floats, cuts: Floats, spacing: float, limit: int) -> tuple[Floats, bool]:
    """Nodes at values and cuts, none closer than spacing / 2, and whether `limit` kept others out."""
    full = False
    while True:
        nodes = thinned(np.union1d(cuts, thinned(values, spacing)), spacing)
        nodes[-1] = 1.0
        if len(nodes) <= limit:
            return nodes, full
        spacing *= 1.25
        full = True


def _cut(nodes: Floats, per_gap: Floats, cuts: Floats, tolerance: float) -> Floats:
    """Add predictions u where the calibration constraint is broken between nodes.

    The excess is quadratic in the width of the gap, so sqrt(excess / allowed) pieces suffice.
    """
    bad = np.flatnonzero(per_gap > tolerance / 4)
    if len(bad) == 0:
        return cuts
    pieces = np.minimum(np.ceil(np.sqrt(per_gap[bad] / (tolerance / 4))) + 1, CUTS_PER_GAP).astype(int)
    left = np.repeat(bad, pieces - 1)
    step = np.concatenate([np.arange(1, p) / p for p in pieces])
    return np.union1d(cuts, nodes[left] + step * (nodes[left + 1] - nodes[left]))
