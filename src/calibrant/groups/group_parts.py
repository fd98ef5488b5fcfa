"""The rows of one group, as compare_groups needs them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.forecasts import Forecasts
from calibrant.groups.column_codes import Column
from calibrant.groups.condition_words import label_in_words
from calibrant.records import Checked
from calibrant.results import Array


@dataclass(frozen=True, slots=True, eq=False)
class GroupPart:
    """The rows of one group; `logits`, `known` and `mass` are of predictions other than 0 and 1."""

    name: str
    labelled: bool
    forecasts: Forecasts
    logits: Array
    known: Array
    mass: Array
    sure: float  # weighted events that predictions of 1 foresee
    weight: float
    certain: int
    wrong: int

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
        float(w[p == 1].sum()),
        float(w.sum()),
        int(np.count_nonzero(~free)),
        int(np.count_nonzero(y[~free] != p[~free])),
    )
