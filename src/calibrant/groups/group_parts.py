"""The rows of one group, as compare_groups needs them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.forecasts import Forecasts
from calibrant.groups.column_codes import Column
from calibrant.groups.condition_words import label_in_words
from calibrant.records import Checked
from calibrant.results import Array
from calibrant.sums import dot


class Certain(NamedTuple):
    """Rows predicted 0, or rows predicted 1: their weight, that of their events, their effective number."""

    weight: float
    events: float
    effective: float


@dataclass(frozen=True, slots=True, eq=False)
class GroupPart:
    """The rows of one group; `logits`, `known` and `mass` are of predictions other than 0 and 1."""

    name: str
    labelled: bool
    forecasts: Forecasts
    logits: Array
    known: Array
    mass: Array
    never: Certain  # rows with predictions of 0
    always: Certain  # and of 1
    weight: float
    certain: int
    wrong: int

    @property
    def gap(self) -> float:
        """By how much outcomes exceed predictions in the mean."""
        return self.forecasts.base_rate - self.forecasts.mean_prediction

    @property
    def events(self) -> int:
        """How many of the records that could have either outcome had the event."""
        return int(self.known.sum())


def parts_of(column: Column, checked: Checked) -> list[GroupPart]:
    """Divide the rows by the values of a column."""
    return [_part(label, column.codes == code, checked) for code, label in enumerate(column.labels)]


def _name(label: Any) -> str:
    """Write a label; years that stand beside gaps are no fractions."""
    if label is None:
        return "missing"
    whole = isinstance(label, float | np.floating) and float(label).is_integer()
    return str(int(label)) if whole else label_in_words(label)


def _part(label: Any, inside: npt.NDArray[np.bool_], checked: Checked) -> GroupPart:
    weight = None if checked.weight is None else checked.weight[inside]
    return part_of(label, checked.prediction[inside], checked.outcome[inside].astype(np.float64), weight)


def part_of(label: Any, p: Array, y: Array, weight: Array | None) -> GroupPart:
    """Return a group of these rows."""
    from scipy.special import logit

    w = np.ones(len(p)) if weight is None else weight
    order = np.lexsort((w, y, p))  # so that row order does not count, not in the last digit either
    p, y, w = p[order], y[order], w[order]
    free = (p > 0) & (p < 1)
    forecasts = Forecasts(y, p, sample_weight=None if weight is None else w)
    return GroupPart(
        _name(label),
        label is not None,
        forecasts,
        np.asarray(logit(p[free])),
        y[free],
        w[free],
        _certain(y[p == 0], w[p == 0]),
        _certain(y[p == 1], w[p == 1]),
        float(w.sum()),
        int(np.count_nonzero(~free)),
        int(np.count_nonzero(y[~free] != p[~free])),
    )


def _certain(y: Array, w: Array) -> Certain:
    weight = float(w.sum())
    share = w / weight if weight else w  # squares of weights may be beyond what a number can hold
    return Certain(weight, dot(w, y), 1 / dot(share, share) if weight else 0.0)
