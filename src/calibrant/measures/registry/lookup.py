"""Look measures up by name, and take them with their certificates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from calibrant.errors import reject_name
from calibrant.forecasts import Forecasts
from calibrant.measures.registry.resolution import NoCertificateError, no_certificate
from calibrant.measures.registry.row import Measure
from calibrant.measures.registry.table import ROWS
from calibrant.results import Measurement
from calibrant.sheets import Sheet, text


class Registry(Mapping[str, Measure]):
    """Every measure by name, in reading order; shown as a list of names, in notebooks as a table."""

    def __init__(self, rows: Iterable[Measure]) -> None:
        self._rows = {row.name: row for row in rows}

    def __getitem__(self, name: str) -> Measure:
        return self._rows[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"<{len(self)} measures: {', '.join(self)}>"

    def _repr_html_(self) -> str:
        columns = ("name", "function", "truthful", "meaning")
        rows = [(row.name, row.function.__name__, row.truthful, row.meaning) for row in self.values()]
        return Sheet(columns, tuple(tuple(map(text, row)) for row in rows)).as_html()


_TABLE = Registry(ROWS)


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
        found = row.function.certified(forecasts, **settings)
    except NoCertificateError as error:
        raise no_certificate(row.name, error.reason) from None
    return Measurement(
        name=row.name,
        value=found.value,
        lower=found.lower if row.signed else max(0.0, found.lower),
        upper=found.upper,
        exact=found.exact,
        n=forecasts.n,
        levels=forecasts.levels,
        witness=found.witness,
        details=found.details,
        options=MappingProxyType(settings),
    )
