"""One way to write a map, for SQL text and for narwhals expressions alike.

A column may be added to, taken from, multiplied with and divided by a column or a number that stands to its
right (`-p + 1.0`, not `1.0 - p`), negated, and compared by `<` and `==` alone. What else a map needs,
functions and a choice, an Algebra has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from calibrant.results import Array

LARGEST = 700.0  # the logit beyond which exp would overflow


class Algebra(Protocol):
    """The functions that maps need beside arithmetic."""

    def log(self, x: Any) -> Any:
        """Return the natural logarithm."""

    def exp(self, x: Any) -> Any:
        """Return e to the power x."""

    def clip(self, x: Any, low: float, high: float) -> Any:
        """Return x held within [low, high]."""

    def greatest(self, columns: Sequence[Any]) -> Any:
        """Return the largest of several columns."""

    def when(self, condition: Any, then: Any, otherwise: Any) -> Any:
        """Return one of two expressions."""

    def number(self, value: float) -> Any:
        """Return a constant."""

    def pieces(self, p: Any, cuts: Array, tables: Sequence[Array], formula: Callable[..., Any]) -> Any:
        """Return the formula of the numbers of piece k, one of each table, where cuts[k-1] <= p < cuts[k]."""


def expit(eta: Any, largest: float, algebra: Algebra) -> Any:
    """Return 1 / (1 + e^-eta); `largest` bounds |eta|, which is held back where exp could overflow."""
    held = eta if largest <= LARGEST else algebra.clip(eta, -LARGEST, LARGEST)
    return algebra.number(1.0) / (algebra.exp(-held) + 1.0)


def choice_tree(
    algebra: Algebra, p: Any, cuts: Array, tables: Sequence[Array], formula: Callable[..., Any]
) -> Any:
    """Return pieces as a balanced tree of choices.

    It takes log2 of the number of cuts comparisons per row, and its depth stays below any parser's limit.
    """

    def tree(first: int, last: int) -> Any:
        if first == last:
            return formula(*(algebra.number(float(table[first])) for table in tables))
        middle = (first + last) // 2
        return algebra.when(p < float(cuts[middle]), tree(first, middle), tree(middle + 1, last))

    return tree(0, len(cuts))
