"""Data facts: what went into an evaluation, so that a reader can judge how much it can say."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.forecasts import Forecasts
from calibrant.inference.stand_ins import alike
from calibrant.numerals import counted, mean


@dataclass(frozen=True, slots=True)
class Facts:
    """Counts and means of the forecasts; `tied` records share their prediction with another record.

    `effective_records` is the number of equally weighted records of the same noise, 1 / sum w^2.
    `resolution` is the widest cell of a sketch, 0 for exact data. `fractional` counts outcomes other than 0
    and 1, None where there are such outcomes and nobody knows how many (a sketch).
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
    fractional: int | None = 0


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
        resolution=0.0 if forecasts.cells is None else float(forecasts.extents.max()),
        fractional=_fractional(forecasts),
    )


def _fractional(forecasts: Forecasts) -> int | None:
    """Count the outcomes that are neither 0 nor 1."""
    if forecasts.binary:
        return 0
    outcomes = forecasts.record_outcomes
    return None if outcomes is None else int(np.count_nonzero((outcomes > 0) & (outcomes < 1)))


def fractions_note(result: Facts) -> str:
    """Say once what fractional outcomes cost and what to do about them; nothing where there are none.

    >>> fractions_note(facts(Forecasts([0, 1, 0.5], [0.2, 0.7, 0.4])))[:57]
    '1 of 3 outcomes is a fraction, so that calibrated outcome'
    """
    if result.binary:
        return ""
    few = result.fractional is not None and result.fractional <= 0.05 * result.records
    are = "is a fraction" if result.fractional == 1 else "are fractions"
    count = (
        "Outcomes"
        if result.fractional is None
        else f"{result.fractional:,} of {counted(result.records, 'outcome')}"
    )
    if result.fractional is None:
        lost, todo = "there are no p-values", "measure the rows themselves, or sketch outcomes of 0 and 1"
    elif few:
        lost, todo = "most p-values are missing", "leave these rows out (ties, say) to have every p-value"
    else:
        lost = "most p-values are missing"
        todo = "tests that need no simulation (kuiper, in-the-large) still have theirs"
    why = f"so that calibrated outcomes cannot be simulated and {lost}"
    return f"{count} {are}, {why}: {todo}"


def facts_sentence(result: Facts) -> str:
    """Say the facts in one line.

    >>> facts_sentence(facts(Forecasts([0, 1, 1], [0.2, 0.7, 0.7])))
    '3 records, 2 distinct predictions (2 records tied); mean prediction 0.5333, mean outcome 0.6667'
    """
    what = "cell" if result.resolution else "distinct prediction"
    text = f"{counted(result.records, 'record')}, {counted(result.levels, what)}"
    text += " of a sketch" if result.resolution else ""
    text += f" ({counted(result.tied, 'record')} tied)" if result.tied and not result.resolution else ""
    text += f"; mean prediction {mean(result.mean_prediction)}, mean outcome {mean(result.base_rate)}"
    if result.weighted:
        text += f"; weighted, worth {result.effective_records:,.0f} equal records"
    if result.dropped:
        missing = "" if result.resolution else " with missing values"  # a sketch may leave out others too
        text += f"; {counted(result.dropped, 'row')}{missing} left out"
    if result.resolution:
        text += f"; predictions up to {result.resolution:.2g} apart share a cell"
    note = fractions_note(result)
    return f"{text}. {note}" if note else text
