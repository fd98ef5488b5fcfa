"""How numba turns a kernel into machine code, keeps it on disk, and says that the first time is slow."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

import numpy as np
import numpy.typing as npt


@functools.cache
def machine_code(kernel: types.FunctionType) -> Callable[..., Any]:
    """Return the numba version of a kernel, kept on disk; the plain one where numba is absent."""
    try:
        import numba
    except ImportError:
        return kernel
    source = _with_fast_callees(kernel)
    try:
        dispatcher: Any = numba.njit(cache=True, nogil=True)(source)
    except RuntimeError:  # no folder to cache in can be written to: compile anew in each process
        say_once()
        return cast("Callable[..., Any]", numba.njit(nogil=True)(source))
    if hasattr(dispatcher, "_cache"):
        dispatcher._cache = _ForgivingCache(dispatcher._cache)
    return cast("Callable[..., Any]", dispatcher)


@functools.cache
def _helper_code(helper: types.FunctionType) -> Callable[..., Any]:
    """Return the numba version of a function that only kernels call: theirs, on disk, holds its code."""
    import numba

    njit: Any = numba.njit  # its type hints leave out the wrappers, without which it compiles faster
    bare = njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
    return cast("Callable[..., Any]", bare(_with_fast_callees(helper)))


def _with_fast_callees(kernel: types.FunctionType) -> types.FunctionType:
    """Return a copy that calls the numba versions of the kernels and of the functions beside it."""
    called = {name: kernel.__globals__.get(name) for name in kernel.__code__.co_names}
    codes = {name: _callee_code(item, kernel.__module__) for name, item in called.items()}
    fast = {name: code for name, code in codes.items() if code is not None}
    source = types.FunctionType(
        kernel.__code__, {**kernel.__globals__, **fast}, kernel.__name__, kernel.__defaults__
    )
    source.__qualname__ = kernel.__qualname__
    return source


def _callee_code(item: object, module: str) -> Callable[..., Any] | None:
    """Return what must be compiled along with its caller: a kernel, or a plain function beside it."""
    plain = getattr(item, "plain", None)
    if isinstance(plain, types.FunctionType):
        return machine_code(plain)
    if isinstance(item, types.FunctionType) and item.__module__ == module:
        return _helper_code(item)
    return None


class _ForgivingCache:
    """The cache of numba on disk; where the disk is full or a file damaged it costs time and nothing else."""

    def __init__(self, cache: Any) -> None:
        self._cache = cache

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)

    def load_overload(self, *signature: Any) -> Any:
        """Return machine code made earlier; None, and an empty cache, where it cannot be read."""
        kept = None
        try:
            kept = self._cache.load_overload(*signature)
        except Exception:
            with suppress(Exception):
                self._cache.flush()
        if kept is None:
            say_once()
        return kept

    def save_overload(self, *made: Any) -> None:
        """Keep machine code for the next process, if there is room."""
        with suppress(Exception):
            self._cache.save_overload(*made)


@functools.cache
def say_once() -> None:
    """Tell a person at a terminal why nothing happens for some seconds."""
    if sys.stderr.isatty():
        sys.stderr.write("calibrant: compiling, once per machine, which takes some seconds ...\n")


def writeable(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments with arrays that numba takes for writeable, over the same memory.

    Numba compiles once for arrays that may be written to and once for those that may not, in every
    combination. Kernels do not write to what callers hold, which their plain versions would refuse.
    """
    return tuple(np.asarray(_Unlocked(arg)) if _is_locked(arg) else arg for arg in args)


def _is_locked(arg: object) -> bool:
    return isinstance(arg, np.ndarray) and not arg.flags.writeable


class _Unlocked:
    """The memory of an array, offered as writeable; numpy holds this object for as long as it uses it."""

    def __init__(self, array: npt.NDArray[Any]) -> None:
        described = dict(array.__array_interface__)
        self.__array_interface__ = {**described, "data": (described["data"][0], False)}
        self.held = array
