"""F(z) as a forecast of y <= z, at thresholds of outcomes and at horizons of censored times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from calibrant.censoring import censored
from calibrant.distributions.forms import FORECAST, MISSING, ForecastRows, Members, ascending_numbers
from calibrant.distributions.tables import (
    TableOfTests,
    adjusted_rows,
    enough_draws,
    observed_limits,
    pvalue_of,
)
from calibrant.errors import InvalidInputError
from calibrant.forecasts import Forecasts
from calibrant.formatting import format_value, percent, pluralize
from calibrant.inputs import (
    NamedColumn,
    check_aligned,
    check_same_length,
    check_weights,
    finite_number,
    numeric_vector,
    positive_number,
    row_labels,
    subject_of,
    unwrap,
)
from calibrant.metrics.calling import shares_parameters
from calibrant.metrics.scores import brier_score
from calibrant.metrics.smooth import smooth_calibration_error
from calibrant.metrics.truthful import averaged_two_bin_error
from calibrant.parallel import DRAWS, checked_draws, recorded_seed
from calibrant.records import Missing
from calibrant.results import Array, Result


@dataclass(frozen=True, slots=True, repr=False)
class Threshold(Result):
    """Calibration at one threshold: mean F(z) against the share of outcomes up to z."""

    threshold: float
    predicted: float
    observed: float
    atb: float
    brier: float
    pvalue: float
    adjusted: float


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ThresholdTable(TableOfTests):
    """Calibration by threshold, and measures integrated over the thresholds with `weights`.

    `integrated_brier` is the part of the CRPS between the thresholds. `integrated_atb` is truthful if the
    thresholds were fixed before the outcomes were known (`fixed`).
    """

    COLUMNS: ClassVar = (
        "threshold", "predicted", "observed", "difference", "ATB", "Brier", "adjusted p"
    )  # fmt: skip
    CHART: ClassVar = ("threshold", "predicted", "Calibration by threshold", "share of outcomes")

    thresholds: tuple[Threshold, ...]
    weights: Array
    integrated_brier: float
    integrated_atb: float
    fixed: bool
    members: int | None  # of an ensemble, whose shares are rough probabilities
    n: int
    dropped: int
    draws: int
    seed: int

    def __str__(self) -> str:
        text = (
            f"{self._count_wrong('threshold')}. Integrated over them: Brier score "
            f"{format_value(self.integrated_brier)}, averaged two-bin error "
            f"{format_value(self.integrated_atb)}."
        )
        if not self.fixed:
            text += " The thresholds were taken from the outcomes: fix them beforehand to rank forecasters."
        if self.members is not None and self.wrong:
            text += f" Shares of {self.members} members are rough probabilities, which counts as an error."
        return text


@shares_parameters(FORECAST)
def threshold_forecasts(
    y_true: Any,
    forecast: Any,
    threshold: float,
    *,
    levels: Any = None,
    thresholds: Any = None,
    sample_weight: Any = None,
    missing: Missing = "error",
) -> Forecasts:
    """Reduce distributions to one threshold: prediction F(z), outcome whether y <= z.

    Every measure, test and chart of two outcomes applies to the result. The F of an ensemble is its share of
    members up to z, which few members know roughly: judge small ensembles by `pit`.

    Parameters
    ----------
    threshold
        The threshold z; for values of the CDF, one of `thresholds`. Between quantiles F is taken as linear.
    sample_weight
        Non-negative weights, one per record.

    Examples
    --------
    >>> threshold_forecasts([0.5, 2.5], [[0, 1, 2, 3], [1, 2, 3, 4]], 2).values.tolist()
    [0.5, 0.75]
    """
    given = ForecastRows.of(y_true, forecast, levels, thresholds, missing)
    if sample_weight is not None and given.dropped:
        rule = "must not be given where rows are dropped"
        raise InvalidInputError("sample_weight", rule, hint="leave such rows out first")
    z = finite_number("threshold", threshold)
    return Forecasts(given.y <= z, given.form.cdf(z), sample_weight=sample_weight)


@shares_parameters(FORECAST)
def threshold_table(
    y_true: Any,
    forecast: Any,
    at: Any = None,
    *,
    weights: Any = None,
    levels: Any = None,
    thresholds: Any = None,
    missing: Missing = "error",
    draws: int = DRAWS,
    seed: int | None = 0,
) -> ThresholdTable:
    """Measure and test calibration at several thresholds, and integrate over them.

    Parameters
    ----------
    at
        The thresholds, ascending; by default those of the CDF values, else the deciles of the outcomes,
        which is fine for a look and not for ranking: thresholds that depend on the outcomes pay for lies.
    weights
        One weight per threshold; by default their spacing, so that sums approximate integrals.

    Examples
    --------
    >>> table = threshold_table([0.5, 2.5], [[0, 1, 2, 3], [1, 2, 3, 4]], at=[1, 2])
    >>> [one.observed for one in table.thresholds]
    [0.5, 0.5]
    """
    given = ForecastRows.of(y_true, forecast, levels, thresholds, missing, draws, seed)
    return thresholds_of(given, thresholds if at is None else at, weights)


def thresholds_of(given: ForecastRows, at: Any, weights: Any) -> ThresholdTable:
    deciles = np.arange(1, 10) / 10
    places = np.unique(np.quantile(given.y, deciles, method="inverted_cdf")) if at is None else at
    places = ascending_numbers("at", places)
    given = replace(given, draws=enough_draws(given.draws, len(places)))
    found = []
    for z in places.tolist():
        forecasts = given.forecasts(given.y <= z, given.form.cdf(z))
        p = pvalue_of(forecasts, given.draws, given.seed)
        values = averaged_two_bin_error(forecasts), brier_score(forecasts)
        found.append(Threshold(z, forecasts.mean_prediction, forecasts.base_rate, *values, p, p))
    gaps = np.diff(places)  # the trapezoidal rule; 1 for a single threshold
    masses = (np.append(gaps, 0.0) + np.append(0.0, gaps)) / 2 if len(places) > 1 else np.ones(1)
    if weights is not None:
        masses = check_weights(numeric_vector(weights, "weights"), "weights")
    if len(masses) != len(places):
        got = f"got {len(masses)} for {pluralize(len(places), 'threshold')}"
        raise InvalidInputError("weights", "must have one number per threshold", got)
    brier, atb = (float(masses @ [getattr(one, name) for one in found]) for name in ("brier", "atb"))
    members = given.form.values.shape[1] if isinstance(given.form, Members) else None
    return ThresholdTable(adjusted_rows(found), masses, brier, atb, at is not None, members, *given.facts)


@dataclass(frozen=True, slots=True, repr=False)
class Horizon(Result):
    """Calibration at one horizon; `low` and `high` are 95% limits of the observed probability."""

    horizon: float
    predicted: float
    observed: float
    low: float
    high: float
    smooth: float
    pvalue: float
    adjusted: float
    censored: int  # records lost before it
    effective: float  # number of equal records with as much information as the others
    largest_weight: float  # of one of them


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class HorizonTable(TableOfTests):
    """Calibration of predicted event probabilities at several horizons, in their order."""

    COLUMNS: ClassVar = (
        "horizon", "predicted", "observed", "95% limits", "difference", "smooth", "adjusted p", "censored",
        "max weight",
    )  # fmt: skip
    CHART: ClassVar = ("horizon", "predicted", "Calibration by horizon", "probability of the event")

    horizons: tuple[Horizon, ...]
    n: int
    draws: int
    seed: int
    dropped: int = 0

    def __str__(self) -> str:
        named = (
            f"By {one.horizon:g}: {percent(one.predicted)} predicted, {percent(one.observed)} observed. "
            for one in self.wrong or self.horizons[-1:]
        )
        left_out = f", {self.dropped:,} with missing values dropped" if self.dropped else ""
        return (
            f"{self._count_wrong('horizon')} ({pluralize(self.n, 'record')}{left_out}). {''.join(named)}"
            "Censoring must not depend on the prediction, or only through strata."
        )


@shares_parameters(MISSING)
def horizon_table(
    time: Any,
    event: Any,
    predictions: Mapping[float, Any],
    *,
    strata: Any = None,
    missing: Missing = "error",
    draws: int = DRAWS,
    seed: int | None = 0,
) -> HorizonTable:
    """Measure and test predicted probabilities of an event at several horizons of censored times.

    Parameters
    ----------
    time, event, strata
        Times, events and strata, as `censored` takes them.
    predictions
        The predicted probability of the event by each horizon: a mapping of horizons to columns.

    Examples
    --------
    >>> rows = {1.0: [0.2, 0.4] * 50, 2.0: [0.4, 0.6] * 50}
    >>> table = horizon_table([0.5, 1.5, 2.5, 3.5] * 25, [1, 1, 0, 1] * 25, rows, draws=99)
    >>> [round(one.observed, 2) for one in table.horizons]
    [0.25, 0.5]
    """
    if not hasattr(predictions, "items") or not len(predictions):
        hint = "such as {1.0: p1, 2.0: p2}"
        rule, got = "must map horizons to columns", f"got {type(predictions).__name__}"
        raise InvalidInputError("predictions", rule, got, hint)
    count, used = enough_draws(checked_draws(draws), len(predictions)), recorded_seed(seed)
    columns: dict[float, NamedColumn] = {}
    gaps = np.zeros(1, dtype=bool)
    for end, given in predictions.items():
        name = subject_of(given, f"predictions by {end}")
        values = numeric_vector(given, name).astype(np.float64)
        check_aligned(given, row_labels(time), (name, "time"))
        check_same_length(values, unwrap(time), (name, "time"))
        columns[positive_number("horizon", end)] = NamedColumn(values, name)
        gaps = gaps | np.isnan(values)
    found = []
    for horizon, column in sorted(columns.items()):
        y = censored(time, event, horizon, strata=strata, missing=missing)
        if missing == "drop":  # a row that lacks one prediction is left out at all horizons
            column = replace(column, values=np.where(gaps, np.nan, column.values))
        forecasts = Forecasts(y, column, missing=missing)
        means, size = (forecasts.mean_prediction, forecasts.base_rate), smooth_calibration_error(forecasts)
        limits = observed_limits(forecasts, count, used)
        p = pvalue_of(forecasts, count, used)
        lost, weights = y.censored, (y.effective, y.largest_weight)
        found.append(Horizon(horizon, *means, *limits, size, p, p, lost, *weights))
    return HorizonTable(adjusted_rows(found), len(gaps) - forecasts.dropped, count, used, forecasts.dropped)
