"""Lower distance to calibration: how far the predictions must move, at least, to be calibrated.

With |u - v|^alpha the program has no chain structure: it is solved as a plain linear program, for few levels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, reject_rows
from calibrant.forecasts import Forecasts
from calibrant.inputs import finite_number, positive_number, whole_number
from calibrant.kernels.lower_distance import nearest_calibrated
from calibrant.kernels.lower_distance_bounds import couple, total_variation
from calibrant.kernels.partitions import LevelMasses
from calibrant.metrics.bibliography import DISTANCE_PAPER
from calibrant.metrics.calling import accepts_rows, measure_function
from calibrant.metrics.certificates import mean_move, widened
from calibrant.metrics.registry import Measure, Null, Settings
from calibrant.results import Array, Certified, Result

MAX_NODES = 65_536


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TransportPlan(Result):
    """Which predictions move where: one row for each (outcome, from, to), with the mass that moves.

    After the move the predictions are perfectly calibrated. `cost` is the mean distance moved.
    """

    outcome: npt.NDArray[np.int8]
    source: Array
    target: Array
    mass: Array

    @property
    def cost(self) -> float:
        """Mean distance moved: the lower distance, up to the tolerance it was found with."""
        return float(self.mass @ np.abs(self.target - self.source))


@measure_function
def lower_distance(
    forecasts: Forecasts,
    *,
    tolerance: float = 1e-6,
    alpha: float = 1.0,
    max_nodes: int = MAX_NODES,
    targets: npt.ArrayLike | None = None,
) -> Certified:
    """Lower distance to calibration: the least mean move E|u - v| that makes the predictions calibrated.

    Also called the (lower) distance from calibration, written dCE with a bar below, or DISTCAL. Records
    with the same prediction may move apart, so it is a lower bound on the distance to calibration whatever
    the features are. The value is the cost of a plan that exists (see transport_plan); `lower` and `upper`
    are proven for u over the whole of [0, 1], and at most `tolerance` apart unless that takes more than
    `max_nodes` nodes: then they are as close as those allow. `alpha` >= 1 takes E|u - v|^alpha, without
    a root, for up to 64 distinct predictions. In upper_distance records of one prediction move together.

    The proofs are in `details`: the calibrated distribution that the plan moves to (`calibrated_values`,
    `calibrated_weights`), and two potentials (`potentials`, given at `corners` and linear between) that
    are 1-Lipschitz with (1-u) r_0(u) + u r_1(u) <= 0, so that no plan costs less than the mean of r_y(v).

    Parameters
    ----------
    targets
        The only predictions that may be moved to, such as risk grades (Definition 7.5 of the paper).

    Examples
    --------
    >>> round(lower_distance([0, 1, 1, 1], [0.5, 0.5, 0.5, 0.5]), 9)
    0.25
    """
    _check(tolerance, alpha, max_nodes)
    if targets is not None:
        return distance_onto(targets, level_masses(forecasts), float(alpha))
    if alpha != 1:
        return lower_power_distance(level_masses(forecasts), float(alpha), tolerance)
    nearest = nearest_calibrated(level_masses(forecasts), tolerance, max_nodes)
    return Certified.bounded(
        nearest.cost,
        nearest.lower,
        nearest.upper,
        exact=nearest.upper - nearest.lower <= 1e-15,
        nodes=len(nearest.nodes),
        calibrated_values=nearest.nodes,
        calibrated_weights=nearest.absorbed,
        corners=nearest.corners,
        potentials=nearest.potentials,
    )


@accepts_rows
def transport_plan(
    forecasts: Forecasts, *, tolerance: float = 1e-6, max_nodes: int = MAX_NODES
) -> TransportPlan:
    """Return the cheapest way found to move the predictions so that they are calibrated.

    Takes arrays or Forecasts. The lightest rows, of total mass at most `tolerance`, are left out.

    Parameters
    ----------
    tolerance
        The total mass of rows that may be left out.

    Examples
    --------
    >>> plan = transport_plan([0, 1, 1, 1], [0.5, 0.5, 0.5, 0.5])
    >>> plan.source.tolist(), plan.target.tolist(), plan.mass.tolist()
    ([0.5, 0.5], [0.75, 0.75], [0.25, 0.75])
    """
    _check(tolerance, 1.0, max_nodes)
    mass = level_masses(forecasts).of_outcomes()
    nearest = nearest_calibrated(level_masses(forecasts), tolerance, max_nodes)
    order = np.argsort(nearest.nodes, kind="stable")
    nodes, absorbed = nearest.nodes[order], nearest.absorbed[order]
    pairs = [couple(own, part * absorbed) for own, part in zip(mass, (1 - nodes, nodes), strict=True)]
    source, target, moved = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
    lightest = np.argsort(moved)
    kept = np.sort(lightest[np.cumsum(moved[lightest]) > tolerance])
    return TransportPlan(
        np.repeat(np.array([0, 1], dtype=np.int8), [len(pair[2]) for pair in pairs])[kept],
        forecasts.values[source[kept]],
        nodes[target[kept]],
        moved[kept],
    )


def proven_lower(forecasts: Forecasts) -> float:
    """Return a number that the lower distance is proven to reach: the floor of every other distance."""
    tolerance = 1e-6 if forecasts.levels <= 8_192 else 1e-4  # there brackets are wider anyway
    return nearest_calibrated(level_masses(forecasts), tolerance, MAX_NODES).lower


def level_masses(forecasts: Forecasts) -> LevelMasses:
    return LevelMasses(forecasts.values, forecasts.weights, forecasts.outcomes)


def _check(tolerance: float, alpha: float, max_nodes: int) -> None:
    positive_number("tolerance", tolerance)
    finite_number("alpha", alpha, 1)
    whole_number("max_nodes", max_nodes, 1024)


def deviation_applies(settings: Settings) -> bool:
    """Return whether transport_deviation bounds the distance: for plain distances to anywhere."""
    return settings["alpha"] == 1 and settings["targets"] is None


def transport_deviation(forecasts: Forecasts, weights: Array, outcomes: Array) -> Array:
    """Bound on how far the lower distance moves when the masses of the levels change by these rows."""
    # The dual weighs outcome y by r_y(v), both 1-Lipschitz, |r_0(v)| <= v and |r_1(v)| <= 1 - v: it moves by
    # at most the integrals over t of the changes of P(y = 0, v > t) and P(y = 1, v < t), taken absolutely
    gaps = np.diff(forecasts.values, prepend=0.0, append=1.0)
    above = np.cumsum((weights - outcomes)[:, ::-1], axis=1)[:, ::-1]
    below = np.cumsum(outcomes, axis=1)
    return np.asarray(np.abs(above) @ gaps[:-1] + np.abs(below) @ gaps[1:])


@lower_distance.certificate
def _transport_bounds(forecasts: Forecasts, measured: Certified, settings: Settings) -> Certified:
    # the mean distance is 1-Lipschitz in the predictions, and |u - v|^alpha is alpha-Lipschitz on [0, 1]
    return widened(measured, float(settings["alpha"]) * mean_move(forecasts))


LOWER_DISTANCE = Measure(
    "lower-distance",
    lower_distance,
    words="lower distance to calibration",
    family="distances",
    meaning="least mean move of the predictions that makes them calibrated",
    continuous=True,
    sound=True,
    truthful="approximate",
    consistency=(1.0, 2.0),
    lipschitz=1.0,
    null=Null(deviation=transport_deviation, mean_draws=19),
    valid="1/sqrt(T)",
    cost="O(m) per step, 10 to 80 steps",
    citation=DISTANCE_PAPER + ", Definition 5.3",
    law_options={"tolerance": 1e-10},
)


MAX_LEVELS = 64
MAX_PAIRS = 100_000  # of levels and targets in one linear program
ROUNDS = 30
MAX_CELLS = 100_000  # where the height is flat the bound stays a little looser


def lower_power_distance(levels: LevelMasses, alpha: float, tolerance: float) -> Certified:
    """Bracket inf E|u - v|^alpha (Definition A.1 of perfectly-truthful-measure), u over all of [0, 1]."""
    values, mass = levels.values, np.stack(levels.of_outcomes())
    if len(values) > MAX_LEVELS:
        raise InvalidInputError(
            "alpha",
            f"other than 1 needs at most {MAX_LEVELS} distinct predictions",
            f"got {len(values):,}",
            "round the predictions, or use alpha=1",
        )
    # the multipliers of program (11) on some targets say where further targets would help
    lower, upper = abs(total_variation(levels)[0]) ** alpha, np.inf  # Jensen, for the lower one
    means = np.clip(mass[1] / mass.sum(axis=0), 0.0, 1.0)
    targets = np.unique(np.concatenate([values, means, np.linspace(0.0, 1.0, 65)]))
    for _ in range(ROUNDS):
        plan = _solved(targets, values, mass, alpha)
        potential = np.asarray(plan.eqlin.marginals[: 2 * len(values)]).reshape(2, len(values))
        upper = min(upper, float(plan.fun))
        excess, peaks = _excess(values, potential, alpha, tolerance / 4)
        lower = max(lower, float((mass * potential).sum()) - excess)
        more = np.setdiff1d(peaks, targets)
        if upper - lower <= tolerance or len(more) == 0:
            break
        targets = np.union1d(targets, more)
    return Certified.bounded(upper, min(lower, upper), upper, upper - lower <= 1e-15, targets=len(targets))


def distance_onto(permitted: npt.ArrayLike, levels: LevelMasses, alpha: float) -> Certified:
    """Least E|u - v|^alpha with u among the targets: one linear program, proven from both sides."""
    given = np.atleast_1d(np.asarray(permitted))
    if given.dtype.kind not in "iuf" or given.ndim != 1 or len(given) == 0:
        raise InvalidInputError("targets", "must be a list of predictions", f"got {permitted!r}")
    reject_rows("targets", "must lie in [0, 1]", given, ~((given >= 0) & (given <= 1)))
    targets = np.unique(given.astype(np.float64))
    values, mass = levels.values, np.stack(levels.of_outcomes())
    if len(values) * len(targets) > MAX_PAIRS:
        got = f"got {len(values):,} times {len(targets):,}"
        rule = f"times distinct predictions must be at most {MAX_PAIRS:,}"
        raise InvalidInputError("targets", rule, got, "round the predictions")
    answer = _solved(targets, values, mass, alpha)
    if answer.status != 0:
        got, hint = f"got {len(targets)} that cannot", "add targets below and above the outcome rates"
        raise InvalidInputError("targets", "must allow a calibrated prediction of these outcomes", got, hint)
    cost = np.abs(targets[None, :] - values[:, None]) ** alpha
    multipliers = np.asarray(answer.eqlin.marginals[2 * len(values) :])
    # feasible whatever the multipliers s: r_y(v) = min over u of |u - v|^alpha - (y - u) s_u
    reach = [(cost - (y - targets) * multipliers).min(axis=1) for y in (0, 1)]
    lower, upper = float(mass[0] @ reach[0] + mass[1] @ reach[1]), float(answer.fun)
    absorbed = np.asarray(answer.x).reshape(2, len(values), len(targets)).sum(axis=(0, 1))
    details = {"calibrated_values": targets, "calibrated_weights": absorbed}
    return Certified.bounded(upper, min(lower, upper), upper, upper - lower <= 1e-9, **details)


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
    """Bound max over u in [0, 1] of (1-u) R_0(u) + u R_1(u), R_y(u) = max over v of r_y(v) - |u-v|^alpha."""
    # proven, at most `tolerance` too high, by halving the cells that may hold the maximum; and local maxima
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
