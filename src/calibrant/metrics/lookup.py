"""The table of measures in reading order, and how to look them up by name and take them with certificates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

from calibrant.errors import InvalidInputError
from calibrant.forecasts import Forecasts
from calibrant.metrics import binned, convolved, cox, cumulative, kernel, low_degree, scores, smooth, truthful
from calibrant.metrics.calling import ARRAYS, as_forecasts, check_choice, shares_parameters
from calibrant.metrics.certificates import NoCertificateError, no_certificate
from calibrant.metrics.decisions import worst_case
from calibrant.metrics.distance import lower, upper
from calibrant.metrics.registry import Measure
from calibrant.records import Missing
from calibrant.results import Catalogue, Measurement

MEASURES: tuple[Measure, ...] = (
    binned.EXPECTED_ERROR,
    binned.LEVEL_SET,
    *cumulative.CURVE_MEASURES,
    *truthful.MEASURES,
    lower.LOWER_DISTANCE,
    upper.UPPER_DISTANCE,
    upper.INTERVAL,
    *smooth.MEASURES,
    *kernel.MEASURES,
    worst_case.DECISION_LOSS,
    *worst_case.U_CALIBRATION_MEASURES,
    convolved.CONVOLVED,
    low_degree.LOW_DEGREE,
    *scores.SCORE_MEASURES,
    *cumulative.IN_THE_LARGE_MEASURES,
    *cox.MEASURES,
    *scores.CALIBRATION_INDEX_MEASURES,
    scores.C_STATISTIC,
)


_COLUMNS: dict[str, Callable[[Measure], str]] = {
    "measure": lambda row: row.words,
    "key": lambda row: row.name,
    "function": lambda row: row.function.__name__,
    "truthful": lambda row: row.truthful,
    "meaning": lambda row: row.meaning,
}
ALIASES = {"binned": "ece"}  # keys of earlier releases that mean the same
_RENAMED = {"ece": "level-set", "binned": "ece"}  # keys in files of schema version 1, which 0.2.0 wrote
_ROWS = {row.name: row for row in MEASURES}
_TABLE = Catalogue(
    "measures", _ROWS, _COLUMNS, {old: replace(_ROWS[name], name=old) for old, name in ALIASES.items()}
)


def measures() -> Mapping[str, Measure]:
    """Return the registry: every measure by name, in reading order.

    Returns
    -------
    Mapping
        Rows of the registry by name.

    Examples
    --------
    >>> list(measures())[:2]
    ['ece', 'level-set']
    """
    return _TABLE


def find_measure(name: str) -> Measure:
    check_choice("measure", name, _TABLE)
    return _TABLE[name]


def stored_measure(name: str, schema_version: int) -> str:
    """Return today's key of a measure that a stored file names.

    >>> stored_measure("ece", 1), stored_measure("ece", 2)
    ('level-set', 'ece')
    """
    return _RENAMED.get(name, name) if schema_version < 2 else name


def measure_in_words(name: str) -> str:
    """Return what people call a measure or a test, given its key.

    >>> measure_in_words("smooth"), measure_in_words("omnibus")
    ('smooth calibration error', 'omnibus statistic')
    """
    return _TABLE[name].words if name in _TABLE else f"{name} statistic"


@runtime_checkable
class HasForecasts(Protocol):
    """A summary of many rows, such as a Sketch."""

    def forecasts(self) -> Forecasts:
        """Return the forecasts at the resolution of the summary."""


@runtime_checkable
class HasStrata(HasForecasts, Protocol):
    """A summary that may hold the sums of each group as well."""

    def strata(self) -> Any:
        """Return these sums, for an audit."""


@shares_parameters(ARRAYS)
def measure(
    y_true: Any = None,
    y_prob: Any = None,
    name: str | None = None,
    *,
    forecasts: Any = None,
    sample_weight: Any = None,
    pos_label: Any = None,
    missing: Missing = "error",
    **options: Any,
) -> Measurement:
    """Take one measure by name, with its certificate and, where one exists, its witness.

    Parameters
    ----------
    name
        A name of the registry, after the data, which may be a Sketch too: ``measure(sketch, "smooth")``.
    forecasts
        The first argument under its earlier name.
    **options
        Options of that measure.

    Examples
    --------
    >>> measure([0, 1, 1, 1], [0.5, 0.6, 0.7, 0.8], "kuiper").details["predictions"]
    'too low'
    >>> round(measure(Forecasts([0, 1], [0.2, 0.7]), "brier").value, 3)
    0.065
    """
    if y_true is None:
        y_true = forecasts
    if name is None and isinstance(y_prob, str):
        name, y_prob = y_prob, None
    if name is None:
        hint = 'measure(y_true, y_prob, "smooth")'
        raise InvalidInputError("name", "must name a measure", "got None", hint)
    if y_prob is None and isinstance(y_true, HasForecasts):
        y_true = y_true.forecasts()
    forecasts = as_forecasts(y_true, y_prob, sample_weight, pos_label=pos_label, missing=missing)
    entry = find_measure(name)
    settings = {**entry.options, **options}
    try:
        measured = entry.function.certified(forecasts, **settings)
    except NoCertificateError as error:
        raise no_certificate(entry.name, error.got) from None
    return Measurement(
        name=entry.name,
        value=measured.value,
        lower=measured.lower if entry.signed else max(0.0, measured.lower),
        upper=measured.upper,
        exact=measured.exact,
        n=forecasts.n,
        levels=forecasts.levels,
        witness=measured.witness,
        details=measured.details,
        options=MappingProxyType(settings),
    )
