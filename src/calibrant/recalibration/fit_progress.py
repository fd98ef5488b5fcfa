"""How far a recalibration has come: every fit is counted, for whoever shows a bar."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from calibrant.progress import Progress, tell

STEPS = 100  # parts of a fit that are told
_tell: ContextVar[Callable[[], None] | None] = ContextVar("tell", default=None)
_tell_part: ContextVar[Callable[[float], None] | None] = ContextVar("tell_part", default=None)


@contextmanager
def each_fit(counted: Callable[[int], object]) -> Iterator[None]:
    """Call `counted` with the number of fits done after each of them, while the block runs."""
    done = 0

    def one_more() -> None:
        nonlocal done
        done += 1
        counted(done)

    token = _tell.set(one_more)
    try:
        yield
    finally:
        _tell.reset(token)


@contextmanager
def telling(progress: Progress | None, fits: int) -> Iterator[None]:
    """Tell the share of so many fits that is done, and of a long one the part; 1 where the block ends."""
    if progress is None:
        yield
        return
    total, reached = fits * STEPS, 0

    def show(steps: int) -> None:
        nonlocal reached
        if reached < steps <= total:
            reached = steps
            tell(progress, reached, total)

    done = 0

    def one_more(count: int) -> None:
        nonlocal done
        done = count
        show(min(done * STEPS, total))

    token = _tell_part.set(lambda share: show(done * STEPS + int(share * STEPS)))
    try:
        with each_fit(one_more):
            yield
    finally:
        _tell_part.reset(token)
    show(total)


def fitted_once() -> None:
    """Say that one fit is done, if somebody listens."""
    counted = _tell.get()
    if counted is not None:
        counted()


def fitted_partly(share: float) -> None:
    """Say how much of the fit is done that is being made, if somebody listens."""
    told = _tell_part.get()
    if told is not None:
        told(share)
