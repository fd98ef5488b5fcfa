"""What compare returns: models on the same rows with the same outcomes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from calibrant.formatting import dropped_note, format_value, pluralize, pvalue_phrase, pvalue_text
from calibrant.inference.null import ClusterSummary
from calibrant.inference.pvalues import could_flip, is_rejected
from calibrant.metrics.lookup import find_measure, measure_in_words
from calibrant.metrics.registry import Measure
from calibrant.metrics.scores import Decomposition
from calibrant.parallel import DRAWS
from calibrant.results import Result, Table, number_cell, text_cell

MAX_MODELS_NAMED = 4  # in one sentence
ROUNDING = 1e-12  # relative: scores that differ by rounding alone
MAX_PAIRS_NAMED = 5  # in the sentence; the table has them all
CHOICE_ADVICE = (
    "To choose a model compare by Brier score or log loss: calibration alone can rank a constant base rate"
    " first."
)
NO_CALIBRATION = "The c-statistic ignores calibration: to choose a model compare by Brier score or log loss."
NOT_TRUTHFUL = "This measure is not truthful: noise and sharpness move it, so the order may mislead; see atb."


@dataclass(frozen=True, slots=True, repr=False)
class Difference(Result):
    """One pair of models: error of the first minus error of the second, with interval and p-values.

    The error is the value; of a measure with a sign, its distance from the ideal (1 for the slope, else 0).
    `pvalue` is for this pair alone, `adjusted` allows for all pairs looked at (Holm).
    """

    first: str
    second: str
    difference: float
    lower: float
    upper: float
    pvalue: float
    adjusted: float
    pvalue_is_bound: bool = False  # no resample reached 0: both p-values are these or less

    @property
    def better(self) -> tuple[str, str]:
        """The model with the smaller error, and the other."""
        return (self.first, self.second) if self.difference <= 0 else (self.second, self.first)


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(Result):
    """Models measured on the same rows, and every pair of them compared.

    `fair` says whether the measure is truthful: only then does a model gain nothing from noise or from
    predicting less sharply than it could, and the order of expected values is the order of true errors.
    `dropped` counts the rows left out because a value was missing, for one model or more. `scores` has the
    Brier score of each model, and its parts: miscalibration and discrimination.
    """

    measure: str
    values: Mapping[str, float]
    differences: tuple[Difference, ...]
    confidence: float
    fair: bool
    n: int
    draws: int
    seed: int
    dropped: int = 0
    method: str = "resampled pairs of rows, with and without bias (approximate)"
    scores: Mapping[str, Decomposition] = field(default_factory=dict)
    cells: int | None = None  # what was resampled on, where levels were merged
    clusters: ClusterSummary | None = None  # where rows belong together

    DERIVED: ClassVar[tuple[str, ...]] = ("sentence", "best", "undecided", "approximate")
    approximate: ClassVar[tuple[str, ...]] = ("lower", "upper", "pvalue", "adjusted")  # of the differences

    @property
    def best(self) -> str:
        """Name of the model with the smallest error: the smallest value, or the one nearest to the ideal."""
        entry = find_measure(self.measure)
        return min(self.values, key=lambda name: error_of(entry, self.values[name]))

    @property
    def real(self) -> tuple[Difference, ...]:
        """The pairs whose adjusted p-value is at most 1 - confidence, the surest first."""
        sure = (pair for pair in self.differences if is_rejected(pair.adjusted, self.confidence))
        return tuple(sorted((p for p in sure if p not in self.undecided), key=lambda pair: pair.adjusted))

    @property
    def undecided(self) -> tuple[Difference, ...]:
        """The pairs whose p-value is so close to 1 - confidence that another seed might decide otherwise."""
        return tuple(pair for pair in self.differences if may_flip(pair, self.draws, self.confidence))

    def __str__(self) -> str:
        return " ".join([*self._verdict(), *self.advice()])

    def _verdict(self) -> list[str]:
        if not self.real:
            parts = [] if self.undecided else [self._none_real()]
        else:
            parts = [*self._best(), *self._pairs()]
        for pair in self.undecided[:MAX_PAIRS_NAMED]:
            near = f"{self._adjusted(pair)} is too close to {1 - self.confidence:.2g}"
            parts.append(f"Undecided between {pair.first} and {pair.second}: {near} for this many resamples.")
        rows = f"{pluralize(self.n, 'row')}{dropped_note(self.dropped)}"
        drawn = f"{rows}, {pluralize(self.draws, 'resample')}, seed {self.seed}"
        related = [] if self.clusters is None else [str(self.clusters)]
        return [*parts, f"{drawn}; intervals and p-values are approximate.", *related]

    def _adjusted(self, pair: Difference) -> str:
        phrase = pvalue_phrase(pair.adjusted, self.draws, bound=pair.pvalue_is_bound)
        return phrase if len(self.differences) == 1 else f"Holm-adjusted {phrase}"

    def _best(self) -> list[str]:
        """Say which of three or more models is best, or that none is shown to be; nothing for two."""
        if len(self.values) < 3:
            return []
        best, words, models = self.best, measure_in_words(self.measure), f"{len(self.values)} models"
        leads = f"has the best {words} of {models}"
        if find_measure(self.measure).complete:
            leads = f"is the best calibrated of {models} by {words}"
        leads = f"{best} {leads} ({format_value(self.values[best])})"
        own = [pair for pair in self.differences if best in (pair.first, pair.second)]
        still_open = [pair for pair in own if pair not in self.real]
        if not still_open:
            largest = self._adjusted(max(own, key=lambda pair: pair.adjusted))
            return [f"{leads}: better than each of the {len(own)} others (largest {largest})."]
        names = [pair.second if pair.first == best else pair.first for pair in still_open]
        further = [pluralize(len(names) - MAX_MODELS_NAMED, "other")] if len(names) > MAX_MODELS_NAMED else []
        others = " and ".join([", ".join(names[:MAX_MODELS_NAMED]), *further])
        least = self._adjusted(min(still_open, key=lambda pair: pair.adjusted))
        smallest = "" if len(still_open) == 1 else "least "
        why = f"chance explains its lead over {others} ({smallest}{least})"
        return [f"No model is shown to be best. {leads}, but {why}."]

    def _none_real(self) -> str:
        words, pair = measure_in_words(self.measure), min(self.differences, key=lambda one: one.adjusted)
        least = self._adjusted(pair)
        least = least if len(self.differences) == 1 else f"least {least}"
        if pair.pvalue_is_bound:
            enough = math.ceil(pair.adjusted * (self.draws + 1) / (1 - self.confidence) - 1e-9)
            few = f"{pluralize(self.draws, 'resample')} are too few to show a difference in {words}"
            return f"{few} ({least}): take {enough:,} or more."
        return f"No difference in {words} is more than chance ({least})."

    def _pairs(self) -> list[str]:
        """Say which pairs differ, except those that the sentence about the best model covers."""
        than = "better calibrated than" if find_measure(self.measure).complete else "better than"
        pairs, best = self.real, self.best
        others = tuple(pair for pair in pairs if best not in (pair.first, pair.second))
        if len(self.values) > 2 and len(pairs) - len(others) == len(self.values) - 1:
            pairs = others
        parts = []
        for pair in pairs[:MAX_PAIRS_NAMED]:
            better, worse = pair.better
            figures = f"{format_value(self.values[better])} against {format_value(self.values[worse])}"
            by = f"by {measure_in_words(self.measure)} ({figures})"
            parts.append(f"{better} is {than} {worse} {by}, {self._adjusted(pair)}.")
        if len(pairs) > MAX_PAIRS_NAMED:
            parts.append(pluralize(len(pairs) - MAX_PAIRS_NAMED, "more pair differs.", "more pairs differ."))
        return parts

    def advice(self) -> list[str]:
        """Say what the measure leaves out, and what to choose a model by."""
        unfair = [] if self.fair else [NO_CALIBRATION if self.measure == "c-statistic" else NOT_TRUTHFUL]
        if not find_measure(self.measure).complete or not self.scores:  # a score counts everything
            return [*unfair, *self._flat()]
        least, tied = self._best_scores()
        by_score = f"The best Brier score is that of {' and '.join(tied)} ({format_value(least)})."
        if 1 < len(tied) == len(self.scores):
            by_score = f"The Brier scores are equal ({format_value(least)})."
        return [*unfair, by_score, *self._flat(), CHOICE_ADVICE]

    def _best_scores(self) -> tuple[float, list[str]]:
        least = min(parts.score for parts in self.scores.values())
        return least, [name for name, parts in self.scores.items() if parts.score - least <= ROUNDING * least]

    def _flat(self) -> list[str]:
        """Name the best models that predict one value: a base rate is as good."""
        leading = dict.fromkeys([self.best, *self._best_scores()[1]]) if self.scores else {}
        flat = [name for name in leading if self.scores[name].discrimination <= ROUNDING]
        if not flat:
            return []
        tell = "tells" if len(flat) == 1 else "tell"
        return [f"{' and '.join(flat)} {tell} no rows apart (discrimination 0), like a constant base rate."]

    def model_sheet(self) -> Table:
        """Return the table of the models: the measure, and the Brier score with its parts."""
        columns = ["model", measure_in_words(self.measure), "Brier score", "miscalibration", "discrimination"]
        twice = columns[1] == columns[2]  # the measure is the score itself
        lines = []
        for name, value in self.values.items():
            parts = self.scores.get(name)
            of_score = (parts.score, parts.miscalibration, parts.discrimination) if parts else (None,) * 3
            numbers = of_score if twice else (value, *of_score)
            lines.append((text_cell(name), *map(number_cell, numbers)))
        return Table(tuple(dict.fromkeys(columns)), tuple(lines))

    def pair_sheet(self) -> Table:
        """Return the table of the pairs."""
        columns = ("first", "second", "difference", "from", "to", "p-value", "adjusted")
        lines = []
        for d in self.differences:
            numbers = map(number_cell, (d.difference, d.lower, d.upper))
            pvalues = (
                number_cell(p, pvalue_text(p, floor=d.pvalue_is_bound)) for p in (d.pvalue, d.adjusted)
            )
            lines.append((text_cell(d.first), text_cell(d.second), *numbers, *pvalues))
        return Table(columns, tuple(lines))

    def tables(self) -> tuple[Table, Table]:
        return self.model_sheet(), self.pair_sheet()

    def rows(self) -> tuple[Difference, ...]:
        return self.differences


def may_flip(pair: Difference, draws: int, confidence: float) -> bool:
    if draws < DRAWS or pair.pvalue_is_bound:
        return False
    return could_flip(pair.adjusted, draws, 1 - confidence, 2 * pair.adjusted / pair.pvalue)


def error_of(entry: Measure, value: Any) -> Any:
    """Return what is smallest for the best model."""
    return np.abs(value - entry.ideal) if entry.signed else value
