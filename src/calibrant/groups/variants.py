"""What each record adds to the curve: the plain metric and the paper's variants (Appendices A, B, C)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from calibrant.cores import on_all_cores
from calibrant.errors import reject_name
from calibrant.options import positive_number
from calibrant.results import Array

BLOCK = 1 << 17  # records filled in at a time

VariantName = Literal["plain", "proportional", "proportional-shifted", "low-prevalence", "real"]
StatisticName = Literal["kuiper", "mean"]


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """A row per record: prediction S, weight W, step W (R - S) of the curve, and its key.

    Where `successive`, variances are estimated for each subpopulation by eq. (6). `statistic` says what is
    taken of each curve.
    """

    rows: Array
    successive: bool
    statistic: StatisticName = "kuiper"

    @property
    def prediction(self) -> Array:
        """S of each record."""
        return self.rows[:, 0]

    @property
    def weight(self) -> Array:
        """W of each record."""
        return self.rows[:, 1]

    @property
    def residual(self) -> Array:
        """W (R - S) of each record."""
        return self.rows[:, 2]


@dataclass(frozen=True, slots=True)
class Variant:
    """Which metric is taken.

    plain
        eqs. (1)-(5), measuring-multicalibration.
    proportional, proportional-shifted
        W = 1 / max(S, rho) or 1 / (S + rho), times the record's own weight: a gap counts in proportion to
        the prediction (Appendix A).
    low-prevalence
        W = 1 / A where the outcome is 1, A being the share of ones (Appendix B). The weight depends on the
        outcome, so even perfect predictions have a drift, S (1 - S) (1 / A - 1) per record; the p-values here
        come from simulation and know it.
    real
        responses of any size; variances by eq. (6) (Appendix C), records that share a prediction compared
        with each other and not with their neighbours; null by random signs of R - S, which is
        exact when errors are symmetric about 0.

    Of each curve the `statistic` is taken: its range ("kuiper", multi-calibration), or how far from 0 it ends
    ("mean", multi-accuracy), which is the absolute mean residual and never more than the range.
    """

    name: VariantName = "plain"
    rho: float = 0.01
    statistic: StatisticName = "kuiper"

    def __post_init__(self) -> None:
        if self.name not in get_args(VariantName):
            raise reject_name("variant", self.name, list(get_args(VariantName)))
        if self.statistic not in get_args(StatisticName):
            raise reject_name("statistic", self.statistic, list(get_args(StatisticName)))
        positive_number("rho", self.rho)

    @property
    def real(self) -> bool:
        """Whether responses may be any number."""
        return self.name == "real"

    @property
    def reweights(self) -> bool:
        """Whether W is another than the record's own weight."""
        return self.name not in ("plain", "real")

    @property
    def weights_fixed(self) -> bool:
        """Whether weights and variances do not depend on the responses."""
        return self.name in ("plain", "proportional", "proportional-shifted")

    def weights(self, prediction: Array, response: Array, weight: Array) -> Array:
        """Return W of each record from the record's own weight."""
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

        on_all_cores(fill, range(0, len(prediction), BLOCK))
        return Terms(rows, self.real, self.statistic)
