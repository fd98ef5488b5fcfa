"""The engine of every test of calibration: simulate the known null, or use a limit law, and say which."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from calibrant.errors import CalibrantError, InvalidInputError, reject_name, sentence
from calibrant.forecasts import Forecasts
from calibrant.inference.continuous import as_if_known, deviation_of_continuous
from calibrant.inference.null_outcomes import NullOutcomes, null_values
from calibrant.inference.spoken import in_words
from calibrant.inference.stand_ins import heaviest
from calibrant.measures.registry.laws import Law, null_deviation
from calibrant.measures.registry.lookup import measure_in_words
from calibrant.measures.registry.row import Measure
from calibrant.numerals import at_floor, counted, pvalue_phrase, short
from calibrant.options import closed_share
from calibrant.progress import Progress
from calibrant.results import json_object
from calibrant.seeds import checked_draws, recorded_seed
from calibrant.sheets import paragraphs
from calibrant.sums import dot

Method = Literal["auto", "exact", "asymptotic"]

ROUGH = 50  # records below which an estimated variance makes p-values too small now and then
SPREAD = 1 / 4000  # largest share of the null variance in one level, or one outcome, for a limit law to serve
UNEVEN = 10  # times as much is allowed of a sum in which residuals count unevenly, one of two statistics


@dataclass(frozen=True, slots=True)
class TestResult:
    """How likely calibrated forecasts are to look at least as bad as these.

    `statistic` is the measure's value; `null_mean` what calibrated forecasts would score on average (exact
    where known, else of the limit law or of the draws). `method` is "exact" (simulated outcomes; valid at
    any n), "asymptotic" (a limit law), "approximate" (simulated from a sketch) or "validity" (a bound that is
    proven); `reason` says why. `approximate` names the p-value where it is of the second or third. `draws`
    and `seed` are 0 and None when nothing was drawn. `details` says what the statistic found on the way:
    where Kuiper's interval lies, the two p-values behind the omnibus test.
    """

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

    @property
    def pvalue_is_bound(self) -> bool:
        """Whether no draw reached the statistic: the p-value is then this or less."""
        return at_floor(self.pvalue, self.draws)

    @property
    def approximate(self) -> tuple[str, ...]:
        """The fields that hold only approximately."""
        return ("pvalue",) if self.method in ("asymptotic", "approximate") else ()

    @property
    def written_pvalue(self) -> str:
        """The p-value for people: "p = 0.03, approximate"; "p ≤ 0.005 with 199 draws" if none came so far."""
        roughly = ", approximate" if self.approximate else ""
        return pvalue_phrase(self.pvalue, self.draws, log_pvalue=self.log_pvalue) + roughly

    def rejects(self, alpha: float = 0.05) -> bool:
        """Return whether calibration is rejected at level `alpha`."""
        return self.pvalue <= closed_share("alpha", alpha)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields and the verdict in words, ready for JSON."""
        return json_object({"sentence": str(self), **asdict(self), "approximate": self.approximate})

    def __str__(self) -> str:
        rejected = "is rejected" if self.rejects() else "is not rejected"
        freedom = self.details.get("degrees_of_freedom")
        degrees = "" if freedom is None else f" with {freedom} degrees of freedom"
        expected = "" if math.isnan(self.null_mean) else f", {short(self.null_mean)} expected by chance"
        size = "infinite" if math.isinf(self.statistic) else short(self.statistic)
        draws = "" if self.pvalue_is_bound else f", {counted(self.draws, 'draw')}"
        drawn = "" if self.seed is None else f"{draws}, seed {self.seed}"
        return (
            f"Calibration {rejected} at the 5 % level: {self.written_pvalue} "
            f"({measure_in_words(self.measure)} {size}{degrees}{expected}; "
            f"{counted(self.n, 'record')}, {self.method} test{drawn})."
            f"{in_words(self.details, self.rejects())}"
        )

    def _repr_html_(self) -> str:
        return paragraphs(str(self))


def run_test(
    forecasts: Forecasts,
    row: Measure,
    options: Mapping[str, Any],
    *,
    method: Method,
    draws: int,
    seed: int | None,
    threads: int | None = None,
    progress: Progress | None = None,
    null: NullOutcomes | None = None,
) -> TestResult:
    """Test calibration with one row of the registry as the statistic; `null` may keep earlier draws."""
    if method not in ("auto", "exact", "asymptotic"):
        raise reject_name("method", method, ["auto", "exact", "asymptotic", "validity"])
    settings = {**row.options, **options}
    measured = row.function.core(forecasts, **settings)
    value, details = float(measured), _plain(getattr(measured, "details", {}))
    asymptotic, reason = _chosen(forecasts, row, method)
    if asymptotic:
        return _by_law(forecasts, row, value, settings, reason, details)
    drawn, used = checked_draws(draws), recorded_seed(seed)
    null = NullOutcomes(forecasts) if null is None else null
    values = null_values(
        forecasts, row, settings, null=null, draws=drawn, seed=used, threads=threads, progress=progress
    )
    exact_mean = row.null.mean and row.null.mean(forecasts, settings)
    centre = centre_of(forecasts, row, settings)
    bad, drawn_bad = badness(row, value, centre), badness(row, values, centre)
    # draws that equal the statistic in exact arithmetic must count whatever the rounding
    reached = int(np.count_nonzero(drawn_bad >= bad - 1e-9 * abs(bad) - 1e-15))
    pvalue = (1 + reached) / (drawn + 1)
    finite = values[np.isfinite(values)]
    mean = exact_mean if exact_mean is not None else float(finite.mean()) if len(finite) else math.nan
    kind = "exact" if null.exact else "approximate"
    return TestResult(
        row.name, value, pvalue, math.log(pvalue), mean, kind, reason, forecasts.n, drawn, used, details
    )


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
        hint = 'method="exact" is valid for every measure'
        raise CalibrantError(sentence(f"measure {row.name!r}", "has no limit law in closed form", hint=hint))
    if method != "auto":
        return method == "asymptotic", "as asked"
    if row.null.law is None:
        return False, "the measure has no limit law in closed form"
    if not forecasts.binary:
        roughly = ", roughly with so few records" if forecasts.n < ROUGH else ""
        return True, f"outcomes are fractions, whose variance is estimated from the data{roughly}"
    if not law_serves(forecasts, row.null.law):
        return False, "few records or levels carry much of the variance: the limit law may be off there"
    return True, "no level and no outcome carries much of the variance"


def law_serves(forecasts: Forecasts, law: Law) -> bool:
    """Return whether a limit law serves: no level and no single outcome carries much of the null variance."""
    jump = heaviest(forecasts)
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
    scale = law.scale(forecasts) if forecasts.binary else _scale_of_fractions(forecasts, row.name, law)
    if scale > 0:
        standard = bad / scale
        estimated = not (forecasts.binary or law.fractions)
        log_pvalue = law.log_tail(float(as_if_known(standard, forecasts)) if estimated else standard)
    else:
        log_pvalue = 0.0 if bad <= 1e-12 else -math.inf
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


def _scale_of_fractions(forecasts: Forecasts, name: str, law: Law) -> float:
    """Return the scale where outcomes are fractions: it is estimated, for a functional of the curve."""
    if law.fractions:
        return law.scale(forecasts)
    if law.scale is not null_deviation:
        hint = 'measure="kuiper" can test fractions'
        raise InvalidInputError(
            sentence("y_true", f"must be 0 or 1 to test with {name!r}", "got fractions", hint)
        )
    return deviation_of_continuous(forecasts)
