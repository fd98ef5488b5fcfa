"""The best response to a prediction."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, reject_rows, sentence
from calibrant.inputs import check_unit_interval, numeric_vector
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
    table = table_of(payoff)
    p = numeric_vector(y_prob, "y_prob").astype(np.float64)
    hint = "leave such rows out: there is one action per row"
    reject_rows("y_prob", "must not be missing", p, np.isnan(p), hint)
    check_unit_interval(p, "y_prob")
    levels, place = np.unique(p, return_inverse=True)  # `best` wants them to ascend
    best = table.best(levels)[place]
    actions = np.argmax(best, axis=1)
    earned = table.expected(p)[np.arange(len(p)), actions]
    return BestActions(actions, table.names, earned, best.sum(axis=1) > 1)


def table_of(payoff: Payoff) -> Table:
    task = task_of(payoff)
    if not isinstance(task, Table):
        rule = "must be a table of actions or a cost-loss ratio"
        hint = "the best response to a score is the prediction itself"
        raise InvalidInputError(sentence("payoff", rule, f"got the score {task.name!r}", hint))
    return task
