"""How far a recalibration has come: every fit is counted, for whoever shows a bar."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_tell: ContextVar[Callable[[], None] | None] = ContextVar("tell", default=None)


@contextmanager
def each_fit(tell: Callable[[int], object]) -> Iterator[None]:
    """Call `tell` with the number of fits done after each of them, while the block runs."""
    done = 0

    def one_more() -> None:
        nonlocal done
        done += 1
        tell(done)

    token = _tell.set(one_more)
    try:
        yield
    finally:
        _tell.reset(token)


def fitted_once() -> None:
    """Say that one fit is done, if somebody listens."""
    tell = _tell.get()
    if tell is not None:
        tell()
