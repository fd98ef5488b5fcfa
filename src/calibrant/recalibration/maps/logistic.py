"""logit q = g + a ln c - b ln(1 - c), c the prediction held within [clip, 1 - clip]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

import numpy as np

from calibrant.fits.logistic import LogisticFit
from calibrant.recalibration.maps.base import Algebra, Map, expit, stored_clip, stored_number
from calibrant.recalibration.maps.piecewise import block_by_block
from calibrant.results import Array


@dataclass(frozen=True, slots=True)
class LogisticMap(Map):
    """Shift, temperature, Platt and beta maps: `low` multiplies ln c, `high` -ln(1 - c)."""

    form: ClassVar[str] = "logistic"
    intercept: float
    low: float
    high: float
    clip: float

    @classmethod
    def of(cls, fit: LogisticFit) -> Self:
        """Return the map of a fit."""
        return cls(fit.intercept, fit.low, fit.high, fit.clip)

    def predict(self, p: Array, covariates: Mapping[str, Any] | None = None) -> Array:
        """Apply the formula."""
        from scipy.special import expit as rate

        def mapped(p: Array) -> Array:
            clipped = np.clip(p, self.clip, 1.0 - self.clip)
            eta = self.intercept + self.low * np.log(clipped) - self.high * np.log1p(-clipped)
            return np.asarray(rate(eta), dtype=np.float64)

        return block_by_block(mapped, p)

    def expression(self, p: Any, algebra: Algebra) -> Any:
        """Return the formula."""
        clipped = algebra.clip(p, self.clip, 1.0 - self.clip)
        rest = -clipped + 1.0
        if self.low == self.high:
            eta = algebra.log(clipped / rest) * self.low + self.intercept
        else:
            eta = algebra.log(clipped) * self.low - algebra.log(rest) * self.high + self.intercept
        largest = abs(self.intercept) - (abs(self.low) + abs(self.high)) * float(np.log(self.clip))
        return expit(eta, largest, algebra)

    def to_dict(self) -> dict[str, Any]:
        """Return the four numbers."""
        return asdict(self)

    @classmethod
    def from_dict(cls, numbers: Mapping[str, Any]) -> Self:
        """Rebuild from the four numbers."""
        intercept, low, high = (stored_number(numbers, name) for name in ("intercept", "low", "high"))
        return cls(intercept, low, high, stored_clip(numbers))
