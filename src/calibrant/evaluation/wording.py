"""Verdict sentences: what is wrong, in counts that a reader can picture.

Every function returns alternatives from the fullest to the shortest wording; `fit` picks the fullest pair
of sentences within the limits. Means are always those of the records named in the same sentence.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from calibrant.forecasts import Forecasts
from calibrant.formatting import (
    between_text,
    percent_pair,
    pluralize,
    points_text,
    rounded_ends,
    whole_percent,
)

MAX_WORDS = 45
MAX_NUMBERS = 6
MIN_SLICE_RECORDS = 20
MIN_SLICE_SHARE = 0.02
RARE = 1e-3  # means below this are given as events per million or as counts
THRESHOLDS = (
    0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5,
    0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999,
)  # fmt: skip
ROUNDING = 1e-12
MIN_VARIANCE = 0.02  # of an outcome predicted at 0 or 1, so that one failure is not infinite evidence
NEARLY = 0.9  # of the clearest evidence: among such thresholds the one with the most records is named
VIVID = 0.05  # a gap that whole percentages show, preferred where one is as clear
Texts = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Slice:
    """Records whose predictions lie in one interval, with their mean prediction and mean outcome."""

    records: int
    predicted: float
    observed: float
    z: float  # total residual over its standard deviation if calibrated

    @classmethod
    def of(cls, forecasts: Forecasts, inside: npt.NDArray[np.bool_]) -> Slice:
        weights = forecasts.weights[inside]
        total = float(weights.sum())
        if total == 0:
            return cls(0, 0.0, 0.0, 0.0)
        values = forecasts.values[inside]
        residual = float(forecasts.outcomes[inside].sum()) - float(weights @ values)
        variance = float(forecasts.squared_weights[inside] @ np.maximum(values * (1 - values), MIN_VARIANCE))
        predicted = float(weights @ values) / total
        observed = min(1.0, max(0.0, predicted + residual / total))
        z = residual / math.sqrt(variance) if variance > 0 else 0.0
        return cls(int(forecasts.counts[inside].sum()), predicted, observed, z)


def fit(first: Texts, second: Texts) -> tuple[str, str]:
    """Return the fullest two sentences within the limits on words and numbers.

    >>> fit(("Too high.",), ("Worst for a: 10% predicted, 20% observed (30 records).",))
    ('Too high.', 'Worst for a: 10% predicted, 20% observed (30 records).')
    """
    second = second or ("",)
    pairs = sorted(((i, j) for i in range(len(first)) for j in range(len(second))), key=_richness)
    texts = [(first[i], second[j]) for i, j in pairs]
    return next((pair for pair in texts if _fits(f"{pair[0]} {pair[1]}")), texts[-1])


def _fits(text: str) -> bool:
    return numbers_in(text) <= MAX_NUMBERS and words_in(text) <= MAX_WORDS


def _richness(pair: tuple[int, int]) -> tuple[int, int]:
    return sum(pair), pair[0]


def numbers_in(text: str) -> int:
    """Count the numbers of a text.

    >>> numbers_in("of the 3,470 records above 30% (0.44), 2 of 3")
    5
    """
    return len(re.findall(r"\d[\d,]*(?:\.\d+)?", text))


def words_in(text: str) -> int:
    """Count the words of a text."""
    return len(text.split())


def describe_bias(forecasts: Forecasts) -> Texts:
    """Describe a bias that all records share."""
    whole = Slice.of(forecasts, np.ones(forecasts.levels, dtype=bool))
    too = "high" if whole.predicted > whole.observed else "low"
    if _countable(forecasts) and max(whole.predicted, whole.observed) < RARE:
        expected, events = round(whole.predicted * whole.records), round(whole.observed * whole.records)
        return (
            f"Predictions are too {too}: {expected:,} events predicted, {events:,} observed in "
            f"{pluralize(whole.records, 'record')}.",
        )
    predicted, observed = percent_pair(whole.predicted, whole.observed)
    said = f"Predictions are too {too}: {predicted} predicted, {observed} observed"
    return f"{said} in {pluralize(whole.records, 'record')}.", f"{said}."


def extremes(forecasts: Forecasts, *, over: bool) -> Texts:
    """Describe predictions that are too extreme (or too timid), by one end of the scale where it shows."""
    name, what = ("Overconfident", "extreme") if over else ("Underconfident", "timid")
    plain = f"{name}: predictions are too {what}."
    shown = _clearest_end(forecasts, over)
    if shown is None:
        return (plain,)
    side, threshold, part = shown
    predicted, observed = percent_pair(part.predicted, part.observed)
    return (
        f"{name}: of the {pluralize(part.records, 'record')} rated {side} {whole_percent(threshold)} "
        f"({predicted} on average), "
        f"{observed} {_event(forecasts)}.",
        f"{name}: rated {side} {whole_percent(threshold)}, {predicted} predicted, {observed} observed.",
        plain,
    )


def _clearest_end(forecasts: Forecasts, over: bool) -> tuple[str, float, Slice] | None:
    """Return a round threshold beyond which the error is clear, on the side away from the mean."""
    found: list[tuple[str, float, Slice]] = []
    least = max(MIN_SLICE_RECORDS, MIN_SLICE_SHARE * forecasts.n)
    for threshold in THRESHOLDS:
        above = threshold >= forecasts.mean_prediction
        inside = forecasts.values > threshold if above else forecasts.values < threshold
        part = Slice.of(forecasts, inside)
        wanted = -1 if above == over else 1  # the sign of observed minus predicted
        if part.records >= least and wanted * part.z > 0:
            found.append(("above" if above else "below", threshold, part))
    most = max((abs(part.z) for _, _, part in found), default=0.0)
    clear = [one for one in found if abs(one[2].z) >= NEARLY * most]
    wide = [one for one in clear if abs(one[2].observed - one[2].predicted) >= VIVID]
    return max(wide or clear, key=lambda one: one[2].records, default=None)


def stretch(forecasts: Forecasts, start: float, stop: float) -> Texts:
    """Describe predictions that are wrong in one direction between two values."""
    low, high = rounded_ends(start, stop)
    values = forecasts.values
    part = Slice.of(forecasts, (values >= low) & (values <= high))
    if part.records == 0:
        low, high = start, stop
        part = Slice.of(forecasts, (values >= low) & (values <= high))
    too = "high" if part.predicted > part.observed else "low"
    predicted, observed = percent_pair(part.predicted, part.observed)
    where = between_text(low, high)
    said = f"Predictions {where} are too {too}: {predicted} predicted, {observed} observed"
    return (
        f"{said} in {pluralize(part.records, 'record')}.",
        f"{said}.",
        f"Predictions {where} are too {too}.",
    )


def describe_inverted(forecasts: Forecasts, *, proven: bool) -> Texts:
    """Describe predictions that rank the outcomes backward, or not at all."""
    middle, upper, lower = _backward_split(forecasts)
    claim = "Predictions point the wrong way" if proven else "Predictions do not rank the outcomes"
    if upper.observed >= lower.observed:  # no split shows it
        return (f"{claim}.",)
    high, low = percent_pair(upper.observed, lower.observed)
    event = _event(forecasts)
    return (
        f"{claim}: of the {pluralize(upper.records, 'record')} rated above {whole_percent(middle)}, "
        f"{high} {event}; of the others, {low}.",
        f"{claim}.",
    )


def _backward_split(forecasts: Forecasts) -> tuple[float, Slice, Slice]:
    """Return the most even split above which events are rarer, at a round threshold where one exists."""
    found = [_split(forecasts, threshold) for threshold in (*THRESHOLDS, _median(forecasts))]

    def rank(one: tuple[float, Slice, Slice]) -> tuple[bool, bool, bool, int]:
        threshold, upper, lower = one
        small = 10 * min(upper.records, lower.records) < upper.records + lower.records
        return upper.observed >= lower.observed, small, threshold not in THRESHOLDS, abs(_excess(one))

    return min(found, key=rank)


def _split(forecasts: Forecasts, threshold: float) -> tuple[float, Slice, Slice]:
    above = forecasts.values > threshold
    if above.all() or not above.any():
        return threshold, Slice(0, 0.0, 0.0, 0.0), Slice(0, 0.0, 0.0, 0.0)
    return threshold, Slice.of(forecasts, above), Slice.of(forecasts, ~above)


def _excess(split: tuple[float, Slice, Slice]) -> int:
    return split[1].records - split[2].records


def _median(forecasts: Forecasts) -> float:
    middle = int(np.searchsorted(np.cumsum(forecasts.weights), 0.5))
    return float(f"{forecasts.values[min(middle, forecasts.levels - 1)]:.3g}")


def certain(forecasts: Forecasts) -> Texts:
    """Describe predictions of exactly 0 or 1 that were wrong."""
    said: list[str] = []
    for value, failed in ((0.0, "had the event"), (1.0, "did not")):
        part = Slice.of(forecasts, forecasts.values == value)
        wrong = abs(part.observed - value)
        if part.records and wrong > ROUNDING:
            count = f"{round(wrong * part.records):,} of {part.records:,}" if _countable(forecasts) else ""
            count = count or f"{percent_pair(wrong, 0.0)[0]} of {part.records:,} by weight"
            failed = "did not have the event" if failed == "did not" and not said else failed
            said.append(f"{count} rated {whole_percent(value)} {failed}")
    return f"Certain but wrong: {', '.join(said)}.", "Predictions of exactly 0 or 1 were wrong."


def none_found(forecasts: Forecasts, unseen: float) -> Texts:
    """Say that nothing was found, and how large an error would not show."""
    return (
        f"No miscalibration found in {pluralize(forecasts.n, 'record')}; an error below about "
        f"{points_text(unseen)} would not show.",
    )


def too_little(forecasts: Forecasts, unseen: float) -> Texts:
    """Say that these records decide nothing."""
    if unseen >= 0.5:
        return (f"Too little data: only {pluralize(forecasts.n, 'record')}.",)
    seen = f"an error below about {points_text(unseen)} would not show"
    return (f"Too little data: with {pluralize(forecasts.n, 'record')}, {seen}.",)


def but_not_for_all(forecasts: Forecasts) -> Texts:
    """Say that all records together look calibrated although some group does not."""
    whole = Slice.of(forecasts, np.ones(forecasts.levels, dtype=bool))
    predicted, observed = percent_pair(whole.predicted, whole.observed)
    return (
        f"Calibrated overall ({predicted} predicted, {observed} observed), but not for every group.",
        "Calibrated overall, but not for every group.",
    )


def _event(forecasts: Forecasts) -> str:
    if not forecasts.binary:
        return "was observed"
    return "had the event" if _countable(forecasts) else "had the event by weight"


def _countable(forecasts: Forecasts) -> bool:
    """Return whether shares are counts of records: outcomes of 0 or 1 and equal weights."""
    return forecasts.binary and (
        forecasts.record_weights is None or bool(np.ptp(forecasts.record_weights) == 0)
    )


def join(names: Sequence[str]) -> str:
    """Join names with commas and "and".

    >>> join(["a"]), join(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
