"""calibration_test: the probability that calibrated forecasts look at least this bad."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np

from calibrant.errors import CalibrantError, Hint, InvalidInputError, TooFewRecordsError, reject_name
from calibrant.forecasts import Forecasts
from calibrant.formatting import at_floor, format_value, pluralize, pvalue_phrase
from calibrant.inference.bootstrap import MAX_UNMERGED_LEVELS, levels_to_simulate
from calibrant.inference.classic_tests import (
    bounded_leverage,
    explain_rejection,
    hosmer_lemeshow_row,
    omnibus_by_signs,
    omnibus_row,
    spiegelhalter_row,
)
from calibrant.inference.null import (
    ClusterSummary,
    Drawing,
    NullDraws,
    NullOutcomes,
    SignNull,
    batched,
    cluster_summary,
    is_clustered,
    max_record_weight,
    null_values,
    values_of_residuals,
    with_options,
)
from calibrant.inference.pvalues import LEVEL, MORE_DRAWS, could_flip, exceedance
from calibrant.inputs import closed_share
from calibrant.metrics.calling import accepts_clusters
from calibrant.metrics.lookup import find_measure, measure_in_words, measures
from calibrant.metrics.null_laws import Law, null_deviation
from calibrant.metrics.registry import Measure
from calibrant.metrics.truthful import averaged_two_bin_error
from calibrant.parallel import DRAWS, Progress, dot
from calibrant.results import NOTHING, Array, Result

Method = Literal["auto", "exact", "asymptotic"]
NullKind = Literal["auto", "exact", "signs"]

MAX_VARIANCE_SHARE = 1 / 4000  # of the null variance in one level, or one outcome, for a limit law to hold
UNEVEN_FACTOR = 10  # more is allowed of a sum in which residuals count unevenly, one of two statistics
MAX_GUARDED_PVALUE = 0.25  # p-values by signs up to this are compared with those for independent rows
SLOPES = ("slope", "intercept")  # fits, which random signs test by their scores


@dataclass(frozen=True, slots=True, repr=False)
class TestResult(Result):
    """How likely calibrated forecasts are to look at least as bad as these.

    `statistic` is the measure's value; `null_mean` what calibrated forecasts would score on average (exact
    where known, else of the limit law or of the draws). `method` is "exact" (simulated outcomes; valid at
    any n), "signs" (random signs per cluster or record), "asymptotic" (a limit law), "approximate"
    (simulated from a sketch) or "validity" (a proven bound); `reason` says why. `draws` and `seed` are 0 and
    None when nothing was drawn. `details` holds what the statistic found on the way: where Kuiper's interval
    lies, the two p-values behind the omnibus test.
    """

    DERIVED: ClassVar[tuple[str, ...]] = ("sentence", "approximate", "undecided")
    __test__: ClassVar[bool] = False  # not a test case, whatever pytest thinks of its name

    measure: str
    statistic: float
    pvalue: float
    log_pvalue: float
    null_mean: float
    method: str
    reason: str
    n: int
    draws: int
    seed: int | None
    details: Mapping[str, Any] = field(default_factory=dict)
    clusters: ClusterSummary | None = None

    @property
    def pvalue_is_bound(self) -> bool:
        """Whether no draw reached the statistic: the p-value is then this or less."""
        return at_floor(self.pvalue, self.draws)

    @property
    def approximate(self) -> tuple[str, ...]:
        """The fields that hold only approximately."""
        return ("pvalue",) if self.method in ("asymptotic", "approximate", "signs") else ()

    @property
    def written_pvalue(self) -> str:
        """The p-value for people: "p = 0.03, approximate"; "p ≤ 0.005 with 199 draws" if none came so far."""
        roughly = ", approximate" if self.approximate else ""
        return pvalue_phrase(self.pvalue, self.draws) + roughly

    def could_flip(self, level: float = LEVEL) -> bool:
        """Return whether other draws could put the p-value on the other side of the level."""
        doubled = self.measure == DEFAULT_TEST and self.method == "signs"
        return could_flip(self.pvalue, self.draws, level, factor=2.0 if doubled else 1.0)

    @property
    def undecided(self) -> bool:
        """Whether the p-value is so close to 0.05 that other draws might decide otherwise."""
        return self.could_flip()

    def rejects(self, alpha: float = LEVEL) -> bool:
        """Return whether calibration is rejected at level `alpha`."""
        return self.pvalue <= closed_share("alpha", alpha)

    def __str__(self) -> str:
        verdict = f"Calibration {'is rejected' if self.rejects() else 'is not rejected'} at the 5% level"
        if self.undecided:
            verdict = "Undecided at the 5% level, which is within simulation error of the p-value"
        freedom = self.details.get("degrees_of_freedom")
        degrees = "" if freedom is None else f" with {freedom} degrees of freedom"
        mean = self.null_mean
        expected = "" if math.isnan(mean) else f", {format_value(mean)} expected by chance"
        size = "infinite" if math.isinf(self.statistic) else format_value(self.statistic)
        draws = "" if self.pvalue_is_bound else f", {pluralize(self.draws, 'draw')}"
        drawn = "" if self.seed is None else f"{draws}, seed {self.seed}"
        return (
            f"{verdict}: {self.written_pvalue} "
            f"({measure_in_words(self.measure)} {size}{degrees}{expected}; "
            f"{pluralize(self.n, 'record')}, {self.method} test{drawn})."
            f"{explain_rejection(self.details, self.rejects())} {self.clusters or ''}".rstrip()
        )


def run_test(
    forecasts: Forecasts,
    entry: Measure,
    drawing: Drawing,
    *,
    method: Method = "auto",
    kind: NullKind = "auto",
    null: NullDraws | None = None,
    level: float | None = LEVEL,
) -> TestResult:
    """Test calibration; draw ten times as many where the p-value is within simulation error of `level`."""
    if method not in ("auto", "exact", "asymptotic"):
        raise reject_name("method", method, ["auto", "exact", "asymptotic", "validity"])
    simulated = levels_to_test_on(forecasts, entry)
    signs = SignNull(simulated) if by_signs(forecasts, kind, method) else None
    taken = _taken(forecasts, entry)
    guarded = kind == "auto" and forecasts.binary and not forecasts.outcome_weighted

    def test(counted: Drawing) -> TestResult:
        if signs is not None:
            return _sign_test(signs, entry, method, taken, guarded, counted)
        return _exact_test(forecasts, entry, method, taken, null, counted)

    found = test(drawing)
    if level is None or not found.could_flip(level):
        return found
    # the mean is that of the draws asked for, however many more the p-value needs
    return replace(test(replace(drawing, draws=MORE_DRAWS * drawing.draws)), null_mean=found.null_mean)


def for_mean(entry: Measure, drawing: Drawing) -> Drawing:
    """Return the draws behind a simulated mean, which are few where each takes long."""
    most = entry.null.mean_draws
    return replace(drawing, progress=None, draws=min(drawing.draws, most or drawing.draws))


def _exact_test(
    forecasts: Forecasts,
    entry: Measure,
    method: Method,
    taken: tuple[float, dict[str, Any]],
    null: NullDraws | None,
    drawing: Drawing,
) -> TestResult:
    value, details = taken
    mean = _null_mean(forecasts, entry)
    law, reason = _law_to_use(forecasts, entry, method)
    if law is not None:
        bad, scale = float(badness(entry, value, center_of(forecasts, entry))), law.scale(forecasts)
        log_p = law.log_tail(bad / scale) if scale > 0 else 0.0 if bad <= 1e-12 else -math.inf
        found = math.exp(log_p), log_p, law.mean * scale if mean is None else mean
        reason = f"{law.name}: {reason}"
        return TestResult(entry.name, value, *found, "asymptotic", reason, forecasts.n, 0, None, details)
    null = NullOutcomes(levels_to_test_on(forecasts, entry)) if null is None else null
    simulated = null.forecasts
    (values, drawn_mean), center = _drawn(entry, null, drawing), center_of(simulated, entry)
    seen = value if simulated is forecasts else float(entry.function.core(simulated, **entry.options))
    pvalue = exceedance(badness(entry, seen, center), badness(entry, values, center))
    found = pvalue, math.log(pvalue), drawn_mean if mean is None else mean
    kind = "exact" if null.exact else "approximate"
    drawn = drawing.draws, drawing.seed
    return TestResult(entry.name, value, *found, kind, reason, forecasts.n, *drawn, details)


def levels_to_test_on(forecasts: Forecasts, entry: Measure) -> Forecasts:
    """Return what outcomes are drawn for; statistics with a limit law are the same by law and by draws."""
    return levels_to_simulate(forecasts, entry, None if entry.null.law is None else MAX_UNMERGED_LEVELS)


def _taken(forecasts: Forecasts, entry: Measure) -> tuple[float, dict[str, Any]]:
    """Return the statistic, and of its details what fits on a line."""
    measured = entry.function.core(forecasts, **entry.options)
    details = getattr(measured, "details", {})
    return float(measured), {k: item for k, item in details.items() if isinstance(item, str | int | float)}


def _drawn(entry: Measure, null: NullDraws, drawing: Drawing) -> tuple[Array, float]:
    """Return values of calibrated outcomes, and their mean, which is of fewer where each takes long."""
    values, few = null_values(null.forecasts, entry, null, drawing), for_mean(entry, drawing)
    some = values if few.draws == drawing.draws else null_values(null.forecasts, entry, null, few)
    finite = some[np.isfinite(some)]
    return values, float(finite.mean()) if len(finite) else math.nan


def by_signs(forecasts: Forecasts, kind: NullKind = "auto", method: str = "auto") -> bool:
    if kind not in ("auto", "exact", "signs"):
        raise reject_name("null", kind, ["auto", "exact", "signs"])
    dependent = is_clustered(forecasts)
    if kind == "exact" and dependent:
        hint = Hint("leave out {}, or leave out the clusters", null="exact")
        rule = 'must not be "exact" with clusters'
        raise InvalidInputError("null", rule, "it draws independent rows", hint)
    needed = dependent or forecasts.outcome_weighted or not forecasts.binary
    signs = kind == "signs" or (kind == "auto" and needed)
    if signs and kind == "auto" and method == "exact":
        what = "rows in clusters" if dependent else "fractions"
        hint = Hint("{} tests them by random signs", null="signs")
        rule = "must be independent and 0 or 1 to simulate calibration exactly"
        raise InvalidInputError("y_true", rule, f"got {what}", hint)
    return signs


def _sign_test(
    null: SignNull,
    entry: Measure,
    method: Method,
    taken: tuple[float, dict[str, Any]],
    guarded: bool,
    drawing: Drawing,
) -> TestResult:
    """Test by random signs; `guarded` takes the larger p-value of this and of the exact test."""
    forecasts, found = null.forecasts, cluster_summary(null.forecasts, checked=True)
    law, reason = _law_of_signs(null, entry, method)
    value, details = taken
    if law is not None:  # scaled by the squares that the records show
        scale = law.scale(forecasts) if law.fractions else float(np.linalg.norm(null.record_residuals))
        bad = float(badness(entry, value, 0.0 if entry.signed else entry.ideal))
        if batched(forecasts, entry):
            seen = values_of_residuals(forecasts, entry, null.observed())
            bad = min(bad, float(np.min(badness(entry, seen, 0.0 if entry.signed else entry.ideal))))
        pvalue = math.exp(law.log_tail(bad / scale)) if scale > 0 else float(bad <= 1e-12)
        mean = law.mean * scale
    elif entry.name == DEFAULT_TEST:
        value, pvalue, own = omnibus_by_signs(null, drawing)
        unseen = details["visible_bias"] * math.sqrt(max(1.0, found.design_effect))
        details, mean = {**details, **own, "visible_bias": min(1.0, unseen)}, 1.5
    else:
        pvalue, mean = _signed_pvalue(null, entry, drawing)
    # correlation only weakens evidence; the exact test knows the skewness of rare events, which signs ignore
    if guarded and law is None and pvalue <= MAX_GUARDED_PVALUE:
        pvalue = max(pvalue, _exact_test(forecasts, entry, "auto", taken, None, drawing).pvalue)
    log_pvalue = math.log(pvalue) if pvalue > 0 else -math.inf
    kind, draws, seed = ("signs", drawing.draws, drawing.seed) if law is None else ("asymptotic", 0, None)
    known = None if null.clusters.all_single else found
    evidence = value, pvalue, log_pvalue, mean
    return TestResult(entry.name, *evidence, kind, reason, forecasts.n, draws, seed, details, known)


def _signed_pvalue(null: SignNull, entry: Measure, drawing: Drawing) -> tuple[float, float]:
    forecasts = null.forecasts
    if entry.name in SLOPES:
        one = np.ones(forecasts.levels) if entry.name == "intercept" else bounded_leverage(forecasts)
        scores = np.abs(null.score_draws(one[None], drawing))[:, 0]
        return exceedance(float(scores[0]), scores[1:]), entry.ideal
    if not (batched(forecasts, entry) or entry.null.power):
        hint = Hint("test with {}, and take the interval of this one", measure="smooth")
        rule = "has no test by random signs: it needs outcomes of 0 or 1"
        raise InvalidInputError(f"measure {entry.name!r}", rule, hint=hint)
    if entry.needs_level_sets and null.is_unchanged_by_signs():
        rule = "cannot be tested where every level lies in one cluster"
        hint = Hint("test with {}", measure="smooth")
        raise TooFewRecordsError(f"measure {entry.name!r}", rule, "signs never change it", hint)
    (drawn, mean), known = _drawn(entry, null, drawing), _null_mean(forecasts, entry)
    values, center = values_of_residuals(forecasts, entry, null.observed()), center_of(forecasts, entry)
    if known is not None and (entry.signed or entry.null.two_sided):
        mean = known  # that of others depends on how rows are related
    return exceedance(float(badness(entry, values, center).min()), badness(entry, drawn, center)), mean


def has_sign_test(forecasts: Forecasts, entry: Measure) -> bool:
    """Return whether residuals are all that the statistic needs."""
    known = entry.name in SLOPES or entry.name == DEFAULT_TEST or bool(entry.null.power)
    return known or batched(forecasts, entry)


def _law_of_signs(null: SignNull, entry: Measure, method: Method) -> tuple[Law | None, str]:
    law, single = entry.null.law, null.clusters.all_single
    known = law is not None and single and (law.fractions or law.scale is null_deviation)
    if method == "asymptotic" and not known:
        rule = "has no limit law for random signs"
        raise CalibrantError(f"measure {entry.name!r}", rule, hint=Hint("leave out {}", method="asymptotic"))
    largest = known and float(np.abs(null.record_residuals).max())
    wide = known and largest**2 <= MAX_VARIANCE_SHARE * dot(null.record_residuals, null.record_residuals)
    if method == "asymptotic" or (wide and not null.forecasts.binary):
        return law, "no record carries much of the variance, which is estimated from the data"
    return None, "the sign of each record is drawn" if single else "one sign is drawn for each cluster"


def _null_mean(forecasts: Forecasts, entry: Measure) -> float | None:
    return entry.null.mean and entry.null.mean(forecasts, entry.options)


def center_of(forecasts: Forecasts, entry: Measure) -> float:
    """Return the exact mean under calibration of a statistic, where it is known, else its ideal."""
    mean = _null_mean(forecasts, entry)
    return entry.ideal if mean is None else mean


def badness(entry: Measure, values: Any, center: float) -> Any:
    """Turn values of the measure into a statistic that grows with miscalibration."""
    return np.abs(values - center) if entry.signed or entry.null.two_sided else values


def _law_to_use(forecasts: Forecasts, entry: Measure, method: Method) -> tuple[Law | None, str]:
    law = entry.null.law
    if method == "asymptotic" and law is None:
        hint = Hint("{} is valid for every measure", method="exact")
        raise CalibrantError(f"measure {entry.name!r}", "has no limit law in closed form", hint=hint)
    if method != "auto":
        return law if method == "asymptotic" else None, "as asked"
    if law is None:
        return None, "the measure has no limit law in closed form"
    if not law_serves(forecasts, law):
        return None, "few records or levels carry much of the variance: the limit law may be off there"
    return law, "no level and no outcome carries much of the variance"


def law_serves(forecasts: Forecasts, law: Law) -> bool:
    jump = max_record_weight(forecasts)
    spread = max(jump**2, forecasts.largest_variance) <= MAX_VARIANCE_SHARE * forecasts.null_variance
    if not spread or law.leverage is None:
        return spread
    squares = law.leverage(forecasts) ** 2
    part = forecasts.squared_weights * forecasts.values
    part *= 1 - forecasts.values
    part *= squares  # with all leverages 1 what follows is the same rule once more
    fourth, total = jump**2 * dot(part, squares), float(part.sum())
    return max(fourth, float(part.max()) * total) <= UNEVEN_FACTOR * MAX_VARIANCE_SHARE * total**2


CLASSIC: Mapping[str, Callable[[Forecasts, Mapping[str, Any]], Measure]] = {
    "omnibus": omnibus_row,
    "spiegelhalter": spiegelhalter_row,
    "hosmer-lemeshow": hosmer_lemeshow_row,
}
DEFAULT_TEST = "omnibus"


def find_test(name: str, forecasts: Forecasts, options: Mapping[str, Any] = NOTHING) -> Measure:
    if name in CLASSIC:
        return CLASSIC[name](forecasts, options)
    if name not in measures():
        raise reject_name("measure", name, [*CLASSIC, *measures()])
    return find_measure(name)


def validity_test(forecasts: Forecasts) -> TestResult:
    """Test by ATB, for which E[ATB] = sum of w^2 v (1 - v) <= 1 / (4 T) (Lemma 6.2, truthfulness paper)."""
    if not forecasts.binary:
        hint = "a fraction is a known probability; draw 0/1 outcomes from it"
        raise InvalidInputError("y_true", "must be 0 or 1 for this test", "got fractions", hint)
    if not forecasts.exact:
        raise InvalidInputError("Forecasts", "must be exact for this test", "got a sketch")
    limit = float(forecasts.squared_weights.sum())  # 1/T without weights
    value = averaged_two_bin_error(forecasts)
    pvalue = min(1.0, limit / (4 * value)) if value > 0 else 1.0
    found = value, pvalue, math.log(pvalue), forecasts.null_variance
    details = {"limit": limit, "accepted": value <= limit * (1 + 1e-12)}
    reason = (
        "Markov's inequality: accepted while ATB <= 1/T, as calibration does with probability 3/4 or more"
    )
    return TestResult("atb", *found, "validity", reason, forecasts.n, 0, None, details)


@accepts_clusters
def calibration_test(
    forecasts: Forecasts,
    /,
    *,
    measure: str = DEFAULT_TEST,
    null: NullKind = "auto",
    draws: int = DRAWS,
    seed: int | None = 0,
    method: Method | Literal["validity"] = "auto",
    threads: int | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> TestResult:
    """Test whether the forecasts are calibrated, with any measure of the registry as the statistic.

    Under calibration, independent outcomes are Bernoulli(v), so the exact null draws them `draws` times and
    counts: p = (1 + number at least as bad) / (draws + 1), which is valid for any measure at any n. More than
    1,024 distinct predictions are merged into 512 for the draws, and for the value that these are compared
    with; the statistic is that of all predictions. A limit law, where there is one (omnibus, Kuiper, KS,
    Brier, which is Spiegelhalter's test, and calibration in the large), reaches far into the tail. "validity"
    is the test of the truthfulness paper: `details["accepted"]` while ATB <= 1/T, with a p-value by Markov's
    inequality, far from sharp.

    Random signs multiply all residuals of a cluster by one sign per draw. No variance is modeled, whatever
    the correlation; the p-value is approximate in the number of clusters. With outcomes of 0 and 1 in
    clusters it is, up to 0.25, never smaller than that of the test for independent rows. Fewer than about
    10 clusters of equal weight, or 5 with an outcome above or below its prediction, raise
    TooFewRecordsError.

    Parameters
    ----------
    measure
        The statistic: a name of the registry, "omnibus" (Kuiper's range and Cox's score together, the most
        powerful on average over many kinds of error), "spiegelhalter" or "hosmer-lemeshow".
    null
        "exact" for independent outcomes of 0 and 1, "signs" for random signs (choose it for weights that
        follow the outcome), or "auto": signs for clusters and fractions, exact otherwise.
    draws
        The number of data sets drawn; ten times as many where the p-value is within simulation error of 0.05.
    method
        "exact" to simulate, "asymptotic", "validity", or "auto": the limit law once no level and no single
        outcome carries much of the variance.
    **options
        Options of the measure.

    Examples
    --------
    >>> result = calibration_test([0, 0, 0, 0, 0, 0], [0.6, 0.6, 0.7, 0.7, 0.8, 0.9], seed=1)
    >>> result.method, result.rejects(0.05)
    ('exact', True)
    """
    drawing = Drawing.checked(draws, seed, threads, progress)
    if method == "validity":
        if measure not in (DEFAULT_TEST, "atb") or options:
            rule = 'must be "atb", without options, for method="validity"'
            raise InvalidInputError("measure", rule, f"got {measure!r} and {options}")
        return validity_test(forecasts)
    row = with_options(find_test(measure, forecasts, options), options)
    return run_test(forecasts, row, drawing, method=method, kind=null)
