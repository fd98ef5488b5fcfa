"""No change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from calibrant.recalibration.maps.algebra import Algebra
from calibrant.recalibration.maps.form import Map
from calibrant.results import Array


@dataclass(frozen=True, slots=True)
class IdentityMap(Map):
    """The predictions as they are."""

    form: ClassVar[str] = "identity"

    def predict(self, p: Array, covariates: Mapping[str, Any] | None = None) -> Array:
        """Return a copy of the predictions."""
        return p.copy()

    def expression(self, p: Any, algebra: Algebra) -> Any:
        """Return the column itself."""
        return p

    def to_dict(self) -> dict[str, Any]:
        """Return nothing: there are no numbers."""
        return {}

    @classmethod
    def from_dict(cls, numbers: Mapping[str, Any]) -> Self:
        """Return the map."""
        return cls()
