"""Decision tasks: what an action earns for each outcome, the best response, and the proper score behind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError
from calibrant.inputs import checked_predictions, clipping, probabilities
from calibrant.kernels.cumulative import upper_envelope
from calibrant.metrics.calling import check_choice, numbers_of, shares_parameters
from calibrant.metrics.scores import CLIP
from calibrant.results import Array, Result

Convex = Callable[[Array], Array]
Payoff = float | str | npt.ArrayLike | Mapping[str, Any] | Convex

TIE = 1e-12  # of the range of payoffs: expected payoffs closer than this are equally good
TIE_DISTANCE = 1e-11  # probabilities closer than this can tie at one threshold
STEP = 1e-6  # of the differences that replace a missing gradient


@dataclass(frozen=True, slots=True, eq=False)
class PayoffTable:
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
        """Return which actions (columns) are best responses to ascending probabilities (rows), with ties."""
        # Payoffs closer than TIE tie, because 0.1 and 0.3 are rounded; but a threshold lies at one
        # probability: of several that tie there only the nearest does, and the others lie on one side
        expected = self.expected(probability)
        top = expected.max(axis=1, keepdims=True)
        good: npt.NDArray[np.bool_] = expected >= top - self.even
        tied = np.flatnonzero(good.sum(axis=1) > 1)
        for run in np.split(tied, np.flatnonzero(np.diff(probability[tied]) > TIE_DISTANCE) + 1):
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
    """An action per probability: `earned(v)` is what the best response to v earns, rows outcome 0 and 1."""

    name: str
    earned: Callable[[Array], Array]


def task_of(payoff: Payoff, *, clip: float = CLIP, gradient: Convex | None = None) -> PayoffTable | Score:
    clipping("clip", clip)
    if callable(payoff):
        return Score("convex", _savage(payoff, gradient))
    if gradient is not None:
        raise InvalidInputError("gradient", "needs a convex function as payoff", f"got {payoff!r}")
    if isinstance(payoff, str):
        return _named_score(payoff, clip)
    if isinstance(payoff, Mapping):
        return _table(list(payoff.values()), tuple(str(name) for name in payoff))
    array = np.asarray(payoff)
    if array.ndim > 0 or array.dtype.kind not in "iuf":
        return _table(payoff)
    ratio = float(array)  # acting costs it, an outcome 1 that was not acted on costs 1
    if not 0 <= ratio <= 1:
        hint = "divide the cost of acting by the loss that acting avoids"
        raise InvalidInputError("payoff", "as a cost-loss ratio must lie in [0, 1]", f"got {ratio}", hint)
    return PayoffTable(("wait", "act"), np.array([[0.0, -1.0], [-ratio, -ratio]]))


def _table(payoff: Any, names: tuple[str, ...] | None = None) -> PayoffTable:
    rule = "must be a table with a row for each action and two columns, outcome 0 and outcome 1"
    try:
        table = np.array(payoff, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInputError("payoff", rule, f"got {payoff!r}") from None
    if table.ndim != 2 or table.shape[1] != 2 or len(table) == 0:
        hint = "transpose it" if table.ndim == 2 and len(table) == 2 else ""
        raise InvalidInputError("payoff", rule, f"got shape {table.shape}", hint)
    if not np.all(np.isfinite(table)):
        raise InvalidInputError("payoff", "must be finite", f"got {table.tolist()}")
    table.flags.writeable = False
    return PayoffTable(names or tuple(str(a) for a in range(len(table))), table)


def _named_score(name: str, clip: float) -> Score:
    scores: dict[str, Callable[[Array], Array]] = {
        "quadratic": lambda v: np.stack((1 - v**2, 1 - (1 - v) ** 2)),
        "log": lambda v: np.log(np.clip(np.stack((1 - v, v)), clip, 1 - clip)),
        "spherical": lambda v: np.stack((1 - v, v)) / np.hypot(1 - v, v),
    }
    check_choice("payoff", name, scores)
    return Score(name, scores[name])


def _savage(phi: Convex, gradient: Convex | None) -> Callable[[Array], Array]:
    """Return the proper score of a convex function, phi(v) + phi'(v) (y - v)."""

    def earned(v: Array) -> Array:
        rule = "as a function must return one finite number per probability"
        value = numbers_of(phi, v, "payoff", rule)
        if gradient is None:
            low, high = np.maximum(v - STEP, 0.0), np.minimum(v + STEP, 1.0)
            rise = numbers_of(phi, high, "payoff", rule) - numbers_of(phi, low, "payoff", rule)
            slope = rise / (high - low)
        else:
            slope = numbers_of(gradient, v, "gradient", rule)
        return np.stack((value - v * slope, value + (1 - v) * slope))

    return earned


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BestActions(Result):
    """The best action per record, for those who trust the predictions (equation (4.1) of the survey).

    `actions` are row numbers of the payoff table, `names` what the rows are called, `expected` what each
    action earns if the prediction is true. Where several actions are equally good the first is taken, and
    `tied` says so.
    """

    actions: npt.NDArray[np.intp]
    names: tuple[str, ...]
    expected: Array
    tied: npt.NDArray[np.bool_]

    @property
    def labels(self) -> list[str]:
        """The name of the action per record."""
        return [self.names[action] for action in self.actions]

    def __len__(self) -> int:
        return len(self.actions)

    def __repr__(self) -> str:
        taken = Counter(self.labels)
        parts = ", ".join(f"{name}: {taken[name]:,}" for name in self.names if taken[name])
        ties = int(np.count_nonzero(self.tied))
        return f"BestActions({parts}{f'; {ties:,} tied, first taken' if ties else ''})"


@shares_parameters("")
def best_actions(y_prob: Any, payoff: Payoff) -> BestActions:
    """Return the best action per record, for a decision maker who trusts the predictions.

    Parameters
    ----------
    y_prob : array
        Predicted probabilities.
    payoff : number, table or mapping
        A cost-loss ratio, a table with one row per action and the columns outcome 0 and outcome 1, or a
        mapping from actions to such rows.

    Examples
    --------
    >>> best_actions([0.1, 0.25, 0.7], 0.25)
    BestActions(wait: 2, act: 1; 1 tied, first taken)
    """
    table = table_of(payoff)
    p = checked_predictions(y_prob, "y_prob", "leave such rows out: there is one action per row")
    levels, place = np.unique(p, return_inverse=True)  # `best` wants them to ascend
    best = table.best(levels)[place]
    actions = np.argmax(best, axis=1)
    earned = table.expected(p)[np.arange(len(p)), actions]
    return BestActions(actions, table.names, earned, best.sum(axis=1) > 1)


def table_of(payoff: Payoff) -> PayoffTable:
    task = task_of(payoff)
    if not isinstance(task, PayoffTable):
        rule = "must be a table of actions or a cost-loss ratio, with finitely many actions"
        hint = "the best response to a score is the prediction itself"
        raise InvalidInputError("payoff", rule, f"got the score {task.name!r}", hint)
    return task


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ConvexScore(Result):
    """What the best response earns at each probability: phi(v) = max over actions of E[payoff].

    Convex and piecewise linear; Theorem 4.6 of the survey. Call it for phi(v); `gradient(v)` is its slope
    (at a kink that of the first best action) and `score(v, y)` = phi(v) + phi'(v) (y - v), a proper score,
    is the payoff of acting on v when the outcome is y. The `actions` that are ever best, in the order of
    growing probability, change at `thresholds`.
    """

    thresholds: Array
    actions: tuple[str, ...]
    intercepts: Array  # of the line of each of these actions
    slopes: Array

    def __call__(self, v: npt.ArrayLike) -> Array:
        p = probabilities(v, "v")
        return np.asarray(np.max(self.intercepts + np.multiply.outer(p, self.slopes), axis=-1))

    def gradient(self, v: npt.ArrayLike) -> Array:
        """Return the slope of phi."""
        return self.slopes[np.searchsorted(self.thresholds, probabilities(v, "v"))]

    def score(self, v: npt.ArrayLike, y: npt.ArrayLike) -> Array:
        """Return what acting on v earns when the outcome is y."""
        p, outcome = probabilities(v, "v"), probabilities(y, "y")
        piece = np.searchsorted(self.thresholds, p)
        try:
            return np.asarray(self.intercepts[piece] + self.slopes[piece] * outcome)
        except ValueError:
            got = f"got shapes {p.shape} and {outcome.shape}"
            raise InvalidInputError("v and y", "must have the same shape", got) from None

    def __repr__(self) -> str:
        changes = zip(self.actions[1:], self.thresholds, strict=True)
        return f"ConvexScore({self.actions[0]}{''.join(f', {name} from {mu:.4g}' for name, mu in changes)})"


@shares_parameters("")
def as_score(payoff: Payoff) -> ConvexScore:
    """Return the convex function behind a table of payoffs: every task is a proper score.

    Parameters
    ----------
    payoff : number, table or mapping
        As for best_actions.

    Examples
    --------
    >>> phi = as_score({"wait": (0, -1), "act": (-0.25, -0.25)})
    >>> phi
    ConvexScore(wait, act from 0.25)
    >>> phi([0.0, 0.25, 1.0]).tolist()
    [0.0, -0.25, -0.25]
    """
    table = table_of(payoff)
    intercepts, slopes = table.payoff[:, 0], table.payoff[:, 1] - table.payoff[:, 0]
    lines, thresholds = upper_envelope(intercepts, slopes)
    names = tuple(table.names[k] for k in lines)
    return ConvexScore(np.array(thresholds), names, intercepts[lines], slopes[lines])
