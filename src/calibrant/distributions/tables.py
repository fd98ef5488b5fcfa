"""Tables of tests: coverage of quantiles and intervals, and F(z) as a forecast of y <= z, with horizons."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from calibrant.censoring import censored
from calibrant.distributions.forms import (
    ALPHA,
    FORECAST,
    MISSING,
    OUTCOMES,
    ForecastRows,
    Members,
    ascending_numbers,
    quantile_scores,
)
from calibrant.errors import InvalidInputError, reject_rows
from calibrant.forecasts import Forecasts
from calibrant.formatting import format_points, format_value, percent, pluralize, pvalue_phrase, pvalue_text
from calibrant.inference.intervals import clopper_pearson, confidence_interval
from calibrant.inference.pvalues import exceedance, holm
from calibrant.inference.testing import calibration_test
from calibrant.inputs import (
    check_same_length,
    check_weights,
    finite_number,
    numeric_vector,
    open_share,
    probabilities,
)
from calibrant.metrics.calling import shares_parameters
from calibrant.metrics.null_laws import log_range_tail, simulated_extremes
from calibrant.metrics.scores import brier_score
from calibrant.metrics.smooth import smooth_calibration_error
from calibrant.metrics.truthful import averaged_two_bin_error
from calibrant.parallel import checked_draws, recorded_seed
from calibrant.records import Missing
from calibrant.results import Array, Result, Table, TableCell, number_cell

Hits = npt.NDArray[np.bool_]
Keys = tuple[Array, ...]  # of an order, the last counts first
MAX_NUMBERS = 400_000_000  # drawn for one p-value; beyond, the limit law
_FORMATS: dict[str, tuple[str, Callable[[float], str] | None]] = {  # column -> attribute and format
    **{name: (name, "{:.4g}".format) for name in ("level", "threshold", "horizon")},
    **{name: (name, percent) for name in ("promised", "predicted", "observed")},
    **{name: (name, format_value) for name in ("score", "smooth")},
    "inside": ("observed", percent),
    "ATB": ("atb", None),
    "Brier": ("brier", None),
    "p-value": ("pvalue", pvalue_text),
    "adjusted p": ("adjusted", pvalue_text),
    "censored": ("censored", "{:,}".format),
    "max weight": ("largest_weight", "{:.3g}".format),
}


def cell_of(one: Any, column: str) -> TableCell:
    if column == "95% limits":
        return number_cell(one.low, f"{percent(one.low)} to {percent(one.high)}")
    if column == "difference":
        gap = one.observed - getattr(one, "promised" if isinstance(one, Coverage) else "predicted")
        return number_cell(gap, format_points(gap))
    name, write = _FORMATS[column]
    value = getattr(one, name)
    return number_cell(value, None if write is None else write(value))


class TableOfTests(Result):
    """A result with one test per row: of a level, a threshold or a horizon."""

    __slots__ = ()
    DERIVED: ClassVar[tuple[str, ...]] = ("sentence",)
    COLUMNS: ClassVar[tuple[str, ...]] = ()

    def rows(self) -> tuple[Any, ...]:
        """Return the levels, thresholds or horizons, which every table has as its first field."""
        return getattr(self, fields(self)[0].name)  # type: ignore[arg-type, no-any-return]

    @property
    def wrong(self) -> tuple[Any, ...]:
        """The rows that are off beyond chance at the 5% level."""
        return tuple(one for one in self.rows() if one.adjusted <= ALPHA)

    def _count_wrong(self, noun: str) -> str:
        return f"{len(self.wrong)} of {pluralize(len(self.rows()), noun)} off beyond chance"

    def sheet(self) -> Table:
        """Return the table, one line per row."""
        lines = (tuple(cell_of(one, column) for column in self.COLUMNS) for one in self.rows())
        return Table(self.COLUMNS, tuple(lines))


def enough_draws(asked: int, tests: int) -> int:
    """Return the draws, more if one of so many tests could not be off beyond chance with them."""
    return max(asked, math.ceil(tests / ALPHA))


def adjusted_rows(found: Sequence[Any]) -> tuple[Any, ...]:
    """Return the tests with p-values that allow for all of them (Holm)."""
    adjusted = holm([one.pvalue for one in found])
    return tuple(replace(one, adjusted=p) for one, p in zip(found, adjusted, strict=True))


@dataclass(frozen=True, slots=True, repr=False)
class Coverage(Result):
    """How often something that was promised a probability came true, with exact binomial limits.

    `pvalue` is that of Kuiper's range of the residuals along the forecast, which sees differences that
    cancel overall; `adjusted` allows for all rows of the table (Holm). `promised` differs from the nominal
    `level` where outcomes are counts.
    """

    level: float
    promised: float
    observed: float
    low: float
    high: float
    pvalue: float
    adjusted: float
    score: float  # mean quantile or interval score


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class QuantileTable(TableOfTests):
    """Coverage of each quantile; `mean_score` is the mean quantile (pinball) score over levels."""

    COLUMNS: ClassVar = (
        "level", "promised", "observed", "95% limits", "difference", "score", "adjusted p"
    )  # fmt: skip

    levels: tuple[Coverage, ...]
    mean_score: float
    n: int
    dropped: int
    draws: int
    seed: int

    def __str__(self) -> str:
        shares = ", ".join(f"{percent(one.observed)} for {percent(one.promised)}" for one in self.levels[:12])
        records = pluralize(self.n, "record")
        return f"Outcomes at or below the quantiles: {shares}. {self._count_wrong('level')} ({records})."


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class IntervalCoverage(Result):
    """How often outcomes fell inside their prediction intervals, and on which side they fell out."""

    DERIVED: ClassVar = ("sentence", "status")

    coverage: Coverage
    below: float
    above: float
    mean_width: float
    n: int
    dropped: int
    draws: int
    seed: int

    @property
    def status(self) -> str:
        """One of "too narrow", "too wide", "biased", "uneven", or "fine" if nothing is off beyond chance."""
        from scipy.stats import binomtest

        one = self.coverage
        if one.promised < one.low:
            return "too wide"
        if one.promised > one.high:
            return "too narrow"
        low, high = round(self.below * self.n), round(self.above * self.n)
        if low + high > 0 and binomtest(low, low + high).pvalue <= ALPHA:  # more fall out on one side
            return "biased"
        return "fine" if one.pvalue > ALPHA else "uneven"

    def __str__(self) -> str:
        one = self.coverage
        lead = "No miscalibration found" if self.status == "fine" else self.status.capitalize()
        uneven = " Coverage depends on the width of the interval." if self.status == "uneven" else ""
        return (
            f"{lead}: {percent(one.observed)} of {pluralize(self.n, 'outcome')} fall inside intervals of "
            f"{percent(one.promised)} ({percent(one.low)} to {percent(one.high)}); {percent(self.below)} "
            f"fall below, {percent(self.above)} above.{uneven} Along the width: "
            f"{pvalue_phrase(one.pvalue, self.draws)}."
        )

    def sheet(self) -> Table:
        """Return the table of one line."""
        columns = ("promised", "inside", "95% limits", "difference", "score", "p-value")
        cells = (cell_of(self.coverage, column) for column in columns)
        return Table((*columns, "mean width"), ((*cells, number_cell(self.mean_width)),))


@shares_parameters(OUTCOMES)
def quantile_table(
    y_true: Any,
    quantiles: Any,
    levels: Any,
    *,
    expected: Any = None,
    missing: Missing = "error",
    draws: int = 999,
    seed: int | None = 0,
) -> QuantileTable:
    """Compare how often outcomes stay at or below each quantile with its level.

    At level t the residuals 1[y <= q] - t are summed in the order of q; the range of the sums (Kuiper) is
    compared with draws of independent outcomes of probability t. That finds quantiles that are right on
    average and wrong where they are high or low.

    Parameters
    ----------
    quantiles
        One row per outcome, one column per level.
    levels
        The levels of the columns, ascending, strictly between 0 and 1.
    expected
        The probability of y <= q under the forecast, where it is not the level, as for counts: an array of
        the shape of `quantiles`.

    Examples
    --------
    >>> table = quantile_table([1.0, 2.0, 3.0, 4.0], [[1.5], [1.5], [3.5], [3.5]], [0.5])
    >>> table.levels[0].observed
    0.5
    """
    given = ForecastRows.of(y_true, quantiles, levels, None, missing, draws, seed)
    if expected is not None:
        if given.dropped:
            raise InvalidInputError("missing", "must not occur where expected is given")
        shape = given.form.values.shape  # type: ignore[union-attr]
        expected = np.broadcast_to(probabilities(expected, "expected"), shape)
    return quantiles_of(given, expected=expected)


def quantiles_of(
    given: ForecastRows, *, expected: Array | None = None, ranks: Array | None = None
) -> QuantileTable:
    """Return the coverage at the levels of the form; `ranks` break ties between members and outcome."""
    y, form = given.y, given.form
    given = replace(given, draws=enough_draws(given.draws, len(form.levels)))
    found: dict[float, Coverage] = {}
    for asked in map(float, form.levels):
        q, level, promised = form.quantile(asked)  # type: ignore[union-attr]
        if level in found:  # few members have one rank for several levels
            continue
        hit = y <= q if ranks is None else ranks <= level
        promised = np.broadcast_to(promised, len(y)) if expected is None else expected[:, len(found)]
        score = float(quantile_scores(y, q[:, None], np.array([level])).mean())
        found[level] = coverage_of(given, len(found), level, hit, promised, (q,), score)
    mean = float(np.mean([one.score for one in found.values()]))
    return QuantileTable(adjusted_rows([*found.values()]), mean, *given.facts)


@shares_parameters(OUTCOMES)
def interval_coverage(
    y_true: Any,
    lower: Any,
    upper: Any,
    *,
    coverage: float,
    missing: Missing = "error",
    draws: int = 999,
    seed: int | None = 0,
) -> IntervalCoverage:
    """Compare how often outcomes fall inside prediction intervals with their nominal coverage.

    Parameters
    ----------
    lower, upper
        The ends of the intervals, which belong to them.
    coverage
        The probability that the intervals promise.

    Examples
    --------
    >>> found = interval_coverage([1, 2, 3, 9], [0, 0, 0, 0], [4, 4, 4, 4], coverage=0.75)
    >>> found.coverage.observed, found.above, found.coverage.score
    (0.75, 0.25, 14.0)
    """
    level = open_share("coverage", coverage)
    ends = (1 - level) / 2, (1 + level) / 2
    left, right = numeric_vector(lower, "lower"), numeric_vector(upper, "upper")
    check_same_length(left, right, ("lower", "upper"))
    reject_rows("upper", "must not be less than lower", right, right < left)
    given = ForecastRows.of(y_true, np.column_stack([left, right]), ends, None, missing, draws, seed)
    y, (low, high) = given.y, given.form.values.T  # type: ignore[union-attr]
    width, out = high - low, np.maximum(low - y, 0) + np.maximum(y - high, 0)
    score = float(np.mean(width + 2 / (1 - level) * out))
    promised, order = np.full(len(y), level), (low + high, width)
    one = coverage_of(given, 0, level, (y >= low) & (y <= high), promised, order, score)
    sides = float(np.mean(y < low)), float(np.mean(y > high))
    return IntervalCoverage(one, *sides, float(np.mean(width)), *given.facts)


def coverage_of(
    given: ForecastRows, place: int, level: float, hit: Hits, promised: Array, order: Keys, score: float
) -> Coverage:
    n, k = len(hit), int(hit.sum())
    low, high = map(float, clopper_pearson(k, n, ALPHA))
    pvalue = along(hit, promised, order, given.draws, given.seed + place)
    return Coverage(level, float(np.mean(promised)), k / n, low, high, pvalue, pvalue, score)


def along(hit: Hits, promised: Array, order: Keys, draws: int, seed: int) -> float:
    """Return the p-value of Kuiper's range of the residuals in the order of the forecast, ties together."""
    rows = np.lexsort(order)
    p, keys = promised[rows], [key[rows] for key in order]
    changes = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    ends = np.flatnonzero(np.append(changes, True))
    curve = np.cumsum(hit[rows] - p)[ends]
    observed = float(max(curve.max(), 0.0) - min(curve.min(), 0.0))
    if len(p) * draws > MAX_NUMBERS:
        deviation = float(np.sqrt(np.sum(p * (1 - p))))
        return float(np.exp(log_range_tail(observed / deviation))) if deviation else 1.0
    return exceedance(observed, simulated_extremes(p, ends, draws, seed).sum(axis=1))


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
        forecasts = Forecasts(given.y <= z, given.form.cdf(z))
        p = calibration_test(forecasts, draws=given.draws, seed=given.seed).pvalue
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

    COLUMNS: ClassVar = (
        "horizon", "predicted", "observed", "95% limits", "difference", "smooth", "adjusted p", "censored",
        "max weight",
    )  # fmt: skip

    horizons: tuple[Horizon, ...]
    n: int
    draws: int
    seed: int

    def __str__(self) -> str:
        named = (
            f"By {one.horizon:g}: {percent(one.predicted)} predicted, {percent(one.observed)} observed. "
            for one in self.wrong or self.horizons[-1:]
        )
        return (
            f"{self._count_wrong('horizon')} ({pluralize(self.n, 'record')}). {''.join(named)}"
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

    Examples
    --------
    >>> rows = {1.0: [0.2, 0.4] * 50, 2.0: [0.4, 0.6] * 50}
    >>> table = horizon_table([0.5, 1.5, 2.5, 3.5] * 25, [1, 1, 0, 1] * 25, rows, draws=99)
    >>> [round(one.observed, 2) for one in table.horizons]
    [0.25, 0.5]
    """
    if not predictions:
        raise InvalidInputError("predictions", "must have a horizon", "got none")
    count, used = enough_draws(checked_draws(draws), len(predictions)), recorded_seed(seed)
    found, n = [], 0
    for horizon in sorted(predictions):
        y = censored(time, event, horizon, strata=strata, missing=missing)
        forecasts = Forecasts(y, predictions[horizon], missing=missing)
        p = calibration_test(forecasts, draws=count, seed=used).pvalue
        limits = confidence_interval(forecasts, measure="in-the-large", draws=count, seed=used)
        predicted, observed, n = forecasts.mean_prediction, forecasts.base_rate, len(y)
        low, high = (min(max(predicted + end, 0.0), 1.0) for end in (limits.lower, limits.upper))
        size, facts = smooth_calibration_error(forecasts), (y.censored, y.effective, y.largest_weight)
        found.append(Horizon(y.horizon, predicted, observed, low, high, size, p, p, *facts))
    return HorizonTable(adjusted_rows(found), n, count, used)
