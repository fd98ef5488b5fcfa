"""The forms a measure can be called in: with arrays, a frame, Forecasts sorted once, or those of a sketch."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar

import numpy as np

from calibrant.errors import InvalidInputError, UnknownNameError, reject_name
from calibrant.forecasts import Forecasts
from calibrant.frames import resolve_inputs
from calibrant.inputs import flag
from calibrant.metrics.certificates import Certificate, NoCertificateError, no_certificate, rounded
from calibrant.records import Missing
from calibrant.results import Array, Certified

ARRAYS = """\
y_true : array-like, or Forecasts alone
    Outcomes: 0 or 1, booleans, or fractions between 0 and 1.
y_prob : array-like
    Predicted probabilities in [0, 1].
sample_weight : array-like, optional
    Non-negative weights, one per record.
pos_label : optional
    The label that counts as 1, for outcomes that are text, categories, or -1 and 1.
missing : {"error", "drop"}
    Whether rows with a gap are refused or left out.
"""

COLUMNS = """\
outcome, prediction, weight : str, optional
    Columns of a frame that is passed in place of `y_true`.
"""

CLUSTERS = """\
clusters : array or str, optional
    Labels of rows that belong together (patients of a hospital), or the name of their column.
"""

_OPTIONS = {  # of several functions, each described here unless its docstring says more
    "alpha": "The power of the moves, at least 1.",
    "bandwidth": "Width of the kernel.",
    "clip": "Predictions are moved into [clip, 1 - clip] before their logarithm is taken.",
    "confidence": "How often the intervals hold the value of the population.",
    "degree": "The largest degree of the polynomials.",
    "draws": "How many draws are made; the result records it.",
    "folds": "How many folds the records are dealt to.",
    "max_nodes": "How many nodes may be tried to reach the tolerance.",
    "progress": "Called with the share of the work that is done.",
    "recalibrator": """\
"isotonic", "binned", or a function that fits one: outcome rates come from other folds of the data.
    None takes the rates of the level sets.""",
    "score": 'Which score: "brier" or "log".',
    "seed": "Seeds whatever is drawn; None for a fresh seed.",
    "threads": "How many threads draw; results do not depend on it.",
    "time_limit": "Seconds to spend on better bounds above 13 distinct predictions.",
    "tolerance": "How far apart the proven bounds may be.",
}
_HEADING = "Parameters\n----------\n"
_RETURNS = "Returns\n-------\n"
_EXAMPLES = "Examples\n--------\n"


def with_parameters(function: Callable[..., Any], shared: str) -> str | None:
    """Return the docstring of a function with what it leaves out because others have it as well."""
    if function.__doc__ is None:  # Python was started with -OO
        return None
    text = inspect.cleandoc(function.__doc__)
    if _RETURNS not in text:
        text = text.replace(_EXAMPLES, f"{_RETURNS}{_returned(function)}\n\n{_EXAMPLES}", 1)
    before, _, rest = text.partition(_RETURNS)
    before, _, own = before.partition(_HEADING)
    heads = [line.split(" : ")[0] for line in (shared + own).splitlines() if line[:1].isalpha()]
    listed = {name.strip() for head in heads for name in head.split(",")}
    for name in inspect.signature(function).parameters:
        if name in _OPTIONS and name not in listed:
            own = f"{own.rstrip()}\n{name}\n    {_OPTIONS[name]}\n".lstrip()
    return f"{before.rstrip()}\n\n{_HEADING}{(shared + own).rstrip()}\n\n{_RETURNS}{rest}"


def _returned(function: Callable[..., Any]) -> str:
    """Describe the result in the words of its class; what a measure returns, its first line says."""
    result = function.__globals__.get(function.__annotations__["return"])
    if result is None or result is Certified:
        return "float\n    The value; `measure` returns it with bounds and details."
    return f"{result.__name__}\n    {inspect.cleandoc(result.__doc__).splitlines()[0]}"


def shares_parameters(shared: str) -> Callable[[T], T]:
    """Decorate a function whose docstring leaves out parameters that other functions have as well."""

    def complete(function: T) -> T:
        function.__doc__ = with_parameters(function, shared)  # type: ignore[arg-type]
        return function

    return complete


T = TypeVar("T")
P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)
Rounding = Callable[[Forecasts, Certified], Certified]


class OfRows(Protocol[P, R_co]):
    """How type checkers see a function of rows with options of its own; all but the first two go by name."""

    __name__: str

    def __call__(
        self,
        y_true: Any,
        y_prob: Any = None,
        sample_weight: Any = None,
        pos_label: Any = None,
        missing: Missing = "error",
        outcome: str | None = None,
        prediction: str | None = None,
        weight: str | None = None,
        clusters: Any = None,
        *args: P.args,
        **options: P.kwargs,
    ) -> R_co: ...


class measure_function(Generic[P]):  # noqa: N801 - reads as a decorator
    """Make a measure of Forecasts callable as ``f(y_true, y_prob, *, sample_weight=None, **options)`` too."""

    __name__: str

    def __init__(self, core: Callable[Concatenate[Forecasts, P], Certified]) -> None:
        functools.update_wrapper(self, core)
        self.__doc__ = with_parameters(core, ARRAYS)
        self._core: Callable[..., Certified] = core
        self._options = {o.name: o.default for o in list(inspect.signature(core).parameters.values())[1:]}
        self.__signature__ = _signature(core)
        self.bounds_on_raw_rows: Certificate | None = None
        self._rounding: Rounding = rounded
        self._quick: Callable[..., float] | None = None

    if TYPE_CHECKING:  # type checkers see the options of each measure; sample_weight goes by its name

        def __call__(
            self,
            y_true: Any,
            y_prob: Any = None,
            sample_weight: Any = None,
            pos_label: Any = None,
            missing: Missing = "error",
            *args: P.args,
            **options: P.kwargs,
        ) -> float: ...

    else:

        def __call__(
            self, y_true, y_prob=None, *, sample_weight=None, pos_label=None, missing="error", **options
        ):
            forecasts = as_forecasts(y_true, y_prob, sample_weight, missing, pos_label)
            if forecasts.cells is None:
                return self.value(forecasts, **options)
            return self.certified(forecasts, **options).value

    def core(self, forecasts: Forecasts, **options: Any) -> Certified:
        """Take the measure of Forecasts as they are; the result may carry a proof."""
        return self._core(forecasts, **self._known(options))

    def value(self, forecasts: Forecasts, **options: Any) -> float:
        """Take the measure of Forecasts as they are, without its proof where that saves time."""
        if self._quick is not None:
            return float(self._quick(forecasts, **self.settings(options)))
        return float(self._core(forecasts, **self._known(options)))

    def certified(self, forecasts: Forecasts, **options: Any) -> Certified:
        """Take the measure with bounds that hold on the raw rows, or refuse where a sketch has none."""
        proven = self.core(forecasts, **options)
        if forecasts.cells is None:
            return proven
        try:
            if self.bounds_on_raw_rows is None:
                raise no_certificate(self.__name__)
            bounded = self.bounds_on_raw_rows(forecasts, proven, self.settings(options))
        except NoCertificateError:
            if not forecasts.exact:
                raise  # else one prediction per cell: nothing but rounding is lost
            bounded = self._rounding(forecasts, proven)
        return replace(bounded, exact=proven.exact) if forecasts.exact else bounded

    def settings(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return all options: those given, and the defaults of the signature for the rest."""
        return {**(getattr(self._core, "__kwdefaults__", None) or {}), **self._known(dict(options))}

    def certificate(self, certificate: Certificate) -> Certificate:
        self.bounds_on_raw_rows = certificate
        return certificate

    def rounding(self, rounding: Rounding) -> Rounding:
        """Decorate the rule for a sketch with one prediction per cell, where rounding is not a detail."""
        self._rounding = rounding
        return rounding

    def fast_path(self, quick: Callable[..., float]) -> Callable[..., float]:
        """Decorate a function that computes the value alone, where that is cheaper."""
        self._quick = quick
        return quick

    def _known(self, options: dict[str, Any]) -> dict[str, Any]:
        for name, value in options.items():
            if name not in self._options:
                if not self._options:
                    raise UnknownNameError(self.__name__, "has no options", f"got {name!r}")
                raise reject_name(f"option of {self.__name__}", name, list(self._options))
            if isinstance(self._options[name], bool):
                flag(name, value)
        return options

    def __repr__(self) -> str:
        return f"<measure {self.__name__}{self.__signature__}>"

    def __reduce__(self) -> str:
        return self.__name__  # pickled by name, as a function is


def accepts_clusters(core: Callable[Concatenate[Forecasts, P], R_co]) -> OfRows[P, R_co]:
    """Do what accepts_rows does, for a function that heeds which rows belong together (``clusters=``)."""
    return accepts_rows(core, clusters=True)


def accepts_rows(
    core: Callable[Concatenate[Forecasts, P], R_co], *, clusters: bool = False
) -> OfRows[P, R_co]:
    """Make a function of Forecasts callable with arrays, or with a frame and the names of its columns."""
    function: Callable[..., R_co] = core

    @functools.wraps(core)
    def call(
        y_true: Any,
        y_prob: Any = None,
        *,
        sample_weight: Any = None,
        pos_label: Any = None,
        missing: Missing = "error",
        outcome: str | None = None,
        prediction: str | None = None,
        weight: str | None = None,
        **options: Any,
    ) -> R_co:
        extra = {"clusters": options.pop("clusters", None)} if clusters else {}
        given = resolve_inputs(
            y_true, y_prob, sample_weight, outcome=outcome, prediction=prediction, weight=weight, **extra
        )
        made = as_forecasts(given.y_true, given.y_prob, given.sample_weight, missing, pos_label)
        if given.extra.get("clusters") is not None:
            made = made.with_clusters(given.extra["clusters"], missing)
        return function(made, **options)

    call.__doc__ = with_parameters(core, ARRAYS + COLUMNS + (CLUSTERS if clusters else ""))
    shown = _signature(core, "outcome", "prediction", "weight", *(["clusters"] if clusters else []))
    returned = inspect.signature(core).return_annotation
    call.__signature__ = shown.replace(return_annotation=returned)  # type: ignore[attr-defined]
    return call  # type: ignore[return-value]


def as_forecasts(
    y_true: Any,
    y_prob: Any = None,
    sample_weight: Any = None,
    missing: Missing = "error",
    pos_label: Any = None,
) -> Forecasts:
    if isinstance(y_true, Forecasts):
        if y_prob is not None or sample_weight is not None or pos_label is not None:
            rule = "hold outcomes, predictions and weights already"
            raise InvalidInputError("Forecasts", rule, hint="pass them alone")
        return y_true
    if y_prob is None:
        hint = "call it with (y_true, y_prob) or with Forecasts"
        raise InvalidInputError("y_prob", "must be given", "got None", hint)
    return Forecasts(y_true, y_prob, sample_weight=sample_weight, missing=missing, pos_label=pos_label)


def check_choice(subject: str, choice: str, known: Collection[str]) -> None:
    if choice not in known:
        raise reject_name(subject, choice, list(known))


def numbers_of(function: Callable[[Array], Any], v: Array, subject: str, rule: str) -> Array:
    """Return what a function of the user makes of predictions, in float64."""
    found = np.asarray(function(v), dtype=np.float64)
    if found.shape not in ((), v.shape) or not np.all(np.isfinite(found)):
        raise InvalidInputError(subject, rule, f"got shape {found.shape}" if found.shape else f"got {found}")
    return np.broadcast_to(found, v.shape)


def _signature(core: Callable[..., Any], *more: str) -> inspect.Signature:
    """Show the form that takes arrays: it is the one people look up."""
    kind = inspect.Parameter
    y_true = kind("y_true", kind.POSITIONAL_OR_KEYWORD)
    y_prob = kind("y_prob", kind.POSITIONAL_OR_KEYWORD, **({"default": None} if more else {}))
    defaults = {"sample_weight": None, "pos_label": None, "missing": "error", **dict.fromkeys(more)}
    shared = [kind(name, kind.KEYWORD_ONLY, default=default) for name, default in defaults.items()]
    options = list(inspect.signature(core).parameters.values())[1:]
    return inspect.Signature([y_true, y_prob, *shared, *options], return_annotation=float)
