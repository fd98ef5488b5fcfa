"""Look measures up by name, and take them with their certificates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from calibrant.catalogue import Catalogue
from calibrant.errors import reject_name
from calibrant.forecasts import Forecasts
from calibrant.measures.registry.resolution import NoCertificateError, no_certificate
from calibrant.measures.registry.row import Measure
from calibrant.measures.registry.table import ROWS
from calibrant.results import Measurement

_COLUMNS: dict[str, Callable[[Measure], str]] = {
    "measure": lambda row: row.words,
    "key": lambda row: row.name,
    "function": lambda row: row.function.__name__,
    "truthful": lambda row: row.truthful,
    "meaning": lambda row: row.meaning,
}
_TABLE = Catalogue("measures", {row.name: row for row in ROWS}, _COLUMNS)


def measures() -> Mapping[str, Measure]:
    """Return the registry: every measure by name, in reading order.

    Returns
    -------
    Mapping
        Rows of the registry by name.

    Examples
    --------
    >>> list(measures())[:2]
    ['ece', 'binned']
    """
    return _TABLE


def find_measure(name: str) -> Measure:
    """Return a row of the registry, or say which names there are."""
    if name not in _TABLE:
        raise reject_name("measure", name, list(_TABLE))
    return _TABLE[name]


def measure_in_words(name: str) -> str:
    """Return what people call a measure or a test, given its key.

    >>> measure_in_words("smooth"), measure_in_words("omnibus")
    ('smooth calibration error', 'omnibus statistic')
    """
    return _TABLE[name].words if name in _TABLE else f"{name} statistic"


def measure(forecasts: Forecasts, name: str, **options: Any) -> Measurement:
    """Take one measure by name, with its certificate and, where one exists, its witness.

    Parameters
    ----------
    forecasts
        Outcomes and predictions, sorted once.
    name
        A name of the registry; see measures().
    **options
        Options of that measure.

    Returns
    -------
    Measurement
        The value with `lower`, `upper`, whether it is exact, and `details`.

    Examples
    --------
    >>> measure(Forecasts([0, 1, 1, 1], [0.5, 0.6, 0.7, 0.8]), "kuiper").details["predictions"]
    'too low'
    """
    row = find_measure(name)
    settings = {**row.options, **options}
    try:
        measured = row.function.certified(forecasts, **settings)
    except NoCertificateError as error:
        raise no_certificate(row.name, error.reason) from None
    return Measurement(
        name=row.name,
        value=measured.value,
        lower=measured.lower if row.signed else max(0.0, measured.lower),
        upper=measured.upper,
        exact=measured.exact,
        n=forecasts.n,
        levels=forecasts.levels,
        witness=measured.witness,
        details=measured.details,
        options=MappingProxyType(settings),
    )
