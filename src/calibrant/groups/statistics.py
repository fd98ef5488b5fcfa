"""D_k, sigma_k and z of each subpopulation: eqs. (1)-(6) of measuring-multicalibration, and its variants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from calibrant.errors import InvalidInputError, reject_name
from calibrant.formatting import pluralize
from calibrant.groups.stratified import prediction_strata
from calibrant.inputs import finite_number
from calibrant.kernels.groups import Offsets
from calibrant.parallel import map_threads
from calibrant.records import Records
from calibrant.results import Array

BLOCK = 1 << 17  # records filled in at a time

ROWS = """\
y_true, y_prob, sample_weight, missing
    Outcomes (0 or 1), predictions and weights; rows with a gap are an "error", or "drop" and count them.
"""  # of the docstrings of several functions

VariantName = Literal["plain", "proportional", "proportional-shifted", "low-prevalence", "real"]
StatisticName = Literal["kuiper", "mean"]


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """A row per record: prediction S, weight W, step W (R - S) of the curve, and its key."""

    rows: Array
    statistic: StatisticName = "kuiper"
    # mean squares of all records with about the same prediction. Where variances are by eq. (6), tests
    # divide by sums of these: a few skewed residuals say little of their variance
    pooled: Array | None = None


@dataclass(frozen=True, slots=True)
class Variant:
    """Which metric is taken.

    plain
        eqs. (1)-(5), measuring-multicalibration.
    proportional, proportional-shifted
        W = 1 / max(S, rho) or 1 / (S + rho), times the record's own weight (Appendix A). With rho = 0, one
        tiny prediction can outweigh all others.
    low-prevalence
        W = 1 / A where the outcome is 1, A being the share of ones (Appendix B). Even perfect predictions
        have a drift, S (1 - S) (1 / A - 1) per record, which simulated p-values know.
    real
        responses of any size; variances by eq. (6) (Appendix C); null by random signs of R - S, which is
        exact when errors are symmetric about 0.

    The `statistic` of a curve is its range ("kuiper", multi-calibration), or how far from 0 it ends ("mean",
    multi-accuracy), which is the absolute mean residual and never more than the range.
    """

    name: VariantName = "plain"
    rho: float = 0.01
    statistic: StatisticName = "kuiper"

    def __post_init__(self) -> None:
        if self.name not in get_args(VariantName):
            raise reject_name("variant", self.name, list(get_args(VariantName)))
        if self.statistic not in get_args(StatisticName):
            raise reject_name("statistic", self.statistic, list(get_args(StatisticName)))
        finite_number("rho", self.rho, least=0)

    def check_predictions(self, records: Records) -> None:
        if self.rho == 0 and self.name.startswith("proportional"):
            zero = np.flatnonzero(records.prediction == 0)
            if len(zero):
                got = f"got 0 in row {int(records.rows[zero].min())} ({pluralize(len(zero), 'row')})"
                rule = "must be above 0 with rho=0, where the weight is 1 / prediction"
                raise InvalidInputError("y_prob", rule, got, "set rho, for example 0.01")

    @property
    def real(self) -> bool:
        return self.name == "real"

    @property
    def weights_fixed(self) -> bool:
        return self.name != "low-prevalence"

    def weights(self, prediction: Array, response: Array, weight: Array) -> Array:
        if self.name == "proportional":
            return np.asarray(weight / np.maximum(prediction, self.rho))
        if self.name == "proportional-shifted":
            return np.asarray(weight / (prediction + self.rho))
        if self.name == "low-prevalence":
            share = float(weight @ response / weight.sum())
            return np.where(response > 0, weight / share, weight) if share > 0 else weight
        return weight

    def terms(self, prediction: Array, response: Array, weight: Array) -> Terms:
        """Return what each record adds, in the order given; keys are a fixed random number per place."""
        weight = self.weights(prediction, response, weight)
        rows = np.empty((len(prediction), 4))

        def fill(start: int) -> None:
            part = slice(start, start + BLOCK)
            residual = weight[part] * (response[part] - prediction[part])
            rows[part, 0], rows[part, 1], rows[part, 2] = prediction[part], weight[part], residual
            rows[part, 3] = np.random.default_rng(start).random(len(residual))

        map_threads(fill, range(0, len(prediction), BLOCK))
        if not self.real:
            return Terms(rows, self.statistic)
        stratum = prediction_strata(prediction)
        mean = np.bincount(stratum, rows[:, 2] ** 2) / np.bincount(stratum)
        return Terms(rows, self.statistic, np.asarray(mean[stratum]))

    def terms_of(self, records: Records) -> tuple[Terms, Terms | None]:
        """Return the terms of records, and those by their own weights where W is another."""
        columns = records.prediction, records.outcome, records.weight
        same = self.name in ("plain", "real")
        return self.terms(*columns), None if same else Variant().terms(*columns)


SUMS = 10  # that the kernels fill for each subpopulation
MIN_THREADED_MEMBERS = 1 << 17  # members, below which one core is as quick
UNDERFLOW = 1e-150  # below it a sigma of 0 may be the rounded root of predictions like 1e-320
NEARLY_ZERO = 1e-13  # of the predictions and responses that were subtracted: below it a range is rounding


@dataclass(frozen=True, slots=True, eq=False)
class Curves:
    """What the curves of some subpopulations say, one number each."""

    size: Offsets
    weight: Array
    mean_prediction: Array
    mean_outcome: Array
    kuiper: Array  # D_k
    gap: Array  # the mean residual
    sigma: Array  # the null deviation, (5) or (6)
    z: Array  # the statistic in such deviations
    first: Offsets  # to `last`, residuals add up most; -1 where there is no such end, or all count
    last: Offsets
    direction: Offsets  # +1 where outcomes exceed predictions there, -1 where they fall short, else 0
    mark: Array  # equal for equal sets of members
    lower: Array  # of the statistic on the raw rows: another number for a sketch alone
    upper: Array  # the same
    tested: Array  # the z that simulated ones are compared with: another for a sketch alone
    deviation: Array  # that simulated sums are divided by
    squares: Array  # the mean squared residual
    effective: Array  # number of records that a weighted sketch amounts to

    def take(self, kept: Sequence[int]) -> Curves:
        return Curves(*(getattr(self, name)[list(kept)] for name in self.__slots__))


def curves_of(sums: Array, ends: Offsets, terms: Terms, tested_variance: Array | None = None) -> Curves:
    """Turn what the kernels filled into what the curves say; tests may divide by another variance."""
    size, total, moment, variance, end, top, bottom, mark, scale, squares = sums.T
    total = np.where(size > 0, total, 1.0)
    kuiper, gap, sigma = (top - bottom) / total, end / total, np.sqrt(variance) / total
    deviation = np.sqrt(variance if tested_variance is None else tested_variance)
    if terms.statistic == "mean":  # where the curve ends: all predictions count
        statistic, direction = np.abs(gap), np.sign(gap)
        direction = np.where(statistic > NEARLY_ZERO * scale / total, direction, 0.0).astype(np.int64)
        first = last = np.full(len(size), -1)
    else:
        statistic, direction = kuiper, np.sign(ends[:, 0] - ends[:, 2])  # 1 where the highest point is last
        first = np.where(direction > 0, ends[:, 3], np.where(direction < 0, ends[:, 1], -1))
        last = np.where(direction != 0, np.maximum(ends[:, 0], ends[:, 2]), -1)
    return Curves(
        size=size.astype(np.int64),
        weight=total,
        mean_prediction=moment / total,
        mean_outcome=(moment + end) / total,
        kuiper=kuiper,
        gap=gap,
        sigma=sigma,
        z=_quotient(statistic, sigma, scale / total),
        first=first,
        last=last,
        direction=direction,
        mark=mark,
        lower=statistic,
        upper=statistic,
        tested=_quotient(statistic, deviation / total, scale / total),
        deviation=deviation,
        squares=squares / total,
        effective=size,
    )


def _quotient(statistic: Array, sigma: Array, scale: Array) -> Array:
    """D_k / sigma_k; 0 where both are nearly 0, infinite where only sigma is (an impossible outcome)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        z = statistic / sigma
    return np.where(statistic <= np.maximum(NEARLY_ZERO * scale, UNDERFLOW), 0.0, z)
