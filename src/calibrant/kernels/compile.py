"""`@compiled`: the one decorator that uses numba.

A kernel is a plain function of numpy arrays. Short inputs run it as plain Python, because importing and
dispatching numba costs one to two seconds per process; long ones run through numba, with its on-disk cache.
Without numba, the plain function runs, only slower.
"""

from __future__ import annotations

import functools
import sys
import threading
import types
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar, cast

import numpy as np
import numpy.typing as npt

PAUSE = 1.0  # seconds of compiling after which a person at a terminal sees a message


@functools.cache
def machine_code(kernel: types.FunctionType, cache: bool = True) -> Callable[..., Any]:
    """Return the numba version of a kernel, cached on disk; the plain one if numba is not installed."""
    try:
        import numba
    except ImportError:
        return kernel
    source = _with_fast_callees(kernel)
    try:
        return cast("Callable[..., Any]", numba.njit(cache=cache, nogil=True)(source))
    except RuntimeError:  # no writable cache folder: compile in each process
        return cast("Callable[..., Any]", numba.njit(nogil=True)(source))


@functools.cache
def _helper_code(helper: types.FunctionType) -> Callable[..., Any]:
    """Return the numba version of a function that only kernels call: theirs, on disk, holds its code."""
    import numba

    njit: Any = numba.njit  # its type hints leave out the wrappers, without which it compiles faster
    bare = njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
    return cast("Callable[..., Any]", bare(_with_fast_callees(helper)))


def _with_fast_callees(kernel: types.FunctionType) -> types.FunctionType:
    """Return a copy that calls the numba versions of the kernels and of the functions in its module."""
    called = {name: kernel.__globals__.get(name) for name in kernel.__code__.co_names}
    codes = {name: _callee_code(item, kernel.__module__) for name, item in called.items()}
    fast = {name: code for name, code in codes.items() if code is not None}
    source = types.FunctionType(
        kernel.__code__, {**kernel.__globals__, **fast}, kernel.__name__, kernel.__defaults__
    )
    source.__qualname__ = kernel.__qualname__
    return source


def _callee_code(item: object, module: str) -> Callable[..., Any] | None:
    """Return what must be compiled along with its caller: a kernel, or a plain function of its module."""
    plain = getattr(item, "plain", None)
    if isinstance(plain, types.FunctionType):
        return machine_code(plain)
    if isinstance(item, types.FunctionType) and item.__module__ == module:
        return _helper_code(item)
    return None


@functools.cache
def _warn_once() -> None:
    """Explain a pause to a person at a terminal."""
    if sys.stderr.isatty():
        sys.stderr.write("calibrant: compiling, once per machine, which takes a few seconds ...\n")


class MachineCode:
    """A compiled kernel that survives a damaged cache or a full disk, and announces a long compilation."""

    def __init__(self, kernel: types.FunctionType) -> None:
        self.kernel = kernel
        self.fast = machine_code(kernel)
        self.called = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.called:
            return self._retrying(args, kwargs)
        warning = threading.Timer(PAUSE, _warn_once)
        warning.daemon = True
        warning.start()
        try:
            return self._retrying(args, kwargs)
        finally:
            warning.cancel()
            self.called = True

    def _retrying(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the kernel; if that fails, retry with an emptied cache, then without a cache."""
        try:
            return self.fast(*args, **kwargs)
        except Exception:
            if self.fast is self.kernel:
                raise
        try:
            self.fast.recompile()  # type: ignore[attr-defined]  # empties the cache of this kernel
            return self.fast(*args, **kwargs)
        except Exception:
            self.fast = machine_code(self.kernel, cache=False)
        return self.fast(*args, **kwargs)


def writeable(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments with arrays that numba takes for writeable, over the same memory."""
    locked = [isinstance(arg, np.ndarray) and not arg.flags.writeable for arg in args]
    return tuple(
        np.asarray(_Unlocked(arg)) if is_locked else arg for arg, is_locked in zip(args, locked, strict=True)
    )


class _Unlocked:
    """The memory of an array, offered as writeable; numpy holds this object for as long as it uses it."""

    def __init__(self, array: npt.NDArray[Any]) -> None:
        described = dict(array.__array_interface__)
        self.__array_interface__ = {**described, "data": (described["data"][0], False)}
        self.held = array


P = ParamSpec("P")
R = TypeVar("R")

COMPILE_ABOVE = 20_000  # array length from which numba repays its start-up time
COMPILE_LOADED = 2_000  # the same where numba is in the process already


def numba_is_loaded() -> bool:
    return sys.modules.get("numba") is not None


class compiled(Generic[P, R]):  # noqa: N801 - reads as a decorator
    """Run `kernel` through numba when its first argument, an array, is long; as plain Python otherwise.

    A kernel may call other kernels and plain functions of its own module; they are compiled along with it.
    Once numba is in use for a kernel it stays in use, whatever the length: the start-up time has been paid.
    """

    def __init__(self, kernel: Callable[P, R]) -> None:
        functools.update_wrapper(self, kernel)
        self.plain = kernel
        self._fast: MachineCode | None = None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self._fast is None and not self.worth_compiling(len(args[0])):  # type: ignore[arg-type]
            return self.plain(*args, **kwargs)
        self.compile_now()
        return cast("R", self._fast(*writeable(args), **kwargs))  # type: ignore[misc]

    def worth_compiling(self, length: int) -> bool:
        """Return whether machine code serves best for this length: always, once it has been made."""
        return self._fast is not None or length >= (COMPILE_LOADED if numba_is_loaded() else COMPILE_ABOVE)

    def compile_now(self) -> None:
        """Use numba from now on, whatever the length: the kernel is about to be called very often."""
        if self._fast is None:
            self._fast = MachineCode(cast("types.FunctionType", self.plain))

    def machine_code(self) -> Callable[..., R]:
        """Return the numba version of the kernel, or the plain one where numba is absent."""
        return cast("Callable[..., R]", machine_code(self.plain))
