"""External validation as clinicians report it: c-statistic, O/E, slope, intercept, and its sample size."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from calibrant.errors import InvalidInputError, TooFewRecordsError
from calibrant.fits.levels import expit
from calibrant.fits.roots import root
from calibrant.forecasts import Forecasts
from calibrant.formatting import confidence_text, format_value, limits_text, pluralize
from calibrant.inference.intervals import confidence_interval, is_unbounded
from calibrant.inference.inversion import LOGISTIC, hanley_mcneil
from calibrant.inference.net_benefits import critical_value
from calibrant.inference.planning import checked_predictions, least_number
from calibrant.inputs import number, open_share
from calibrant.metrics.calling import accepts_clusters, shares_parameters
from calibrant.metrics.cox import MAX_LOGIT
from calibrant.metrics.lookup import find_measure
from calibrant.results import Array, Result, Table, html_paragraphs, number_cell, text_cell

MEASURES_REPORTED = ("c-statistic", "o/e", "slope", "intercept")
QUANTILES = 20_000  # of the normal distribution that replaces unknown predictions
MIN_WIDTH = 1e-9  # of an interval
MAX_SPREAD = 20.0  # standard deviation of the logits that is looked for


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
    inner: Forecasts | None = forecasts
    if certain:
        inner = None
        if not at_ends.all():
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
            if among is not None:
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


@dataclass(frozen=True, slots=True, repr=False)
class ValidationPlan(Result):
    """`n` records give intervals of the O/E ratio, the slope and the c-statistic of the widths asked for.

    `records` has the number for each of the three; `n` is the largest. `events` are those expected among
    `n`. All assume calibrated predictions with the `base_rate` and the c-statistic `c`.
    """

    n: int
    events: int
    records: Mapping[str, int]
    widths: Mapping[str, float]
    base_rate: float
    c: float
    confidence: float
    slope_variance: float  # of the estimated slope, times the number of records

    DERIVED: ClassVar[tuple[str, ...]] = ("sentence",)

    def widths_at(self, n: int) -> dict[str, float]:
        """Return the expected widths of the three intervals with `n` records."""
        reach = critical_value(self.confidence)
        ratio = math.sqrt((1 - self.base_rate) / (self.base_rate * n))
        events = n * self.base_rate
        ratio_width = 2 * math.sinh(reach * ratio) if reach * ratio < 700 else math.inf
        found = {"o/e": ratio_width, "slope": 2 * reach * math.sqrt(self.slope_variance / n)}
        return {**found, "c-statistic": 2 * reach * math.sqrt(hanley_mcneil(self.c, events, n - events))}

    def __str__(self) -> str:
        parts = (
            f"{find_measure(name).words} {self.widths[name]:g} wide: {n:,}"
            for name, n in self.records.items()
        )
        return (
            f"{pluralize(self.n, 'record')} (about {pluralize(self.events, 'event')}) make the "
            f"{confidence_text(self.confidence)} intervals of a validation as narrow as asked for ("
            f"{'; '.join(parts)}), if predictions are calibrated, {100 * self.base_rate:.3g}% are events "
            f"and the c-statistic is {self.c:.3g}"
        )


@shares_parameters("")
def validation_sample_size(
    predictions: Any = None,
    *,
    base_rate: float | None = None,
    c: float | None = None,
    ratio_width: float = 0.2,
    slope_width: float = 0.2,
    c_width: float = 0.1,
    confidence: float = 0.95,
) -> ValidationPlan:
    """Return how many records an external validation needs for intervals of given widths.

    The formulas are those of Riley et al. (2021, Statistics in Medicine 40, 4230-4251) for a calibrated
    model: the variance of log(O/E) is (1 - base rate) / (n base rate), that of the slope comes from the
    information in the logits of the predictions, and that of the c-statistic from Newcombe's formula.

    Parameters
    ----------
    predictions
        Unlabeled predictions of the model for the population of the validation.
    base_rate, c
        The anticipated share of events and c-statistic, in place of predictions with normal logits.
    ratio_width, slope_width, c_width
        Widths of the intervals of the O/E ratio (at 1), the slope and the c-statistic.

    Examples
    --------
    >>> plan = validation_sample_size(base_rate=0.1, c=0.75)
    >>> plan.n, dict(plan.records)
    (5820, {'o/e': 3469, 'slope': 5820, 'c-statistic': 1008})
    """
    open_share("confidence", confidence)
    widths = {"o/e": ratio_width, "slope": slope_width, "c-statistic": c_width}
    for name, width in zip(("ratio_width", "slope_width", "c_width"), widths.values(), strict=True):
        if not MIN_WIDTH <= number(name, width) < math.inf:
            rule = f"must be a positive number of at least {MIN_WIDTH:g}"
            raise InvalidInputError(name, rule, f"got {width!r}")
    reach = critical_value(confidence)
    if not 0 < reach < math.inf:
        raise InvalidInputError("confidence", "must not be so near 0 or 1", f"got {confidence!r}")
    if not (base_rate is None) == (c is None) == (predictions is not None):
        raise InvalidInputError("predictions", "must be given, or else both base_rate and c")
    if predictions is not None:
        values = checked_predictions(predictions)
        with np.errstate(divide="ignore"):
            logit = np.clip(np.log(values) - np.log1p(-values), -MAX_LOGIT, MAX_LOGIT)
    else:
        logit = _normal_logits(open_share("base_rate", base_rate), c)
    rates = expit(logit)
    rate, concordance = float(rates.mean()), _model_concordance(rates)
    variance = _slope_variance(logit, rates)
    draft = ValidationPlan(0, 0, {}, widths, rate, concordance, confidence, variance)
    records = {
        "o/e": math.ceil((1 - rate) / (rate * (math.asinh(ratio_width / 2) / reach) ** 2)),
        "slope": math.ceil(variance / (slope_width / 2 / reach) ** 2),
        "c-statistic": least_number(lambda n: draft.widths_at(n)["c-statistic"] <= c_width, 2),
    }
    n = max(records.values())
    return replace(draft, n=n, events=math.ceil(n * rate), records=records)


def _slope_variance(logit: Array, rates: Array) -> float:
    """Return the variance of the maximum likelihood slope at intercept 0 and slope 1, times n."""
    spread = np.where(np.abs(logit) < MAX_LOGIT, rates * (1 - rates), 0.0)  # 0 and 1 have no logit
    total = float(spread.mean())
    away = logit - float((spread * logit).mean()) / total if total > 0 else logit
    information = float((spread * away**2).mean())
    if not information > 1e-12 * total:
        raise TooFewRecordsError("predictions", "must include two different ones between 0 and 1")
    return 1 / information


def _model_concordance(rates: Array) -> float:
    """Return the c-statistic that calibrated predictions have (van Klaveren et al. 2016)."""
    levels, counts = np.unique(rates, return_counts=True)
    events, others = counts * levels, counts * (1 - levels)
    below = np.cumsum(others) - others / 2
    own = float((rates * (1 - rates)).sum())  # a record is not compared with itself
    pairs = float(events.sum() * others.sum()) - own
    return (float(events @ below) - own / 2) / pairs if pairs > 0 else 0.5


def _normal_logits(base_rate: float, c: float | None) -> Array:
    from scipy.special import ndtri

    wanted = open_share("c", c)
    standard = np.asarray(ndtri((np.arange(QUANTILES) + 0.5) / QUANTILES))

    def logits(spread: float) -> Array:
        middle = root(lambda m: float(expit(m + spread * standard).mean()) - base_rate, -500.0, 500.0, 1e-9)
        return np.asarray(middle + spread * standard)

    def surplus(spread: float) -> float:
        return _model_concordance(expit(logits(spread))) - wanted

    if wanted <= 0.5 or surplus(MAX_SPREAD) < 0:
        most = wanted + surplus(MAX_SPREAD)
        raise InvalidInputError("c", f"must lie between 0.5 and {most:.3g}", f"got {wanted:g}")
    return logits(root(surplus, 1e-6, MAX_SPREAD, 1e-6))
