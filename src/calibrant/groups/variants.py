"""What each record adds to the curve: the plain metric and the paper's variants (Appendices A, B, C)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from calibrant.errors import InvalidInputError, reject_name, sentence
from calibrant.results import Array

VariantName = Literal["plain", "proportional", "proportional-shifted", "low-prevalence", "real"]


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """A row a record: prediction S, weight W, step W (R - S) of the curve, and its key.

    Where `successive`, variances are estimated for each subpopulation by eq. (6).
    """

    rows: Array
    successive: bool
    largest: float  # step

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
        outcome, so even perfect predictions have a drift, S (1 - S) (1 / A - 1) a record; the p-values here
        come from simulation and know it.
    real
        responses of any size; variances by eq. (6) (Appendix C), null by random signs of R - S, which is
        exact when errors are symmetric about 0.
    """

    name: VariantName = "plain"
    rho: float = 0.01

    def __post_init__(self) -> None:
        if self.name not in get_args(VariantName):
            raise reject_name("variant", self.name, list(get_args(VariantName)))
        if not (np.isfinite(self.rho) and self.rho > 0):
            raise InvalidInputError(sentence("rho", "must be a positive number", f"got {self.rho}"))

    @property
    def real(self) -> bool:
        """Whether responses may be any number."""
        return self.name == "real"

    @property
    def weights_fixed(self) -> bool:
        """Whether weights and variances do not depend on the responses."""
        return self.name in ("plain", "proportional", "proportional-shifted")

    def terms(self, prediction: Array, response: Array, weight: Array) -> Terms:
        """Return what each record adds, in the order given; keys are a fixed random number a place."""
        if self.name == "proportional":
            weight = weight / np.maximum(prediction, self.rho)
        elif self.name == "proportional-shifted":
            weight = weight / (prediction + self.rho)
        elif self.name == "low-prevalence":
            share = float(weight @ response / weight.sum())
            weight = np.where(response > 0, weight / share, weight) if share > 0 else weight
        rows = np.empty((len(prediction), 4))
        rows[:, 0], rows[:, 1] = prediction, weight
        np.multiply(weight, response - prediction, out=rows[:, 2])
        rows[:, 3] = np.random.default_rng(0).random(len(prediction))
        return Terms(rows, self.real, float(np.max(np.abs(rows[:, 2]))))
