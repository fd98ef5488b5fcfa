"""Verdict sentences in counts that a reader can picture, each from the fullest to the shortest wording.

Means are always those of the records named in the same sentence.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

import numpy as np

from calibrant.forecasts import Forecasts
from calibrant.formatting import (
    between_text,
    percent_pair,
    pluralize,
    points_text,
    predicted_observed,
    rounded_ends,
    whole_percent,
)
from calibrant.parallel import dot

MAX_WORDS = 45
MAX_NUMBERS = 6
MIN_SLICE_RECORDS = 20
MIN_SLICE_SHARE = 0.02
RARE = 1e-3  # means below this are given as counts
THRESHOLDS = (
    0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5,
    0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999,
)  # fmt: skip
ROUNDING = 1e-12
MIN_VARIANCE = 0.02  # of an outcome predicted at 0 or 1, so that one failure is not infinite evidence
MIN_EVIDENCE_SHARE = 0.9  # of the largest |z|: of the thresholds that reach it, the one with most records
VIVID = 0.05  # a gap that shows in whole percentages; preferred among equally clear ones
Texts = tuple[str, ...]


class Slice(NamedTuple):
    """Some records with their mean prediction and mean outcome."""

    records: int
    predicted: float
    observed: float
    z: float  # total residual over its standard deviation if calibrated


def _slice(forecasts: Forecasts, start: int = 0, stop: int | None = None) -> Slice:
    """Summarize the levels from `start` up to `stop`; all of them by default."""
    levels = slice(start, stop)
    weights, values = forecasts.weights[levels], forecasts.values[levels]
    total = float(weights.sum())
    if total == 0:
        return Slice(0, 0.0, 0.0, 0.0)
    expected = dot(weights, values)
    residual = float(forecasts.outcomes[levels].sum()) - expected
    variance = dot(forecasts.squared_weights[levels], np.maximum(values * (1 - values), MIN_VARIANCE))
    predicted = expected / total
    observed = min(1.0, max(0.0, predicted + residual / total))
    z = residual / math.sqrt(variance) if variance > 0 else 0.0
    return Slice(int(forecasts.counts[levels].sum()), predicted, observed, z)


def _between(forecasts: Forecasts, low: float, high: float) -> Slice:
    """Summarize the records predicted from `low` to `high`."""
    values = forecasts.values
    return _slice(forecasts, int(np.searchsorted(values, low)), int(np.searchsorted(values, high, "right")))


def fit(first: Texts, second: Texts) -> tuple[str, str]:
    """Return the fullest two sentences within the limits on words and numbers.

    >>> fit(("Too high.",), ("Worst for a: 10% predicted, 20% observed (30 records).",))
    ('Too high.', 'Worst for a: 10% predicted, 20% observed (30 records).')
    """
    second = second or ("",)
    places = [(i, j) for i in range(len(first)) for j in range(len(second))]
    for i, j in sorted(places, key=lambda place: (sum(place), place[0])):
        text = f"{first[i]} {second[j]}"
        if numbers_in(text) <= MAX_NUMBERS and words_in(text) <= MAX_WORDS:
            break
    return first[i], second[j]


def numbers_in(text: str) -> int:
    """Count the numbers of a text.

    >>> numbers_in("of the 3,470 records above 30% (0.44), 2 of 3")
    5
    """
    return len(re.findall(r"\d[\d,]*(?:\.\d+)?", text))


def words_in(text: str) -> int:
    return len(text.split())


def describe_bias(forecasts: Forecasts) -> Texts:
    """Describe a bias that all records share."""
    whole = _slice(forecasts)
    records, too = pluralize(whole.records, "record"), "high" if whole.predicted > whole.observed else "low"
    if _countable(forecasts) and max(whole.predicted, whole.observed) < RARE:
        expected, events = round(whole.predicted * whole.records), round(whole.observed * whole.records)
        counts = f"{expected:,} events predicted, {events:,} observed"
        return (f"Predictions are too {too}: {counts} in {records}.",)
    said = f"Predictions are too {too}: {predicted_observed(whole.predicted, whole.observed)}"
    return f"{said} in {records}.", f"{said}."


def extremes(forecasts: Forecasts, *, over: bool) -> Texts:
    """Describe predictions that are too extreme (or too timid), beyond a round threshold if it is clear."""
    name, what = ("Overconfident", "extreme") if over else ("Underconfident", "timid")
    plain = f"{name}: predictions are too {what}."
    found: list[tuple[str, float, Slice]] = []
    for threshold in THRESHOLDS:
        above = threshold >= forecasts.mean_prediction
        place = int(np.searchsorted(forecasts.values, threshold, "right" if above else "left"))
        part = _slice(forecasts, place) if above else _slice(forecasts, stop=place)
        wanted = -1 if above == over else 1  # the sign of observed minus predicted
        if part.records >= max(MIN_SLICE_RECORDS, MIN_SLICE_SHARE * forecasts.n) and wanted * part.z > 0:
            found.append(("above" if above else "below", threshold, part))
    most = max((abs(part.z) for _, _, part in found), default=0.0)
    clear = [one for one in found if abs(one[2].z) >= MIN_EVIDENCE_SHARE * most]
    wide = [one for one in clear if abs(one[2].observed - one[2].predicted) >= VIVID]
    if not clear:
        return (plain,)
    side, threshold, part = max(wide or clear, key=lambda one: one[2].records)
    predicted, observed = percent_pair(part.predicted, part.observed)
    rated = f"rated {side} {whole_percent(threshold)}"
    return (
        f"{name}: of the {pluralize(part.records, 'record')} {rated} ({predicted} on average), "
        f"{observed} {_event(forecasts)}.",
        f"{name}: {rated}, {predicted} predicted, {observed} observed.",
        plain,
    )


def stretch(forecasts: Forecasts, start: float, stop: float) -> Texts:
    """Describe predictions that are wrong in one direction between two values."""
    for low, high in (rounded_ends(start, stop), (start, stop)):
        part = _between(forecasts, low, high)
        if part.records:
            break
    wrong = f"{between_text(low, high)} are too {'high' if part.predicted > part.observed else 'low'}"
    said = f"Predictions {wrong}: {predicted_observed(part.predicted, part.observed)}"
    return f"{said} in {pluralize(part.records, 'record')}.", f"{said}.", f"Predictions {wrong}."


def describe_inverted(forecasts: Forecasts, *, proven: bool) -> Texts:
    """Describe predictions that rank the outcomes backward or not at all, split so that it shows."""
    claim = "Predictions point the wrong way" if proven else "Predictions do not rank the outcomes"
    middle = min(int(np.searchsorted(np.cumsum(forecasts.weights), 0.5)), forecasts.levels - 1)
    splits: list[tuple[tuple[bool, bool, bool, int], float, Slice, Slice]] = []
    for threshold in (*THRESHOLDS, float(f"{forecasts.values[middle]:.3g}")):
        place = int(np.searchsorted(forecasts.values, threshold, "right"))
        upper, lower = _slice(forecasts, place), _slice(forecasts, stop=place)
        if place in (0, forecasts.levels):
            upper = lower = Slice(0, 0.0, 0.0, 0.0)
        small = 10 * min(upper.records, lower.records) < upper.records + lower.records
        shown, excess = upper.observed < lower.observed, abs(upper.records - lower.records)
        splits.append(((not shown, small, threshold not in THRESHOLDS, excess), threshold, upper, lower))
    (hidden, *_), threshold, upper, lower = min(splits, key=lambda one: one[0])
    if hidden:
        return (f"{claim}.",)
    high, low = percent_pair(upper.observed, lower.observed)
    who = f"of the {pluralize(upper.records, 'record')} rated above {whole_percent(threshold)}"
    return f"{claim}: {who}, {high} {_event(forecasts)}; of the others, {low}.", f"{claim}."


def certain(forecasts: Forecasts) -> Texts:
    """Describe predictions of exactly 0 or 1 that were wrong."""
    said: list[str] = []
    for value in (0.0, 1.0):
        part = _between(forecasts, value, value)
        wrong = abs(part.observed - value)
        if part.records and wrong > ROUNDING:
            count = f"{percent_pair(wrong, 0.0)[0]} of {part.records:,} by weight"
            if _countable(forecasts):
                count = f"{round(wrong * part.records):,} of {part.records:,}"
            failed = "did not" if said else "did not have the event"
            said.append(f"{count} rated {whole_percent(value)} {failed if value else 'had the event'}")
    return f"Certain but wrong: {', '.join(said)}.", "Predictions of exactly 0 or 1 were wrong."


def nothing_proven(forecasts: Forecasts, unseen: float, *, enough: bool) -> Texts:
    """Say that nothing was found, or that these records decide nothing, and what size would not show."""
    records = pluralize(forecasts.n, "record")
    if not enough and unseen >= 0.5:
        return (f"Too little data: only {records}.",)
    found = f"No miscalibration found in {records};" if enough else f"Too little data: with {records},"
    return (f"{found} an error below about {points_text(unseen)} would not show.",)


def but_not_for_all(forecasts: Forecasts) -> Texts:
    """Say that all records together look calibrated although some group does not."""
    whole = _slice(forecasts)
    means = predicted_observed(whole.predicted, whole.observed)
    return tuple(f"Calibrated overall{said}, but not for every group." for said in (f" ({means})", ""))


def _event(forecasts: Forecasts) -> str:
    if not forecasts.binary:
        return "was observed"
    return "had the event" if _countable(forecasts) else "had the event by weight"


def _countable(forecasts: Forecasts) -> bool:
    """Return whether shares are counts of records: outcomes of 0 or 1 and equal weights."""
    weights = forecasts.record_weights
    return forecasts.binary and (weights is None or bool(np.ptp(weights) == 0))
