"""What maps that read covariates share: meeting the columns of new rows, and saying what is new in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from calibrant.groups.features import Features
from calibrant.recalibration.levels_of_columns import Met, met, remarks
from calibrant.recalibration.maps.form import Map
from calibrant.results import Array


class ColumnMap(Map):
    """A map of the prediction and of `features`; `seen_missing` names columns with gaps in the fit."""

    needs_covariates: ClassVar[bool] = True
    features: Features
    seen_missing: Sequence[str]

    def met(self, p: Array, covariates: Mapping[str, Any] | None) -> Met:
        """Return the columns of new rows as numbers."""
        return met(self.features, self.features.columns(covariates, len(p)))

    @property
    def column_names(self) -> list[str]:
        """The covariates that the map reads."""
        return self.features.names

    def remarks(self, p: Array, covariates: Mapping[str, Any] | None) -> tuple[str, ...]:
        """Say what new rows have that the fit has not seen."""
        if not self.features.features:
            return ()
        return remarks(self.seen_missing, self.met(p, covariates))
