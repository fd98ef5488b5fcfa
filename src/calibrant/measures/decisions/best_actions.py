"""The best response to a prediction, and the convex function behind a table of payoffs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, reject_rows, sentence
from calibrant.inputs import check_unit_interval, vector
from calibrant.measures.decisions.payoff import Payoff, Table, task_of
from calibrant.results import Array


@dataclass(frozen=True, slots=True, eq=False)
class BestActions:
    """The best action per record for somebody who trusts the predictions (equation (4.1) of the survey).

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

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        return {
            "actions": self.actions.tolist(),
            "names": list(self.names),
            "expected": self.expected.tolist(),
            "tied": self.tied.tolist(),
        }


def best_actions(y_prob: Any, payoff: Payoff) -> BestActions:
    """Return the best action per record, for somebody who trusts the predictions.

    Parameters
    ----------
    y_prob : array
        Predicted probabilities.
    payoff : number, table or mapping
        A cost-loss ratio, a table with one row per action and the columns outcome 0 and outcome 1, or a
        mapping from actions to such rows.

    Returns
    -------
    BestActions
        Ties go to the first action and are counted.

    Examples
    --------
    >>> best_actions([0.1, 0.25, 0.7], 0.25)
    BestActions(wait: 2, act: 1; 1 tied, first taken)
    """
    table = _table(payoff)
    p = vector(y_prob, "y_prob").astype(np.float64)
    hint = "leave such rows out: there is one action per row"
    reject_rows("y_prob", "must not be missing", p, np.isnan(p), hint)
    check_unit_interval(p, "y_prob")
    best = table.best(p)
    actions = np.argmax(best, axis=1)
    earned = table.expected(p)[np.arange(len(p)), actions]
    return BestActions(actions, table.names, earned, best.sum(axis=1) > 1)


@dataclass(frozen=True, slots=True, eq=False)
class ConvexScore:
    """What the best response earns at each probability: phi(v) = max over actions of E[payoff].

    Convex and piecewise linear; Definition 4.5 of the survey. Call it for phi(v); `gradient(v)` is its slope
    (at a kink that of the first best action) and `score(v, y)` = phi(v) + phi'(v) (y - v), a proper score,
    is what somebody earns who acts on v when y happens. The `actions` that are ever best, in the order of
    growing probability, change at `thresholds`.
    """

    thresholds: Array
    actions: tuple[str, ...]
    intercepts: Array  # of the line of each of these actions
    slopes: Array

    def __call__(self, v: npt.ArrayLike) -> Array:
        p = np.asarray(v, dtype=np.float64)
        return np.asarray(np.max(self.intercepts + np.multiply.outer(p, self.slopes), axis=-1))

    def gradient(self, v: npt.ArrayLike) -> Array:
        """Return the slope of phi."""
        return self.slopes[np.searchsorted(self.thresholds, np.asarray(v, dtype=np.float64))]

    def score(self, v: npt.ArrayLike, y: npt.ArrayLike) -> Array:
        """Return what acting on v earns when y happens."""
        p = np.asarray(v, dtype=np.float64)
        piece = np.searchsorted(self.thresholds, p)
        return np.asarray(self.intercepts[piece] + self.slopes[piece] * np.asarray(y, dtype=np.float64))

    def __repr__(self) -> str:
        parts = [self.actions[0]]
        for mu, name in zip(self.thresholds, self.actions[1:], strict=True):
            parts.append(f"{name} from {mu:.4g}")
        return f"ConvexScore({', '.join(parts)})"


def as_score(payoff: Payoff) -> ConvexScore:
    """Return the convex function behind a table of payoffs: every task is a proper score.

    Parameters
    ----------
    payoff : number, table or mapping
        As for best_actions.

    Returns
    -------
    ConvexScore
        Callable on predictions, with its gradient.

    Examples
    --------
    >>> phi = as_score({"wait": (0, -1), "act": (-0.25, -0.25)})
    >>> phi
    ConvexScore(wait, act from 0.25)
    >>> phi([0.0, 0.25, 1.0]).tolist()
    [0.0, -0.25, -0.25]
    """
    table = _table(payoff)
    intercepts, slopes = table.payoff[:, 0], table.payoff[:, 1] - table.payoff[:, 0]
    lines, thresholds = _upper_envelope(intercepts, slopes)
    names = tuple(table.names[k] for k in lines)
    return ConvexScore(np.array(thresholds), names, intercepts[lines], slopes[lines])


def _upper_envelope(intercepts: Array, slopes: Array) -> tuple[list[int], list[float]]:
    """Return the lines that are highest somewhere on [0, 1], in order, and where one takes over."""
    place, line = 0.0, int(np.lexsort((-slopes, -intercepts))[0])  # at 0 the highest, of equals the steepest
    lines, thresholds = [line], []
    while True:
        steeper = np.flatnonzero(slopes > slopes[line])
        if len(steeper) == 0:
            break
        crossing = (intercepts[line] - intercepts[steeper]) / (slopes[steeper] - slopes[line])
        first = float(crossing.min())
        if not first < 1.0:
            break
        nearest = steeper[crossing <= first]
        place, line = max(place, first), int(nearest[np.argmax(slopes[nearest])])
        lines.append(line)
        thresholds.append(place)
    return lines, thresholds


def _table(payoff: Payoff) -> Table:
    task = task_of(payoff)
    if not isinstance(task, Table):
        rule = "must be a table of actions or a cost-loss ratio"
        hint = "the best response to a score is the prediction itself"
        raise InvalidInputError(sentence("payoff", rule, f"got the score {task.name!r}", hint))
    return task
