"""What compare returns, and the comparison of models that have outcomes of their own.

`Comparison` holds models on the same rows with the same outcomes, as numbers, sentences and tables.

Language models are right on different questions, so each has outcomes of its own. Row i of every model is the
same question, and four scores are compared: accuracy, Brier score, calibration error and the area under the
risk-coverage curve. Each is a mean over rows or over pairs of rows, so that leaving out one cluster at a time
gives its standard error without a model of the outcomes. The calibration error is
ATB = sum_ij (1 - |p_i - p_j|) r_i r_j / n^2 without pairs inside a cluster: these add noise,
E[ATB(p, y)] = ATB(p, truth) + sum var(y_i) / n^2, which would favor the model whose answers vary less.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, TooFewRecordsError
from calibrant.formatting import dropped_note, format_value, pluralize, pvalue_phrase, pvalue_text
from calibrant.inference.intervals import check_confidence
from calibrant.inference.null import ClusterSummary
from calibrant.inference.pvalues import could_flip, holm, is_rejected
from calibrant.inputs import InputNames, outcomes_of, positive_column
from calibrant.metrics.lookup import find_measure, measure_in_words
from calibrant.metrics.registry import Measure
from calibrant.metrics.scores import Decomposition
from calibrant.records import Missing, check_records
from calibrant.results import Array, Result, Table, TableCell, number_cell, text_cell

DRAWS = 999  # resamples, and the fewest whose simulation error is judged
MAX_MODELS_NAMED = 4  # models named in one sentence


EQUAL = 1e-12  # relative: scores that differ by rounding alone
MAX_PAIRS_NAMED = 5  # pairs named in the sentence; the table has them all
CHOOSE = (
    "To choose a model compare by Brier score or log loss: calibration alone can rank a constant base rate"
    " first."
)
DISCRIMINATION = "The c-statistic ignores calibration: to choose a model compare by Brier score or log loss."
UNFAIR = "This measure is not truthful: noise and sharpness move it, so the order may mislead; see atb."


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
    `dropped` counts the rows left out because a value was missing, for one model or more. `method` says how
    the intervals were found, and that they are approximate. `scores` has the Brier score of each model, and
    its parts: miscalibration and discrimination.
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
    added: float = 0.0  # half-width added for that, for the pair with most
    clusters: ClusterSummary | None = None  # where rows belong together

    DERIVED: ClassVar[tuple[str, ...]] = ("sentence", "best", "undecided", "approximate")
    approximate: ClassVar[tuple[str, ...]] = ("lower", "upper", "pvalue", "adjusted")  # of the differences

    @property
    def best(self) -> str:
        """Name of the model with the smallest error: the smallest value, or the one nearest to the ideal."""
        row = find_measure(self.measure)
        return min(self.values, key=lambda name: error_of(row, self.values[name]))

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
        """Say who is better than whom, and how sure that is."""
        if not self.real:
            said = [] if self.undecided else [self._none_real()]
        else:
            said = [*self._best(), *self._pairs()]
        for pair in self.undecided[:MAX_PAIRS_NAMED]:
            near = f"{self._adjusted(pair)} is too close to {1 - self.confidence:.2g}"
            said.append(f"Undecided between {pair.first} and {pair.second}: {near} for this many resamples.")
        rows = f"{pluralize(self.n, 'row')}{dropped_note(self.dropped)}"
        drawn = f"{rows}, {pluralize(self.draws, 'resample')}, seed {self.seed}"
        related = [] if self.clusters is None else [str(self.clusters)]
        return [*said, f"{drawn}; intervals and p-values are approximate.", *related]

    def _adjusted(self, pair: Difference) -> str:
        """Write the adjusted p-value of a pair; a single pair needs no adjustment."""
        phrase = pvalue_phrase(pair.adjusted, self.draws, bound=pair.pvalue_is_bound)
        return phrase if len(self.differences) == 1 else f"Holm-adjusted {phrase}"

    def _best(self) -> list[str]:
        """Say which of three or more models is best, or that none is shown to be; nothing for two."""
        if len(self.values) < 3:
            return []
        best, words, models = self.best, measure_in_words(self.measure), f"{len(self.values)} models"
        calibrated = find_measure(self.measure).complete
        leads = (
            f"is the best calibrated of {models} by {words}"
            if calibrated
            else f"has the best {words} of {models}"
        )
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
        """Say that no pair differs beyond chance, or that so few draws could not have shown it."""
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
        pairs = self.real
        if (
            len(self.values) > 2
            and sum(self.best in (p.first, p.second) for p in pairs) == len(self.values) - 1
        ):
            pairs = tuple(pair for pair in pairs if self.best not in (pair.first, pair.second))
        said = []
        for pair in pairs[:MAX_PAIRS_NAMED]:
            better, worse = pair.better
            figures = f"{format_value(self.values[better])} against {format_value(self.values[worse])}"
            by = f"by {measure_in_words(self.measure)} ({figures})"
            said.append(f"{better} is {than} {worse} {by}, {self._adjusted(pair)}.")
        if len(pairs) > MAX_PAIRS_NAMED:
            said.append(pluralize(len(pairs) - MAX_PAIRS_NAMED, "more pair differs.", "more pairs differ."))
        return said

    def advice(self) -> list[str]:
        """Say what the measure leaves out, and what to choose a model by."""
        unfair = [] if self.fair else [DISCRIMINATION if self.measure == "c-statistic" else UNFAIR]
        if not find_measure(self.measure).complete or not self.scores:  # a score counts everything
            return [*unfair, *self._flat()]
        return [*unfair, self._by_score(), *self._flat(), CHOOSE]

    def _best_scores(self) -> tuple[float, list[str]]:
        """Return the best Brier score and the models that have it."""
        least = min(parts.score for parts in self.scores.values())
        return least, [name for name, parts in self.scores.items() if parts.score - least <= EQUAL * least]

    def _flat(self) -> list[str]:
        """Name the best models that predict one value: a base rate is as good."""
        leading = dict.fromkeys([self.best, *self._best_scores()[1]]) if self.scores else {}
        flat = [name for name in leading if self.scores[name].discrimination <= EQUAL]
        if not flat:
            return []
        tell = "tells" if len(flat) == 1 else "tell"
        return [f"{' and '.join(flat)} {tell} no rows apart (discrimination 0), like a constant base rate."]

    def _by_score(self) -> str:
        """Name the models with the best Brier score, or say that all have the same."""
        least, tied = self._best_scores()
        if 1 < len(tied) == len(self.scores):
            return f"The Brier scores are equal ({format_value(least)})."
        return f"The best Brier score is that of {' and '.join(tied)} ({format_value(least)})."

    def model_sheet(self) -> Table:
        """Return the table of the models: the measure, and the Brier score with its parts."""
        lines = tuple(self._line(name) for name in self.values)
        columns = ("model", measure_in_words(self.measure), "Brier score", "miscalibration", "discrimination")
        if columns[1] == columns[2]:  # the measure is the score itself
            return Table(columns[:1] + columns[2:], tuple(line[:1] + line[2:] for line in lines))
        return Table(columns, lines)

    def _line(self, name: str) -> tuple[TableCell, ...]:
        parts = self.scores.get(name)
        numbers = (None,) * 3 if parts is None else (parts.score, parts.miscalibration, parts.discrimination)
        return text_cell(name), number_cell(self.values[name]), *map(number_cell, numbers)

    def pair_sheet(self) -> Table:
        """Return the table of the pairs."""
        columns = ("first", "second", "difference", "from", "to", "p-value", "adjusted")
        lines = tuple(
            (
                text_cell(d.first),
                text_cell(d.second),
                *map(number_cell, (d.difference, d.lower, d.upper)),
                number_cell(d.pvalue, pvalue_text(d.pvalue, floor=d.pvalue_is_bound)),
                number_cell(d.adjusted, pvalue_text(d.adjusted, floor=d.pvalue_is_bound)),
            )
            for d in self.differences
        )
        return Table(columns, lines)

    def tables(self) -> tuple[Table, Table]:
        """Return the tables of the models and of the pairs."""
        return self.model_sheet(), self.pair_sheet()

    def rows(self) -> tuple[Difference, ...]:
        """Return the pairs."""
        return self.differences


def may_flip(pair: Difference, draws: int, confidence: float) -> bool:
    """Return whether simulation error could move an adjusted p-value across 1 - confidence.

    A p-value is twice a share of the draws. Few draws, which were asked for, are taken as they are.
    """
    if draws < DRAWS or pair.pvalue_is_bound:
        return False
    return could_flip(pair.adjusted, draws, 1 - confidence, 2 * pair.adjusted / pair.pvalue)


def error_of(row: Measure, value: Any) -> Any:
    """Return what is smallest for the best model."""
    return np.abs(value - row.ideal) if row.signed else value


MIN_CLUSTERS = 10
SCORES = {
    "accuracy": "share of answers that are right",
    "calibration": "ATB, the squared calibration error averaged over all cuts in two bins, without its noise",
    "brier": "mean squared difference between confidence and correctness",
    "aurc": "mean error rate when only the most confident answers are given, over all coverages",
}
WORDS = {
    "accuracy": "accuracy",
    "calibration": "calibration",
    "brier": "Brier score",
    "aurc": "risk-coverage",
}
VERBS = {
    "accuracy": "is right more often than",
    "calibration": "is better calibrated than",
    "brier": "has a better Brier score than",
    "aurc": "makes fewer errors at the same coverage than",
}


@dataclass(frozen=True, slots=True, repr=False)
class OutcomeComparison(Result):
    """Models with their own outcomes, compared row by row.

    `scores` maps each score (accuracy, calibration, brier, aurc) to its value per model, and `differences` to
    its pairs, first minus second, with interval and p-value; `adjusted` allows for all pairs and all four
    scores (Holm). Accuracy is better when higher, the others when lower. Intervals and p-values are
    approximate: jackknife over clusters with Student's t.
    """

    scores: Mapping[str, Mapping[str, float]]
    differences: Mapping[str, tuple[Difference, ...]]
    confidence: float
    n: int
    clusters: int
    dropped: int = 0

    DERIVED: ClassVar[tuple[str, ...]] = ("sentence", "meanings")
    meanings: ClassVar[Mapping[str, str]] = SCORES

    @property
    def models(self) -> tuple[str, ...]:
        """The names of the models."""
        return tuple(self.scores["accuracy"])

    @property
    def real(self) -> tuple[tuple[str, Difference], ...]:
        """The scores and pairs whose adjusted p-value is at most 1 - confidence, the surest first."""
        pairs = [(name, pair) for name, pairs in self.differences.items() for pair in pairs]
        sure = [one for one in pairs if one[1].adjusted <= 1 - self.confidence + 1e-12]
        return tuple(sorted(sure, key=lambda one: one[1].adjusted))

    def better(self, score: str, pair: Difference) -> tuple[str, str]:
        """Return the better model of a pair, and the other."""
        first = (pair.difference > 0) == (score == "accuracy")
        return (pair.first, pair.second) if first else (pair.second, pair.first)

    def __repr__(self) -> str:
        return f"OutcomeComparison({', '.join(self.models)}; n = {self.n:,}, clusters = {self.clusters:,})"

    def __str__(self) -> str:
        said = [self._sentence(name, pair) for name, pair in self.real[:4]]
        if len(self.real) > 4:
            said.append(
                f"{pluralize(len(self.real) - 4, 'more difference is', 'more differences are')} real."
            )
        still = [name for name in WORDS if not any(name == one for one, _ in self.real)]
        if still:
            words = " or ".join(filter(None, (", ".join(WORDS[one] for one in still[:-1]), WORDS[still[-1]])))
            said.append(f"No difference in {words} is more than chance.")
        rows = f"{pluralize(self.n, 'question')}{dropped_note(self.dropped)}"
        grouped = "" if self.clusters == self.n else f" in {pluralize(self.clusters, 'cluster')}"
        return " ".join([*said, f"{rows}{grouped}; intervals and p-values are approximate."])

    def _sentence(self, name: str, pair: Difference) -> str:
        best, other = self.better(name, pair)
        shown = [_shown(name, max(0.0, self.scores[name][model])) for model in (best, other)]
        low, high = sorted((abs(pair.lower), abs(pair.upper)))
        sure = pvalue_phrase(pair.adjusted)
        between = f"difference {_shown(name, low)} to {_shown(name, high)}"
        return f"{best} {VERBS[name]} {other} ({shown[0]} against {shown[1]}; {between}, {sure})."

    def table(self) -> Table:
        """Return one line per score and pair."""
        columns = ("score", "first", "second", "value", "other", "difference", "from", "to", "adjusted p")
        lines = []
        for name, pairs in self.differences.items():
            for pair in pairs:
                numbers = [self.scores[name][pair.first], self.scores[name][pair.second]]
                numbers += [pair.difference, pair.lower, pair.upper]
                cells = [number_cell(x, _shown(name, x)) for x in numbers]
                texts = map(text_cell, (WORDS[name], pair.first, pair.second))
                lines.append((*texts, *cells, number_cell(pair.adjusted, pvalue_text(pair.adjusted))))
        return Table(columns, tuple(lines))

    def tables(self) -> tuple[Table]:
        """Return the table of the pairs."""
        return (self.table(),)

    def rows(self) -> tuple[Difference, ...]:
        """Return the pairs of all scores."""
        return tuple(pair for pairs in self.differences.values() for pair in pairs)


def compare_outcomes(
    outcomes: Any,
    predictions: Any,
    *,
    clusters: Any = None,
    missing: Missing = "error",
    pos_label: Any = None,
    confidence: float = 0.95,
) -> OutcomeComparison:
    """Compare models that each have outcomes of their own, row by row; see `compare`."""
    check_confidence(confidence)
    models, codes, dropped = _paired(outcomes, predictions, clusters, missing, pos_label)
    scored = {name: _scores(y, p, codes) for name, (y, p) in models.items()}
    values = {score: {name: own[score].value for name, own in scored.items()} for score in SCORES}
    pairs = [
        _difference(first, second, scored[first][score], scored[second][score], confidence)
        for score in SCORES
        for first, second in combinations(scored, 2)
    ]
    adjusted = holm([pair.pvalue for pair in pairs])
    kept = [replace(pair, adjusted=p) for pair, p in zip(pairs, adjusted, strict=True)]
    each = len(kept) // len(SCORES)
    differences = {score: tuple(kept[k * each : (k + 1) * each]) for k, score in enumerate(SCORES)}
    return OutcomeComparison(values, differences, confidence, len(codes), int(codes.max()) + 1, dropped)


def _paired(
    outcomes: Any, predictions: Any, clusters: Any, missing: Missing, pos_label: Any
) -> tuple[dict[str, tuple[Array, Array]], npt.NDArray[np.intp], int]:
    """Return the rows that are complete for every model, their clusters, and how many are not complete."""
    for name, given in (("outcomes", outcomes), ("predictions", predictions)):
        if not isinstance(given, Mapping) or len(given) < 2:
            hint = 'outcomes={"a": y_a, "b": y_b}, predictions={"a": p_a, "b": p_b}'
            rule = "must map the names of two models or more to their columns"
            raise InvalidInputError(name, rule, f"got {type(given).__name__}", hint)
    if set(outcomes) != set(predictions):
        got = f"got {', '.join(map(str, outcomes))} and {', '.join(map(str, predictions))}"
        raise InvalidInputError("outcomes and predictions", "must name the same models", got)
    names = [str(name) for name in predictions]
    columns: dict[str, tuple[Array, Array]] = {}
    for name, key in zip(names, predictions, strict=True):
        named = InputNames(outcome=f"outcomes of {name!r}", prediction=f"predictions of {name!r}")
        check_records(outcomes[key], predictions[key], None, missing, named, pos_label=pos_label)
        columns[name] = (
            outcomes_of(outcomes[key], "outcomes", pos_label).astype(np.float64),
            positive_column(predictions[key], "predictions", outcomes[key], pos_label).astype(np.float64),
        )
    sizes = {len(p) for _, p in columns.values()}
    if len(sizes) > 1:
        got = f"got {' and '.join(f'{size:,}' for size in sorted(sizes))} rows"
        hint = "keep the questions that all models answered, in one order"
        raise InvalidInputError("models", "must be about the same rows", got, hint)
    n = sizes.pop()
    labels = np.arange(n) if clusters is None else np.asarray(clusters)
    if labels.shape != (n,):
        raise InvalidInputError("clusters", f"must be {n:,} labels", f"got shape {labels.shape}")
    kept = np.all([np.isfinite(column) for pair in columns.values() for column in pair], axis=0)
    codes = np.unique(labels[kept], return_inverse=True)[1].reshape(-1)
    number = int(codes.max(initial=-1)) + 1
    if number < MIN_CLUSTERS:
        unit = "complete rows" if clusters is None else "clusters"
        raise TooFewRecordsError("compare", f"needs {MIN_CLUSTERS} {unit} or more", f"got {number}")
    complete = {name: (y[kept], p[kept]) for name, (y, p) in columns.items()}
    return complete, codes, int(n - np.count_nonzero(kept))


@dataclass(frozen=True, slots=True, eq=False)
class _Score:
    """A score, and how much the records of each cluster move it (the jackknife's influence values)."""

    value: float
    influence: Array


def _scores(y: Array, p: Array, codes: npt.NDArray[np.intp]) -> dict[str, _Score]:
    risk, moved = area_under_risk(y, p)
    return {
        "accuracy": _mean(y, codes),
        "calibration": _calibration(y, p, codes),
        "brier": _mean((y - p) ** 2, codes),
        "aurc": _Score(risk, np.bincount(codes, weights=moved) / len(y)),
    }


def _mean(terms: Array, codes: npt.NDArray[np.intp]) -> _Score:
    value = float(terms.mean())
    return _Score(value, np.bincount(codes, weights=terms - value) / len(terms))


def _calibration(y: Array, p: Array, codes: npt.NDArray[np.intp]) -> _Score:
    """Return ATB over pairs of rows in different clusters."""
    r, n = y - p, len(y)
    sizes = np.bincount(codes).astype(np.float64)
    inside = np.bincount(codes, weights=r * kernel_sums(p, r, codes))
    across = np.bincount(codes, weights=r * kernel_sums(p, r, np.zeros(n, dtype=np.intp))) - inside
    total, pairs = float(across.sum()), float(n**2 - (sizes**2).sum())
    value = total / pairs
    without = (total - 2 * across) / (pairs - 2 * sizes * (n - sizes))
    count = len(sizes)
    return _Score(value, (count - 1) * (without.mean() - without) / count)


def kernel_sums(p: Array, r: Array, codes: npt.NDArray[np.intp]) -> Array:
    """Return sum_j (1 - |p_i - p_j|) r_j over the rows j in the cluster of each row i."""
    order = np.lexsort((p, codes))
    p, r, codes = p[order], r[order], codes[order]
    first = np.searchsorted(codes, codes)
    last = np.searchsorted(codes, codes, side="right")

    def sums(terms: Array) -> tuple[Array, Array]:
        running = np.append(0.0, np.cumsum(terms))
        here = running[np.arange(1, len(terms) + 1)]
        return here - running[first], running[last] - here

    (below, above), (low, high) = sums(r), sums(p * r)
    result = np.empty_like(p)
    result[order] = (below + above) - (p * below - low) - (high - p * above)
    return result


def area_under_risk(y: Array, p: Array) -> tuple[float, Array]:
    """Return the mean error rate over the 1, ..., n most confident rows, and the influence of each row.

    The area is the mean of error_i times sum_{k >= rank_i} 1/k, ties in random order. A further row at
    confidence s adds its own term and lowers the share of errors at every coverage beyond its rank.
    """
    n, errors = len(y), 1.0 - y
    order = np.argsort(-p, kind="stable")
    ties = np.unique(-p[order], return_inverse=True)[1].reshape(-1)
    inverse = 1.0 / np.arange(1, n + 1)
    counts = np.bincount(ties)
    own = (np.bincount(ties, weights=np.cumsum(inverse[::-1])[::-1]) / counts)[ties]
    mean_error = (np.bincount(ties, weights=errors[order]) / counts)[ties]
    beyond = np.cumsum((mean_error * inverse)[::-1])[::-1]  # errors at this rank or later, by 1 / rank
    beyond = (np.bincount(ties, weights=beyond) / counts)[ties]
    value = float(np.mean(errors[order] * own))
    influence = np.empty(n)
    influence[order] = errors[order] * own - beyond + errors.mean() - value
    return value, influence - influence.mean()


def _difference(first: str, second: str, one: _Score, other: _Score, confidence: float) -> Difference:
    """Return the difference with Student's t over clusters."""
    from scipy.special import stdtr, stdtrit

    count = len(one.influence)
    moved = one.influence - other.influence
    error = float(np.sqrt(count / (count - 1) * np.sum((moved - moved.mean()) ** 2)))
    difference = one.value - other.value
    if error <= 1e-12:  # every cluster says the same
        reach, p = 0.0, float(difference == 0)
    else:
        reach = float(stdtrit(count - 1, 0.5 + confidence / 2)) * error
        p = float(2 * stdtr(count - 1, -abs(difference) / error))
    p = max(p, 2.0 ** (1 - count))  # what all clusters on one side can show at most
    return Difference(first, second, difference, difference - reach, difference + reach, p, p)


def _shown(name: str, value: float) -> str:
    return f"{100 * value:.1f}%" if name in ("accuracy", "aurc") else f"{value:.4f}"
