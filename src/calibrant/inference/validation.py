"""External validation as clinicians report it: c-statistic, O/E, slope and intercept with intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from calibrant.errors import InvalidInputError, TooFewRecordsError
from calibrant.forecasts import Forecasts
from calibrant.formatting import confidence_text, format_value, limits_text, pluralize
from calibrant.inference.intervals import confidence_interval, is_unbounded
from calibrant.inference.inversion import LOGISTIC
from calibrant.inputs import open_share
from calibrant.metrics.calling import accepts_clusters
from calibrant.metrics.lookup import find_measure
from calibrant.results import Result, Table, html_paragraphs, number_cell, text_cell

MEASURES_REPORTED = ("c-statistic", "o/e", "slope", "intercept")


@dataclass(frozen=True, slots=True, repr=False)
class ValidationRow(Result):
    """One measure with its interval; `note` says why there is none, or what it leaves out."""

    measure: str
    words: str
    ideal: float | None
    value: float
    lower: float
    upper: float
    note: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class ValidationTable(Result):
    """Discrimination and calibration of one model: c-statistic, O/E ratio, slope and intercept.

    The intercept is the one at slope 1: how far predictions are too low on the logit scale. `certain` counts
    predictions of exactly 0 or 1. They have no logit, so slope and intercept are those of the other records.
    """

    measures: tuple[ValidationRow, ...]
    confidence: float
    n: int
    events: float
    certain: int = 0

    DERIVED: ClassVar[tuple[str, ...]] = ("sentence", "approximate")
    approximate: ClassVar[tuple[str, ...]] = ("lower", "upper")

    @property
    def sentence(self) -> str:
        """What the table is about."""
        whole = abs(self.events - round(self.events)) < 1e-6
        shown = pluralize(round(self.events), "event") if whole else f"{format_value(self.events)} events"
        sure = f"{confidence_text(self.confidence)} intervals, approximate"
        return f"{pluralize(self.n, 'record')}, {shown} ({sure})."

    @property
    def notes(self) -> tuple[str, ...]:
        """What some rows leave out, or why they have no interval."""
        return tuple(dict.fromkeys(f"{row.note}." for row in self.measures if row.note))

    def __str__(self) -> str:
        return "\n".join([self.sentence, *(table.as_text() for table in self.tables()), *self.notes])

    def _repr_html_(self) -> str:
        return html_paragraphs(self.sentence) + self.tables()[0].as_html() + html_paragraphs(*self.notes)

    def rows(self) -> tuple[ValidationRow, ...]:
        return self.measures

    def tables(self) -> tuple[Table]:
        columns = ("measure", "ideal", "estimate", f"{confidence_text(self.confidence)} interval")
        lines = []
        for row in self.measures:
            ideal = "" if row.ideal is None else f"{row.ideal:g}"
            known = not is_unbounded(row.lower, row.upper)
            limits = limits_text(row.lower, row.upper) if known else "no interval"
            numbers = number_cell(row.value, format_value(row.value)), number_cell(row.lower, limits)
            lines.append((text_cell(row.words), text_cell(ideal), *numbers))
        return (Table(columns, tuple(lines)),)


@accepts_clusters
def validation_table(forecasts: Forecasts, /, *, confidence: float = 0.95) -> ValidationTable:
    """Return c-statistic, O/E ratio, slope and intercept with their intervals.

    Predictions of exactly 0 or 1, which slope and intercept leave out, are counted.

    Examples
    --------
    >>> found = validation_table([0, 1, 1, 0] * 50, [0.3, 0.6, 0.4, 0.5] * 50)
    >>> [(row.measure, round(row.value, 2)) for row in found.measures]
    [('c-statistic', 0.75), ('o/e', 1.11), ('slope', 2.23), ('intercept', 0.21)]
    """
    open_share("confidence", confidence)
    at_ends = (forecasts.values == 0) | (forecasts.values == 1)
    certain = int(forecasts.counts[at_ends].sum())
    inner = forecasts
    if certain and not at_ends.all():
        inner = forecasts.between(float(np.nextafter(0, 1)), float(np.nextafter(1, 0)))
    rows = []
    for name in MEASURES_REPORTED:
        about, among = find_measure(name), inner if name in LOGISTIC else forecasts
        shown = None if name == "c-statistic" else about.ideal
        note = ""
        if certain and name in LOGISTIC:
            are = pluralize(certain, "prediction is", "predictions are")
            note = f"{are} exactly 0 or 1: slope and intercept leave these records out"
        row = ValidationRow(name, about.words, shown, math.nan, -math.inf, math.inf, note)
        try:
            if certain < forecasts.n or name not in LOGISTIC:
                row = replace(row, value=float(about.function.core(among, **about.options)))
                found = confidence_interval(among, measure=name, confidence=confidence, draws=99)
                row = replace(row, value=found.value, lower=found.lower, upper=found.upper)
        except TooFewRecordsError as error:  # for an interval, or for the measure itself
            row = replace(row, note=str(error).rstrip("."))
        except InvalidInputError as error:  # predictions so near 0 or 1 that logits are clipped
            row = replace(row, value=math.nan, note=str(error).rstrip("."))
        rows.append(row)
    weight = forecasts.total_weight
    return ValidationTable(tuple(rows), confidence, forecasts.n, forecasts.base_rate * weight, certain)
