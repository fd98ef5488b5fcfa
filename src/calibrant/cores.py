"""Work that releases the interpreter's lock, shared out among the cores."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

WORKERS = min(os.cpu_count() or 1, 8)
SHARED_ABOVE = 2**17  # levels from which threads repay their start


def for_each(work: Callable[[T], R], named: Mapping[str, T], *, size: int) -> dict[str, R]:
    """Return the result for every name; where `size` is small, without threads."""
    return dict(zip(named, on_all_cores(work, named.values(), size=size), strict=True))


def on_all_cores(
    work: Callable[[T], R],
    items: Iterable[T],
    *,
    size: int = SHARED_ABOVE,
    done: Callable[[R], R] = lambda result: result,
) -> list[R]:
    """Return the results for all items, in their order; where `size` is small, without threads.

    `done` gets every result on the way, always in the calling thread.
    """
    todo = list(items)
    if size < SHARED_ABOVE or min(WORKERS, len(todo)) < 2:
        return [done(work(item)) for item in todo]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(WORKERS, len(todo))) as pool:
        return [done(result) for result in pool.map(work, todo)]
