"""Data facts: what went into an evaluation, so that a reader can judge how much it can say."""

from __future__ import annotations

from dataclasses import dataclass

from calibrant.forecasts import Forecasts
from calibrant.inference.stand_ins import alike
from calibrant.numerals import mean


@dataclass(frozen=True, slots=True)
class Facts:
    """Counts and means of the forecasts; `tied` records share their prediction with another record.

    `effective_records` is the number of equally weighted records of the same noise, 1 / sum w^2.
    `resolution` is the widest cell of a sketch, 0 for exact data.
    """

    records: int
    levels: int
    tied: int
    dropped: int
    base_rate: float
    mean_prediction: float
    lowest: float
    highest: float
    weighted: bool
    effective_records: float
    binary: bool
    resolution: float


def facts(forecasts: Forecasts) -> Facts:
    """Gather the facts."""
    return Facts(
        records=forecasts.n,
        levels=forecasts.levels,
        tied=int(forecasts.counts[forecasts.counts > 1].sum()),
        dropped=forecasts.dropped,
        base_rate=forecasts.base_rate,
        mean_prediction=forecasts.mean_prediction,
        lowest=float(forecasts.values[0]),
        highest=float(forecasts.values[-1]),
        weighted=not alike(forecasts),
        effective_records=float(1.0 / forecasts.squared_weights.sum()),
        binary=forecasts.binary,
        resolution=float(forecasts.extents.max()),
    )


def facts_sentence(found: Facts) -> str:
    """Say the facts in one line.

    >>> facts_sentence(facts(Forecasts([0, 1, 1], [0.2, 0.7, 0.7])))
    '3 records, 2 distinct predictions (2 records tied); mean prediction 0.5333, mean outcome 0.6667'
    """
    what = "cells of a sketch" if found.resolution else "distinct predictions"
    text = f"{found.records:,} record{'s' if found.records != 1 else ''}, {found.levels:,} {what}"
    text += f" ({found.tied:,} records tied)" if found.tied and not found.resolution else ""
    text += f"; mean prediction {mean(found.mean_prediction)}, mean outcome {mean(found.base_rate)}"
    if found.weighted:
        text += f"; weighted, worth {found.effective_records:,.0f} equal records"
    if found.dropped:
        text += f"; {found.dropped:,} rows with missing values left out"
    if found.resolution:
        text += f"; predictions up to {found.resolution:.2g} apart share a cell"
    return text
