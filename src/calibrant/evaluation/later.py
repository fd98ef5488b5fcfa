"""A value that is made when it is first asked for: a table in a terminal needs less than a report."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Later(Generic[T]):
    """The result of `make`, which is called once, when it is needed.

    >>> lazy = Later(lambda: 2 + 2)
    >>> lazy.made, lazy.get(), lazy.made
    (False, 4, True)
    """

    __slots__ = ("_make", "_value")

    def __init__(self, make: Callable[[], T]) -> None:
        self._make: Callable[[], T] | None = make
        self._value: T | None = None

    @property
    def made(self) -> bool:
        """Whether the value is there."""
        return self._make is None

    def get(self) -> T:
        """Return the value."""
        if self._make is not None:
            self._value = self._make()
            self._make = None  # and what it holds
        return self._value  # type: ignore[return-value]
