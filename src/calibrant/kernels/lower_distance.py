"""The lower distance to calibration: a linear program on a chain of nodes, by an interior-point method.

Mass of either outcome sits on nodes u_1 < ... < u_K, moves along the chain at the price of the gaps, and
leaves at node k in the proportion (1 - u_k) : u_k, so that what leaves there is calibrated at u_k.
Dual, program (14) of distance-from-calibration with s(u) eliminated: maximize sum mass_y * r_y with r_0, r_1
both 1-Lipschitz along the chain and (1-u) r_0 + u r_1 <= 0. The Newton matrix of the 2K potentials,
interleaved by node, is banded, so LAPACK factors it in O(K); Mehrotra's predictor-corrector takes 10 to 80
steps. The bounds hold whatever the nodes: `upper` is the cost of a plan that exists, `lower` the value of
potentials feasible on the whole of [0, 1].
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from calibrant.kernels.lower_distance_bounds import (
    ChainPlan,
    balanced,
    followed,
    lipschitz,
    split_onto,
    taken,
    total_variation,
    violation,
)
from calibrant.kernels.partitions import Floats, Ints, LevelMasses

MAX_STEPS = 100
BACK_OFF = 0.995  # share of the way to the boundary that a step may go
MIN_ABSORBED = 1e-3  # what an empty node absorbs at the start, times the scale of the flows
DELICATE = 2_048  # nodes up to which the accurate factorization is affordable

Solver = Callable[[Floats], tuple[Floats, Floats]]


def solve_chain(nodes: Floats, mass: Floats, tolerance: float) -> tuple[Floats, Floats]:
    """Return the mass leaving at each node and r, shape (2, K): nearly optimal, for the caller to repair."""
    program = _Chain(nodes, mass)
    flow, potential, slack = program.start()
    target = tolerance * program.scale**2
    least = np.inf
    for _ in range(MAX_STEPS):
        gap = float((flow * slack).sum())  # `@` would wake BLAS threads at every step
        if gap <= target or not gap < 1e3 * least:
            break
        least = min(least, gap)
        step = program.newton(flow, potential, slack)
        if step is None:
            break
        flow, potential, slack = step
    return flow[program.leaving] / program.scale, potential / program.scale


class _Chain:
    """The program in scaled units: masses and gaps of order one."""

    def __init__(self, nodes: Floats, mass: Floats) -> None:
        self.count = len(nodes)
        self.scale = float(self.count)
        self.mass = mass * self.scale
        self.share = np.stack([1.0 - nodes, nodes])
        gaps = np.diff(nodes) * self.scale
        # a flow: edges up for y=0, up for y=1, down for y=0, down for y=1, then what leaves at each node
        self.cost = np.concatenate([gaps, gaps, gaps, gaps, np.zeros(self.count)])
        self.leaving = slice(4 * (self.count - 1), None)

    def start(self) -> tuple[Floats, Floats, Floats]:
        """Return a flow, potential and slack: positive, and feasible but for what empty nodes absorb."""
        # Half of what is calibrated leaves in place, the rest travels to node 0 (y=0) or node 1 (y=1); a
        # circulation of kappa / gap on every edge keeps the flow away from zero
        with np.errstate(divide="ignore", invalid="ignore"):
            leave = 0.5 * np.fmin(*(self.mass / self.share))
        rest = (self.mass - leave * self.share).sum(axis=1)
        leave[0] += rest[0]
        leave[-1] += rest[1]
        net = np.cumsum(self.mass - leave * self.share, axis=1)[:, :-1].ravel()
        kappa = max(1.0, float(np.abs(net).mean()))
        circulation = kappa / self.cost[: len(net)]
        up, down = np.maximum(net, 0.0), np.maximum(-net, 0.0)
        flow = np.concatenate([up + circulation, down + circulation, leave + MIN_ABSORBED * kappa])
        potential = np.full((2, self.count), -kappa)
        return flow, potential, self.cost - self.pull(potential)

    def pull(self, potential: Floats) -> Floats:
        """A' r: what each flow variable earns at the potential."""
        rise = np.diff(potential, axis=1).ravel()
        return np.concatenate([-rise, rise, (self.share * potential).sum(axis=0)])

    def push(self, flow: Floats) -> Floats:
        """A f: net mass that the flow takes out of every node, shape (2, K)."""
        edges = 2 * (self.count - 1)
        net = (flow[:edges] - flow[edges : 2 * edges]).reshape(2, -1)
        out = self.share * flow[self.leaving]
        out[:, :-1] += net
        out[:, 1:] -= net
        return out

    def solver(self, ratio: Floats) -> Solver | None:
        """Factor A D A', D = diag(ratio); the solver gives dr and A' dr. None when it cannot be factored."""
        edges = 2 * (self.count - 1)
        along = (ratio[:edges] + ratio[edges : 2 * edges]).reshape(2, -1)
        leave = ratio[self.leaving]
        fast = None if self.count <= DELICATE else self.node_solver(along, leave)
        return fast or self.flow_solver(along, leave)

    def node_solver(self, along: Floats, leave: Floats) -> Solver | None:
        """Cholesky factor of the potentials' matrix: fast, for nodes that are not too close."""
        from scipy.linalg.lapack import dpbtrf, dpbtrs

        diagonal = self.share**2 * leave
        diagonal[:, :-1] += along
        diagonal[:, 1:] += along
        band = np.zeros((3, 2 * self.count), order="F")
        band[0] = diagonal.T.ravel()
        band[1, ::2] = self.share[0] * self.share[1] * leave
        band[2, :-2] = -along.T.ravel()
        factor, failed = dpbtrf(band, lower=1, overwrite_ab=1)

        def solve(right: Floats) -> tuple[Floats, Floats]:
            change = dpbtrs(factor, right.T.reshape(-1, 1), lower=1)[0].reshape(-1, 2).T
            return change, self.pull(change)

        return None if failed else solve

    def flow_solver(self, along: Floats, leave: Floats) -> Solver | None:
        """LU factors with the edge flows kept as unknowns: slower, but accurate for nodes however close."""
        from scipy.linalg.lapack import dgbtrf, dgbtrs

        size = 4 * self.count - 2  # of node k: r_0, r_1, and the flows to node k+1 of either outcome
        band = np.zeros((7, size), order="F")  # two rows of fill, two bands above, diagonal, two below
        band[2, 2:] = band[6, :-2] = np.resize([1.0, 1.0, -1.0, -1.0], size - 2)
        band[3, 1::4] = band[5, ::4] = self.share[0] * self.share[1] * leave
        band[4, ::4], band[4, 1::4] = self.share**2 * leave
        band[4, 2::4], band[4, 3::4] = -1.0 / along
        factor, pivots, failed = dgbtrf(band, 2, 2, overwrite_ab=1)

        def solve(right: Floats) -> tuple[Floats, Floats]:
            known = np.zeros((size, 1))
            known[::4, 0], known[1::4, 0] = right
            solved = dgbtrs(factor, 2, 2, known, pivots, overwrite_b=1)[0][:, 0]
            change = np.stack([solved[::4], solved[1::4]])
            drop = np.concatenate([solved[2::4] / along[0], solved[3::4] / along[1]])
            return change, np.concatenate([drop, -drop, (self.share * change).sum(axis=0)])

        return None if failed else solve

    def newton(self, flow: Floats, potential: Floats, slack: Floats) -> tuple[Floats, Floats, Floats] | None:
        """One predictor-corrector step (Mehrotra), or None when the matrix can no longer be factored."""
        ratio = flow / slack
        missing = self.mass - self.push(flow)
        off = self.cost - self.pull(potential) - slack
        solve = self.solver(ratio)
        if solve is None:
            return None

        def direction(target: Floats) -> tuple[Floats, Floats, Floats]:
            """Solve A df = missing, A' dr + ds = off, slack df + flow ds = target."""
            d_potential, pulled = solve(missing - self.push(target / slack - ratio * off))
            d_slack = off - pulled
            return (target - flow * d_slack) / slack, d_potential, d_slack

        product = flow * slack
        gap = product.sum()
        d_flow, _, d_slack = direction(-product)
        after = (flow + _reach(flow, d_flow) * d_flow) * (slack + _reach(slack, d_slack) * d_slack)
        center = (after.sum() / gap) ** 2 * gap / len(flow)
        d_flow, d_potential, d_slack = direction(center - product - d_flow * d_slack)
        primal, dual = BACK_OFF * _reach(flow, d_flow), BACK_OFF * _reach(slack, d_slack)
        return flow + primal * d_flow, potential + dual * d_potential, slack + dual * d_slack


def _reach(value: Floats, change: Floats) -> float:
    """Longest step, at most one (over the back-off), that keeps value + step * change >= 0."""
    steepest = float((-change / value).max())
    return min(1.0, 1.0 / steepest) if steepest > 0 else 1.0


QUANTILES = 2_048  # values that long data are first cut at
MAX_NODE_GAP = 1.0 / 2_048  # gap between the nodes of long data: the constraint bends by less than 1e-7 in it
CUTS_PER_GAP = 64
PLACES = 16  # levels, spread evenly, that one quantile is chosen from


class NodeChoice(NamedTuple):
    """Nodes at `cuts` and at a number of `quantiles` of the levels; none closer than half the `spacing`."""

    cuts: Floats
    quantiles: int
    spacing: float
    widest: float

    def finer(self, nodes: Floats, over: Floats, tolerance: float, apart: float) -> NodeChoice:
        """Return a better choice, where bounds are `apart` and the potentials rise above zero by `over`."""
        bad = np.flatnonzero(over > tolerance / 4)  # the excess is quadratic in the width of the gap
        pieces = np.minimum(np.ceil(np.sqrt(over[bad] / (tolerance / 4))) + 1, CUTS_PER_GAP).astype(int)
        choice = self._replace(cuts=np.union1d(self.cuts, _inner(nodes, bad, pieces)))
        apart -= max(float(over.max()), 0.0)
        if apart <= tolerance / 2:
            return choice
        share = min(1.0, max(0.4 * tolerance / apart, 1e-3))  # not the cuts: too few nodes
        return choice._replace(quantiles=int(self.quantiles / share), spacing=share * self.spacing)


def chosen_nodes(levels: LevelMasses, choice: NodeChoice, limit: int) -> tuple[Floats, bool]:
    full = False
    while True:
        values = spaced_values(_quantiles(levels, choice.quantiles), choice.spacing)
        nodes = np.union1d(choice.cuts, values)
        pieces = np.ceil(np.diff(nodes) / choice.widest).astype(int)
        wide = np.flatnonzero(pieces > 1)
        nodes = spaced_values(np.union1d(nodes, _inner(nodes, wide, pieces[wide])), choice.spacing)
        nodes[-1] = 1.0
        if len(nodes) <= limit:
            return nodes, full
        fewer = min(choice.quantiles, len(levels.values))
        choice = choice._replace(spacing=1.25 * choice.spacing, quantiles=max(int(fewer / 1.25), 2))
        full = True


def _quantiles(levels: LevelMasses, count: int) -> Floats:
    """Return levels that cut the weight into about `count` equal parts, or all levels if there are fewer."""
    if count >= len(levels.values):
        return levels.values
    firsts = np.arange(0, len(levels.values), 1 + len(levels.values) // (PLACES * count))
    below = np.cumsum(np.add.reduceat(levels.weights, firsts))
    at = np.searchsorted(below, np.arange(1, count) * (below[-1] / count))
    cut: Floats = levels.values[firsts[np.unique(np.minimum(at, len(firsts) - 1))]]
    return cut


def _inner(nodes: Floats, gaps: Ints, pieces: Ints) -> Floats:
    """Return the nodes that cut each gap into equal pieces."""
    left = np.repeat(gaps, pieces - 1)
    step = np.concatenate([np.empty(0), *(np.arange(1, p) / p for p in pieces)])
    cuts: Floats = nodes[left] + step * (nodes[left + 1] - nodes[left])
    return cuts


def spaced_values(values: Floats, spacing: float) -> Floats:
    """Keep at most one value per cell of width `spacing`, and no two closer than half of it."""
    kept = values[np.diff(np.floor(values / spacing), prepend=-1.0) > 0]
    apart: Floats = kept[np.diff(kept, prepend=-1.0) >= spacing / 2]
    return apart


TINY = 1e-14  # ends of pieces that differ by rounding are one end


# Closed form, where one outcome occurs at a single prediction (up to three records, always). Let all mass q
# of outcome 1 be at w. A feasible pair of potentials is a number b for outcome 1 and a(v) for outcome 0 at v
# with
#     (1 - u) a(v) + u b <= (1 - u) |u - v| + u |u - w|    for all u in [0, 1].
# For v <= w the right side is linear or concave between 0, v, w and 1, so that only those u count; for v > w
# it is convex between w and v and has one tangent. With b = 1 - w - 2 t^2 the largest a(v) is explicit. The u
# that is tight says where outcomes 0 of v meet outcomes 1 of w; the larger t, the less of outcome 1 is needed
# there, and the best t is the one at which all of them together need q. A meeting point u is stored as its
# distance from 1, which is the share of outcome 0 there and may be small.


class Zeros(NamedTuple):
    """Outcomes 0 of one prediction v, and the mass of them."""

    v: float
    mass: float

    def potential(self, w: float, t: float) -> float:
        """Return the largest a(v) when b = 1 - w - 2 t^2."""
        v = self.v
        if t >= math.sqrt(1 - w):
            return v
        if v <= w:
            return min(v, -v + 2 * t * t * w / (1 - w), v * (2 * w - v - 1 + 2 * t * t) / (1 - v))
        tangent = min(max(t, 1 - v), 1 - w)
        return min(v, v - 2 + 2 * tangent + 2 * t * (1 - tangent) * (t / tangent if tangent > 0 else 1.0))

    def ends(self, w: float) -> tuple[float, ...]:
        return (math.sqrt(self.v * (1 - w)),) if self.v <= w else (1 - self.v, 1 - w)

    def meetings(self, w: float, t: float) -> tuple[float, float]:
        """Return 1 - u where the outcomes meet those of w, just below t and just above it."""
        if self.v <= w:
            (end,) = self.ends(w)
            below, above = (1 - (w if t <= end + TINY else self.v), 1 - (w if t < end - TINY else self.v))
        else:
            below = above = min(max(t, 1 - self.v), 1 - w)
        if t >= math.sqrt(1 - w) - TINY:
            above = 1.0
        return (below if t > 0 else above), above

    def needed(self, meeting: float) -> float:
        return self.mass * (1 - meeting) / meeting if meeting > 0 else math.inf


def _best(zeros: list[Zeros], q: float, w: float) -> float:
    """Return the t at which the meetings need q in all: inside a piece, or at an end where they jump past."""
    last = math.sqrt(1 - w)
    ends = sorted({0.0, last, *(min(end, last) for z in zeros for end in z.ends(w))})
    for low, high in pairwise(ends):
        if sum(z.needed(z.meetings(w, low)[1]) for z in zeros) <= q:
            return low
        if sum(z.needed(z.meetings(w, high)[0]) for z in zeros) < q:
            # some meetings slide along with t, the others stay: sliding (1 / t - 1) + fixed = q
            middle, sliding, fixed = (low + high) / 2, 0.0, 0.0
            for z in zeros:
                if 1 - z.v < middle < 1 - w:
                    sliding += z.mass
                else:
                    fixed += z.needed(z.meetings(w, middle)[0])
            return min(max(sliding / (sliding + q - fixed), low), high) if sliding > 0 else middle
    return last


def _plan(zeros: list[Zeros], q: float, w: float, t: float) -> tuple[dict[float, float], float]:
    """Return what leaves where, and the cost; where meetings jump at t, both sides are mixed as q needs."""
    meetings = [z.meetings(w, t) for z in zeros]
    most, least = (sum(z.needed(m[side]) for z, m in zip(zeros, meetings, strict=True)) for side in (0, 1))
    upper = min(max((q - least) / (most - least), 0.0), 1.0) if most > least else 0.0
    absorbed, cost, used = {0.0: 0.0, 1.0: 0.0}, 0.0, 0.0
    for z, (below, above) in zip(zeros, meetings, strict=True):
        for meeting, part in ((below, upper), (above, 1 - upper)):
            u, ones = 1 - meeting, part * z.needed(meeting)
            absorbed[u] = absorbed.get(u, 0.0) + part * z.mass + ones
            cost += part * z.mass * abs(u - z.v) + ones * abs(u - w)
            used += ones
    absorbed[1.0] += max(q - used, 0.0)
    return absorbed, cost + max(q - used, 0.0) * (1 - w)


ROUNDS = 12
MAX_CLOSED_FORM_LEVELS = 16  # levels up to which the closed form is tried: its work grows with their square


class Nearest(NamedTuple):
    """Bounds on the lower distance with their proofs: the plan that costs `cost`, and the potentials."""

    lower: float
    cost: float
    upper: float
    nodes: Floats
    absorbed: Floats
    corners: Floats
    potentials: Floats


def nearest_calibrated(levels: LevelMasses, tolerance: float, max_nodes: int) -> Nearest:
    slack = 8 * float(np.finfo(float).eps) * len(levels.values)  # running sums of m terms lose at most this
    bias, apart = total_variation(levels)
    # |E(y - v)| = |E(u - v)| <= E|u - v|: as potentials, r_y(v) = y - v or v - y
    potentials = np.copysign(1.0, bias) * np.array([[0.0, -1.0], [1.0, 0.0]])
    nothing, corners = np.empty(0), np.array([0.0, 1.0])
    nearest = Nearest(abs(bias) - slack, np.inf, np.inf, nothing, nothing, corners, potentials)
    if apart - abs(bias) > slack:
        closed = _closed_form(levels, slack)
        if closed is not None:
            return closed
        nearest = _refine(nearest, levels, tolerance, max_nodes, slack)
    if apart < nearest.cost:  # every level goes to its own mean outcome
        absorbed = levels.weights
        nearest = nearest._replace(cost=apart, upper=apart + slack, nodes=levels.rates, absorbed=absorbed)
    if apart - abs(bias) <= slack:
        return nearest._replace(lower=apart, upper=apart)
    return nearest._replace(lower=min(max(nearest.lower, 0.0), nearest.cost))


def _closed_form(levels: LevelMasses, slack: float) -> Nearest | None:
    values, (zeros, ones) = levels.values, levels.of_outcomes()
    if len(values) > MAX_CLOSED_FORM_LEVELS:
        return None
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
    q, w = float(ones[at]), float(values[at])
    others = [Zeros(v, mass) for v, mass in zip(values.tolist(), zeros.tolist(), strict=True) if mass > 0]
    t = _best(others, q, w)
    cones = [(z.v, z.potential(w, t)) for z in others]
    value = q * (1 - w - 2 * t * t) + sum(z.mass * a for z, (_, a) in zip(others, cones, strict=True))
    absorbed, cost = _plan(others, q, w, t)
    if abs(cost - value) > slack or abs(sum(absorbed.values()) - float((zeros + ones).sum())) > slack:
        return None
    # the highest cone of slope 1 below each a(v), and that of b
    crossings = (min(max((v + x + a - b) / 2, v), x) for (v, a), (x, b) in pairwise(cones))
    corners = np.array(sorted({0.0, w, 1.0, *crossings, *(v for v, _ in cones)}))
    of_zeros = np.max([a - np.abs(corners - v) for v, a in cones], axis=0)
    potentials = np.stack([of_zeros, 1 - w - 2 * t * t - np.abs(corners - w)])
    nodes = np.array(sorted(absorbed))
    return Nearest(cost, cost, cost, nodes, np.array([absorbed[u] for u in nodes]), corners, potentials)


def _refine(nearest: Nearest, levels: LevelMasses, tolerance: float, max_nodes: int, slack: float) -> Nearest:
    """Solve on better and better nodes until the bounds meet, or the nodes run out."""
    spacing = min(tolerance / 8, 1.0 / 128)
    choice = NodeChoice(np.linspace(0.0, 1.0, 65), len(levels.values), spacing, 1.0)
    if len(levels.values) > 4 * QUANTILES:  # few nodes: split_onto and followed handle what lies between
        choice = NodeChoice(np.array([0.0, 1.0]), QUANTILES, spacing, MAX_NODE_GAP)
    nodes = np.empty(0)
    for _ in range(ROUNDS):
        previous, (nodes, full) = nodes, chosen_nodes(levels, choice, max_nodes)
        if np.array_equal(nodes, previous):
            break
        shared = split_onto(nodes, levels)
        absorbed, potential = solve_chain(nodes, shared, tolerance / 4)
        potential = lipschitz(nodes, potential)
        over = violation(nodes, potential)
        worst = float(over.max())
        proven = float((shared * potential).sum()) - worst - slack
        if proven > nearest.lower:
            nearest = nearest._replace(lower=proven, corners=nodes, potentials=potential - worst)
        absorbed = np.maximum(absorbed, 0.0)
        plan = balanced(ChainPlan(nodes, absorbed), taken(nodes, absorbed), levels)
        for follow in (False, True) if len(nodes) < len(levels.values) else (False,):
            plan = followed(plan, shared, levels) if follow else plan  # the records between the nodes
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
