"""The columns of a file that evaluate and check work on, read once; errors name the columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from calibrant.forecasts import Forecasts, Missing
from calibrant.scale.files import read_categories, read_columns

if TYPE_CHECKING:
    from calibrant.groups.result import Audit


@dataclass(frozen=True, slots=True, eq=False)
class FileRows:
    """Outcome, prediction and weight by row, what they make as Forecasts, and columns of groups."""

    outcome: Any
    prediction: Any
    weight: Any
    forecasts: Forecasts
    groups: Mapping[str, Any] | None
    missing: Missing

    def audit(self, *, draws: int, seed: int) -> Audit:
        """Audit the groups; fractional outcomes by the variance they show."""
        from calibrant.groups.audit import audit

        return audit(
            self.outcome,
            self.prediction,
            sample_weight=self.weight,
            groups=self.groups,
            missing=self.missing,
            draws=draws,
            seed=seed,
            variant="plain" if self.forecasts.binary else "real",
        )


def read_rows(
    file: str, *, outcome: str, prediction: str, weight: str | None, missing: Missing, groups: str | None
) -> FileRows:
    """Read the columns named; `groups` is a list with commas."""
    numbers = read_columns(file, [outcome, prediction] + ([weight] if weight else []))
    forecasts = Forecasts.from_frame(
        numbers, outcome=outcome, prediction=prediction, weight=weight, missing=missing
    )
    return FileRows(
        numbers[outcome],
        numbers[prediction],
        numbers[weight] if weight else None,
        forecasts,
        read_categories(file, groups.split(",")) if groups else None,
        missing,
    )
