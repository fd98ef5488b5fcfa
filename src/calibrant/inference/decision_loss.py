"""Decision loss, next to what a calibrated forecaster would show on as many records."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calibrant.errors import LevelSetWarning
from calibrant.fits.crossfit import Recalibrator, name_of
from calibrant.forecasts import Forecasts
from calibrant.formatting import confidence_text, pluralize
from calibrant.inference.bootstrap import upper_quantile
from calibrant.inference.null import NullOutcomes
from calibrant.inference.pvalues import is_rejected
from calibrant.inputs import open_share
from calibrant.metrics.calling import accepts_rows
from calibrant.metrics.decisions.fixed_payoff import fixed_decision_loss
from calibrant.metrics.decisions.payoffs import Payoff
from calibrant.metrics.decisions.worst_case import decision_loss
from calibrant.parallel import checked_draws, in_blocks, recorded_seed
from calibrant.results import Array, Result


@dataclass(frozen=True, slots=True, repr=False)
class DecisionEstimate(Result):
    """An estimated decision loss and its reference: outcomes drawn from the predictions themselves.

    `null_mean` is what calibrated forecasts show on average, `null_upper` what they exceed with probability
    1 - confidence, `pvalue` how often they show at least `value`. A loss below `null_upper` does not show
    that recalibrating would help.
    """

    value: float
    null_mean: float
    null_upper: float
    pvalue: float
    confidence: float
    n: int
    recalibrator: str
    folds: int
    draws: int
    seed: int
    method: str = "exact"

    DERIVED: ClassVar[tuple[str, ...]] = ("approximate",)

    @property
    def approximate(self) -> tuple[str, ...]:
        """The fields that hold only approximately."""
        return () if self.method == "exact" else ("null_mean", "null_upper", "pvalue")

    @property
    def real(self) -> bool:
        """Whether the loss exceeds what calibrated forecasts would show, also by its p-value."""
        return self.value > self.null_upper and is_rejected(self.pvalue, self.confidence)

    def __str__(self) -> str:
        verdict = "more than" if self.real else "no more than"
        if self.value > self.null_upper and not self.real:
            verdict = "too few draws to say whether more than"
        roughly = ", approximate" if self.approximate else ""
        share = f"{confidence_text(self.confidence)} of {pluralize(self.draws, 'draw')}"
        return (
            f"decision loss {self.value:.4g}, {verdict} calibrated forecasts would show on {self.n:,} "
            f"records: {self.null_mean:.4g} on average, up to {self.null_upper:.4g} "
            f"({share}, seed {self.seed}{roughly})"
        )


@accepts_rows
def estimate_decision_loss(
    forecasts: Forecasts,
    /,
    *,
    payoff: Payoff | None = None,
    recalibrator: Recalibrator | None = "isotonic",
    folds: int = 5,
    draws: int = 199,
    confidence: float = 0.95,
    seed: int | None = 0,
    **options: Any,
) -> DecisionEstimate:
    """Estimate what trusting the predictions costs, and say whether that is more than noise.

    The loss is decision_loss, or fixed_decision_loss (with its `options`) when a `payoff` is given. Every set
    of drawn outcomes is fitted again, as the data are, so the time is that of `draws` + 1 losses.

    Parameters
    ----------
    payoff
        As for fixed_decision_loss; the worst task if absent.
    confidence
        How many of the calibrated forecasts show no more than `null_upper`.
    **options
        Those of fixed_decision_loss.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(300)
    >>> estimate_decision_loss(rng.random(300) < p, p, draws=99, seed=1).real
    False
    """
    open_share("confidence", confidence)
    drawn, used = checked_draws(draws), recorded_seed(seed)
    core = decision_loss.core if payoff is None else fixed_decision_loss.core
    settings = {**options, "recalibrator": recalibrator, "folds": folds, "seed": used}
    if payoff is not None:
        settings["payoff"] = payoff
    measured = core(forecasts, **settings)
    report = measured.details.get("report")  # rounding is proportional to the payoffs: 1 in the worst task
    unit = 1.0 if report is None else max(abs(report.trusting), abs(report.recalibrated))
    value, slack = float(measured), 1e-12 * unit
    null = NullOutcomes(forecasts)

    def work(generator: np.random.Generator, rows: int) -> Array:
        return np.array([float(core(one, **settings)) for one in null.forecasts_of(generator, rows)])

    alone = 1 if callable(recalibrator) or callable(payoff) else None  # functions of users stay in one thread
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LevelSetWarning)
        values = in_blocks(work, drawn, width=null.width, seed=used, threads=alone)
    pvalue = (1 + int(np.count_nonzero(values >= value - slack))) / (drawn + 1)
    reference = float(values.mean()), upper_quantile(values, confidence), pvalue, confidence, forecasts.n
    method = "exact" if null.exact else "approximate"
    return DecisionEstimate(value, *reference, name_of(recalibrator), folds, drawn, used, method)
