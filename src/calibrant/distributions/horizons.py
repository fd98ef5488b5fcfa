"""Several horizons of censored times: predicted and observed probability of the event by each of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from calibrant.censoring import censored
from calibrant.errors import InvalidInputError, sentence
from calibrant.forecasts import Forecasts
from calibrant.formatting import format_points, percent, pluralize, pvalue_text
from calibrant.inference.intervals import confidence_interval
from calibrant.inference.multiple_testing import holm
from calibrant.inference.testing import calibration_test
from calibrant.metrics.smooth import smooth_calibration_error
from calibrant.parallel import checked_draws, recorded_seed
from calibrant.records import Missing
from calibrant.results import Result, Table, number_cell, text_cell

ALPHA = 0.05


@dataclass(frozen=True, slots=True, repr=False)
class Horizon(Result):
    """Calibration at one horizon; `low` and `high` are 95% limits of the observed probability.

    `censored` records were lost before it; the others carry as much information as `effective` records,
    the heaviest counted `largest_weight` times.
    """

    horizon: float
    predicted: float
    observed: float
    low: float
    high: float
    smooth: float
    pvalue: float
    adjusted: float
    censored: int
    effective: float
    largest_weight: float


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class HorizonTable(Result):
    """Calibration of predicted event probabilities at several horizons, in their order."""

    DERIVED: ClassVar = ("sentence",)

    horizons: tuple[Horizon, ...]
    n: int
    draws: int
    seed: int

    @property
    def wrong(self) -> tuple[Horizon, ...]:
        """The horizons that are off beyond chance at the 5% level."""
        return tuple(one for one in self.horizons if one.adjusted <= ALPHA)

    def __str__(self) -> str:
        count = pluralize(len(self.horizons), "horizon")
        parts = [f"{len(self.wrong)} of {count} off beyond chance ({pluralize(self.n, 'record')})."]
        parts += [
            f"By {one.horizon:g}: {percent(one.predicted)} predicted, {percent(one.observed)} observed."
            for one in self.wrong or self.horizons[-1:]
        ]
        return " ".join([*parts, "Censoring must not depend on the prediction, or only through strata."])

    def rows(self) -> tuple[Result, ...]:
        return self.horizons

    def sheet(self) -> Table:
        """Return the table, one line per horizon."""
        columns = ("horizon", "predicted", "observed", "95% limits", "gap", "smooth", "p-value", "adjusted")
        return Table((*columns, "censored", "largest weight"), tuple(_line(one) for one in self.horizons))

    def tables(self) -> tuple[Table, ...]:
        return (self.sheet(),)


def _line(one: Horizon) -> tuple[Any, ...]:
    gap = one.observed - one.predicted
    return (
        text_cell(f"{one.horizon:g}"),
        number_cell(one.predicted, percent(one.predicted)),
        number_cell(one.observed, percent(one.observed)),
        number_cell(one.low, f"{percent(one.low)} to {percent(one.high)}"),
        number_cell(gap, f"{format_points(gap)} points"),
        number_cell(one.smooth),
        number_cell(one.pvalue, pvalue_text(one.pvalue)),
        number_cell(one.adjusted, pvalue_text(one.adjusted)),
        number_cell(one.censored, f"{one.censored:,}"),
        number_cell(one.largest_weight, f"{one.largest_weight:.3g}"),
    )


def horizon_table(
    time: Any,
    event: Any,
    predictions: Mapping[float, Any],
    *,
    strata: Any = None,
    missing: Missing = "error",
    draws: int = 999,
    seed: int | None = 0,
) -> HorizonTable:
    """Measure and test predicted probabilities of an event at several horizons of censored times.

    Parameters
    ----------
    time, event, strata
        Times, events and strata, as `censored` takes them.
    predictions
        The predicted probability of the event by each horizon: a mapping of horizons to columns.
    missing
        Refuse rows with a missing value ("error"), or leave them out ("drop").
    draws, seed
        Simulations for p-values and limits, and their seed.

    Returns
    -------
    HorizonTable

    Examples
    --------
    >>> rows = {1.0: [0.2, 0.4] * 50, 2.0: [0.4, 0.6] * 50}
    >>> table = horizon_table([0.5, 1.5, 2.5, 3.5] * 25, [1, 1, 0, 1] * 25, rows, draws=99)
    >>> [round(one.observed, 2) for one in table.horizons]
    [0.25, 0.5]
    """
    if not predictions:
        raise InvalidInputError(sentence("predictions", "must have a horizon", "got none"))
    count, used = checked_draws(draws), recorded_seed(seed)
    found, n = [], 0
    for horizon in sorted(predictions):
        y = censored(time, event, horizon, strata=strata, missing=missing)
        forecasts = Forecasts(y, predictions[horizon], missing=missing)
        p = calibration_test(forecasts, draws=count, seed=used).pvalue
        limits = confidence_interval(forecasts, measure="in-the-large", draws=count, seed=used)
        predicted, n = forecasts.mean_prediction, len(y)
        low, high = (min(max(predicted + end, 0.0), 1.0) for end in (limits.lower, limits.upper))
        size = smooth_calibration_error(forecasts)
        facts = y.censored, y.effective, y.largest_weight
        found.append(Horizon(y.horizon, predicted, forecasts.base_rate, low, high, size, p, p, *facts))
    adjusted = holm([one.pvalue for one in found])
    rows = tuple(replace(one, adjusted=p) for one, p in zip(found, adjusted, strict=True))
    return HorizonTable(rows, n, count, used)
