"""Method, a row of the registry of recalibration methods, and how fits report their progress."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from calibrant.errors import InvalidInputError, TooFewRecordsError, reject_name
from calibrant.parallel import Progress, report_progress
from calibrant.recalibration.maps.base import Map
from calibrant.recalibration.samples import ClassRecords, Sample
from calibrant.results import NOTHING

STEPS = 100  # of progress
Report = Callable[[float], object]  # called with the share of the work that is done


@contextmanager
def reporting(progress: Progress | None) -> Iterator[Report]:
    """Return a function that passes growing shares on to `progress`, and report 1 on exit."""
    reached = 0

    def report(share: float) -> None:
        nonlocal reached
        done = min(int(share * STEPS), STEPS)
        if done > reached:
            reached = done
            report_progress(progress, done, STEPS)

    yield report
    report(1.0)


def silent(share: float) -> None:
    """Report to no one."""


def step_of(report: Report, done: int, steps: int) -> Report:
    return lambda share: report((done + share) / steps)


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    map: Map
    notes: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=lambda: NOTHING)


Fit = Callable[..., Fitted]


@dataclass(frozen=True, slots=True, eq=False)
class Method:
    """What the library knows of a method; the command line, docs, laws and benchmarks are made from this."""

    name: str
    meaning: str  # one line that a newcomer understands
    citation: str
    fit: Fit | None = None  # (sample, *, seed, **options), two classes; only the signature has the defaults
    fit_classes: Fit | None = None  # the same for several classes
    needs_covariates: bool = False  # in `sample.covariates`, by record; its map predicts from (p, covariates)
    needs_both_outcomes: bool = False
    monotone: bool = True  # non-decreasing, unless a fitted slope is negative
    keeps_ranks: bool = False  # different predictions stay different within the range seen
    guarantee: str = ""  # what holds in finite samples, whatever the data
    smallest_n: int = 1
    repetition: bool = True  # a weight of frequency w equals w repetitions, exactly
    mean_kept: bool = False  # the mean of the fitted values is the base rate
    keeps_calibrated: bool = False  # returns the identity where each level's rate is its prediction
    symmetric: bool = True  # flipping predictions and outcomes flips the result
    auto: bool = False  # whether auto considers it
    law_options: Mapping[str, Any] = field(default_factory=lambda: NOTHING)  # where the last four hold

    def __repr__(self) -> str:
        return f"<Method {self.name}: {self.meaning}>"

    @property
    def exportable(self) -> bool:
        return not self.needs_covariates

    @property
    def options(self) -> Mapping[str, Any]:
        collected: dict[str, Any] = {}
        for fit in (self.fit, self.fit_classes):
            if fit is not None:
                collected |= _keywords(fit)
        return MappingProxyType(collected)

    def fit_to(
        self,
        records: Sample,
        options: Mapping[str, Any] = NOTHING,
        *,
        seed: int,
        report: Report = silent,
    ) -> Fitted:
        """Fit with some options, numbers of numpy as plain ones, and with `report` if the fit takes one."""
        subject, several = f"method {self.name!r}", isinstance(records, ClassRecords)
        fit = self.fit_classes if several else self.fit
        if fit is None:
            rule = "takes two classes only" if several else "needs probabilities of several classes"
            raise InvalidInputError(subject, rule)
        if self.needs_covariates and not records.covariates:
            hint = "pass covariates={name: column}"
            raise InvalidInputError(subject, "needs covariates", "got none", hint)
        if not several and records.n < self.smallest_n:
            raise TooFewRecordsError(subject, f"needs {self.smallest_n} records", f"got {records.n}")
        if not several and self.needs_both_outcomes and not records.levels.both_outcomes:
            got = f"got base rate {records.levels.base_rate:g}"
            hint = 'use "shift", "isotonic" or "histogram", or collect five of each'
            raise TooFewRecordsError(subject, "needs both outcomes", got, hint)
        known = _keywords(fit)
        for name in options:
            if name not in known:
                raise reject_name(f"option of {subject}", name, sorted(known) or ["none"])
        plain = {name: one.item() if isinstance(one, np.generic) else one for name, one in options.items()}
        if "report" in inspect.signature(fit).parameters:
            plain["report"] = report
        return fit(records, seed=seed, **{**known, **plain})


def _keywords(fit: Fit) -> dict[str, Any]:
    given = inspect.signature(fit).parameters.values()
    hidden = ("seed", "report")
    return {p.name: p.default for p in given if p.kind is p.KEYWORD_ONLY and p.name not in hidden}
