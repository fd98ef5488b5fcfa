"""Progress: how far a long piece of work is, told as the share that is done."""

from __future__ import annotations

import inspect
from collections.abc import Callable

Progress = Callable[..., object]  # called with the share that is done, from 0 to 1


def tell(progress: Progress | None, done: int, total: int) -> None:
    """Call `progress` with the share that is done, or with `done` and `total` if it takes two numbers.

    Two numbers are what version 0.1 passed.

    >>> tell(print, 1, 4), tell(lambda share: print(f"{share:.0%}"), 1, 4)
    1 4
    25%
    (None, None)
    """
    if progress is None:
        return
    if _takes_two(progress):
        progress(done, total)
    else:
        progress(done / total)


def _takes_two(progress: Progress) -> bool:
    try:
        inspect.signature(progress).bind(0, 1)
    except (TypeError, ValueError):  # one number, or a builtin that does not say
        return False
    return True
