"""By threshold: F(z) as a forecast of y <= z, for distributions and for the horizons of censored times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.censoring import censored
from calibrant.distributions.forms import (
    FORECAST,
    MISSING_AND_DRAWS,
    Form,
    Members,
    TableOfTests,
    adjusted_rows,
    as_rows,
    cells_of_test,
)
from calibrant.errors import InvalidInputError
from calibrant.forecasts import Forecasts
from calibrant.formatting import format_value, percent, pluralize
from calibrant.inference.intervals import confidence_interval
from calibrant.inference.testing import calibration_test
from calibrant.inputs import check_weights, finite_number, numeric_vector
from calibrant.metrics.calling import shares_parameters
from calibrant.metrics.scores import brier_score
from calibrant.metrics.smooth import smooth_calibration_error
from calibrant.metrics.truthful import averaged_two_bin_error
from calibrant.parallel import checked_draws, recorded_seed
from calibrant.records import Missing
from calibrant.results import Array, Result, Table, number_cell


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
        count = pluralize(len(self.thresholds), "threshold")
        taken = " The thresholds were taken from the outcomes: fix them beforehand to rank forecasters."
        note = "" if self.fixed else taken
        if self.members is not None and self.wrong:
            note += f" Shares of {self.members} members are rough probabilities, which counts as an error."
        return (
            f"{len(self.wrong)} of {count} off beyond chance. Integrated over them: Brier score "
            f"{format_value(self.integrated_brier)}, averaged two-bin error "
            f"{format_value(self.integrated_atb)}.{note}"
        )

    def rows(self) -> tuple[Result, ...]:
        return self.thresholds

    def sheet(self) -> Table:
        """Return the table, one line per threshold."""
        columns = ("threshold", "predicted", "observed", "difference", "ATB", "Brier", "p-value", "adjusted")
        lines = (
            cells_of_test(one.threshold, one.predicted, one, False, *map(number_cell, (one.atb, one.brier)))
            for one in self.thresholds
        )
        return Table(columns, tuple(lines))


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
    missing
        Refuse rows with a missing value ("error"), or leave them out ("drop").

    Returns
    -------
    Forecasts

    Examples
    --------
    >>> threshold_forecasts([0.5, 2.5], [[0, 1, 2, 3], [1, 2, 3, 4]], 2).values.tolist()
    [0.5, 0.75]
    """
    y, form, dropped = as_rows(y_true, forecast, levels, thresholds, missing)
    if sample_weight is not None and dropped:
        rule = "must not be given where rows are dropped"
        raise InvalidInputError("sample_weight", rule, hint="leave such rows out first")
    z = finite_number("threshold", threshold)
    return Forecasts(y <= z, form.cdf(z), sample_weight=sample_weight)


@shares_parameters(FORECAST + MISSING_AND_DRAWS)
def threshold_table(
    y_true: Any,
    forecast: Any,
    at: Any = None,
    *,
    weights: Any = None,
    levels: Any = None,
    thresholds: Any = None,
    missing: Missing = "error",
    draws: int = 999,
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

    Returns
    -------
    ThresholdTable

    Examples
    --------
    >>> table = threshold_table([0.5, 2.5], [[0, 1, 2, 3], [1, 2, 3, 4]], at=[1, 2])
    >>> [one.observed for one in table.thresholds]
    [0.5, 0.5]
    """
    y, form, dropped = as_rows(y_true, forecast, levels, thresholds, missing)
    at = thresholds if at is None else at
    return build_threshold_table(y, form, at, weights, dropped, draws, recorded_seed(seed))


def build_threshold_table(
    y: Array, form: Form, at: Any, weights: Any, dropped: int, draws: int, seed: int
) -> ThresholdTable:
    if at is None:
        places = np.unique(np.quantile(y, np.arange(1, 10) / 10, method="inverted_cdf"))
    else:
        places = numeric_vector(at, "at").astype(np.float64)
    if not np.all(np.isfinite(places)) or np.any(np.diff(places) <= 0):
        raise InvalidInputError("at", "must be finite and ascending", f"got {at}")
    found = []
    for z in places.tolist():
        forecasts = Forecasts(y <= z, form.cdf(z))
        p = calibration_test(forecasts, draws=draws, seed=seed).pvalue
        values = averaged_two_bin_error(forecasts), brier_score(forecasts)
        found.append(Threshold(z, forecasts.mean_prediction, forecasts.base_rate, *values, p, p))
    rows = adjusted_rows(found)
    gaps = np.diff(places)  # the trapezoidal rule; 1 for a single threshold
    masses = (np.append(gaps, 0.0) + np.append(0.0, gaps)) / 2 if len(places) > 1 else np.ones(1)
    if weights is not None:
        masses = check_weights(numeric_vector(weights, "weights"), "weights")
    if len(masses) != len(places):
        got = f"got {len(masses)} for {pluralize(len(places), 'threshold')}"
        raise InvalidInputError("weights", "must have one number per threshold", got)
    brier, atb = (float(masses @ [getattr(one, name) for one in rows]) for name in ("brier", "atb"))
    members = form.values.shape[1] if isinstance(form, Members) else None
    return ThresholdTable(rows, masses, brier, atb, at is not None, members, len(y), dropped, draws, seed)


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
class HorizonTable(TableOfTests):
    """Calibration of predicted event probabilities at several horizons, in their order."""

    horizons: tuple[Horizon, ...]
    n: int
    draws: int
    seed: int

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
        columns = ("horizon", "predicted", "observed", "95% limits", "difference", "smooth", "adjusted p",
                   "censored", "max weight")  # fmt: skip
        lines = []
        for one in self.horizons:
            smooth = number_cell(one.smooth, format_value(one.smooth))
            *cells, _, adjusted = cells_of_test(one.horizon, one.predicted, one, True, smooth)
            censored = number_cell(one.censored, f"{one.censored:,}")
            weight = number_cell(one.largest_weight, f"{one.largest_weight:.3g}")
            lines.append((*cells, adjusted, censored, weight))
        return Table(columns, tuple(lines))


@shares_parameters(MISSING_AND_DRAWS)
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
        raise InvalidInputError("predictions", "must have a horizon", "got none")
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
    return HorizonTable(adjusted_rows(found), n, count, used)
