"""Categories with an order of their own, as an array: it can be cut and dealt, and keeps the order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt


class OrderedValues(np.ndarray[Any, np.dtype[np.object_]]):
    """An array of objects that remembers the order of its categories, lowest first.

    >>> values = OrderedValues.of(["high", "low", None], ["low", "high"])
    >>> values[[True, False, True]].order
    ('low', 'high')
    """

    order: tuple[Any, ...]

    @classmethod
    def of(cls, values: Sequence[Any], order: Sequence[Any]) -> Self:
        """Return values that stand in some order."""
        array = np.empty(len(values), dtype=object)
        array[:] = values
        made = array.view(cls)
        made.order = tuple(order)
        return made

    def __array_finalize__(self, source: Any) -> None:
        """Keep the order in slices and selections."""
        self.order = getattr(source, "order", ())


def remembered(column: Any) -> Any:
    """Return a bare ordered categorical (pandas) as an array that keeps its order; all else as it is."""
    if getattr(column, "ordered", None) is True and hasattr(column, "categories"):
        return OrderedValues.of(list(column), column.categories.tolist())
    return column


def joined_column(parts: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Put parts of a column together again, with its order if it has one."""
    whole = np.concatenate(parts)
    first = parts[0]
    return OrderedValues.of(whole.tolist(), first.order) if isinstance(first, OrderedValues) else whole
