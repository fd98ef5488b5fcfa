"""Distributions by threshold: each threshold z makes forecasts F(z) of the outcome y <= z."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from calibrant.distributions.forms import Form, Members, as_rows
from calibrant.errors import InvalidInputError, sentence
from calibrant.forecasts import Forecasts
from calibrant.formatting import format_points, format_value, percent, pluralize, pvalue_text
from calibrant.inference.multiple_testing import holm
from calibrant.inference.testing import calibration_test
from calibrant.inputs import check_weights, finite_number, numeric_vector
from calibrant.metrics.scores import brier_score
from calibrant.metrics.truthful import averaged_two_bin_error
from calibrant.parallel import recorded_seed
from calibrant.records import Missing
from calibrant.results import Array, Result, Table, number_cell, text_cell

ALPHA = 0.05


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
class ThresholdTable(Result):
    """Calibration by threshold, and measures integrated over the thresholds with `weights`.

    `integrated_brier` is the part of the CRPS between the thresholds. `integrated_atb` is truthful if the
    thresholds were fixed before the outcomes were known (`fixed`).
    """

    DERIVED: ClassVar = ("sentence",)

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

    @property
    def wrong(self) -> tuple[Threshold, ...]:
        """The thresholds that are off beyond chance at the 5% level."""
        return tuple(one for one in self.thresholds if one.adjusted <= ALPHA)

    def __str__(self) -> str:
        count = pluralize(len(self.thresholds), "threshold")
        note = "" if self.fixed else (
            " The thresholds were taken from the outcomes: fix them beforehand to rank forecasters."
        )  # fmt: skip
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
        return Table(columns, tuple(_line(one) for one in self.thresholds))

    def tables(self) -> tuple[Table, ...]:
        return (self.sheet(),)


def _line(one: Threshold) -> tuple[Any, ...]:
    gap = one.observed - one.predicted
    return (
        text_cell(f"{one.threshold:.4g}"),
        number_cell(one.predicted, percent(one.predicted)),
        number_cell(one.observed, percent(one.observed)),
        number_cell(gap, f"{format_points(gap)} points"),
        number_cell(one.atb),
        number_cell(one.brier),
        number_cell(one.pvalue, pvalue_text(one.pvalue)),
        number_cell(one.adjusted, pvalue_text(one.adjusted)),
    )


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
    y_true
        The outcomes: numbers.
    forecast
        Members, quantiles, values of the CDF, or an object with `cdf`, as in `pit`.
    threshold
        The threshold z; for values of the CDF, one of `thresholds`.
    levels
        The levels of the columns, if they are quantiles, between which F is taken as linear.
    thresholds
        The thresholds of the columns, if they are values of the CDF.
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
        raise InvalidInputError(sentence("sample_weight", rule, hint="leave such rows out first"))
    z = finite_number("threshold", threshold)
    return Forecasts(y <= z, form.cdf(z), sample_weight=sample_weight)


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
    y_true
        The outcomes: numbers.
    forecast
        Members, quantiles, values of the CDF, or an object with `cdf`, as in `pit`.
    at
        The thresholds, ascending; by default those of the CDF values, else the deciles of the outcomes,
        which is fine for a look and not for ranking: thresholds that depend on the outcomes pay for lies.
    weights
        One weight per threshold; by default their spacing, so that sums approximate integrals.
    levels, thresholds
        The levels of quantile columns, or the thresholds of columns of CDF values.
    missing
        Refuse rows with a missing value ("error"), or leave them out and count them ("drop").
    draws, seed
        Simulations for p-values without a limit law, and their seed.

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
    """Return the table of checked rows."""
    if at is None:
        places = np.unique(np.quantile(y, np.arange(1, 10) / 10, method="inverted_cdf"))
    else:
        places = numeric_vector(at, "at").astype(np.float64)
    if not np.all(np.isfinite(places)) or np.any(np.diff(places) <= 0):
        raise InvalidInputError(sentence("at", "must be finite and ascending", f"got {at}"))
    found = [_at(y, form, z, draws, seed) for z in places]
    adjusted = holm([one.pvalue for one in found])
    rows = tuple(replace(one, adjusted=p) for one, p in zip(found, adjusted, strict=True))
    masses = _spacing(places)
    if weights is not None:
        masses = check_weights(numeric_vector(weights, "weights"), "weights")
    if len(masses) != len(places):
        got = f"got {len(masses)} for {pluralize(len(places), 'threshold')}"
        raise InvalidInputError(sentence("weights", "must have one number per threshold", got))
    brier, atb = (float(masses @ [getattr(one, name) for one in rows]) for name in ("brier", "atb"))
    members = form.values.shape[1] if isinstance(form, Members) else None
    return ThresholdTable(rows, masses, brier, atb, at is not None, members, len(y), dropped, draws, seed)


def _at(y: Array, form: Form, z: float, draws: int, seed: int) -> Threshold:
    forecasts = Forecasts(y <= z, form.cdf(z))
    p = calibration_test(forecasts, draws=draws, seed=seed).pvalue
    values = averaged_two_bin_error(forecasts), brier_score(forecasts)
    return Threshold(float(z), forecasts.mean_prediction, forecasts.base_rate, *values, p, p)


def _spacing(places: Array) -> Array:
    """Return the weights of the trapezoidal rule; 1 for a single threshold."""
    if len(places) == 1:
        return np.ones(1)
    gaps = np.diff(places)
    return np.asarray((np.append(gaps, 0.0) + np.append(0.0, gaps)) / 2)
