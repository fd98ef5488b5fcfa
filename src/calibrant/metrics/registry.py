"""Measure, one row of the registry, and Null, what is known of it under calibration.

Given the predictions, calibration means that the outcomes are independent Bernoulli(v). A *batch*
takes one row of residuals for each simulated set of outcomes, all on the same predictions and weights,
and returns one value per row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from calibrant.forecasts import Forecasts
from calibrant.metrics.calling import measure_function
from calibrant.metrics.null_laws import Law
from calibrant.results import NOTHING, Array

Settings = Mapping[str, Any]
Batch = Callable[[Forecasts, Array, Settings], Array | None]
Deviation = Callable[[Forecasts, Array, Array], Array]  # forecasts, changes of weights and of outcomes
Mean = Callable[[Forecasts, Settings], float | None]
# forecasts, outcomes (one row per data set), weights (one row, or as many) and settings
Tables = Callable[[Forecasts, Array, Array, Settings], Array | None]


@dataclass(frozen=True, slots=True, eq=False)
class Null:
    """A measure under calibration; where a field is absent, simulation with the measure itself answers."""

    batch: Batch | None = None  # it and others return None where the settings given are not theirs
    # of many data sets on the same predictions, with outcomes and weights of their own (0: a level not
    # drawn); infinity where a data set has no value
    tables: Tables | None = None
    residuals_only: bool = False  # predictions and residuals suffice: the batch holds when weights change
    # at given weights the value is this power of a seminorm of the residuals (options may change it), so the
    # roots of two values differ by at most the seminorm of the difference
    power: int = 0
    deviation: Deviation | None = None  # another bound on how far the value moves
    mean: Mean | None = None  # exact, not a limit
    mean_draws: int | None = None  # behind a simulated mean, at most: set where each draw takes a search
    law: Law | None = None
    two_sided: bool = False  # a value below its mean (or ideal) speaks against calibration as well

    def completed(self, complete: Callable[[Settings], Settings]) -> Null:
        """Return the same null, whose functions get complete settings as their last argument."""

        def whole(function: Any) -> Any:
            return function and (lambda *given: function(*given[:-1], complete(given[-1])))

        names = ("batch", "tables", "mean")
        return replace(self, **{name: whole(getattr(self, name)) for name in names})


Truthful = Literal["strict", "batch", "approximate", "no"]
"""In expectation over the outcomes: "strict", only the true probabilities are best, also when outcomes are
revealed one by one; "batch", they are never beaten if all predictions are made first, but others may tie;
"approximate", they are beaten by a constant factor at most, again if all predictions are made first; "no",
nothing of the kind is known.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Measure:
    """What the library knows of a measure; every list, table, test and benchmark is made from this.

    Properties are those of the distance and truthfulness papers: claims about the population measure, tested
    where a test can see them. Defaults are those of a calibration error between 0 and 1.
    """

    name: str
    function: measure_function[...]
    family: str
    meaning: str  # one line that a newcomer understands
    citation: str
    words: str = ""  # the name as people say it, unless that is the function's; `name` is the key to type
    cost: str = "O(m)"  # after the sort, m distinct predictions
    options: Mapping[str, Any] = field(default_factory=lambda: NOTHING)  # what the name presets
    continuous: bool = False  # in the predictions
    complete: bool = True  # 0 (or `ideal`) on perfectly calibrated data
    sound: bool = False  # `ideal` only on perfectly calibrated data
    valid: str = ""  # rate in T at which a test by it tells smCE > 0 from 0 (truthfulness paper, Def. 2.13)
    truthful: Truthful = "no"  # whether lying about the probabilities can lower its expected value
    consistency: tuple[float, float] | None = None  # (c, s): of order dCE^c at most, dCE^s at least
    decision: str = ""  # what it means to those who act on the predictions
    decisive: tuple[str, ...] = ()  # options on which its truthfulness depends
    lipschitz: float | None = None  # constant in E |v1 - v2|
    symmetric: bool = True  # unchanged under v -> 1 - v, y -> 1 - y
    signed: bool = False  # may be negative
    ideal: float = 0.0  # the value on calibrated data, in the limit
    largest: float = 1.0  # size that any data can give it, with the options of its name
    needs_level_sets: bool = False  # meaningless when every prediction is distinct
    needs_both_outcomes: bool = False
    headline: bool = False  # shown by evaluate() unless other measures are asked for
    null: Null = field(default_factory=Null)  # what is known of it under calibration
    law_options: Mapping[str, Any] = field(default_factory=lambda: NOTHING)  # where a default depends on n
    variants: tuple[Mapping[str, Any], ...] = ()  # further options the laws are tried with

    def __post_init__(self) -> None:
        object.__setattr__(self, "null", self.null.completed(self.settings))
        object.__setattr__(self, "words", self.words or self.function.__name__.replace("_", " "))

    def settings(self, options: Mapping[str, Any] = NOTHING) -> dict[str, Any]:
        """Return all options of the measure: given, else preset by the name, else the signature's default."""
        return self.function.settings({**self.options, **options})

    @property
    def sample_complete(self) -> bool:
        """Whether samples of calibrated data bring it to its ideal (truthfulness paper, Definition 2.8)."""
        return self.complete and not self.needs_level_sets

    @property
    def sample_sound(self) -> bool:
        """Whether samples of other data keep it away from its ideal (truthfulness paper, Definition 2.9)."""
        return self.sound

    @property
    def certified(self) -> bool:
        """Whether a sketch can prove bounds on it."""
        return self.function.bounds_on_raw_rows is not None

    @property
    def fair(self) -> bool:
        """Whether its expected values rank models as their true errors do: lying gains nothing."""
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
