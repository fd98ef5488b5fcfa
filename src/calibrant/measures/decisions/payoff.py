"""Decision tasks: what an action earns for each outcome, and the best response to a probability."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, reject_name, sentence
from calibrant.measures.scores import CLIP
from calibrant.options import clipping
from calibrant.results import Array

Convex = Callable[[Array], Array]
Payoff = float | str | npt.ArrayLike | Mapping[str, Any] | Convex

TIE = 1e-12  # of the range of payoffs: expected payoffs closer than this are equally good
NEAR = 1e-11  # probabilities closer than this can tie at one threshold
STEP = 1e-6  # of the differences that stand in for a gradient not given


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Finitely many actions: `payoff[a, y]` is what action a earns when the outcome is y (0, then 1)."""

    names: tuple[str, ...]
    payoff: Array

    @property
    def even(self) -> float:
        """The difference of expected payoffs below which two actions are equally good."""
        return TIE * float(np.ptp(self.payoff))

    def expected(self, probability: Array) -> Array:
        """Return the expected payoff of each action (columns) at each probability (rows)."""
        return np.outer(1 - probability, self.payoff[:, 0]) + np.outer(probability, self.payoff[:, 1])

    def best(self, probability: Array) -> npt.NDArray[np.bool_]:
        """Return which actions (columns) are best responses to each probability (rows), ties included.

        Rows ascend. Payoffs closer than TIE tie, because 0.1 and 0.3 are rounded; but a threshold lies at one
        probability. Of several probabilities that tie at the same threshold only the nearest does, and
        the actions of the others follow from the side of it that they lie on.
        """
        expected = self.expected(probability)
        top = expected.max(axis=1, keepdims=True)
        good: npt.NDArray[np.bool_] = expected >= top - self.even
        tied = np.flatnonzero(good.sum(axis=1) > 1)
        for run in np.split(tied, np.flatnonzero(np.diff(probability[tied]) > NEAR) + 1):
            if len(run) and probability[run[0]] < probability[run[-1]]:
                self._settle(good, run, probability, top - expected)
        return good

    def _settle(
        self, good: npt.NDArray[np.bool_], run: npt.NDArray[np.intp], probability: Array, behind: Array
    ) -> None:
        """Keep one tie of the run: below it the flattest action is best, above it the steepest."""
        short = np.where(good[run], behind[run], 0.0).max(axis=1)
        at = int(run[np.argmin(short)])
        actions = np.flatnonzero(good[at])
        slope = self.payoff[actions, 1] - self.payoff[actions, 0]
        for side, action in ((-1, actions[np.argmin(slope)]), (1, actions[np.argmax(slope)])):
            rows = run[np.sign(probability[run] - probability[at]) == side]
            good[rows] = False
            good[rows, action] = True


@dataclass(frozen=True, slots=True, eq=False)
class Score:
    """A continuum of actions, one per probability: `earned(v)` is the payoff of the best response to v.

    Row 0 when the outcome is 0, row 1 when it is 1. By Theorem 4.6 of the survey this is
    phi(v) + phi'(v) (y - v) for a convex phi: a proper score.
    """

    name: str
    earned: Callable[[Array], Array]


def task_of(payoff: Payoff, *, clip: float = CLIP, gradient: Convex | None = None) -> Table | Score:
    """Read a task in any of the forms a user may hold."""
    clipping("clip", clip)
    if callable(payoff):
        return Score("convex", _savage(payoff, gradient))
    if gradient is not None:
        raise InvalidInputError(sentence("gradient", "needs a convex function as payoff", f"got {payoff!r}"))
    if isinstance(payoff, str):
        return _named_score(payoff, clip)
    if isinstance(payoff, Mapping):
        return _table(list(payoff.values()), tuple(str(name) for name in payoff))
    array = np.asarray(payoff)
    return cost_loss(float(array)) if array.ndim == 0 and array.dtype.kind in "iuf" else _table(payoff)


def cost_loss(ratio: float) -> Table:
    """Return the cost-loss task: acting costs `ratio`, an outcome 1 that was not acted on costs 1."""
    if not 0 <= ratio <= 1:
        hint = "divide the cost of acting by the loss that acting avoids"
        raise InvalidInputError(
            sentence("payoff", "as a cost-loss ratio must lie in [0, 1]", f"got {ratio}", hint)
        )
    return Table(("wait", "act"), np.array([[0.0, -1.0], [-ratio, -ratio]]))


def _table(payoff: Any, names: tuple[str, ...] | None = None) -> Table:
    rule = "must be a table with a row for each action and two columns, outcome 0 and outcome 1"
    try:
        table = np.array(payoff, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInputError(sentence("payoff", rule, f"got {payoff!r}")) from None
    if table.ndim != 2 or table.shape[1] != 2 or len(table) == 0:
        hint = "transpose it" if table.ndim == 2 and len(table) == 2 else ""
        raise InvalidInputError(sentence("payoff", rule, f"got shape {table.shape}", hint))
    if not np.all(np.isfinite(table)):
        raise InvalidInputError(sentence("payoff", "must be finite", f"got {table.tolist()}"))
    table.flags.writeable = False
    return Table(names or tuple(str(a) for a in range(len(table))), table)


def _named_score(name: str, clip: float) -> Score:
    scores: dict[str, Callable[[Array], Array]] = {
        "quadratic": lambda v: np.stack((1 - v**2, 1 - (1 - v) ** 2)),
        "log": lambda v: np.log(np.clip(np.stack((1 - v, v)), clip, 1 - clip)),
        "spherical": lambda v: np.stack((1 - v, v)) / np.hypot(1 - v, v),
    }
    if name not in scores:
        raise reject_name("payoff", name, list(scores))
    return Score(name, scores[name])


def _savage(phi: Convex, gradient: Convex | None) -> Callable[[Array], Array]:
    """Return the proper score of a convex function, phi(v) + phi'(v) (y - v)."""

    def earned(v: Array) -> Array:
        slope = _difference(phi, v) if gradient is None else _called(gradient, v, "gradient")
        value = _called(phi, v, "payoff")
        return np.stack((value - v * slope, value + (1 - v) * slope))

    return earned


def _difference(phi: Convex, v: Array) -> Array:
    low, high = np.maximum(v - STEP, 0.0), np.minimum(v + STEP, 1.0)
    slope: Array = (_called(phi, high, "payoff") - _called(phi, low, "payoff")) / (high - low)
    return slope


def _called(function: Convex, v: Array, name: str) -> Array:
    value = np.asarray(function(v), dtype=np.float64)
    if value.shape not in ((), v.shape) or not np.all(np.isfinite(value)):
        rule = "as a function must return one finite number per probability"
        raise InvalidInputError(
            sentence(name, rule, f"got shape {value.shape}" if value.shape else f"got {value}")
        )
    return np.broadcast_to(value, v.shape)
