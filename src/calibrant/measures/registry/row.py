"""Measure: one row of the registry."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from calibrant.measures.registry.calling import public
from calibrant.measures.registry.null import Null
from calibrant.results import NOTHING

Truthful = Literal["strict", "batch", "approximate", "no"]
"""In expectation over the outcomes: "strict", only the true probabilities are best, also when outcomes are
told one by one; "batch", they are never beaten if all predictions are made first, but others may tie;
"approximate", they are beaten by a constant factor at most; "no", nothing of the kind is known.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Measure:
    """What the library knows of a measure; every list, table, test and benchmark is made from this.

    The properties are those of the distance paper (continuous, complete, sound, consistent) and of the
    truthfulness paper. They are claims about the population measure and are tested where a test can see them.
    """

    name: str
    function: public[...]
    words: str  # the name as people say it; `name` is the key that is typed
    family: str
    meaning: str  # one line that a newcomer understands
    cost: str  # after the sort, m distinct predictions
    citation: str
    options: Mapping[str, Any] = field(default_factory=lambda: NOTHING)  # what the name presets
    continuous: bool = False  # in the predictions
    complete: bool = False  # 0 (or `ideal`) on perfectly calibrated data
    sound: bool = False  # `ideal` only on perfectly calibrated data
    truthful: Truthful = "no"  # whether lying about the probabilities can lower its expected value
    consistency: tuple[float, float] | None = None  # (c, s): of order dCE^c at most, dCE^s at least
    decision: str = ""  # what it says to somebody who acts on the predictions
    decisive: tuple[str, ...] = ()  # options on which its truthfulness depends
    lipschitz: float | None = None  # constant in E |v1 - v2|
    symmetric: bool = False  # unchanged under v -> 1 - v, y -> 1 - y
    signed: bool = False  # may be negative
    ideal: float = 0.0  # the value on calibrated data, in the limit
    largest: float = math.inf  # size that any data can give it, with the options of its name
    needs_level_sets: bool = False  # meaningless when every prediction is distinct
    needs_both_outcomes: bool = False
    headline: bool = False  # shown by evaluate() unless other measures are asked for
    null: Null = field(default_factory=Null)  # what is known of it under calibration
    law_options: Mapping[str, Any] = field(default_factory=lambda: NOTHING)  # where a default depends on n
    variants: tuple[Mapping[str, Any], ...] = ()  # further options the laws are tried with

    def __post_init__(self) -> None:
        """Complete the settings that the null is called with: options not given take their defaults."""
        object.__setattr__(self, "null", self.null.completed(self.settings))

    def settings(self, options: Mapping[str, Any] = NOTHING) -> dict[str, Any]:
        """Return all options of the measure: given, else preset by the name, else the signature's default."""
        return self.function.settings({**self.options, **options})

    @property
    def certified(self) -> bool:
        """Whether a sketch can prove bounds on it."""
        return self.function.has_certificate

    @property
    def fair(self) -> bool:
        """Whether its expected values rank models as their true errors do: nobody gains by lying."""
        return self.truthful in ("strict", "batch")

    def fair_with(self, options: Mapping[str, Any] = NOTHING) -> bool:
        """Return whether it ranks models fairly under these options as well."""
        own, given = self.settings(), self.settings(options)
        return self.fair and all(given[name] == own[name] for name in self.decisive)

    def reachable(self, options: Mapping[str, Any] = NOTHING) -> tuple[float, float]:
        """Return the least and the largest value that data can give it; further options may reach farther."""
        own = all(name in self.options and self.options[name] == option for name, option in options.items())
        largest = self.largest if own else math.inf
        return (-largest if self.signed else 0.0), largest

    def __repr__(self) -> str:
        return f"<Measure {self.name}: {self.meaning}>"

    @property
    def title(self) -> str:
        """First line of the docstring."""
        return (self.function.__doc__ or "").strip().splitlines()[0]
