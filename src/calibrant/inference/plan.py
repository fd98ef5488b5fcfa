"""A plan: how many records show an error of which size."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from calibrant.measures.registry.lookup import measure_in_words
from calibrant.numerals import counted
from calibrant.sheets import paragraphs


@dataclass(frozen=True, slots=True)
class Plan:
    """`n` records detect `distance` from calibration with probability `power` at level `alpha`.

    `distance` is the lower distance of the alternative that was tried; `power` is what simulation found. A
    plan for tolerance_test has `accept` and `reject` instead: from `n` records on its verdict is never
    "undecided", whatever the truth, and wrong with probability `alpha` at most. Nothing is simulated for it.
    """

    n: int
    distance: float | None
    power: float
    alpha: float
    measure: str
    alternative: str
    draws: int
    seed: int | None
    accept: float | None = None
    reject: float | None = None

    def __str__(self) -> str:
        if self.distance is None:
            return (
                f"{counted(self.n, 'record')} always decide between a distance from calibration below "
                f"{self.reject:g} and one above {self.accept:g}, wrongly with probability {self.alpha:.2g} "
                f"at most, by {measure_in_words(self.measure)}"
            )
        return (
            f"{counted(self.n, 'record')} detect a distance of {self.distance:.4f} from calibration "
            f"({self.alternative}) with power {self.power:.2f} at level {self.alpha:g}, "
            f"by the {measure_in_words(self.measure)} (seed {self.seed})"
        )

    def _repr_html_(self) -> str:
        return paragraphs(f"{self}.")

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, ready for JSON."""
        return asdict(self)
