"""confidence_interval: an interval for the value in the population that the records were drawn from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from calibrant.errors import CalibrantError, InvalidInputError, TooFewRecordsError, reject_name
from calibrant.forecasts import Forecasts
from calibrant.formatting import format_value, limits_text, pluralize
from calibrant.inference.bootstrap import (
    MAX_UNMERGED_LEVELS,
    Resampler,
    levels_to_simulate,
    lower_quantile,
    resampled_deviations,
    resampled_values,
    seminorm_power,
    upper_quantile,
)
from calibrant.inference.group_interval import binary_moments, difference_interval, row_interval
from calibrant.inference.inversion import BY_SCORE, inverted, score_interval
from calibrant.inference.null import (
    ClusterSummary,
    Drawing,
    cluster_summary,
    is_clustered,
    measured,
    record_clusters,
    record_outcomes,
    with_options,
)
from calibrant.inference.pvalues import is_rejected
from calibrant.inference.testing import by_signs, for_mean, has_sign_test, run_test
from calibrant.inputs import open_share
from calibrant.metrics.calling import accepts_clusters
from calibrant.metrics.lookup import find_measure, measure_in_words
from calibrant.metrics.lookup import measure as take
from calibrant.metrics.registry import Measure
from calibrant.parallel import DRAWS, Progress, dot
from calibrant.results import Array, Measurement, Result

MIN_LEVEL = 1e-12  # of a test beside an interval
NO_INTERVAL = "too few records for an interval"
# Largest expected deviation over sqrt(sum of squared weights); docs/interval-proofs.md has the proofs.
EXPECTED_DEVIATION = {
    "smooth": 1 + math.sqrt(0.5),
    "lower-distance": math.sqrt(2),
    "ece": math.sqrt(15),
    "kuiper": 4.0,
    "ks": 4.0,
    "atb": 1.0,
    "l1-atb": math.sqrt(2),
    "kernel": 1.0,
    "emd": 1 + math.sqrt(2),
}
ROOTS = {"atb": 2}  # measures whose root is bounded


def is_unbounded(lower: float, upper: float) -> bool:
    return math.isinf(lower) and math.isinf(upper)


@dataclass(frozen=True, slots=True, repr=False)
class ConfidenceInterval(Result):
    """A measure, an interval for its value in the population, and its bias.

    `null_mean` is what calibrated forecasts of this size and shape would score on average, which for an error
    is its bias under calibration. `corrected` is an unbiased estimate of the population's value for ATB, UBSE
    (given bins) and the squared kernel error, else None; where that value is near 0 it may fall below. The
    interval always holds `value`.
    """

    measure: str
    value: float
    lower: float
    upper: float
    confidence: float
    null_mean: float
    corrected: float | None
    method: str
    n: int
    draws: int
    seed: int
    note: str = ""  # why there is no interval, where there is none
    cells: int | None = None  # what was simulated on, where levels were merged
    clusters: ClusterSummary | None = None  # where rows belong together

    DERIVED: ClassVar[tuple[str, ...]] = ("approximate",)

    @property
    def approximate(self) -> tuple[str, ...]:
        """The fields that hold only approximately."""
        return () if self.method == "guaranteed" else ("lower", "upper")

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper

    def __str__(self) -> str:
        name, method = measure_in_words(self.measure), f"{self.method}, seed {self.seed}"
        head, records = f"{name[0].upper()}{name[1:]} {format_value(self.value)}", pluralize(self.n, "record")
        if is_unbounded(self.lower, self.upper):
            return f"{head}, {self.note} ({records}, {method})."
        limits = f"{100 * self.confidence:g}% interval {limits_text(self.lower, self.upper)}"
        note = f" Note: {self.note}." if self.note else ""
        related = "" if self.clusters is None else f" {self.clusters}"
        return f"{head}, {limits} ({records}, {method}).{note}{related}"


class Bounds(NamedTuple):
    lower: float
    upper: float
    method: str


@accepts_clusters
def confidence_interval(
    forecasts: Forecasts,
    /,
    *,
    measure: str = "smooth",
    confidence: float = 0.95,
    method: Literal["auto", "guaranteed"] = "auto",
    draws: int = DRAWS,
    seed: int | None = 0,
    threads: int | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> ConfidenceInterval:
    """Return an interval for a measure's population value, from resampled records.

    Noise alone makes a calibrated forecast look miscalibrated, and resampling adds the same noise once more,
    so that the usual bootstrap intervals fail near 0. Most errors are seminorms of the residuals (Kuiper, KS,
    smooth, kernel, binned, l1-ATB) or squares of one (ATB, UBSE); they differ from the population's by at
    most the seminorm of the noise, whose quantile resampling does estimate ("bootstrap of the deviation"; a
    similar bound serves the lower distance). Errors that fit something to the data (CORP miscalibration, ICI)
    get the true errors that would give such a value ("inverted tests"), slope, intercept, O/E ratio and
    c-statistic those that their "score test" does not reject, mean scores the usual "bootstrap".

    Whole clusters are resampled where `clusters` are given, with Student's quantiles for their number. All of
    this is approximate; what is exact is that an error's lower end is above 0 (and a signed measure's
    interval leaves out its ideal) only if the exact test rejects at 1 - confidence. More than 1,024 distinct
    predictions are merged into 512 for the draws, and `cells` says so; the value is that of all predictions.
    `evaluate` and the gate give the same interval.

    Parameters
    ----------
    measure
        A name of the registry.
    method
        "auto", approximate and short; or "guaranteed", wide and proven for independent rows at any n: for
        "smooth", "lower-distance", "ece" (15 bins), "kuiper", "ks", "atb", "l1-atb", "kernel" and "emd".
    **options
        Options of the measure.

    Examples
    --------
    >>> found = confidence_interval([0, 1, 0, 1] * 50, [0.3, 0.6, 0.4, 0.9] * 50, measure="atb", seed=1)
    >>> found.lower <= found.value <= found.upper
    True
    """
    open_share("confidence", confidence)
    drawing = Drawing.checked(draws, seed, threads, progress)
    check_resampling(forecasts.n)
    row = with_options(find_measure(measure), options)
    value, cells = float(row.function.core(forecasts, **row.options)), None
    if method not in ("auto", "guaranteed"):
        raise reject_name("method", method, ["auto", "guaranteed"])
    untested = method == "guaranteed" or row.null.mean_draws is not None  # the p-value is sought if it counts
    level, tested = None if untested else max(1 - confidence, MIN_LEVEL), None
    with suppress(CalibrantError):
        tested = run_test(forecasts, row, for_mean(row, drawing), level=level)
    if method == "guaranteed":
        drawing = replace(drawing, draws=0)
        found = _guaranteed(forecasts, row.name, confidence, options)
    else:
        pvalue = None if tested is None or untested else tested.pvalue
        found = bounds(forecasts, row, drawing, value=value, confidence=confidence, pvalue=pvalue)
        found = found._replace(method=f"{found.method} (approximate)")
        merged = _levels_to_bound_on(forecasts, row)
        cells = None if merged is forecasts else merged.levels
    return ConfidenceInterval(
        measure=row.name,
        value=value,
        lower=found.lower,
        upper=found.upper,
        confidence=confidence,
        null_mean=math.nan if tested is None else tested.null_mean,
        corrected=_unbiased(forecasts, row, value),
        method=found.method,
        n=forecasts.n,
        draws=drawing.draws,
        seed=drawing.seed,
        note=NO_INTERVAL if is_unbounded(found.lower, found.upper) else "",
        cells=cells,
        clusters=cluster_summary(forecasts) if is_clustered(forecasts) else None,
    )


def _guaranteed(forecasts: Forecasts, measure: str, confidence: float, options: Mapping[str, Any]) -> Bounds:
    if measure not in EXPECTED_DEVIATION:
        raise reject_name("measure", measure, list(EXPECTED_DEVIATION))
    if options or is_clustered(forecasts):
        got = f"got {', '.join(options) or 'clusters'}"
        raise InvalidInputError("method", '"guaranteed" takes no options and no clusters', got)
    lower, upper = guaranteed_limits(forecasts, take(forecasts, measure), (1 - confidence) / 2)
    return Bounds(lower, min(1.0, upper), "guaranteed")


def guaranteed_limits(forecasts: Forecasts, found: Measurement, error: float) -> tuple[float, float]:
    """Return limits of the population's value, each of which fails with probability `error` at most."""
    spread = math.sqrt(float(forecasts.squared_weights.sum()))
    above = spread * math.sqrt(2 * math.log(1 / error))
    below = above + EXPECTED_DEVIATION[found.name] * spread
    return around_roots(found.lower, found.upper, below, above, ROOTS.get(found.name, 1))


def bounds(
    forecasts: Forecasts,
    entry: Measure,
    drawing: Drawing,
    *,
    value: float,
    confidence: float,
    pvalue: float | None = None,
    resampler: Resampler | None = None,
) -> Bounds:
    """Return the interval and its method; `pvalue` is that of the exact test, where it is known."""
    check_resampling(forecasts.n)
    if entry.name in BY_SCORE:
        merged = _levels_to_bound_on(forecasts, entry)
        seen = value if merged is forecasts else measured(merged, entry)
        ends = score_interval(merged, entry.name, value=seen, confidence=confidence)
        found, method = (ends[0] + value - seen, ends[1] + value - seen), "score test"
        if entry.name == "c-statistic":  # calibration does not say what it is
            return Bounds(max(0.0, found[0]), min(1.0, found[1]), method)
    elif entry.name == "in-the-large" and not forecasts.outcome_weighted:  # the weights are estimated too
        found, method = mean_gap_interval(forecasts, confidence), "Student and Wilson"
    else:
        found, method = _resampled(forecasts, entry, drawing, value, confidence, resampler)
    if is_unbounded(*found):
        return Bounds(*found, method)
    least, most = entry.reachable()
    # chance raises some estimates above all that the data support: an interval still holds its estimate
    lower, upper = min(value, max(least, found[0])), max(value, min(most, found[1]))
    untested = not (entry.complete or entry.signed) or not forecasts.binary
    untested = untested or (by_signs(forecasts) and not has_sign_test(forecasts, entry))
    if not (untested or lower <= entry.ideal <= upper):
        if pvalue is None:
            level = max(1 - confidence, MIN_LEVEL)
            pvalue = run_test(forecasts, entry, replace(drawing, progress=None), level=level).pvalue
        if not is_rejected(pvalue, confidence):
            lower, upper = min(lower, entry.ideal), max(upper, entry.ideal)
    return Bounds(lower, upper, method)


def _levels_to_bound_on(forecasts: Forecasts, entry: Measure) -> Forecasts:
    if entry.name == "in-the-large" and not forecasts.outcome_weighted:
        return forecasts
    return levels_to_simulate(forecasts, entry, MAX_UNMERGED_LEVELS if entry.name in BY_SCORE else None)


def mean_gap_interval(forecasts: Forecasts, confidence: float) -> tuple[float, float]:
    """Return the interval of mean outcome minus mean prediction, as audits give it for a group."""
    codes = record_clusters(forecasts).codes if is_clustered(forecasts) else None
    if codes is not None:
        cluster_summary(forecasts, checked=True)
    if codes is not None or forecasts.record_outcomes is not None:
        rows = np.repeat(forecasts.values, forecasts.counts), record_outcomes(forecasts)
        found = row_interval(*rows, forecasts.record_weights, codes, confidence)
    else:
        rate, v = forecasts.outcomes / forecasts.weights, forecasts.values
        squares = dot(forecasts.weights, rate * (1 - v) ** 2 + (1 - rate) * v**2)
        size = 1 / float(forecasts.squared_weights.sum())
        means = forecasts.mean_prediction, forecasts.base_rate
        moments = binary_moments(*(np.array([one]) for one in (size, *means, squares)))
        low, high = difference_interval(moments, confidence)
        found = float(low[0]), float(high[0])
    return (-math.inf, math.inf) if math.isnan(found[0]) else found


def _resampled(
    forecasts: Forecasts,
    entry: Measure,
    drawing: Drawing,
    value: float,
    confidence: float,
    resampler: Resampler | None,
) -> tuple[tuple[float, float], str]:
    """Return an interval around the value of the levels, from draws on merged ones if they are many."""
    resampler = Resampler(_levels_to_bound_on(forecasts, entry)) if resampler is None else resampler
    simulated, of_sketch = resampler.forecasts, "" if resampler.exact else " of a sketch"
    center = measured(forecasts.with_outcomes(resampler.center_of(forecasts)), entry)
    low, high, wider = min(value, center), max(value, center), resampler.widening(confidence)
    moved = resampled_deviations(entry, resampler, drawing)
    if moved is not None:
        power = seminorm_power(simulated, entry) or 1
        reach = wider * upper_quantile(moved, confidence)
        return around_roots(low, high, reach, reach, power), f"bootstrap of the deviation{of_sketch}"
    if entry.complete and not entry.signed:
        seen = value if simulated is forecasts else measured(simulated, entry)
        return inverted(simulated, entry, drawing, seen, confidence), f"inverted tests{of_sketch}"
    values = resampled_values(entry, resampler, drawing)
    middle = measured(simulated.with_outcomes(resampler.center), entry)
    reach = wider * central(np.abs(values - middle), 2 * confidence - 1)[1]
    return (low - reach, high + reach), f"bootstrap{of_sketch}"


def around_roots(low: float, high: float, below: float, above: float, power: int) -> tuple[float, float]:
    """Return the ends whose `power`-th roots lie that far below and above the roots of `low` and `high`."""
    return float(max(0.0, low ** (1 / power) - below) ** power), float((high ** (1 / power) + above) ** power)


def central(values: Array, confidence: float) -> tuple[float, float]:
    defined = values[np.isfinite(values)]
    if 2 * len(defined) < len(values):
        rule = "needs a measure with a value in most resamples"
        raise TooFewRecordsError("resampling", rule, f"got {len(defined)}")
    tail = (1 - confidence) / 2
    return lower_quantile(defined, tail), upper_quantile(defined, 1 - tail)


def check_resampling(n: int) -> None:
    if n < 2:
        raise TooFewRecordsError("resampling", "needs two records or more", f"got {n}")


def _unbiased(forecasts: Forecasts, entry: Measure, value: float) -> float | None:
    """Return the value without its bias, where that is known."""
    # ATB, UBSE and the squared kernel error sum w_i w_j r_i r_j k(v_i, v_j) over all pairs, k(v, v) = 1: only
    # the pairs of a record with itself are biased, and those within a cluster
    mean = entry.null.mean and entry.null.mean(forecasts, entry.options)  # known for no other k
    others = 1 - float(forecasts.squared_weights.sum())
    v, outcomes = forecasts.values, forecasts.record_outcomes
    if not (entry.fair and entry.complete) or mean is None or others <= 0 or is_clustered(forecasts):
        return None
    if outcomes is not None:
        weights = 1 / forecasts.n if forecasts.record_weights is None else forecasts.record_weights
        own = float(np.sum((weights * (outcomes - np.repeat(v, forecasts.counts))) ** 2))
    elif forecasts.binary:
        rate = forecasts.outcomes / forecasts.weights
        own = dot(forecasts.squared_weights, rate * (1 - v) ** 2 + (1 - rate) * v**2)
    else:  # a sketch of fractions has lost the squares
        return None
    return (value - own) / others


def clopper_pearson(ones: Array | int, counts: Array | int, alpha: float) -> tuple[Array, Array]:
    from scipy.special import betaincinv

    zeros = counts - ones
    low = np.where(ones > 0, betaincinv(np.maximum(ones, 1e-300), zeros + 1, alpha / 2), 0.0)
    high = np.where(zeros > 0, betaincinv(ones + 1, np.maximum(zeros, 1e-300), 1 - alpha / 2), 1.0)
    return low, high
