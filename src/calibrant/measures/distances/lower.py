"""Lower distance to calibration: how far the predictions must move, at least, to be calibrated."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, reject_rows, sentence
from calibrant.forecasts import Forecasts
from calibrant.kernels.chain_bounds import ChainLevels
from calibrant.kernels.chain_certificates import couple
from calibrant.kernels.nearest import nearest_calibrated
from calibrant.measures.registry.calling import of_rows, public
from calibrant.measures.registry.null import Null, Settings
from calibrant.measures.registry.papers import DISTANCE_PAPER
from calibrant.measures.registry.resolution import mean_move, widened
from calibrant.measures.registry.row import Measure
from calibrant.options import finite_number, number, whole_number
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


@public
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
    a root, for up to 64 distinct predictions. `targets` lists the only predictions that may be moved to,
    such as risk grades (Definition 7.5 of the distance paper). Not to be confused with upper_distance,
    where records of one prediction move together.

    The proofs are in `details`: the calibrated distribution that the plan moves to (`calibrated_values`,
    `calibrated_weights`), and two potentials (`potentials`, given at `corners` and linear between) that
    are 1-Lipschitz with (1-u) r_0(u) + u r_1(u) <= 0, so that no plan costs less than the mean of r_y(v).

    Parameters
    ----------
    tolerance
        How far apart the proven bounds may be.
    alpha
        The power of the moves, at least 1.
    max_nodes
        How many nodes may be tried to reach the tolerance.
    targets
        The only predictions that may be moved to; all of [0, 1] if absent.

    Returns
    -------
    float
        The cost of the plan found.

    Examples
    --------
    >>> round(lower_distance([0, 1, 1, 1], [0.5, 0.5, 0.5, 0.5]), 9)
    0.25
    """
    _check(tolerance, alpha, max_nodes)
    if targets is not None:
        from calibrant.measures.distances.lower_power import distance_onto

        return distance_onto(_permitted(targets), _levels(forecasts), float(alpha))
    if alpha != 1:
        from calibrant.measures.distances.lower_power import lower_power_distance

        return lower_power_distance(_levels(forecasts), float(alpha), tolerance)
    nearest = nearest_calibrated(_levels(forecasts), tolerance, max_nodes)
    details = {
        "nodes": len(nearest.nodes),
        "calibrated_values": nearest.nodes,
        "calibrated_weights": nearest.absorbed,
        "corners": nearest.corners,
        "potentials": nearest.potentials,
    }
    exact = nearest.upper - nearest.lower <= 1e-15
    return Certified(nearest.cost, nearest.lower, nearest.upper, exact, None, MappingProxyType(details))


@of_rows
def transport_plan(
    forecasts: Forecasts,
    *,
    tolerance: float = 1e-6,
    max_nodes: int = MAX_NODES,
) -> TransportPlan:
    """Return the cheapest way found to move the predictions so that they are calibrated.

    Takes arrays or Forecasts. The lightest rows, of total mass at most `tolerance`, are left out.

    Parameters
    ----------
    tolerance
        The total mass of rows that may be left out.
    max_nodes
        How many nodes may be tried.

    Returns
    -------
    TransportPlan
        Which mass moves from where to where.

    Examples
    --------
    >>> plan = transport_plan([0, 1, 1, 1], [0.5, 0.5, 0.5, 0.5])
    >>> plan.source.tolist(), plan.target.tolist(), plan.mass.tolist()
    ([0.5, 0.5], [0.75, 0.75], [0.25, 0.75])
    """
    _check(tolerance, 1.0, max_nodes)
    mass = _levels(forecasts).masses(slice(None))
    nearest = nearest_calibrated(_levels(forecasts), tolerance, max_nodes)
    order = np.argsort(nearest.nodes, kind="stable")
    nodes, absorbed = nearest.nodes[order], nearest.absorbed[order]
    zeros, ones = (couple(own, part * absorbed) for own, part in zip(mass, (1 - nodes, nodes), strict=True))
    moved = np.concatenate([zeros.mass, ones.mass])
    lightest = np.argsort(moved)
    kept = np.sort(lightest[np.cumsum(moved[lightest]) > tolerance])
    return TransportPlan(
        np.repeat(np.array([0, 1], dtype=np.int8), [len(zeros.mass), len(ones.mass)])[kept],
        forecasts.values[np.concatenate([zeros.source, ones.source])[kept]],
        nodes[np.concatenate([zeros.target, ones.target])[kept]],
        moved[kept],
    )


def proven_lower(forecasts: Forecasts) -> float:
    """Return a number that the lower distance is proven to reach: the floor of every other distance."""
    tolerance = 1e-6 if forecasts.levels <= 8_192 else 1e-4  # there brackets are wider anyway
    return nearest_calibrated(_levels(forecasts), tolerance, MAX_NODES).lower


def _permitted(targets: npt.ArrayLike) -> Array:
    """Return the targets, ascending and distinct."""
    array = np.atleast_1d(np.asarray(targets))
    if array.dtype.kind not in "iuf" or array.ndim != 1 or len(array) == 0:
        raise InvalidInputError(sentence("targets", "must be a list of predictions", f"got {targets!r}"))
    reject_rows("targets", "must lie in [0, 1]", array, ~((array >= 0) & (array <= 1)))
    return np.unique(array.astype(np.float64))


def _levels(forecasts: Forecasts) -> ChainLevels:
    return ChainLevels(forecasts.values, forecasts.weights, forecasts.outcomes)


def _check(tolerance: float, alpha: float, max_nodes: int) -> None:
    if not number("tolerance", tolerance) > 0:
        raise InvalidInputError(sentence("tolerance", "must be positive", f"got {tolerance}"))
    finite_number("alpha", alpha, 1)
    whole_number("max_nodes", max_nodes, 1024)


def deviation_applies(settings: Settings) -> bool:
    """Return whether transport_deviation bounds the distance: for plain distances to anywhere."""
    return settings["alpha"] == 1 and settings["targets"] is None


def transport_deviation(forecasts: Forecasts, weights: Array, outcomes: Array) -> Array:
    """Bound on how far the lower distance moves when the masses of the levels change by these rows.

    Its dual weighs outcome 0 by r_0(v) and outcome 1 by r_1(v), both 1-Lipschitz; without loss
    |r_0(v)| <= v and |r_1(v)| <= 1 - v. So the value moves by at most the integral over t of the
    change of P(y = 0, v > t) plus that of P(y = 1, v < t), each taken absolutely.
    """
    gaps = np.diff(forecasts.values, prepend=0.0, append=1.0)
    above = np.cumsum((weights - outcomes)[:, ::-1], axis=1)[:, ::-1]
    below = np.cumsum(outcomes, axis=1)
    return np.asarray(np.abs(above) @ gaps[:-1] + np.abs(below) @ gaps[1:])


@lower_distance.certified_by
def _transport_bounds(forecasts: Forecasts, measured: Certified, settings: Settings) -> Certified:
    """Certify the lower distance: 1-Lipschitz in the mean distance that predictions are moved.

    With another power, |u - v|^alpha is alpha-Lipschitz on [0, 1].
    """
    return widened(measured, float(settings["alpha"]) * mean_move(forecasts))


ROWS = (
    Measure(
        "lower-distance",
        lower_distance,
        words="lower distance to calibration",
        largest=1.0,
        family="distances",
        meaning="least mean move of the predictions that makes them calibrated",
        continuous=True,
        complete=True,
        sound=True,
        truthful="approximate",
        consistency=(1.0, 2.0),
        symmetric=True,
        lipschitz=1.0,
        null=Null(deviation=transport_deviation),
        cost="O(m) per step, 10 to 80 steps",
        citation=DISTANCE_PAPER + ", Definition 5.3",
        law_options={"tolerance": 1e-10},
    ),
)
