"""The linear program of the lower distance on a chain of nodes, by an interior-point method.

Mass of either outcome sits on nodes u_1 < ... < u_K, moves along the chain at the price of the gaps, and
leaves at node k in the proportion (1 - u_k) : u_k, so that what leaves there is calibrated at u_k.
Primal: the cheapest flow. Dual, program (14) of distance-from-calibration with s(u) eliminated:
maximise sum mass_y * r_y with r_0, r_1 both 1-Lipschitz along the chain and (1-u) r_0 + u r_1 <= 0.
The Newton matrix of the 2K potentials, interleaved by node, is banded with two bands above the diagonal,
so LAPACK factors it in O(K). Mehrotra's predictor-corrector steps: 10 to 80 of them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

MAX_STEPS = 100
BACK_OFF = 0.995  # share of the way to the boundary that a step may go
LEAST_LEAVING = 1e-3  # what an empty node absorbs at the start, times the scale of the flows
DELICATE = 2_048  # nodes up to which the accurate factorisation is affordable

Solver = Callable[[Floats], tuple[Floats, Floats]]


def solve_chain(nodes: Floats, mass: Floats, tolerance: float) -> tuple[Floats, Floats]:
    """Return (absorbed, potential): mass leaving at each node, and r as an array of shape (2, K).

    `nodes` ascends from 0 to 1; `mass` has shape (2, K), row y for outcome y, and sums to 1. The answers
    are optimal to about `tolerance` but feasible only up to rounding: the caller repairs and certifies.
    """
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
    """The program in scaled units (masses and gaps of order one), with its operators.

    A flow vector holds, in this order: edges up for y=0, up for y=1, down for y=0, down for y=1 (K-1
    entries each), then what leaves at each of the K nodes.
    """

    def __init__(self, nodes: Floats, mass: Floats) -> None:
        self.count = len(nodes)
        self.scale = float(self.count)
        self.mass = mass * self.scale
        self.share = np.stack([1.0 - nodes, nodes])
        gaps = np.diff(nodes) * self.scale
        self.cost = np.concatenate([gaps, gaps, gaps, gaps, np.zeros(self.count)])
        self.leaving = slice(4 * (self.count - 1), None)

    def start(self) -> tuple[Floats, Floats, Floats]:
        """Return a flow, potential and slack: positive, and feasible but for what empty nodes absorb.

        Of each node's mass half of what is calibrated leaves in place, the rest travels to node 0 (y=0)
        or node 1 (y=1); a circulation of kappa / gap on every edge keeps the flow away from zero.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            leave = 0.5 * np.fmin(*(self.mass / self.share))
        rest = (self.mass - leave * self.share).sum(axis=1)
        leave[0] += rest[0]
        leave[-1] += rest[1]
        net = np.cumsum(self.mass - leave * self.share, axis=1)[:, :-1].ravel()
        kappa = max(1.0, float(np.abs(net).mean()))
        circulation = kappa / self.cost[: len(net)]
        up, down = np.maximum(net, 0.0), np.maximum(-net, 0.0)
        flow = np.concatenate([up + circulation, down + circulation, leave + LEAST_LEAVING * kappa])
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
        """LU factors of the same matrix with the edge flows kept as unknowns.

        Four times slower, but gaps enter once and not squared: accurate for nodes however close. Unknowns
        of node k: r_0, r_1, and the flows to node k+1 of either outcome.
        """
        from scipy.linalg.lapack import dgbtrf, dgbtrs

        size = 4 * self.count - 2
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
        centre = (after.sum() / gap) ** 2 * gap / len(flow)
        d_flow, d_potential, d_slack = direction(centre - product - d_flow * d_slack)
        primal, dual = BACK_OFF * _reach(flow, d_flow), BACK_OFF * _reach(slack, d_slack)
        return flow + primal * d_flow, potential + dual * d_potential, slack + dual * d_slack


def _reach(value: Floats, change: Floats) -> float:
    """Longest step, at most one (over the back-off), that keeps value + step * change >= 0."""
    steepest = float((-change / value).max())
    return min(1.0, 1.0 / steepest) if steepest > 0 else 1.0
