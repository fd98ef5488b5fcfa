"""The one decorator behind which numba lives.

A kernel is a plain function of numpy arrays. Short inputs run it as plain Python, because importing and
dispatching numba costs one to two seconds a process; long ones go through numba, with its on-disk cache.
Where numba is not installed the plain function answers, only slower.
"""

from __future__ import annotations

import functools
import sys
import threading
import types
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, ParamSpec, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")

COMPILE_ABOVE = 20_000  # array length from which numba repays its start-up time
COMPILE_LOADED = 2_000  # the same where numba is in the process already
PATIENCE = 1.5  # seconds of compiling after which a person at a terminal is told


class compiled(Generic[P, R]):  # noqa: N801 - reads as a decorator
    """Run `kernel` through numba when its first argument, an array, is long; as plain Python otherwise.

    A kernel may call other kernels and plain functions of its own module; they are compiled along with it.
    Once numba is in use for a kernel it stays in use, whatever the length: the start-up time has been paid.
    """

    def __init__(self, kernel: Callable[P, R]) -> None:
        functools.update_wrapper(self, kernel)
        self.plain = kernel
        self._fast: Callable[P, R] | None = None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self._fast is not None:
            return self._fast(*args, **kwargs)
        if not self.pays(len(args[0])):  # type: ignore[arg-type]
            return self.plain(*args, **kwargs)
        fast = self.machine_code()
        with _told_when_slow(self.plain.__name__):
            result = fast(*args, **kwargs)
        self._fast = fast
        return result

    def pays(self, length: int) -> bool:
        """Return whether machine code serves best for this length: always, once it has been made."""
        loaded = sys.modules.get("numba") is not None
        return self._fast is not None or length >= (COMPILE_LOADED if loaded else COMPILE_ABOVE)

    def expect_much(self) -> None:
        """Use numba from now on, whatever the length: the kernel is about to be called very often."""
        self._fast = self.machine_code()

    def machine_code(self) -> Callable[P, R]:
        """Return the numba version of the kernel, or the plain one where numba is absent."""
        return cast("Callable[P, R]", _machine_code(self.plain))


@functools.cache
def _machine_code(kernel: types.FunctionType) -> Callable[..., Any]:
    try:
        import numba
    except ImportError:
        return kernel
    called = {name: kernel.__globals__.get(name) for name in kernel.__code__.co_names}
    sources = {name: _source(item, kernel.__module__) for name, item in called.items()}
    fast = {name: _machine_code(item) for name, item in sources.items() if item is not None}
    source = types.FunctionType(
        kernel.__code__, {**kernel.__globals__, **fast}, kernel.__name__, kernel.__defaults__
    )
    source.__qualname__ = kernel.__qualname__
    try:
        dispatcher: Any = numba.njit(cache=True, nogil=True)(source)
    except RuntimeError:  # no folder to cache in can be written to: compile anew in each process
        return cast("Callable[..., Any]", numba.njit(nogil=True)(source))
    if hasattr(dispatcher, "_cache"):
        dispatcher._cache = _ForgivingCache(dispatcher._cache)
    return cast("Callable[..., Any]", dispatcher)


class _ForgivingCache:
    """The cache of numba on disk; where the disk is full or a file damaged it costs time and nothing else."""

    def __init__(self, cache: Any) -> None:
        self._cache = cache

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)

    def load_overload(self, *signature: Any) -> Any:
        """Return machine code made earlier; None, and an empty cache, where it cannot be read."""
        try:
            return self._cache.load_overload(*signature)
        except Exception:
            with suppress(Exception):
                self._cache.flush()
            return None

    def save_overload(self, *made: Any) -> None:
        """Keep machine code for the next process, if there is room."""
        with suppress(Exception):
            self._cache.save_overload(*made)


def _source(item: object, module: str) -> types.FunctionType | None:
    """Return what must be compiled along with its caller: a kernel, or a plain function beside it."""
    if isinstance(item, compiled):
        return cast("types.FunctionType", item.plain)
    return item if isinstance(item, types.FunctionType) and item.__module__ == module else None


class _told_when_slow:  # noqa: N801 - reads as a phrase
    """Tell a person at a terminal why nothing happens while numba compiles."""

    def __init__(self, name: str) -> None:
        text = f"calibrant: compiling {name.strip('_')} (once per machine) ...\n"
        self._timer = threading.Timer(PATIENCE, sys.stderr.write, [text])
        self._timer.daemon = True

    def __enter__(self) -> None:
        if sys.stderr.isatty():
            self._timer.start()

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
