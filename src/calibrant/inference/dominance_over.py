"""Dominance over several baselines: the most that anybody loses by not using the best of them for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.errors import InvalidInputError, sentence

if TYPE_CHECKING:
    from calibrant.inference.dominance import Dominance


@dataclass(frozen=True, slots=True, eq=False)
class DominanceOver:
    """The most that anybody with payoffs in [0, 1] loses by using a model instead of one of several others.

    `loss` is the largest over the baselines and `worst` the name of the one that attains it. `each` holds
    the comparison with every one. [`lower`, `upper`] holds the largest loss in the population with at least
    the `confidence`; the intervals in `each` hold all at once (Bonferroni).
    """

    each: Mapping[str, Dominance]
    confidence: float

    @property
    def worst(self) -> str:
        """The baseline that somebody misses most."""
        return max(self.each, key=lambda name: self.each[name].loss)

    @property
    def loss(self) -> float:
        """What they lose: the omniprediction gap against all baselines."""
        return self.each[self.worst].loss

    @property
    def lower(self) -> float | None:
        """The lower limit of the largest loss; None without draws."""
        return _largest([found.lower for found in self.each.values()])

    @property
    def upper(self) -> float | None:
        """The upper limit of the largest loss; None without draws."""
        return _largest([found.upper for found in self.each.values()])

    @property
    def dominates(self) -> bool:
        """Whether the model is at least as good as every baseline for everybody, on these records."""
        return all(found.dominates for found in self.each.values())

    def __getitem__(self, name: str) -> Dominance:
        return self.each[name]

    def __repr__(self) -> str:
        limits = "" if self.lower is None else f" in [{self.lower:.4g}, {self.upper:.4g}]"
        return f"DominanceOver(loss = {self.loss:.4g}{limits}, worst = {self.worst!r}, of {len(self.each)})"

    def __str__(self) -> str:
        if self.dominates:
            return f"The model dominates all {len(self.each)} baselines: nobody should prefer another."
        limits = ""
        if self.lower is not None:
            limits = f" ({self.confidence:.0%} interval {self.lower:.4g} to {self.upper:.4g})"
        lost = f"loses at most {self.loss:.4g} per record{limits}"
        return f"Using the model instead of the best baseline {lost}, against {self.worst!r}."

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        each = {name: found.to_dict() for name, found in self.each.items()}
        head = {"loss": self.loss, "worst": self.worst, "lower": self.lower, "upper": self.upper}
        return {**head, "dominates": self.dominates, "confidence": self.confidence, "each": each}


def _largest(limits: Sequence[float | None]) -> float | None:
    known = [limit for limit in limits if limit is not None]
    return max(known) if known else None


def named_baselines(prob_b: Any) -> dict[str, Any] | None:
    """Return baselines by name, from a mapping or a list of columns; None if it is one column."""
    if isinstance(prob_b, Mapping):
        named = {str(name): column for name, column in prob_b.items()}
    elif isinstance(prob_b, (list, tuple)) and prob_b and all(np.ndim(column) == 1 for column in prob_b):
        named = {f"baseline {k}": column for k, column in enumerate(prob_b, start=1)}
    else:
        return None
    if not named:
        raise InvalidInputError(sentence("prob_b", "must name at least one baseline", "got none"))
    return named
