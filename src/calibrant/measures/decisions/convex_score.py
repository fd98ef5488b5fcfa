"""The convex function behind a table of payoffs, as a proper score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, sentence
from calibrant.inputs import probabilities
from calibrant.kernels.envelope import upper_envelope
from calibrant.measures.decisions.best_actions import table_of
from calibrant.measures.decisions.payoff import Payoff
from calibrant.results import Array, Result


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ConvexScore(Result):
    """What the best response earns at each probability: phi(v) = max over actions of E[payoff].

    Convex and piecewise linear; Theorem 4.6 of the survey. Call it for phi(v); `gradient(v)` is its slope
    (at a kink that of the first best action) and `score(v, y)` = phi(v) + phi'(v) (y - v), a proper score,
    is what somebody earns who acts on v when y happens. The `actions` that are ever best, in the order of
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
        """Return what acting on v earns when y happens."""
        p, outcome = probabilities(v, "v"), probabilities(y, "y")
        piece = np.searchsorted(self.thresholds, p)
        try:
            return np.asarray(self.intercepts[piece] + self.slopes[piece] * outcome)
        except ValueError:
            got = f"got shapes {p.shape} and {outcome.shape}"
            raise InvalidInputError(sentence("v and y", "must have the same shape", got)) from None

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
    table = table_of(payoff)
    intercepts, slopes = table.payoff[:, 0], table.payoff[:, 1] - table.payoff[:, 0]
    lines, thresholds = upper_envelope(intercepts, slopes)
    names = tuple(table.names[k] for k in lines)
    return ConvexScore(np.array(thresholds), names, intercepts[lines], slopes[lines])
