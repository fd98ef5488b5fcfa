"""The two forms every measure can be called in: with arrays, or with Forecasts sorted once before."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from calibrant.errors import CalibrantError, InvalidInputError, UnknownNameError, reject_name, sentence
from calibrant.forecasts import Forecasts
from calibrant.results import Certified

Core = Callable[..., float | Certified]


class public:  # noqa: N801 - reads as a decorator
    """Make a measure of Forecasts callable as ``f(y_true, y_prob, *, sample_weight=None, **options)`` too.

    Either way it returns a float, so that it can be a scikit-learn scorer; `core` calls the original,
    whose result may carry a certificate.
    """

    __name__: str

    def __init__(self, core: Core) -> None:
        functools.update_wrapper(self, core)
        self._core = core
        self._options = list(inspect.signature(core).parameters)[1:]
        self.__signature__ = _signature(core)

    def __call__(
        self, y_true: Any, y_prob: Any = None, *, sample_weight: Any = None, **options: Any
    ) -> float:
        forecasts = as_forecasts(y_true, y_prob, sample_weight)
        if not forecasts.exact:
            from calibrant.measures.registry.lookup import refuse_uncertified

            refuse_uncertified(self)
        return float(self.core(forecasts, **options))

    def core(self, forecasts: Forecasts, **options: Any) -> float | Certified:
        """Take the measure of Forecasts, with its certificate where it has one."""
        for name in options:
            if name not in self._options:
                raise _unknown_option(self.__name__, name, self._options)
        return self._core(forecasts, **options)

    def __repr__(self) -> str:
        return f"<measure {self.__name__}{self.__signature__}>"

    def __reduce__(self) -> str:
        return self.__name__  # pickled by name, as a function is


def as_forecasts(y_true: Any, y_prob: Any = None, sample_weight: Any = None) -> Forecasts:
    """Return the Forecasts that were given, or build them from arrays."""
    if isinstance(y_true, Forecasts):
        if y_prob is not None or sample_weight is not None:
            raise InvalidInputError(
                sentence("Forecasts", "hold predictions and weights already", hint="pass them alone")
            )
        return y_true
    if y_prob is None:
        raise InvalidInputError(
            sentence("y_prob", "must be given", "got None", "call it with (y_true, y_prob) or with Forecasts")
        )
    return Forecasts(y_true, y_prob, sample_weight=sample_weight)


def _unknown_option(measure: str, name: str, known: list[str]) -> CalibrantError:
    if not known:
        return UnknownNameError(sentence(measure, "has no options", f"got {name!r}"))
    return reject_name(f"option of {measure}", name, known)


def _signature(core: Core) -> inspect.Signature:
    """Show the form that takes arrays: it is the one people look up."""
    kind = inspect.Parameter
    head = [kind(name, kind.POSITIONAL_OR_KEYWORD) for name in ("y_true", "y_prob")]
    weight = kind("sample_weight", kind.KEYWORD_ONLY, default=None)
    options = list(inspect.signature(core).parameters.values())[1:]
    return inspect.Signature([*head, weight, *options], return_annotation=float)
