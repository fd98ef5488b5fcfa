"""One way to write a map, for SQL text and for narwhals expressions alike.

Both kinds of column overload arithmetic and comparison; what they lack are functions and a choice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

LARGEST = 700.0  # the logit beyond which exp would overflow


class Algebra(Protocol):
    """The functions that maps need beside arithmetic."""

    def log(self, x: Any) -> Any:
        """Return the natural logarithm."""

    def exp(self, x: Any) -> Any:
        """Return e to the power x."""

    def clip(self, x: Any, low: float, high: float) -> Any:
        """Return x held within [low, high]."""

    def when(self, condition: Any, then: Any, otherwise: Any) -> Any:
        """Return one of two expressions."""

    def number(self, value: float) -> Any:
        """Return a constant."""


def expit(eta: Any, algebra: Algebra) -> Any:
    """Return 1 / (1 + e^-eta)."""
    return algebra.number(1.0) / (algebra.exp(-algebra.clip(eta, -LARGEST, LARGEST)) + 1.0)


def balanced(p: Any, cuts: list[float], leaf: Callable[[int], Any], algebra: Algebra) -> Any:
    """Return a balanced tree of choices: leaf(k) where cuts[k-1] <= p < cuts[k].

    It takes log2 of the number of cuts comparisons per row, and its depth stays below any parser's limit.
    """

    def tree(first: int, last: int) -> Any:
        if first == last:
            return leaf(first)
        middle = (first + last) // 2
        return algebra.when(p < cuts[middle], tree(first, middle), tree(middle + 1, last))

    return tree(0, len(cuts))
