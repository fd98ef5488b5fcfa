"""`@compiled`: the one decorator that uses numba.

Short inputs run a kernel as plain Python: importing and dispatching numba costs one to two seconds.
"""

from __future__ import annotations

import functools
import sys
import threading
import types
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, ParamSpec, TypeVar, cast

import numpy as np

PAUSE = 1.0  # seconds of compiling after which a person at a terminal sees a message


@functools.cache
def machine_code(kernel: types.FunctionType, cache: bool = True) -> Callable[..., Any]:
    """Return the numba version of a kernel, cached on disk."""
    import numba

    source = _with_fast_callees(kernel)
    try:
        return cast("Callable[..., Any]", numba.njit(cache=cache, nogil=True)(source))
    except RuntimeError:  # no writable cache folder: compile in each process
        return cast("Callable[..., Any]", numba.njit(nogil=True)(source))


def _with_fast_callees(kernel: types.FunctionType) -> types.FunctionType:
    """Return a copy that calls the numba versions of kernels and of plain functions of its module."""
    fast = {}
    for name in kernel.__code__.co_names:
        called = kernel.__globals__.get(name)
        if isinstance(called, compiled):
            fast[name] = called.machine_code()
        elif isinstance(called, types.FunctionType) and called.__module__ == kernel.__module__:
            fast[name] = machine_code(called, cache=False)  # the code of the kernel, on disk, holds its code
    source = types.FunctionType(
        kernel.__code__, {**kernel.__globals__, **fast}, kernel.__name__, kernel.__defaults__
    )
    source.__qualname__ = kernel.__qualname__
    return source


@functools.cache
def _warn_once() -> None:
    if sys.stderr.isatty():
        sys.stderr.write("calibrant: compiling, once per machine, which takes a few seconds ...\n")


def writeable(arg: Any) -> Any:
    """Return a read-only array as one that numba takes for writeable, over the same memory."""
    if not isinstance(arg, np.ndarray) or arg.flags.writeable:
        return arg
    described = {**arg.__array_interface__, "data": (arg.ctypes.data, False)}
    return np.asarray(types.SimpleNamespace(__array_interface__=described, held=arg))  # numpy holds it


P = ParamSpec("P")
R = TypeVar("R")

COMPILE_ABOVE = 20_000  # array length from which numba repays its start-up time
COMPILE_LOADED = 2_000  # the same where numba is in the process already


def numba_is_loaded() -> bool:
    return sys.modules.get("numba") is not None


class compiled(Generic[P, R]):  # noqa: N801 - reads as a decorator
    """Run `kernel` through numba when its first argument, an array, is long; as plain Python otherwise."""

    def __init__(self, kernel: Callable[P, R]) -> None:
        functools.update_wrapper(self, kernel)
        self.plain = kernel
        self._fast: Any = None  # the numba version, once it is in use
        self._called = False

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self._fast is None and not self.worth_compiling(len(args[0])):  # type: ignore[arg-type]
            return self.plain(*args, **kwargs)
        self.compile_now()
        unlocked = tuple(map(writeable, args))
        if self._called:
            return self._retrying(unlocked, kwargs)
        warning = threading.Timer(PAUSE, _warn_once)
        warning.daemon = True
        warning.start()
        try:
            return self._retrying(unlocked, kwargs)
        finally:
            warning.cancel()
            self._called = True

    def _retrying(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> R:
        """Call the kernel; with a damaged cache or a full disk, with an emptied cache, then without one."""
        with suppress(Exception):  # an error of the kernel itself comes again in the end
            return cast("R", self._fast(*args, **kwargs))
        with suppress(Exception):
            self._fast.recompile()  # empties the cache of this kernel
            return cast("R", self._fast(*args, **kwargs))
        self._fast = machine_code(cast("types.FunctionType", self.plain), cache=False)
        return cast("R", self._fast(*args, **kwargs))

    def worth_compiling(self, length: int) -> bool:
        """Return whether machine code is best for this length: always, once it has been compiled."""
        return self._fast is not None or length >= (COMPILE_LOADED if numba_is_loaded() else COMPILE_ABOVE)

    def compile_now(self) -> None:
        """Use numba from now on, whatever the length: the kernel is about to be called very often."""
        if self._fast is None:
            self._fast = self.machine_code()

    def prepare(self, length: int) -> None:
        """Use numba from now on if that repays its start for inputs of this length."""
        if self.worth_compiling(length):
            self.compile_now()

    def machine_code(self) -> Callable[..., R]:
        return machine_code(cast("types.FunctionType", self.plain))
