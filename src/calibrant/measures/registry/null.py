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
Merging = Callable[[float, float, Settings], float]  # area and length of the move, settings
# forecasts, outcomes (one row per data set), weights (one row, or as many) and settings
Tables = Callable[[Forecasts, Array, Array, Settings], Array | None]


@dataclass(frozen=True, slots=True, eq=False)
class Null:
    """A measure under calibration; where a field is absent, simulation with the measure itself answers.

    `batch` and `mean` return None where the settings given are not theirs. `residuals_only` says that the
    batch needs predictions and residuals and nothing else, so that it also holds when weights change.
    `power` k says: at given weights the value is the k-th power of a seminorm of the residuals (options may
    change k), so the k-th roots of two values differ by at most the seminorm of the difference.
    `deviation` bounds how far the value moves in another way. `tables` takes many data sets on the same
    predictions, each with outcomes and weights of its own (0 where a level was not drawn), where residuals do
    not say enough; it gives infinity where a data set has no value, and None where it does not serve.
    `merging` bounds how much the seminorm of a noise changes when its cumulative curve moves by this much:
    the integral of the move, and the root of the integral of its square.
    """

    batch: Batch | None = None
    tables: Tables | None = None
    merging: Merging | None = None
    residuals_only: bool = False
    power: int = 0
    deviation: Deviation | None = None
    mean: Mean | None = None  # exact, not a limit
    law: Law | None = None
    two_sided: bool = False  # a value below its mean (or ideal) speaks against calibration as well

    def completed(self, complete: Callable[[Settings], Settings]) -> Null:
        """Return the same, where all parts are handed settings that `complete` has filled up."""
        batch, tables, mean, merging = self.batch, self.tables, self.mean, self.merging

        def whole_batch(forecasts: Forecasts, residuals: Array, settings: Settings) -> Array | None:
            return None if batch is None else batch(forecasts, residuals, complete(settings))

        def whole_tables(
            forecasts: Forecasts, outcomes: Array, weights: Array, settings: Settings
        ) -> Array | None:
            return None if tables is None else tables(forecasts, outcomes, weights, complete(settings))

        def whole_merging(area: float, length: float, settings: Settings) -> float:
            assert merging is not None
            return merging(area, length, complete(settings))

        def whole_mean(forecasts: Forecasts, settings: Settings) -> float | None:
            return None if mean is None else mean(forecasts, complete(settings))

        return replace(
            self,
            batch=batch and whole_batch,
            tables=tables and whole_tables,
            merging=merging and whole_merging,
            mean=mean and whole_mean,
        )


def zero(forecasts: Forecasts, settings: Settings) -> float:
    """Return the mean of a signed residual."""
    return 0.0
