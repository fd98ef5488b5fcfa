"""Swap regret: what a sequence of decisions, once taken, could have gained by consistent second thoughts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.errors import DROP_MISSING, InvalidInputError, reject_name, reject_rows
from calibrant.formatting import pluralize
from calibrant.inputs import (
    check_aligned,
    check_same_length,
    check_unit_interval,
    check_weights,
    missing_rows,
    numeric_vector,
    row_labels,
    to_array,
)
from calibrant.metrics.decisions.payoffs import Payoff, PayoffTable, task_of
from calibrant.records import Missing
from calibrant.results import Array, Result


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
    if missing == "drop":
        y_true, actions, sample_weight = _complete(y_true, actions, sample_weight)
    elif missing != "error":
        raise reject_name("missing", missing, ["error", "drop"])
    y, w = _outcomes(y_true, sample_weight)
    taken = _numbered(actions, task)
    check_same_length(y, taken, ("y_true", "actions"))
    size = len(task.names)
    ones = np.bincount(taken, w * y, size)
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


def _complete(y_true: Any, actions: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """Return the rows that have an outcome and, where there are weights, a weight."""
    y = numeric_vector(y_true, "y_true")
    w = None if sample_weight is None else numeric_vector(sample_weight, "sample_weight")
    taken = to_array(actions, "actions")
    check_same_length(taken, y, ("actions", "y_true"))
    absent = missing_rows(y) if w is None else missing_rows(y, w)
    if absent is None:
        return y_true, actions, sample_weight
    if absent.all():
        got = f"got {pluralize(len(y), 'row')}, all with one"
        raise InvalidInputError("y_true", "must have a row without missing values", got)
    return y[~absent], taken[~absent], None if w is None else w[~absent]


def _outcomes(y_true: Any, sample_weight: Any) -> tuple[Array, Array]:
    y = numeric_vector(y_true, "y_true")
    absent = missing_rows(y)
    if absent is not None:
        reject_rows("y_true", "must not be missing", y, absent, DROP_MISSING)
    check_unit_interval(y, "y_true")
    w = np.ones(len(y))
    if sample_weight is not None:
        check_aligned(sample_weight, row_labels(y_true), ("sample_weight", "y_true"))
        w = check_weights(numeric_vector(sample_weight, "sample_weight"), "sample_weight")
    check_same_length(w, y, ("sample_weight", "y_true"))
    w = w / w.max()
    return y.astype(np.float64), w / w.sum()


def _numbered(actions: Any, task: PayoffTable) -> npt.NDArray[np.intp]:
    """Return the actions as row numbers of the table."""
    array = to_array(actions, "actions")
    if array.ndim != 1:
        raise InvalidInputError("actions", "must be one-dimensional", f"got shape {array.shape}")
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
