"""Tests whose statistics grow with n: the default, and Spiegelhalter's z and Hosmer-Lemeshow, for reports.

A statistic that grows with n on the same forecasts is not a measure and is not in the registry; as rows
these go through the same engine as every measure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from calibrant.errors import reject_name
from calibrant.forecasts import Forecasts
from calibrant.inference.hosmer_lemeshow import hosmer_lemeshow_row
from calibrant.inference.omnibus import omnibus_row
from calibrant.inference.spiegelhalter import spiegelhalter_row
from calibrant.measures.registry.lookup import find_measure, measures
from calibrant.measures.registry.row import Measure
from calibrant.results import NOTHING

CLASSIC: Mapping[str, Callable[[Forecasts, Mapping[str, Any]], Measure]] = {
    "omnibus": omnibus_row,
    "spiegelhalter": spiegelhalter_row,
    "hosmer-lemeshow": hosmer_lemeshow_row,
}
DEFAULT_TEST = "omnibus"


def find_test(name: str, forecasts: Forecasts, options: Mapping[str, Any] = NOTHING) -> Measure:
    """Return the row of a test for these forecasts: of the registry, or one of those above."""
    if name in CLASSIC:
        return CLASSIC[name](forecasts, options)
    if name not in measures():
        raise reject_name("measure", name, [*CLASSIC, *measures()])
    return find_measure(name)
