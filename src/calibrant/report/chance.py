"""What chance alone would give: null means, p-values and intervals for the rows of an evaluation."""

from __future__ import annotations

from dataclasses import dataclass, replace

from calibrant.errors import CalibrantError
from calibrant.forecasts import Forecasts
from calibrant.inference.null import NullOutcomes, null_values
from calibrant.inference.testing import run_test
from calibrant.report.rows import Row
from calibrant.results import Array

AFFORDABLE = 3_000_000  # levels times draws up to which a measure without a batch is simulated one by one


@dataclass(frozen=True, slots=True, eq=False)
class NullSample:
    """The values of a measure on data sets that have these predictions and calibrated outcomes."""

    measure: str
    values: Array
    observed: float
    pvalue: float


def tested(forecasts: Forecasts, row: Row, *, draws: int, seed: int) -> Row:
    """Add the null mean and the p-value, where the measure can be tested in reasonable time."""
    about = row.about
    quick = about.null.batch is not None or about.null.law is not None
    if row.measurement is None or not (quick or forecasts.levels * draws <= AFFORDABLE):
        return row
    try:
        found = run_test(forecasts, about, {}, method="auto", draws=draws, seed=seed)
    except CalibrantError as error:  # such as fractional outcomes, which cannot be simulated
        return replace(row, note=row.note or str(error))
    return replace(row, chance=found.null_mean, pvalue=found.pvalue, log_pvalue=found.log_pvalue)


def null_sample(forecasts: Forecasts, row: Row, *, draws: int, seed: int) -> NullSample | None:
    """Simulate one measure on calibrated outcomes, for the histogram; None where that cannot be done."""
    if row.value is None or row.pvalue is None or not forecasts.binary:
        return None
    settings = dict(row.about.options)
    outcomes = NullOutcomes(forecasts)
    values = null_values(forecasts, row.about, settings, null=outcomes, draws=draws, seed=seed)
    return NullSample(row.about.name, values, row.value, row.pvalue)
