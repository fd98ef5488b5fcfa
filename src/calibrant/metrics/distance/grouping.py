"""The cheapest grouping of levels with a proven bound: column generation (the page "Upper distance")."""

from __future__ import annotations

import itertools
from time import monotonic
from typing import Any, NamedTuple

import numpy as np

from calibrant.kernels.groupings import Flags, cheap_groups, local_search, paired_runs
from calibrant.kernels.partitions import Floats, Ints, LevelMasses, group_costs

TOLERANCE = 1e-9  # reduced costs above -TOLERANCE count as no improvement
SCALE = 1e3  # costs in the linear programs, whose tolerances are absolute
GRID = 100  # targets besides the values
MAX_COLUMNS = 3_000  # HiGHS overruns its time limit with more
KICKS = 150
MAX_PLAIN_LEVELS = 50  # levels times searches that take less than loading machine code


class Bracket(NamedTuple):
    """The cost of the best grouping found, the group of each level, and the proven least cost."""

    lower: float
    upper: float
    group: Ints


def runs_of_equal_records(values: Floats, rates: Floats, alpha: float, limit: float) -> Bracket | None:
    """Return the cheapest grouping of equal 0/1 records, which is exact; None where that would take long."""
    ones, zeros = np.flatnonzero(rates == 1.0), np.flatnonzero(rates == 0.0)
    if len(ones) * len(zeros) > (50_000 if alpha == 1.0 else 2_500):
        return None
    paired_runs.compile_now()
    best, previous = paired_runs(
        values[ones], values[zeros], 1 / len(values), alpha, limit * (1 + 1e-12) + 1e-15
    )
    group, label = np.zeros(len(values), dtype=np.intp), 0
    i, j = len(ones), len(zeros)
    while i + j > 0:
        i0, j0 = divmod(int(previous[i, j]), len(zeros) + 1)
        group[ones[i0:i]] = group[zeros[j0:j]] = label
        i, j, label = i0, j0, label + 1
    cost = float(best[-1, -1])
    return Bracket(cost, cost, group)


def improved_grouping(
    levels: LevelMasses, starts: list[Ints], alpha: float = 1.0, kicks: int = 0
) -> tuple[float, Ints]:
    """Return the cheapest grouping that local search reaches from `starts`, and its cost."""
    if (1 + kicks) * len(levels.values) > MAX_PLAIN_LEVELS:
        local_search.compile_now()
    rng = np.random.default_rng(0)
    reached = []
    for start in starts:
        labels = np.unique(start, return_inverse=True)[1].astype(np.intp)
        reached.append(local_search(*levels, labels, alpha, rng.random((kicks, 10))))
    cost, group = min(reached, key=lambda pair: pair[0])
    return float(cost), np.unique(group, return_inverse=True)[1].astype(np.intp)


def whole_level_prices(levels: LevelMasses, edges: Floats) -> Floats:
    """Return prices that no group undercuts, from the linear program in which levels may be divided."""
    from scipy.optimize import linprog  # imported late: it takes a quarter of a second
    from scipy.sparse import csr_array

    # In each cell of targets a price is at most weight * (|value - t| + s * (rate - t)) at both ends, for one
    # slope s per cell; computed from the slopes, it owes nothing to the tolerance of the solver
    size, cells = len(levels.values), len(edges) - 1
    cell = np.repeat(np.arange(cells), 2)  # each at its two ends
    target = edges[cell + np.tile([0, 1], cells)]
    away = levels.weights * np.abs(levels.values - target[:, None])
    lean = levels.weights * (levels.rates - target[:, None])
    row = np.arange(2 * cells * size)
    columns = np.concatenate([np.tile(np.arange(size), 2 * cells), size + np.repeat(cell, size)])
    entries = np.concatenate([np.ones(len(row)), -lean.ravel()])
    matrix = csr_array((entries, (np.tile(row, 2), columns)), shape=(len(row), size + cells))
    objective = np.concatenate([-np.ones(size), np.zeros(cells)])
    program: Any = {"A_ub": matrix, "b_ub": away.ravel(), "bounds": [(None, None)] * (size + cells)}
    solved = linprog(SCALE * objective, **program)
    slopes = solved.x[size:] if solved.x is not None else np.zeros(cells)
    return np.asarray((away + slopes[cell][:, None] * lean).min(axis=0))


def bracketed_grouping(
    levels: LevelMasses, starts: list[Ints], *, seconds: float = 15.0, gap: float = 0.01
) -> Bracket:
    """Return a grouping whose cost is proven to be within `gap` of the least, or what `seconds` allow."""
    cheap_groups.compile_now()
    search = _Columns(levels, starts, gap)
    search.search(search.prices, -1.0, 1, 1)  # compiled here, so that compiling does not use up the time
    search.deadline = monotonic() + seconds
    search.generate()
    search.close()
    return Bracket(min(search.lower, search.upper), search.upper, search.group)


class _Columns:
    """Groups found so far, as rows of 0 and 1, with the best grouping, prices and bound."""

    def __init__(self, levels: LevelMasses, starts: list[Ints], gap: float) -> None:
        """Bound from above by local search and from below by divided levels; price all singles and pairs."""
        self.levels, self.deadline, self.gap, self.size = levels, np.inf, gap, len(levels.values)
        self.edges = np.union1d(np.linspace(0.0, 1.0, GRID + 1), levels.values)
        self.upper, self.group = improved_grouping(levels, starts, kicks=KICKS)
        self.prices = whole_level_prices(levels, self.edges)
        self.lower = float(self.prices.sum()) - self.size * TOLERANCE
        first, second = np.triu_indices(self.size)
        pairs = np.zeros((len(first), self.size), dtype=np.bool_)
        pairs[np.arange(len(first)), first] = pairs[np.arange(len(first)), second] = True
        self.columns = pairs
        self.add(self.group[None, :] == np.unique(self.group)[:, None])

    @property
    def open(self) -> bool:
        """Whether the gap is still too wide, and time is left."""
        wide = self.upper - self.lower > max(self.gap * self.upper, self.size * TOLERANCE)
        return wide and monotonic() < self.deadline

    def add(self, groups: Flags) -> int:
        before = len(self.columns)
        self.columns = np.unique(np.concatenate([self.columns, groups]), axis=0)
        return len(self.columns) - before

    def costs(self, columns: Flags) -> Floats:
        return group_costs(columns, self.levels)

    def search(self, prices: Floats, threshold: float, limit: int, nodes: int) -> tuple[Flags, bool]:
        """Return groups that cost at most their prices plus a threshold, and whether that is all of them."""
        found = np.zeros((limit, self.size), dtype=np.bool_)
        levels = self.levels.values, self.levels.weights, self.levels.rates, prices
        count, complete = cheap_groups(*levels, self.edges, threshold, found, nodes)
        return found[:count], complete

    def generate(self) -> None:
        """Raise the bound: price by the duals of the groups found, add groups that undercut the prices."""
        from scipy.optimize import linprog

        blend, nodes = 0.5, 20_000
        for rounds in itertools.count(1):
            if not self.open:
                return
            costs = self.costs(self.columns)
            equal: Any = {"A_eq": self.columns.T.astype(float), "b_eq": np.ones(self.size)}
            solved: Any = linprog(SCALE * costs, **equal)
            duals, value = solved.eqlin.marginals / SCALE, solved.fun / SCALE
            prices = blend * self.prices + (1 - blend) * duals
            found, complete = self.search(prices, -TOLERANCE, 4_000, nodes)
            new = self.add(found)
            if not len(found) and complete:
                bound = float(prices.sum()) - self.size * TOLERANCE
                if bound > self.lower:
                    self.lower, self.prices = bound, prices
                if value - self.lower < max(2e-5 * value, 3 * self.size * TOLERANCE):
                    return
                if value - self.lower < 0.005 * value:
                    blend = 0.0
            elif not new:
                if complete and blend == 0.0:
                    return
                blend = 0.0 if complete else blend
                nodes *= 1 if complete else 10
                if nodes > 50_000_000:
                    return
            if value - self.lower < 0.8 * self.gap * value and rounds % 3 == 0:
                self.solve(self.columns, 3.0)

    def close(self) -> None:
        """Solve over all groups within tau of the prices: others cost tau more than the bound."""
        floor = self.lower
        if self.open:
            self.solve(self.columns, 5.0)
        tau, smallest = max(0.1 * (self.upper - floor), 1e-7), 0.0
        for _ in range(12):
            tau = min(tau, self.upper - floor + TOLERANCE)
            if not self.open or tau <= smallest:
                return
            near, complete = self.search(self.prices, tau, MAX_COLUMNS, 10_000_000)
            if not complete:
                tau /= 1.6
                continue
            chosen = np.unique(np.concatenate([near, self.columns]), axis=0)
            reduced = self.costs(chosen) - chosen @ self.prices
            last = min(len(reduced) - 1, MAX_COLUMNS // 2)
            bound = self.solve(chosen[reduced <= max(tau, np.partition(reduced, last)[last])], 8.0)
            self.lower = max(self.lower, min(self.upper, bound, floor + tau) - 1e-6 * self.upper)
            if floor + tau >= self.upper:
                return
            smallest, tau = tau, 2 * tau

    def solve(self, columns: Flags, seconds: float) -> float:
        """Choose the cheapest grouping among groups; return what no grouping of them can cost less than."""
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import csr_array

        costs = self.costs(columns)
        left = max(1.0, min(seconds, self.deadline - monotonic()))
        options: Any = {"time_limit": left, "mip_rel_gap": max(self.gap / 4, 1e-9)}
        solved = milp(
            SCALE * costs,
            constraints=LinearConstraint(csr_array(columns.T.astype(float)), 1, 1),
            integrality=np.ones(len(costs), dtype=np.int64),
            bounds=Bounds(0, 1),
            options=options,
        )
        if solved.x is not None:
            chosen = columns[solved.x > 0.5]
            cost = float(self.costs(chosen).sum())
            if cost < self.upper and np.all(chosen.sum(axis=0) == 1):
                self.upper, self.group = cost, np.argmax(chosen, axis=0)
        bound = solved.mip_dual_bound
        return -np.inf if bound is None else float(bound) / SCALE
