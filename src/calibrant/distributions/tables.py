"""Tables of tests, and the coverage of quantiles and intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from calibrant.clusters import Clusters
from calibrant.distributions.forms import ALPHA, OUTCOMES, ForecastRows, Members, Quantiles, quantile_scores
from calibrant.errors import DROP_MISSING, InvalidInputError, TooFewClustersError, reject_rows
from calibrant.forecasts import Forecasts
from calibrant.formatting import format_points, format_value, percent, pluralize, pvalue_phrase, pvalue_text
from calibrant.inference.intervals import clopper_pearson, confidence_interval
from calibrant.inference.null import SKEWNESS_ALLOWANCE, draw_signs, skewness_of_mean
from calibrant.inference.pvalues import exceedance, holm
from calibrant.inference.testing import calibration_test
from calibrant.inputs import (
    check_aligned,
    check_same_length,
    numeric_vector,
    open_share,
    probabilities,
    row_labels,
    subject_of,
)
from calibrant.metrics.calling import shares_parameters
from calibrant.metrics.null_laws import log_range_tail, simulated_extremes
from calibrant.parallel import DRAWS, in_blocks
from calibrant.records import Missing
from calibrant.results import Array, Result, Table, TableCell, number_cell

Hits = npt.NDArray[np.bool_]
Keys = tuple[Array, ...]  # of an order, the last counts first
NOTABLE_TIES = 0.01  # of outcomes with their quantile
QUESTIONS = 3  # about one set of intervals
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
        known = not math.isnan(one.low)
        return number_cell(one.low, f"{percent(one.low)} to {percent(one.high)}" if known else "–")
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
    CHART: ClassVar[tuple[str, str, str, str]]  # noun and prediction field of a row; title and axis

    def rows(self) -> tuple[Any, ...]:
        """Return the levels, thresholds or horizons, which every table has as its first field."""
        return getattr(self, fields(self)[0].name)  # type: ignore[arg-type, no-any-return]

    @property
    def wrong(self) -> tuple[Any, ...]:
        """The rows that are off beyond chance at the 5% level."""
        return tuple(one for one in self.rows() if one.adjusted <= ALPHA)

    def _count_wrong(self, noun: str) -> str:
        untested = sum(math.isnan(one.pvalue) for one in self.rows())
        few = f", {untested} with too little data for a test" if untested else ""
        return f"{len(self.wrong)} of {pluralize(len(self.rows()), noun)} off beyond chance{few}"

    def sheet(self) -> Table:
        lines = (tuple(cell_of(one, column) for column in self.COLUMNS) for one in self.rows())
        return Table(self.COLUMNS, tuple(lines))


def enough_draws(asked: int, tests: int) -> int:
    """Return the number of draws, raised where fewer could not reject any of the tests (Holm)."""
    return max(asked, math.ceil(tests / ALPHA))


def adjusted_rows(found: Sequence[Any]) -> tuple[Any, ...]:
    """Return the tests with p-values that allow for all of them (Holm); nan where there was no test."""
    pvalues = np.array([one.pvalue for one in found])
    adjusted = np.where(np.isnan(pvalues), np.nan, holm(np.nan_to_num(pvalues, nan=1.0).tolist())).tolist()
    return tuple(replace(one, adjusted=p) for one, p in zip(found, adjusted, strict=True))


@dataclass(frozen=True, slots=True, repr=False)
class Coverage(Result):
    """How often something that was promised a probability came true, with exact binomial limits."""

    level: float
    promised: float  # differs from the nominal level where outcomes are counts
    observed: float
    low: float
    high: float
    pvalue: float  # of Kuiper's range along the forecast, which sees differences that cancel overall
    adjusted: float  # for all rows of the table (Holm)
    score: float  # mean quantile or interval score


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class QuantileTable(TableOfTests):
    """Coverage of each quantile; `mean_score` is the mean quantile (pinball) score over levels."""

    COLUMNS: ClassVar = (
        "level", "promised", "observed", "95% limits", "difference", "score", "adjusted p"
    )  # fmt: skip
    CHART: ClassVar = ("level", "promised", "Coverage of the quantiles", "share of outcomes")

    levels: tuple[Coverage, ...]
    mean_score: float
    n: int
    dropped: int
    draws: int
    seed: int
    tied: float = 0.0  # mean share of outcomes that equal the quantile, and may count as below or above it

    def __str__(self) -> str:
        shares = ", ".join(f"{percent(one.observed)} for {percent(one.promised)}" for one in self.levels[:12])
        records = pluralize(self.n, "record")
        ties = (
            f" {percent(self.tied)} of outcomes equal their quantile: only what such ties cannot explain "
            "counts as off. For counts, quantile_table takes P(y <= q) as expected=."
        )
        return (
            f"Outcomes at or below the quantiles: {shares}. {self._count_wrong('level')} ({records})."
            f"{ties if self.tied > NOTABLE_TIES else ''}"
        )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class IntervalCoverage(Result):
    """How often outcomes fell inside their prediction intervals, and on which side they fell out.

    The status allows for three questions: whether the coverage is right, whether as many outcomes fall below
    as above, and whether coverage depends on the width. Any miscalibration is claimed at the 5% level.
    """

    DERIVED: ClassVar = ("sentence", "status")

    coverage: Coverage
    below: float
    above: float
    mean_width: float
    n: int
    dropped: int
    draws: int
    seed: int
    at_lower: float = 0.0  # share of outcomes that equal the lower end
    at_upper: float = 0.0

    @property
    def status(self) -> str:
        """One of "too narrow", "too wide", "biased", "uneven", or "fine" if nothing is off beyond chance."""
        one, level = self.coverage, ALPHA / QUESTIONS
        shares = one.observed, self.below, self.above, self.at_lower, self.at_upper
        inside, below, above, *ends = (round(share * self.n) for share in shares)
        # what equals an end may count as inside or outside, as for counts
        if one.promised < clopper_pearson(max(inside - sum(ends), 0), self.n, level)[0]:
            return "too wide"
        if one.promised > clopper_pearson(inside, self.n, level)[1]:
            return "too narrow"
        for least, most in ((below, above + ends[1]), (above, below + ends[0])):
            if clopper_pearson(least, least + most, level)[0] > 0.5:  # more fall out on one side
                return "biased"
        return "fine" if one.pvalue > level else "uneven"

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
    draws: int = DRAWS,
    seed: int | None = 0,
) -> QuantileTable:
    """Compare how often outcomes stay at or below each quantile with its level.

    At level t the residuals 1[y <= q] - t are summed in the order of q; the range of the sums (Kuiper) is
    compared with draws of independent outcomes of probability t. That finds quantiles that are right on
    average and wrong where they are high or low. Those of a small ensemble are: pass it to `evaluate`.
    Outcomes that equal a quantile may count as below or above it, unless `expected` is given.

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
    given = ForecastRows.of(y_true, quantiles, levels, None, missing, draws, seed, name="quantiles")
    if expected is not None:
        if given.dropped:
            raise InvalidInputError("missing", "must not occur where expected is given")
        expected, shape = probabilities(expected, "expected"), given.form.values.shape  # type: ignore[union-attr]
        if expected.shape != shape:
            got = f"got {expected.shape} for {shape}"
            raise InvalidInputError("expected", "must have the shape of the quantiles", got)
    return quantiles_of(given, expected=expected)


def quantiles_of(
    given: ForecastRows, *, expected: Array | None = None, ranks: Array | None = None
) -> QuantileTable:
    """Return the coverage at the levels of the form; `ranks` break ties between members and outcome."""
    y, form = given.y, given.form
    given = replace(given, draws=enough_draws(given.draws, len(form.levels)))
    found: dict[float, Coverage] = {}
    tied = []
    for asked in map(float, form.levels):
        q, level, promised = form.quantile(asked)  # type: ignore[union-attr]
        if level in found:  # few members have one rank for several levels
            continue
        hit, order = y <= q, q
        sure = y < q if isinstance(form, Quantiles) and expected is None else hit
        if isinstance(form, Members) and ranks is not None:
            # given the pooled values the outcome's rank is uniform, given the members alone it is not:
            # residuals are summed in the order of the pooled quantile
            hit, order = ranks <= level, form.pooled_quantile(level, y)
            sure = hit
        promised = np.broadcast_to(promised, len(y)) if expected is None else expected[:, len(found)]
        score = float(quantile_scores(y, q[:, None], np.array([level])).mean())
        found[level] = coverage_of(given, len(found), level, (sure, hit), promised, (order,), score)
        tied.append(float(np.mean(hit & ~sure)))
    mean = float(np.mean([one.score for one in found.values()]))
    return QuantileTable(adjusted_rows([*found.values()]), mean, *given.facts, float(np.mean(tied)))


@shares_parameters(OUTCOMES)
def interval_coverage(
    y_true: Any,
    lower: Any,
    upper: Any,
    *,
    coverage: float,
    missing: Missing = "error",
    draws: int = DRAWS,
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
    names = subject_of(lower, "lower"), subject_of(upper, "upper")
    left, right = _end(lower, names[0], y_true, missing), _end(upper, names[1], y_true, missing)
    check_same_length(left, right, names)
    reject_rows(names[1], f"must not be less than {names[0]}", right, right < left)
    given = ForecastRows.of(y_true, np.column_stack([left, right]), ends, None, missing, draws, seed)
    given = replace(given, draws=enough_draws(given.draws, QUESTIONS))
    y, (low, high) = given.y, given.form.values.T  # type: ignore[union-attr]
    width, out = high - low, np.maximum(low - y, 0) + np.maximum(y - high, 0)
    score = float(np.mean(width + 2 / (1 - level) * out))
    promised, order = np.full(len(y), level), (low + high, width)
    hits = (y > low) & (y < high), (y >= low) & (y <= high)
    one = coverage_of(given, 0, level, hits, promised, order, score)
    sides = (float(np.mean(which)) for which in (y < low, y > high, y == low, y == high))
    below, above, at_lower, at_upper = sides
    return IntervalCoverage(one, below, above, float(np.mean(width)), *given.facts, at_lower, at_upper)


def _end(given: Any, name: str, y_true: Any, missing: Missing) -> Array:
    end = numeric_vector(given, name).astype(np.float64)
    check_aligned(given, row_labels(y_true), (name, "y_true"))
    if missing == "error":
        reject_rows(name, "must not be missing", end, np.isnan(end), DROP_MISSING)
    reject_rows(name, "must be finite", end, np.isinf(end), "quantile_table takes limits on one side")
    return end


def coverage_of(
    given: ForecastRows,
    place: int,
    level: float,
    hits: tuple[Hits, Hits],
    promised: Array,
    order: Keys,
    score: float,
) -> Coverage:
    """Return the coverage of one level; `hits` are those that are sure, and those with ties."""
    hit = hits[1]
    n, k, seed = len(hit), int(hit.sum()), given.seed + place
    low, high = map(float, clopper_pearson(k, n, ALPHA))
    pvalue = along(hits, promised, order, given.draws, seed, given.clusters)
    if given.clusters is not None:
        low, high = observed_limits(given.forecasts(hit, promised), given.draws, seed)
        pvalue = math.nan if math.isnan(low) else pvalue
    return Coverage(level, float(np.mean(promised)), k / n, low, high, pvalue, pvalue, score)


def observed_limits(forecasts: Forecasts, draws: int, seed: int) -> tuple[float, float]:
    """Return 95% limits of the observed share from those of its difference from the predicted one, or nan."""
    try:
        limits = confidence_interval(forecasts, measure="in-the-large", draws=draws, seed=seed)
    except TooFewClustersError:
        return math.nan, math.nan
    if not math.isfinite(limits.upper - limits.lower):
        return math.nan, math.nan
    low, high = (forecasts.mean_prediction + end for end in (limits.lower, limits.upper))
    return min(max(low, 0.0), 1.0), min(max(high, 0.0), 1.0)


def pvalue_of(forecasts: Forecasts, draws: int, seed: int) -> float:
    """Return the p-value of the default test, or nan."""
    try:
        return calibration_test(forecasts, draws=draws, seed=seed).pvalue
    except TooFewClustersError:
        return math.nan


def along(
    hits: tuple[Hits, Hits],
    promised: Array,
    order: Keys,
    draws: int,
    seed: int,
    clusters: Clusters | None = None,
) -> float:
    """Return the p-value of Kuiper's range of the residuals in the order of the forecast, ties together."""
    rows = np.lexsort((promised, *order))  # rows of one forecast are alike, whatever their order
    p, keys = promised[rows], [key[rows] for key in order]
    changes = np.append(np.any([key[1:] != key[:-1] for key in keys], axis=0), True)
    ends = np.flatnonzero(changes)
    least, residuals = (hit[rows] - p for hit in hits)
    # calibrated hits may be any between the two: the least range that they can have counts
    observed = _least_range(least, residuals, ends)
    if clusters is not None:
        tie, related = np.cumsum(changes) - changes, clusters.take(rows)
        sums = related.matrix(residuals, tie, len(ends))
        by_cluster = related.total(residuals)  # signs have no skewness: see SignNull.allowance
        allowance = skewness_of_mean(by_cluster) * float(np.linalg.norm(by_cluster))
        shift = SKEWNESS_ALLOWANCE * allowance / len(p)
        observed = min(observed, _least_range(least + shift, residuals + shift, ends))

        def simulate(rng: np.random.Generator, many: int) -> Array:
            curves = np.cumsum(sums @ draw_signs(rng, sums.shape[1], many), axis=0)
            return np.asarray(curves.max(axis=0, initial=0.0) - curves.min(axis=0, initial=0.0))

        return exceedance(observed, in_blocks(simulate, draws, width=len(p), seed=seed))
    if len(p) * draws > MAX_NUMBERS:
        deviation = float(np.sqrt(np.sum(p * (1 - p))))
        return float(np.exp(log_range_tail(observed / deviation))) if deviation else 1.0
    return exceedance(observed, simulated_extremes(p, ends, draws, seed).sum(axis=1))


def _least_range(least: Array, most: Array, ends: npt.NDArray[np.intp]) -> float:
    """Return the least range at `ends` of sums whose terms lie between two others."""
    up, down = (np.append(0.0, np.cumsum(terms)[ends]) for terms in (least, -most))
    return float(max(np.max(curve - np.minimum.accumulate(curve)) for curve in (up, down)))
