"""A limit on the time of one case: a hang becomes a failure that names the case."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def time_limit(seconds: float, case: object = "") -> Iterator[None]:
    """Raise TimeoutError when the block takes longer."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"more than {seconds} s: {case}")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
