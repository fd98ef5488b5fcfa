"""calibration_test: the probability that calibrated forecasts look at least this bad.

One engine runs every test: it simulates the null (independent outcomes, or random signs per cluster), or
uses a limit law, and reports which. Statistics that grow with n (the omnibus test, Spiegelhalter's z,
Hosmer-Lemeshow) are not measures and not in the registry, but go through the same engine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from calibrant.errors import (
    CalibrantError,
    Hint,
    InvalidInputError,
    TooFewRecordsError,
    reject_name,
    sentence,
)
from calibrant.forecasts import Forecasts
from calibrant.formatting import at_floor, format_value, pluralize, pvalue_phrase
from calibrant.inference.classic_tests import (
    bounded_leverage,
    exceedance,
    explain_rejection,
    hosmer_lemeshow_row,
    omnibus_by_signs,
    omnibus_row,
    spiegelhalter_row,
)
from calibrant.inference.null import (
    ClusterSummary,
    NullDraws,
    NullOutcomes,
    SignNull,
    batched,
    is_clustered,
    max_record_weight,
    null_values,
    one_by_one,
)
from calibrant.inputs import closed_share
from calibrant.metrics.calling import accepts_clusters
from calibrant.metrics.lookup import find_measure, measure_in_words, measures
from calibrant.metrics.null_laws import Law, null_deviation
from calibrant.metrics.registry import Measure
from calibrant.metrics.truthful import averaged_two_bin_error
from calibrant.parallel import Progress, check_drawing, checked_draws, dot, in_blocks, recorded_seed
from calibrant.results import NOTHING, Array, Result

Method = Literal["auto", "exact", "asymptotic"]
NullKind = Literal["auto", "exact", "signs"]

SPREAD = 1 / 4000  # largest share of the null variance in one level, or one outcome, for a limit law to hold
UNEVEN = 10  # times as much is allowed of a sum in which residuals count unevenly, one of two statistics
GUARDED = 0.25  # p-values by signs up to this are compared with those for independent rows
SLOPES = ("slope", "intercept")  # fits, which random signs test by their scores


@dataclass(frozen=True, slots=True, repr=False)
class TestResult(Result):
    """How likely calibrated forecasts are to look at least as bad as these.

    `statistic` is the measure's value; `null_mean` what calibrated forecasts would score on average (exact
    where known, else of the limit law or of the draws). `method` is "exact" (simulated outcomes; valid at
    any n), "signs" (random signs per cluster or record), "asymptotic" (a limit law), "approximate"
    (simulated from a sketch) or "validity" (a proven bound); `reason` says why. `approximate` names the
    p-value where it is not exact. `draws` and `seed` are 0 and None when nothing was drawn. `details` holds
    what the statistic found on the way: where Kuiper's interval lies, the two p-values behind the omnibus
    test. `clusters` describes rows that belong together, where they were given.
    """

    DERIVED: ClassVar[tuple[str, ...]] = ("sentence", "approximate")
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
        return pvalue_phrase(self.pvalue, self.draws, log_pvalue=self.log_pvalue) + roughly

    def rejects(self, alpha: float = 0.05) -> bool:
        """Return whether calibration is rejected at level `alpha`."""
        return self.pvalue <= closed_share("alpha", alpha)

    def __str__(self) -> str:
        rejected = "is rejected" if self.rejects() else "is not rejected"
        freedom = self.details.get("degrees_of_freedom")
        degrees = "" if freedom is None else f" with {freedom} degrees of freedom"
        expected = (
            "" if math.isnan(self.null_mean) else f", {format_value(self.null_mean)} expected by chance"
        )
        size = "infinite" if math.isinf(self.statistic) else format_value(self.statistic)
        draws = "" if self.pvalue_is_bound else f", {pluralize(self.draws, 'draw')}"
        drawn = "" if self.seed is None else f"{draws}, seed {self.seed}"
        return (
            f"Calibration {rejected} at the 5% level: {self.written_pvalue} "
            f"({measure_in_words(self.measure)} {size}{degrees}{expected}; "
            f"{pluralize(self.n, 'record')}, {self.method} test{drawn})."
            f"{explain_rejection(self.details, self.rejects())} {self.clusters or ''}".rstrip()
        )


def run_test(
    forecasts: Forecasts,
    row: Measure,
    options: Mapping[str, Any],
    *,
    method: Method = "auto",
    kind: NullKind = "auto",
    draws: int,
    seed: int | None,
    threads: int | None = None,
    progress: Progress | None = None,
    null: NullDraws | None = None,
) -> TestResult:
    """Test calibration with one row of the registry as the statistic; `null` may keep earlier draws."""
    if method not in ("auto", "exact", "asymptotic"):
        raise reject_name("method", method, ["auto", "exact", "asymptotic", "validity"])
    settings = {**row.options, **options}
    how = _Drawing(checked_draws(draws), seed, threads, progress)
    if by_signs(forecasts, kind, method):
        guarded = kind == "auto" and forecasts.binary and not forecasts.outcome_weighted
        signs = null if isinstance(null, SignNull) else SignNull(forecasts)
        return _sign_test(row, settings, signs, method, how, guarded=guarded)
    measured = row.function.core(forecasts, **settings)
    value, details = float(measured), _plain(getattr(measured, "details", {}))
    asymptotic, reason = _chosen(forecasts, row, method)
    if asymptotic:
        return _by_law(forecasts, row, value, settings, reason, details)
    null = NullOutcomes(forecasts) if null is None else null
    values = how.null_values(forecasts, row, settings, null)
    centre = centre_of(forecasts, row, settings)
    pvalue = exceedance(badness(row, value, centre), badness(row, values, centre))
    return TestResult(
        row.name,
        value,
        pvalue,
        math.log(pvalue),
        _mean(forecasts, row, settings, values),
        "exact" if null.exact else "approximate",
        reason,
        forecasts.n,
        how.draws,
        how.seed,
        details,
    )


class _Drawing:
    """How often to draw, from which seed, on how many threads."""

    def __init__(self, draws: int, seed: int | None, threads: int | None, progress: Progress | None) -> None:
        self.draws, self.seed = draws, recorded_seed(seed)
        self.threads, self.progress = threads, progress

    def null_values(
        self, forecasts: Forecasts, row: Measure, settings: dict[str, Any], null: NullDraws
    ) -> Array:
        """Return the measure of every set of outcomes drawn."""
        how: dict[str, Any] = {"draws": self.draws, "seed": self.seed, "threads": self.threads}
        return null_values(forecasts, row, settings, null=null, progress=self.progress, **how)


def _mean(forecasts: Forecasts, row: Measure, settings: Mapping[str, Any], values: Array) -> float:
    """Return the mean under calibration: exact where known, else of the draws that have a value."""
    exact = row.null.mean and row.null.mean(forecasts, settings)
    if exact is not None:
        return exact
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else math.nan


def by_signs(forecasts: Forecasts, kind: NullKind = "auto", method: str = "auto") -> bool:
    """Return whether the null is drawn by random signs instead of independent outcomes."""
    if kind not in ("auto", "exact", "signs"):
        raise reject_name("null", kind, ["auto", "exact", "signs"])
    dependent = is_clustered(forecasts)
    if kind == "exact" and dependent:
        hint = Hint("leave out {}, or leave out the clusters", null="exact")
        raise InvalidInputError(
            sentence("null", 'must not be "exact" with clusters', "it draws independent rows", hint)
        )
    signs = kind == "signs" or (
        kind == "auto" and (dependent or forecasts.outcome_weighted or not forecasts.binary)
    )
    if signs and kind == "auto" and method == "exact":
        what = "rows in clusters" if dependent else "fractions"
        hint = Hint("{} tests them by random signs", null="signs")
        rule = "must be independent and 0 or 1 to simulate calibration exactly"
        raise InvalidInputError(sentence("y_true", rule, f"got {what}", hint))
    return signs


def _sign_test(
    row: Measure, settings: dict[str, Any], null: SignNull, method: Method, how: _Drawing, *, guarded: bool
) -> TestResult:
    """Test by random signs; `guarded` takes the larger p-value of this and of the exact test.

    Correlation within clusters only weakens evidence, so a test for independent rows that does not reject
    has the last word: it knows the skewness of rare events, which signs ignore.
    """
    forecasts = null.forecasts
    found = null.check_enough()
    own = found if not null.clusters.all_single else None
    asymptotic, reason = _signs_chosen(null, row, method)
    drawn: tuple[int, int | None] = (0, None) if asymptotic else (how.draws, how.seed)
    if row.name == "omnibus" and not asymptotic:
        signed = omnibus_by_signs(null, how.draws, how.seed, how.threads, how.progress)
        plain = _plain(getattr(row.function.core(forecasts), "details", {}))
        effect = math.sqrt(max(1.0, found.design_effect))
        details = {**plain, **signed.details, "visible_bias": min(1.0, plain["visible_bias"] * effect)}
        value, pvalue, mean = signed.statistic, signed.pvalue, 1.5
    else:
        measured = row.function.core(forecasts, **settings)
        value, details = float(measured), _plain(getattr(measured, "details", {}))
        pvalue, mean = _signed_pvalue(row, settings, null, how, asymptotic)
    if guarded and not asymptotic and pvalue <= GUARDED:
        plain_value, centre = (
            float(row.function.core(forecasts, **settings)),
            centre_of(forecasts, row, settings),
        )
        if _chosen(forecasts, row, "auto")[0]:
            exact = _by_law(forecasts, row, plain_value, settings, "", {}).pvalue
        else:
            values = how.null_values(forecasts, row, settings, NullOutcomes(forecasts))
            exact = exceedance(badness(row, plain_value, centre), badness(row, values, centre))
        pvalue = max(pvalue, exact)
    name = "asymptotic" if asymptotic else "signs"
    log_pvalue = math.log(pvalue) if pvalue > 0 else -math.inf
    return TestResult(
        row.name, value, pvalue, log_pvalue, mean, name, reason, forecasts.n, *drawn, details, own
    )


def _signed_pvalue(
    row: Measure, settings: dict[str, Any], null: SignNull, how: _Drawing, asymptotic: bool
) -> tuple[float, float]:
    """Return the p-value of one statistic under random signs, and its mean there."""
    forecasts = null.forecasts
    if asymptotic:
        return _signed_law(row, settings, null)
    if row.name in SLOPES:
        one = np.ones(forecasts.levels) if row.name == "intercept" else bounded_leverage(forecasts)
        scores = np.abs(null.score_draws(one[None], how.draws, how.seed, how.threads))[:, 0]
        return exceedance(float(scores[0]), scores[1:]), row.ideal
    values = _on_residuals(row, settings, forecasts, forecasts.residuals[None])
    if values is None:
        hint = Hint("test with {}, and take the interval of this one", measure="smooth")
        rule = "has no test by random signs: it needs outcomes of 0 or 1"
        raise InvalidInputError(sentence(f"measure {row.name!r}", rule, hint=hint))
    if row.needs_level_sets and null.is_unchanged_by_signs():
        rule = "cannot be tested where every level lies in one cluster"
        hint = Hint("test with {}", measure="smooth")
        raise TooFewRecordsError(sentence(f"measure {row.name!r}", rule, "signs never change it", hint))

    def work(generator: np.random.Generator, rows: int) -> Array:
        return np.asarray(_on_residuals(row, settings, forecasts, null.residuals(generator, rows)))

    threads = how.threads if batched(forecasts, row, settings) else 1
    drawn = in_blocks(
        work, how.draws, width=null.width, seed=how.seed, threads=threads, progress=how.progress
    )
    centre = centre_of(forecasts, row, settings)
    pvalue = exceedance(float(badness(row, values, centre)[0]), badness(row, drawn, centre))
    linear = row.signed or row.null.two_sided  # its mean does not depend on how rows are related
    return pvalue, _mean(forecasts, row, settings, drawn) if linear else float(drawn.mean())


def has_sign_test(forecasts: Forecasts, row: Measure, settings: dict[str, Any]) -> bool:
    """Return whether residuals are all that the statistic needs."""
    known = row.name in SLOPES or row.name == DEFAULT_TEST or bool(row.null.power)
    return known or batched(forecasts, row, settings)


def _on_residuals(
    row: Measure, settings: dict[str, Any], forecasts: Forecasts, residuals: Array
) -> Array | None:
    """Take the statistic of each row of residuals; None where residuals are not all it needs."""
    if batched(forecasts, row, settings):
        return np.asarray(row.null.batch(forecasts, residuals, settings))  # type: ignore[misc]
    if not row.null.power:
        return None
    return one_by_one(forecasts, row, settings, forecasts.weights * forecasts.values + residuals)


def _signs_chosen(null: SignNull, row: Measure, method: Method) -> tuple[bool, str]:
    """Return whether a limit law replaces the random signs, and why."""
    law = row.null.law
    known = law is not None and null.clusters.all_single and (law.fractions or law.scale is null_deviation)
    if method == "asymptotic" and not known:
        rule = "has no limit law for random signs"
        raise CalibrantError(
            sentence(f"measure {row.name!r}", rule, hint=Hint("leave out {}", method="asymptotic"))
        )
    squares = null.record_residuals**2
    wide = known and float(squares.max()) <= SPREAD * float(squares.sum())
    if method == "asymptotic" or (wide and not null.forecasts.binary):
        return True, "no record carries much of the variance, which is estimated from the data"
    single = null.clusters.all_single
    return False, "the sign of each record is drawn" if single else "one sign is drawn for each cluster"


def _signed_law(row: Measure, settings: dict[str, Any], null: SignNull) -> tuple[float, float]:
    """Return the p-value by the limit law, scaled by the squares that the records show, and its mean."""
    law, forecasts = row.null.law, null.forecasts
    assert law is not None
    value = float(row.function.core(forecasts, **settings))
    scale = law.scale(forecasts) if law.fractions else float(np.linalg.norm(null.record_residuals))
    bad = float(badness(row, value, 0.0 if row.signed else row.ideal))
    if not scale > 0:
        return (1.0, 0.0) if bad <= 1e-12 else (0.0, 0.0)
    return math.exp(law.log_tail(bad / scale)), law.mean * scale


def is_rejected(pvalue: float, confidence: float) -> bool:
    """Return whether a p-value is 1 - confidence or less, whatever that difference is rounded to.

    >>> is_rejected(0.2, 0.8), 0.2 <= 1 - 0.8
    (True, False)
    """
    return pvalue <= 1 - confidence + 1e-12


def _plain(details: Mapping[str, Any]) -> dict[str, Any]:
    """Keep what fits on a line."""
    return {name: item for name, item in details.items() if isinstance(item, str | int | float)}


def centre_of(forecasts: Forecasts, row: Measure, settings: Mapping[str, Any]) -> float:
    """Return where a two-sided statistic is centred: its exact mean under calibration, else its ideal."""
    mean = row.null.mean and row.null.mean(forecasts, settings)
    return row.ideal if mean is None else mean


def badness(row: Measure, values: Any, centre: float) -> Any:
    """Turn values of the measure into a statistic that grows with miscalibration."""
    return np.abs(values - centre) if row.signed or row.null.two_sided else values


def _chosen(forecasts: Forecasts, row: Measure, method: Method) -> tuple[bool, str]:
    """Return whether to use the limit law, and why."""
    if method == "asymptotic" and row.null.law is None:
        hint = Hint("{} is valid for every measure", method="exact")
        raise CalibrantError(sentence(f"measure {row.name!r}", "has no limit law in closed form", hint=hint))
    if method != "auto":
        return method == "asymptotic", "as asked"
    if row.null.law is None:
        return False, "the measure has no limit law in closed form"
    if not law_serves(forecasts, row.null.law):
        return False, "few records or levels carry much of the variance: the limit law may be off there"
    return True, "no level and no outcome carries much of the variance"


def law_serves(forecasts: Forecasts, law: Law) -> bool:
    """Return whether a limit law serves: no level and no single outcome carries much of the null variance."""
    jump = max_record_weight(forecasts)
    spread = max(jump**2, forecasts.largest_variance) <= SPREAD * forecasts.null_variance
    if not spread or law.leverage is None:
        return spread
    squares = law.leverage(forecasts) ** 2
    part = forecasts.squared_weights * forecasts.values
    part *= 1 - forecasts.values
    part *= squares  # with all leverages 1 what follows is the same rule once more
    fourth, total = jump**2 * dot(part, squares), float(part.sum())
    return max(fourth, float(part.max()) * total) <= UNEVEN * SPREAD * total**2


def _by_law(
    forecasts: Forecasts,
    row: Measure,
    value: float,
    settings: Mapping[str, Any],
    reason: str,
    details: Mapping[str, Any],
) -> TestResult:
    law = row.null.law
    assert law is not None
    mean = row.null.mean and row.null.mean(forecasts, settings)
    bad = float(badness(row, value, centre_of(forecasts, row, settings)))
    scale = law.scale(forecasts)
    log_pvalue = law.log_tail(bad / scale) if scale > 0 else 0.0 if bad <= 1e-12 else -math.inf
    return TestResult(
        row.name,
        value,
        math.exp(log_pvalue),
        log_pvalue,
        law.mean * scale if mean is None else mean,
        "asymptotic",
        f"{law.name}: {reason}",
        forecasts.n,
        0,
        None,
        details,
    )


CLASSIC: Mapping[str, Callable[[Forecasts, Mapping[str, Any]], Measure]] = {
    "omnibus": omnibus_row,
    "spiegelhalter": spiegelhalter_row,
    "hosmer-lemeshow": hosmer_lemeshow_row,
}
DEFAULT_TEST = "omnibus"


def find_test(name: str, forecasts: Forecasts, options: Mapping[str, Any] = NOTHING) -> Measure:
    """Return the row of a test for these forecasts: of the registry, or one of those above."""
    if name in CLASSIC:
        return CLASSIC[name](forecasts, options)
    if name not in measures():
        raise reject_name("measure", name, [*CLASSIC, *measures()])
    return find_measure(name)


def validity_test(forecasts: Forecasts) -> TestResult:
    """Test calibration by ATB against 1/T: valid at any n, by Markov's inequality alone.

    Calibrated forecasts have E[ATB] = sum of w^2 v (1 - v) <= 1 / (4 T), so that ATB <= 1/T with probability
    3/4 at least (Lemma 6.2 of the truthfulness paper), and P(ATB >= x) <= 1 / (4 T x) is a p-value.
    With weights, the sum of their squares replaces 1/T.
    """
    if not forecasts.binary:
        hint = "a fraction is a known probability; draw 0/1 outcomes from it"
        raise InvalidInputError(sentence("y_true", "must be 0 or 1 for this test", "got fractions", hint))
    if not forecasts.exact:
        raise InvalidInputError(sentence("Forecasts", "must be exact for this test", "got a sketch"))
    limit = float(forecasts.squared_weights.sum())
    value = averaged_two_bin_error(forecasts)
    pvalue = min(1.0, limit / (4 * value)) if value > 0 else 1.0
    accepted = value <= limit * (1 + 1e-12)
    return TestResult(
        "atb",
        value,
        pvalue,
        math.log(pvalue),
        forecasts.null_variance,
        "validity",
        "Markov's inequality: accepted while ATB <= 1/T, as calibration does with probability 3/4 or more",
        forecasts.n,
        0,
        None,
        {"limit": limit, "accepted": accepted},
    )


@accepts_clusters
def calibration_test(
    forecasts: Forecasts,
    /,
    *,
    measure: str = DEFAULT_TEST,
    null: NullKind = "auto",
    draws: int = 999,
    seed: int | None = 0,
    method: Method | Literal["validity"] = "auto",
    threads: int | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> TestResult:
    """Test whether the forecasts are calibrated, with any measure of the registry as the statistic.

    Under calibration, independent outcomes are Bernoulli(v), so the exact null draws them `draws` times and
    counts: p = (1 + number at least as bad) / (draws + 1). That is valid for any measure at any n, but
    never below 1 / (draws + 1). A limit law, where there is one (omnibus, Kuiper, KS, Brier, which is
    Spiegelhalter's test, and calibration in the large), reaches far into the tail. "validity" is the
    test of the truthfulness paper: `details["accepted"]` while ATB <= 1/T, with a p-value by Markov's
    inequality, which is valid at any n but far from sharp; its measure is ATB.

    Rows that belong together (`clusters`), fractional outcomes and weights that follow the outcome are tested
    by random signs: a draw multiplies all residuals of a cluster by one random sign. No variance is modeled,
    whatever the correlation; the p-value is approximate in the number of clusters. With outcomes of 0 and 1
    in clusters it is, up to 0.25, never smaller than that of the test for independent rows. Fewer than about
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
    draws, seed
        The number of data sets drawn, and their seed (None for a fresh one); the result records it.
    method
        "exact" to simulate, "asymptotic", "validity", or "auto": the limit law once no level and no single
        outcome carries much of the variance.
    threads, progress
        The number of threads; `progress` is called with the share that is done.
    **options
        Options of the measure.

    Returns
    -------
    TestResult
        Statistic, p-value, the method that was used, and `rejects(alpha)`.

    Examples
    --------
    >>> result = calibration_test([0, 0, 0, 0, 0, 0], [0.6, 0.6, 0.7, 0.7, 0.8, 0.9], seed=1)
    >>> result.method, result.rejects(0.05)
    ('exact', True)
    """
    check_drawing(draws, seed, threads)
    if method == "validity":
        if measure not in (DEFAULT_TEST, "atb") or options:
            rule = 'must be "atb", without options, for method="validity"'
            raise InvalidInputError(sentence("measure", rule, f"got {measure!r} and {options}"))
        return validity_test(forecasts)
    return run_test(
        forecasts,
        find_test(measure, forecasts, options),
        options,
        method=method,
        kind=null,
        draws=draws,
        seed=seed,
        threads=threads,
        progress=progress,
    )
