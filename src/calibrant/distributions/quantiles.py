"""Coverage of quantiles and intervals: overall with exact limits, and along the forecast."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from calibrant.distributions.forms import (
    ALPHA,
    MISSING_AND_DRAWS,
    TableOfTests,
    adjusted_rows,
    as_rows,
    cells_of_test,
    quantile_scores,
)
from calibrant.errors import InvalidInputError, reject_rows
from calibrant.formatting import format_value, percent, pluralize, pvalue_phrase
from calibrant.inference.intervals import clopper_pearson
from calibrant.inputs import check_same_length, numeric_vector, open_share, probabilities
from calibrant.metrics.calling import shares_parameters
from calibrant.metrics.null_laws import log_range_tail
from calibrant.parallel import checked_draws, in_blocks, recorded_seed
from calibrant.records import Missing
from calibrant.results import Array, Result, Table, number_cell

MAX_NUMBERS = 400_000_000  # drawn for one p-value; beyond, the limit law


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

    levels: tuple[Coverage, ...]
    mean_score: float
    n: int
    dropped: int
    draws: int
    seed: int

    def __str__(self) -> str:
        shares = ", ".join(f"{percent(one.observed)} for {percent(one.promised)}" for one in self.levels[:12])
        off = f"{len(self.wrong)} of {pluralize(len(self.levels), 'level')} off beyond chance"
        return f"Outcomes at or below the quantiles: {shares}. {off} ({pluralize(self.n, 'record')})."

    def rows(self) -> tuple[Result, ...]:
        return self.levels

    def sheet(self) -> Table:
        """Return the table, one line per level."""
        columns = ("level", "promised", "observed", "95% limits", "difference", "score")
        return Table((*columns, "p-value", "adjusted"), tuple(coverage_line(one) for one in self.levels))


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
        one, lead = self.coverage, self.status.capitalize()
        if self.status == "fine":
            lead = "No miscalibration found"
        text = (
            f"{lead}: {percent(one.observed)} of {pluralize(self.n, 'outcome')} fall inside intervals of "
            f"{percent(one.promised)} ({percent(one.low)} to {percent(one.high)}); {percent(self.below)} "
            f"fall below, {percent(self.above)} above."
        )
        if self.status == "uneven":
            text += " Coverage depends on the width of the interval."
        return f"{text} Along the width: {pvalue_phrase(one.pvalue, self.draws)}."

    def sheet(self) -> Table:
        """Return the table of one line."""
        columns = ("promised", "inside", "95% limits", "difference", "score", "p-value", "mean width")
        line = (*coverage_line(self.coverage)[1:-1], number_cell(self.mean_width))
        return Table(columns, (line,))


def coverage_line(one: Coverage) -> tuple[Any, ...]:
    return cells_of_test(one.level, one.promised, one, True, number_cell(one.score, format_value(one.score)))


@shares_parameters(MISSING_AND_DRAWS)
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
    y_true
        The outcomes: numbers.
    quantiles
        One row per outcome, one column per level.
    levels
        The levels of the columns, ascending, strictly between 0 and 1.
    expected
        The probability of y <= q under the forecast, where it is not the level, as for counts: an array of
        the shape of `quantiles`.

    Returns
    -------
    QuantileTable

    Examples
    --------
    >>> table = quantile_table([1.0, 2.0, 3.0, 4.0], [[1.5], [1.5], [3.5], [3.5]], [0.5])
    >>> table.levels[0].observed
    0.5
    """
    y, form, dropped = as_rows(y_true, quantiles, levels, None, missing)
    values, taus = form.values, form.levels  # type: ignore[union-attr]
    promised = np.broadcast_to(taus, values.shape)
    if expected is not None:
        if dropped:
            raise InvalidInputError("missing", "must not occur where expected is given")
        promised = np.broadcast_to(probabilities(expected, "expected"), values.shape)
    scores = quantile_scores(y, values, taus).mean(axis=0)
    columns = [
        (float(tau), y <= values[:, k], promised[:, k], values[:, k], float(scores[k]))
        for k, tau in enumerate(taus)
    ]
    return build_quantile_table(columns, dropped, checked_draws(draws), recorded_seed(seed))


def build_quantile_table(
    columns: list[tuple[float, npt.NDArray[np.bool_], Array, Array, float]],
    dropped: int,
    draws: int,
    seed: int,
) -> QuantileTable:
    """Return the table of columns of (level, hit, promised probability, order, score)."""
    found = [
        coverage_of(level, hit, promised, (order,), score, draws, seed + k)
        for k, (level, hit, promised, order, score) in enumerate(columns)
    ]
    levels = adjusted_rows(found)
    mean = float(np.mean([one.score for one in levels]))
    return QuantileTable(levels, mean, len(columns[0][1]), dropped, draws, seed)


@shares_parameters(MISSING_AND_DRAWS)
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
    y_true
        The outcomes: numbers.
    lower, upper
        The ends of the intervals, which belong to them.
    coverage
        The probability that the intervals promise.

    Returns
    -------
    IntervalCoverage

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
    y, form, dropped = as_rows(y_true, np.column_stack([left, right]), ends, None, missing)
    low, high = form.values.T  # type: ignore[union-attr]
    out = np.maximum(low - y, 0) + np.maximum(y - high, 0)
    score = float(np.mean(high - low + 2 / (1 - level) * out))
    inside, width = (y >= low) & (y <= high), high - low
    count, used = checked_draws(draws), recorded_seed(seed)
    one = coverage_of(level, inside, np.full(len(y), level), (low + high, width), score, count, used)
    below, above = float(np.mean(y < low)), float(np.mean(y > high))
    return IntervalCoverage(one, below, above, float(np.mean(width)), len(y), dropped, count, used)


def coverage_of(
    level: float,
    hit: npt.NDArray[np.bool_],
    promised: Array,
    order: tuple[Array, ...],
    score: float,
    draws: int,
    seed: int,
) -> Coverage:
    """Test hits against promised probabilities along an order, of which the last key counts first."""
    n, k = len(hit), int(hit.sum())
    low, high = map(float, clopper_pearson(k, n, 0.05))
    pvalue = along(hit, promised, order, draws, seed)
    return Coverage(level, float(np.mean(promised)), k / n, low, high, pvalue, pvalue, score)


def along(
    hit: npt.NDArray[np.bool_], promised: Array, order: tuple[Array, ...], draws: int, seed: int
) -> float:
    """Return the p-value of Kuiper's range of the residuals in the order of the forecast, ties together."""
    rows = np.lexsort(order)
    p, keys = promised[rows], [key[rows] for key in order]
    changes = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    ends = np.flatnonzero(np.append(changes, True))
    observed = float(_range(np.cumsum(hit[rows] - p)[None, ends])[0])
    if len(p) * draws > MAX_NUMBERS:
        deviation = float(np.sqrt(np.sum(p * (1 - p))))
        return float(np.exp(log_range_tail(observed / deviation))) if deviation else 1.0

    def simulate(rng: np.random.Generator, count: int) -> Array:
        drawn = rng.random((count, len(p))) < p
        return _range(np.cumsum(drawn - p, axis=1)[:, ends])

    null = in_blocks(simulate, draws, width=len(p), seed=seed)
    return (1 + int(np.count_nonzero(null >= observed - 1e-9))) / (draws + 1)


def _range(sums: Array) -> Array:
    return np.asarray(np.maximum(sums.max(axis=1), 0) - np.minimum(sums.min(axis=1), 0))
