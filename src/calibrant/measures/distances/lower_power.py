"""The lower distance with |u - v|^alpha: no chain structure, so a plain linear program for few levels."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import numpy as np

from calibrant.errors import InvalidInputError, sentence
from calibrant.kernels.chain_bounds import ChainLevels
from calibrant.results import Array, Certified

MAX_LEVELS = 64
MAX_PAIRS = 100_000  # of levels and targets in one linear program
ROUNDS = 30
MAX_CELLS = 100_000  # where the height is flat the bound stays a little looser


def lower_power_distance(levels: ChainLevels, alpha: float, tolerance: float) -> Certified:
    """Bracket inf E|u - v|^alpha (Definition A.1 of perfectly-truthful-measure), u over all of [0, 1].

    Solve program (11) of distance-from-calibration on some targets u; let the multipliers r say where on
    [0, 1] further targets would help; add those until none helps by more than the tolerance.
    """
    values, mass = levels.values, np.stack(levels.masses(slice(None)))
    if len(values) > MAX_LEVELS:
        raise InvalidInputError(
            sentence(
                "alpha",
                f"other than 1 needs at most {MAX_LEVELS} distinct predictions",
                f"got {len(values):,}",
                "round the predictions, or use alpha=1",
            )
        )
    lower, upper = (
        abs(levels.total_variation()[0]) ** alpha,
        np.inf,
    )  # Jensen: E|u - v|^alpha >= |E(u - v)|^alpha
    means = np.clip(mass[1] / mass.sum(axis=0), 0.0, 1.0)
    targets = np.unique(np.concatenate([values, means, np.linspace(0.0, 1.0, 65)]))
    for _ in range(ROUNDS):
        cost, potential = _program(targets, values, mass, alpha)
        upper = min(upper, cost)
        excess, peaks = _excess(values, potential, alpha, tolerance / 4)
        lower = max(lower, float((mass * potential).sum()) - excess)
        more = np.setdiff1d(peaks, targets)
        if upper - lower <= tolerance or len(more) == 0:
            break
        targets = np.union1d(targets, more)
    details = MappingProxyType({"targets": len(targets)})
    return Certified(upper, min(lower, upper), upper, upper - lower <= 1e-15, None, details)


def distance_onto(targets: Array, levels: ChainLevels, alpha: float) -> Certified:
    """Least E|u - v|^alpha with u among the targets: one linear program, its answer proven from both sides.

    Whatever the multipliers s of the calibration of each target, r_y(v) = min over u of |u - v|^alpha -
    (y - u) s_u is feasible, so the mean of r_y(v) bounds every plan from below.
    """
    values, mass = levels.values, np.stack(levels.masses(slice(None)))
    if len(values) * len(targets) > MAX_PAIRS:
        got = f"got {len(values):,} times {len(targets):,}"
        rule = f"times distinct predictions must be at most {MAX_PAIRS:,}"
        raise InvalidInputError(sentence("targets", rule, got, "round the predictions"))
    answer = _solved(targets, values, mass, alpha)
    if answer.status != 0:
        got, hint = f"got {len(targets)} that cannot", "add targets below and above the outcome rates"
        raise InvalidInputError(
            sentence("targets", "must allow a calibrated prediction of these outcomes", got, hint)
        )
    cost = np.abs(targets[None, :] - values[:, None]) ** alpha
    multipliers = np.asarray(answer.eqlin.marginals[2 * len(values) :])
    reach = [(cost - (y - targets) * multipliers).min(axis=1) for y in (0, 1)]
    lower, upper = float(mass[0] @ reach[0] + mass[1] @ reach[1]), float(answer.fun)
    absorbed = np.asarray(answer.x).reshape(2, len(values), len(targets)).sum(axis=(0, 1))
    details = {"calibrated_values": targets, "calibrated_weights": absorbed}
    lower = min(lower, upper)
    return Certified(upper, lower, upper, upper - lower <= 1e-9, None, MappingProxyType(details))


def _program(targets: Array, values: Array, mass: Array, alpha: float) -> tuple[float, Array]:
    """Cheapest plan onto the targets, and the multipliers r of the mass of either outcome."""
    answer = _solved(targets, values, mass, alpha)
    count = len(values)
    return float(answer.fun), np.asarray(answer.eqlin.marginals[: 2 * count]).reshape(2, count)


def _solved(targets: Array, values: Array, mass: Array, alpha: float) -> Any:
    """Solve program (11): move the mass of each level and outcome so that every target is calibrated."""
    from scipy.optimize import linprog
    from scipy.sparse import diags_array, eye_array, hstack, kron, vstack

    m, k = len(values), len(targets)
    cost = np.abs(targets[None, :] - values[:, None]) ** alpha
    leave = kron(eye_array(m), np.ones((1, k)))  # all of a level's mass goes somewhere
    calibrate = [kron(np.ones((1, m)), diags_array(y - targets)) for y in (0, 1)]
    equal = vstack([kron(eye_array(2), leave), hstack(calibrate)], format="csr")
    supply = np.concatenate([mass.ravel(), np.zeros(k)])
    return linprog(np.tile(cost.ravel(), 2), A_eq=equal, b_eq=supply, bounds=(0, None), method="highs")


def _excess(values: Array, potential: Array, alpha: float, tolerance: float) -> tuple[float, Array]:
    """Bound max over u in [0, 1] of (1-u) R_0(u) + u R_1(u), R_y(u) = max over v of r_y(v) - |u-v|^alpha.

    A proven bound, at most `tolerance` too high, by halving the cells that may hold the maximum; and the
    local maxima, where a new target helps.
    """
    scan = np.union1d(np.linspace(0.0, 1.0, 2_049), values)
    heights = _height(scan, scan, values, potential, alpha)
    inner = heights >= np.maximum(np.append(heights[1:], -np.inf), np.append(-np.inf, heights[:-1]))
    peaks = scan[inner & (heights > tolerance)]
    best, at = float(heights.max()), scan[heights.argmax()]
    left, right = scan[:-1], scan[1:]
    bound = best + tolerance
    while len(left):
        ceiling = _height(left, right, values, potential, alpha)
        bound = best + tolerance
        if len(left) > MAX_CELLS:
            bound = max(bound, float(ceiling.max()))
            break
        left, right = left[ceiling > bound], right[ceiling > bound]
        middle = (left + right) / 2
        result = _height(middle, middle, values, potential, alpha)
        if result.max(initial=best) > best:
            best, at = float(result.max()), middle[result.argmax()]
        left, right = np.concatenate([left, middle]), np.concatenate([middle, right])
    return bound, np.append(peaks, at)


def _height(left: Array, right: Array, values: Array, potential: Array, alpha: float) -> Array:
    """Upper bound of (1-u) R_0(u) + u R_1(u) over each cell [left, right]; exact where left = right."""
    away = np.maximum(np.maximum(left[:, None] - values, values - right[:, None]), 0.0) ** alpha
    reach: list[Array] = [(potential[y] - away).max(axis=1) for y in (0, 1)]
    return np.maximum((1 - left) * reach[0] + left * reach[1], (1 - right) * reach[0] + right * reach[1])
