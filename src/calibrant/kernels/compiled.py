"""The one decorator behind which numba lives.

A kernel is a plain function of numpy arrays. Short inputs run it as plain Python, because importing and
dispatching numba costs one to two seconds per process; long ones go through numba, with its on-disk cache.
Where numba is not installed the plain function answers, only slower.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Generic, ParamSpec, TypeVar, cast

from calibrant.kernels.machine_code import machine_code, writeable

P = ParamSpec("P")
R = TypeVar("R")

COMPILE_ABOVE = 20_000  # array length from which numba repays its start-up time
COMPILE_LOADED = 2_000  # the same where numba is in the process already


def numba_is_loaded() -> bool:
    """Return whether numba is in the process already."""
    return sys.modules.get("numba") is not None


class compiled(Generic[P, R]):  # noqa: N801 - reads as a decorator
    """Run `kernel` through numba when its first argument, an array, is long; as plain Python otherwise.

    A kernel may call other kernels and plain functions of its own module; they are compiled along with it.
    Once numba is in use for a kernel it stays in use, whatever the length: the start-up time has been paid.
    """

    def __init__(self, kernel: Callable[P, R]) -> None:
        functools.update_wrapper(self, kernel)
        self.plain = kernel
        self._fast: Callable[..., R] | None = None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self._fast is not None:
            return self._fast(*writeable(args), **kwargs)
        if not self.pays(len(args[0])):  # type: ignore[arg-type]
            return self.plain(*args, **kwargs)
        fast = self.machine_code()
        result = fast(*writeable(args), **kwargs)
        self._fast = fast
        return result

    def pays(self, length: int) -> bool:
        """Return whether machine code serves best for this length: always, once it has been made."""
        return self._fast is not None or length >= (COMPILE_LOADED if numba_is_loaded() else COMPILE_ABOVE)

    def expect_much(self) -> None:
        """Use numba from now on, whatever the length: the kernel is about to be called very often."""
        self._fast = self.machine_code()

    def machine_code(self) -> Callable[..., R]:
        """Return the numba version of the kernel, or the plain one where numba is absent."""
        return cast("Callable[..., R]", machine_code(self.plain))
