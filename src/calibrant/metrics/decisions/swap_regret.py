"""Swap regret: what a sequence of decisions, once taken, could have gained by consistent second thoughts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, reject_name, reject_rows
from calibrant.inputs import InputNames, to_array
from calibrant.metrics.decisions.payoffs import Payoff, PayoffTable, task_of
from calibrant.records import Missing, check_records
from calibrant.results import Result


@dataclass(frozen=True, slots=True, repr=False)
class Swap(Result):
    """One action that was taken, and the action that would have been better each time it was."""

    taken: str
    better: str
    share: float  # of all weight
    records: int
    gain: float  # mean over all records


@dataclass(frozen=True, slots=True, repr=False)
class SwapRegret(Result):
    """Mean payoff of the decisions, and what two kinds of hindsight would have added to it.

    `swap`: replace every action by the best one for the records where it was taken. `external`: take one
    and the same best action throughout. External regret can be negative (then the forecasts were worth
    something); swap regret cannot, and is at least as large.
    """

    swap: float
    external: float
    payoff: float
    swaps: tuple[Swap, ...]


def swap_regret(
    y_true: Any, actions: Any, *, payoff: Payoff, sample_weight: Any = None, missing: Missing = "error"
) -> SwapRegret:
    """Return the swap regret of decisions taken, per record, in the unit of the payoffs.

    `actions` are row numbers of the payoff table, or the names it gives them; a cost-loss ratio names its
    actions "wait" (0) and "act" (1). Decisions that trust predictions have at most the
    fixed_decision_loss of these predictions as swap regret, and so at most their decision_loss.

    Parameters
    ----------
    y_true
        Outcomes.
    actions
        What was done: row numbers of the payoff table, or its names.
    payoff
        The decision task, as for fixed_decision_loss.
    sample_weight
        Non-negative weights, one per record.
    missing
        Refuse rows without an outcome or a weight ("error"), or leave them out ("drop").

    Returns
    -------
    SwapRegret
        Swap and external regret, and the best swap per action.

    Examples
    --------
    >>> swap_regret([0, 0, 1, 1], ["act", "act", "wait", "wait"], payoff=0.25).swap
    0.5
    """
    task = task_of(payoff)
    if not isinstance(task, PayoffTable):
        hint = "give a table, a mapping or a cost-loss ratio"
        raise InvalidInputError("payoff", "must have finitely many actions", f"got {payoff!r}", hint)
    taken = to_array(actions, "actions")
    if taken.ndim != 1:
        raise InvalidInputError("actions", "must be one-dimensional", f"got shape {taken.shape}")
    names = InputNames("y_true", "actions", "sample_weight")
    rows = check_records(y_true, np.zeros(len(taken)), sample_weight, missing, names)
    taken = _numbered(taken if rows.rows is None else taken[rows.rows], task)
    w = np.ones(len(taken)) if rows.weight is None else rows.weight / rows.largest
    w = w / w.sum()
    size = len(task.names)
    ones = np.bincount(taken, w * rows.outcome.astype(np.float64), size)
    mass = np.column_stack((np.bincount(taken, w, size) - ones, ones))  # by action taken, by outcome
    possible = mass @ task.payoff.T  # row: taken, column: had it been this one instead
    earned = np.diag(possible)
    better = np.argmax(possible, axis=1)
    gains = np.maximum(possible.max(axis=1) - earned, 0.0)
    counts = np.bincount(taken, minlength=size)
    swaps = [
        Swap(task.names[a], task.names[better[a]], float(mass[a].sum()), int(counts[a]), float(gains[a]))
        for a in np.argsort(-gains, kind="stable")
        if gains[a] > 0
    ]
    total = float(earned.sum())
    return SwapRegret(float(gains.sum()), float(possible.sum(axis=0).max()) - total, total, tuple(swaps))


def _numbered(array: npt.NDArray[Any], task: PayoffTable) -> npt.NDArray[np.intp]:
    """Return the actions as row numbers of the table."""
    if array.dtype.kind in "biu":
        reject_rows(
            "actions", f"must be 0 to {len(task.names) - 1}", array, (array < 0) | (array >= len(task.names))
        )
        return array.astype(np.intp)
    place = {name: a for a, name in enumerate(task.names)}
    for item in array:
        if str(item) not in place:
            raise reject_name("actions", str(item), list(place))
    return np.array([place[str(item)] for item in array], dtype=np.intp)
