"""Method: one row of the registry of recalibration methods."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from calibrant.errors import reject_name
from calibrant.recalibration.maps.form import Map
from calibrant.results import NOTHING


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """What a method returns: the map, what to tell the user, and what else was learnt on the way."""

    map: Map
    notes: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=lambda: NOTHING)


Fit = Callable[..., Fitted]


@dataclass(frozen=True, slots=True, eq=False)
class Method:
    """What the library knows of a method; the command line, docs, laws and benchmarks are made from this.

    `fit(sample, *, seed, **options)` fits two classes. A method that needs covariates finds them in
    `sample.covariates`, in the order of the records, and its map predicts from (p, covariates).
    `fit_classes(records, *, seed, **options)` fits several classes. Defaults of options stand in the
    signatures, and nowhere else.
    """

    name: str
    meaning: str  # one line that a newcomer understands
    citation: str
    fit: Fit | None = None
    fit_classes: Fit | None = None
    needs_covariates: bool = False
    needs_both_outcomes: bool = False
    monotone: bool = True  # non-decreasing, unless a fitted slope is negative
    keeps_ranks: bool = False  # different predictions stay different within the range seen
    guarantee: str = ""  # what holds in finite samples, whatever the data
    smallest_n: int = 1
    exportable: bool = True  # to SQL; what reads covariates is not
    repetition: bool = False  # a weight of frequency w equals w repetitions, exactly
    mean_kept: bool = False  # the mean of the fitted values is the base rate
    keeps_calibrated: bool = False  # returns the identity where each level's rate is its prediction
    symmetric: bool = True  # flipping predictions and outcomes flips the result
    row_order: bool = True  # bins with random halves aside, results do not depend on it
    auto_options: tuple[Mapping[str, Any], ...] = ()  # the options under which auto considers it
    law_options: Mapping[str, Any] = field(default_factory=lambda: NOTHING)  # where the last four hold

    def __repr__(self) -> str:
        return f"<Method {self.name}: {self.meaning}>"

    @property
    def options(self) -> Mapping[str, Any]:
        """Options by name, with their defaults."""
        collected: dict[str, Any] = {}
        for fit in (self.fit, self.fit_classes):
            if fit is not None:
                collected |= _keywords(fit)
        return MappingProxyType(collected)


def _keywords(fit: Fit) -> dict[str, Any]:
    given = inspect.signature(fit).parameters.values()
    return {p.name: p.default for p in given if p.kind is p.KEYWORD_ONLY and p.name != "seed"}


def all_options(method: Method, fit: Fit, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return all options of a fit: as given, else by default; refuse unknown ones.

    Numbers of numpy become plain ones, which the methods check.
    """
    known = _keywords(fit)
    for name in options:
        if name not in known:
            raise reject_name(f"option of method {method.name!r}", name, sorted(known) or ["none"])
    plain = {name: item.item() if isinstance(item, np.generic) else item for name, item in options.items()}
    return {**known, **plain}
