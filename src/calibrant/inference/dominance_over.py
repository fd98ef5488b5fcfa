"""Dominance over several baselines: the most that anybody loses by not using the best of them for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.errors import InvalidInputError, sentence
from calibrant.numerals import confidence_text

if TYPE_CHECKING:
    from calibrant.inference.dominance import Dominance


UNNAMED = ("the first model", "the second model")


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
    def model(self) -> str:
        """What the model is called that is compared with them."""
        name = next(iter(self.each.values())).names[0]
        return "the model" if name == UNNAMED[0] else name

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
    def approximate(self) -> tuple[str, ...]:
        """The fields that hold only approximately."""
        return () if self.lower is None else ("lower", "upper")

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
            others = f"all {len(self.each)} baselines"
            return f"{at_start(self.model)} dominates {others}: nobody should prefer another."
        limits = ""
        if self.lower is not None:
            sure = confidence_text(self.confidence)
            limits = f" ({sure} interval {self.lower:.4g} to {self.upper:.4g}, approximate)"
        lost = f"loses at most {self.loss:.4g} per record{limits}"
        return f"Using {self.model} instead of the best baseline {lost}, against {self.worst!r}."

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        each = {name: found.to_dict() for name, found in self.each.items()}
        head = {"loss": self.loss, "worst": self.worst, "lower": self.lower, "upper": self.upper}
        sure = {"confidence": self.confidence, "approximate": list(self.approximate)}
        return {**head, "dominates": self.dominates, **sure, "each": each}


def at_start(name: str) -> str:
    """Return a name as a sentence begins with it: one that was given stays as it is."""
    return name[0].upper() + name[1:] if name.startswith("the ") else name


def names_of_two(prob_a: Any, prob_b: Any, names: Sequence[str] | None) -> tuple[str, str]:
    """Return what two models are called: as given, or as their columns are, or first and second."""
    if names is None:
        own = [getattr(column, "name", None) for column in (prob_a, prob_b)]
        first, second = (
            str(name) if isinstance(name, str) and name else unnamed
            for name, unnamed in zip(own, UNNAMED, strict=True)
        )
        return UNNAMED if first == second else (first, second)
    given = [str(name) for name in names]
    wanted = 1 if prob_b is None else 2
    if isinstance(names, str) or len(given) != wanted or len(set(given)) < wanted or not all(given):
        alone = "must be one name, as the baselines have theirs"
        rule = "must be two different names" if wanted == 2 else alone
        raise InvalidInputError(sentence("names", rule, f"got {names!r}"))
    return given[0], given[-1]


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
