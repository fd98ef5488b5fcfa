"""A candidate: a method with its options, ready to be fitted to any sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from calibrant.errors import InvalidInputError, TooFewRecordsError, sentence
from calibrant.recalibration.fit_progress import fitted_once
from calibrant.recalibration.registry import Fitted, Method, all_options
from calibrant.recalibration.samples import Rows, Sample
from calibrant.results import NOTHING


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A method and its options."""

    method: Method
    options: Mapping[str, Any] = field(default_factory=lambda: NOTHING)

    def fit(self, sample: Sample, seed: int) -> Fitted:
        """Fit to a sample, or say why that cannot be."""
        fit = self.method.fit
        if fit is None:
            raise InvalidInputError(
                sentence(f"method {self.method.name!r}", "needs probabilities of several classes")
            )
        check_sample(self.method, sample)
        fitted = fit(sample, seed=seed, **all_options(self.method, fit, self.options))
        fitted_once()
        return fitted

    @property
    def name(self) -> str:
        """How tables call it: the method, and the options that differ from its defaults."""
        extra = ", ".join(f"{key}={value!r}" for key, value in self.options.items())
        return f"{self.method.name} ({extra})" if extra else self.method.name


def check_sample(method: Method, sample: Sample) -> None:
    """Refuse records that a method cannot use."""
    if method.needs_covariates and not (isinstance(sample, Rows) and sample.covariates):
        hint = "pass covariates={name: column}"
        raise InvalidInputError(sentence(f"method {method.name!r}", "needs covariates", "got none", hint))
    if sample.n < method.smallest_n:
        rule = f"needs {method.smallest_n} records"
        raise TooFewRecordsError(sentence(f"method {method.name!r}", rule, f"got {sample.n}"))
    if method.needs_both_outcomes and not sample.levels.both_outcomes:
        got = f"got base rate {sample.levels.base_rate:g}"
        hint = 'use "shift", "isotonic" or "histogram", or collect five of each'
        raise TooFewRecordsError(sentence(f"method {method.name!r}", "needs both outcomes", got, hint))
