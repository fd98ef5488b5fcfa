"""Compare models that have outcomes of their own, such as language models that answer the same questions.

Each score is a mean over rows or over pairs of rows, so that leaving out one cluster at a time gives its
standard error without a model of the outcomes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, TooFewRecordsError
from calibrant.formatting import dropped_note, pluralize, pvalue_phrase, pvalue_text
from calibrant.inference.compare_result import Difference
from calibrant.inference.paired_rows import labeled_clusters
from calibrant.inference.pvalues import holm, is_rejected
from calibrant.inputs import InputNames, missing_rows, open_share, outcomes_of, positive_column
from calibrant.records import Missing, check_records
from calibrant.results import Array, Result, Table, frame_of, number_cell, text_cell

MIN_CLUSTERS = 10
ROUNDING = 1e-12  # a difference of scores up to this is none
MAX_PAIRS_NAMED = 4  # in the sentences; the table has them all
ATB = "ATB, the squared calibration error averaged over all cuts in two bins, without its noise"
AURC = "mean error rate when only the most confident answers are given, over all coverages"
SCORES = {  # words, what the better of two models does, and the meaning
    "accuracy": ("accuracy", "is right more often than", "share of answers that are right"),
    "calibration": ("calibration", "is better calibrated than", ATB),
    "brier": (
        "Brier score",
        "has a better Brier score than",
        "mean squared difference between confidence and correctness",
    ),
    "aurc": ("risk-coverage", "makes fewer errors at the same coverage than", AURC),
}


@dataclass(frozen=True, slots=True, repr=False)
class OutcomeComparison(Result):
    """Models with their own outcomes, compared row by row.

    `scores` maps each score (accuracy, calibration, brier, aurc) to its value per model, and `differences` to
    its pairs, first minus second; `adjusted` allows for all pairs and all four scores (Holm). Intervals and
    p-values are approximate: jackknife over clusters with Student's t.
    """

    scores: Mapping[str, Mapping[str, float]]
    differences: Mapping[str, tuple[Difference, ...]]
    confidence: float
    n: int
    clusters: int
    dropped: int = 0

    DERIVED: ClassVar[tuple[str, ...]] = ("sentence", "meanings")
    meanings: ClassVar[Mapping[str, str]] = {name: texts[2] for name, texts in SCORES.items()}

    @property
    def models(self) -> tuple[str, ...]:
        """The names of the models."""
        return tuple(self.scores["accuracy"])

    @property
    def real(self) -> tuple[tuple[str, Difference], ...]:
        """The scores and pairs whose adjusted p-value is at most 1 - confidence, the surest first."""
        pairs = [(name, pair) for name, pairs in self.differences.items() for pair in pairs]
        sure = [one for one in pairs if is_rejected(one[1].adjusted, self.confidence)]
        return tuple(sorted(sure, key=lambda one: one[1].adjusted))

    def better(self, score: str, pair: Difference) -> tuple[str, str]:
        """Return the better model of a pair, and the other."""
        first = (pair.difference > 0) == (score == "accuracy")
        return (pair.first, pair.second) if first else (pair.second, pair.first)

    def __repr__(self) -> str:
        return f"OutcomeComparison({', '.join(self.models)}; n = {self.n:,}, clusters = {self.clusters:,})"

    def __str__(self) -> str:
        sentences = [self._sentence(name, pair) for name, pair in self.real[:MAX_PAIRS_NAMED]]
        more = len(self.real) - MAX_PAIRS_NAMED
        if more > 0:
            sentences.append(f"{pluralize(more, 'more difference is', 'more differences are')} real.")
        found = {name for name, _ in self.real}
        *others, last = [words for name, (words, _, _) in SCORES.items() if name not in found] or [""]
        if last:
            words = " or ".join(filter(None, (", ".join(others), last)))
            sentences.append(f"No difference in {words} is more than chance.")
        rows = f"{pluralize(self.n, 'question')}{dropped_note(self.dropped)}"
        grouped = "" if self.clusters == self.n else f" in {pluralize(self.clusters, 'cluster')}"
        return " ".join([*sentences, f"{rows}{grouped}; intervals and p-values are approximate."])

    def _sentence(self, name: str, pair: Difference) -> str:
        best, other = self.better(name, pair)
        shown = [_shown(name, max(0.0, self.scores[name][model])) for model in (best, other)]
        low, high = sorted((abs(pair.lower), abs(pair.upper)))
        sure = pvalue_phrase(pair.adjusted)
        between = f"difference {_shown(name, low)} to {_shown(name, high)}"
        return f"{best} {SCORES[name][1]} {other} ({shown[0]} against {shown[1]}; {between}, {sure})."

    def table(self) -> Table:
        """Return one line per score and pair."""
        columns = ("score", "first", "second", "value", "other", "difference", "from", "to", "adjusted p")
        lines = []
        for name, pairs in self.differences.items():
            for pair in pairs:
                numbers = [self.scores[name][pair.first], self.scores[name][pair.second]]
                numbers += [pair.difference, pair.lower, pair.upper]
                cells = [number_cell(x, _shown(name, x)) for x in numbers]
                texts = map(text_cell, (SCORES[name][0], pair.first, pair.second))
                lines.append((*texts, *cells, number_cell(pair.adjusted, pvalue_text(pair.adjusted))))
        return Table(columns, tuple(lines))

    def tables(self) -> tuple[Table]:
        return (self.table(),)

    def rows(self) -> tuple[Difference, ...]:
        return tuple(pair for pairs in self.differences.values() for pair in pairs)

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return a frame ("pandas", "polars" or "pyarrow") with a row per score and pair."""
        lines = [
            {"score": name, **pair.to_dict()} for name, pairs in self.differences.items() for pair in pairs
        ]
        return frame_of({key: [line[key] for line in lines] for key in lines[0]}, backend)


def compare_outcomes(
    outcomes: Any,
    predictions: Any,
    *,
    clusters: Any = None,
    missing: Missing = "error",
    pos_label: Any = None,
    confidence: float = 0.95,
) -> OutcomeComparison:
    open_share("confidence", confidence)
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
    """Return the rows that are complete for every model, their clusters, and how many others there are."""
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
    absent = missing_rows(*(column for pair in columns.values() for column in pair))
    given, absent = labeled_clusters(np.arange(n) if clusters is None else clusters, absent, n, missing)
    kept = np.ones(n, dtype=bool) if absent is None else ~absent
    found = given.take(kept)
    if found.number < MIN_CLUSTERS:
        unit = "complete rows" if clusters is None else "clusters"
        raise TooFewRecordsError("compare", f"needs {MIN_CLUSTERS} {unit} or more", f"got {found.number}")
    complete = {name: (y[kept], p[kept]) for name, (y, p) in columns.items()}
    return complete, found.codes, int(n - np.count_nonzero(kept))


class _Score(NamedTuple):
    value: float
    influence: Array  # of the records of each cluster, as the jackknife has it


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
    """Return ATB, the mean of (1 - |p_i - p_j|) r_i r_j, over pairs in different clusters."""
    r, n = y - p, len(y)
    sizes = np.bincount(codes).astype(np.float64)
    # pairs inside add at least sum var(y_i) / n^2, which favors the model whose answers vary less
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
    """Return the mean of error_i times sum_{k >= rank_i} 1/k, ties in random order, and its influences."""
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
    from scipy.special import stdtr, stdtrit

    count = len(one.influence)
    moved = one.influence - other.influence
    error = float(np.sqrt(count / (count - 1) * np.sum((moved - moved.mean()) ** 2)))
    difference = one.value - other.value
    if error <= ROUNDING:  # every cluster says the same
        reach, p = 0.0, float(abs(difference) <= ROUNDING)
    else:
        reach = float(stdtrit(count - 1, 0.5 + confidence / 2)) * error
        p = float(2 * stdtr(count - 1, -abs(difference) / error))
    p = max(p, 2.0 ** (1 - count))  # what all clusters on one side can show at most
    return Difference(first, second, difference, difference - reach, difference + reach, p, p)


def _shown(name: str, value: float) -> str:
    return f"{100 * value:.1f}%" if name in ("accuracy", "aurc") else f"{value:.4f}"
