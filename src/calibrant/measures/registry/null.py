"""What is known of a measure under calibration: mean, limit law, and values for many outcomes at once.

Given the predictions, calibration means that the outcomes are independent Bernoulli(v). A *batch*
takes one row of residuals for each simulated set of outcomes, all on the same predictions and weights,
and returns one value per row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from calibrant.forecasts import Forecasts
from calibrant.measures.registry.laws import Law
from calibrant.results import Array

Settings = Mapping[str, Any]
Batch = Callable[[Forecasts, Array, Settings], Array | None]
Deviation = Callable[[Forecasts, Array, Array], Array]  # forecasts, changes of weights and of outcomes
Mean = Callable[[Forecasts, Settings], float | None]


@dataclass(frozen=True, slots=True, eq=False)
class Null:
    """A measure under calibration; where a field is absent, simulation with the measure itself answers.

    `batch` and `mean` return None where the settings given are not theirs. `residuals_only` says that the
    batch needs predictions and residuals and nothing else, so that it also holds when weights change.
    `power` k says: at given weights the value is the k-th power of a seminorm of the residuals (options may
    change k), so the k-th roots of two values differ by at most the seminorm of the difference.
    `deviation` is such a bound of another kind.
    """

    batch: Batch | None = None
    residuals_only: bool = False
    power: int = 0
    deviation: Deviation | None = None
    mean: Mean | None = None  # exact, not a limit
    law: Law | None = None
    two_sided: bool = False  # a value below its mean (or ideal) speaks against calibration as well

    def completed(self, complete: Callable[[Settings], Settings]) -> Null:
        """Return the same, where batch and mean are handed settings that `complete` has filled up."""
        batch, mean = self.batch, self.mean

        def whole_batch(forecasts: Forecasts, residuals: Array, settings: Settings) -> Array | None:
            return None if batch is None else batch(forecasts, residuals, complete(settings))

        def whole_mean(forecasts: Forecasts, settings: Settings) -> float | None:
            return None if mean is None else mean(forecasts, complete(settings))

        return replace(self, batch=batch and whole_batch, mean=mean and whole_mean)


def zero(forecasts: Forecasts, settings: Settings) -> float:
    """Return the mean of a signed residual."""
    return 0.0
