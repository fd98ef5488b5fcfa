"""Differences between models of which one may be calibrated.

Noise e turns the residual t of a model into t + e. Where t is small beside e, the sign of e decides which of
two similar models looks better, and resampling repeats that sign. What their difference would be is known,
though, if one of them were calibrated: minus the error of the other on outcomes that happen as often as the
one predicts. So a difference may be as large as that while the test does not reject the one, and a model is
worse only if the test rejects it. That error is of the rows at hand; other rows of the population might have
given more. It is a mean of (one - other) times weights of at most 1, so the mean square of (one - other)
bounds its variance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import NormalDist
from typing import Any

import numpy as np

from calibrant.forecasts import Forecasts
from calibrant.inference.compare_cells import CellModel
from calibrant.inference.comparison import Difference, error_of
from calibrant.inference.engine import is_rejected, run_test
from calibrant.inference.paired_rows import PairedRows
from calibrant.inference.resample import seminorm_power
from calibrant.measures.registry.row import Measure
from calibrant.records import check_records


def calibration_pvalues(
    models: Mapping[str, Forecasts], cells: Sequence[CellModel], row: Measure, settings: dict[str, Any], *,
    draws: int, seed: int, threads: int | None,
) -> dict[str, float]:  # fmt: skip
    """Test each model by the measure; 0 for what needs no such care or has no test.

    Mean scores have no bias. Differences of squares are linear in the noise that two models share. Fractional
    outcomes cannot be simulated.
    """
    taken = [model.cells for model in cells] or list(models.values())
    if not (row.complete or row.signed) or seminorm_power(taken[0], row, settings) == 2:
        return dict.fromkeys(models, 0.0)
    how: dict[str, Any] = {"method": "auto", "draws": draws, "seed": seed, "threads": threads}
    return {
        name: run_test(forecasts, row, settings, **how).pvalue if forecasts.binary else 0.0
        for name, forecasts in zip(models, taken, strict=True)
    }


def allowing_for_calibration(
    pairs: Sequence[Difference], pvalues: Mapping[str, float], rows: PairedRows, row: Measure,
    settings: dict[str, Any], confidence: float,
) -> list[Difference]:  # fmt: skip
    """Return the pairs with intervals and p-values that allow for models that may be calibrated."""
    quantile = NormalDist().inv_cdf((1 + confidence) / 2)

    def error_if(calibrated: str, other: str) -> float:
        checked = check_records(rows.models[calibrated], rows.models[other], rows.weights)
        error = error_of(row, float(row.function.core(Forecasts.of_checked(checked), **settings)))
        return float(error) + quantile * _deviation(rows, calibrated, other)

    def allowed(pair: Difference) -> Difference:
        lower, upper = pair.lower, pair.upper
        if not is_rejected(pvalues[pair.first], confidence):
            lower = min(lower, -error_if(pair.first, pair.second))
        if not is_rejected(pvalues[pair.second], confidence):
            upper = max(upper, error_if(pair.second, pair.first))
        pvalue = max(pair.pvalue, pvalues[pair.better[1]])
        bound = pair.pvalue_is_bound and pvalue == pair.pvalue
        return replace(pair, lower=lower, upper=upper, pvalue=pvalue, adjusted=pvalue, pvalue_is_bound=bound)

    return list(map(allowed, pairs))


def _deviation(rows: PairedRows, one: str, other: str) -> float:
    """Return a bound on how much an error of one against the other varies with the rows that came."""
    gap = rows.models[one] - rows.models[other]
    if rows.weights is None:
        return float(np.linalg.norm(gap)) / len(gap)
    return float(np.linalg.norm(rows.weights * gap) / rows.weights.sum())
