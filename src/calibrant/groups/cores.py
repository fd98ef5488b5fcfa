"""Work that releases the interpreter's lock, shared out among the cores."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

WORKERS = min(os.cpu_count() or 1, 8)


def on_all_cores(work: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """Return the results for all items, in their order."""
    todo = list(items)
    if min(WORKERS, len(todo)) < 2:
        return [work(item) for item in todo]
    with ThreadPoolExecutor(min(WORKERS, len(todo))) as pool:
        return list(pool.map(work, todo))
