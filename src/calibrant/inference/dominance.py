"""dominance: does anybody lose by using one model instead of another?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError
from calibrant.fits.crossfit import Responses
from calibrant.inference.dominance_over import UNNAMED, DominanceOver, at_start, named_baselines, names_of_two
from calibrant.inference.draw_quantiles import upper_quantile
from calibrant.inference.interval import check_confidence, check_resampling
from calibrant.inputs import Names, check_aligned, check_same_length, missing_rows, numeric_vector, row_labels
from calibrant.measures.decisions.thresholds import ThresholdLossCurve, curve_of
from calibrant.measures.decisions.worst_task import WorstTask, worst_loss, worst_task_of
from calibrant.numerals import confidence_text
from calibrant.records import Missing, check_records, warn_if_swapped
from calibrant.results import Array
from calibrant.seeds import checked_draws, in_blocks, recorded_seed

GRID = 500  # thresholds at which the band is drawn, at most


@dataclass(frozen=True, slots=True, eq=False)
class DominanceBand:
    """Pointwise confidence limits of the curve at some thresholds, ready to be drawn."""

    thresholds: Array
    lower: Array
    upper: Array


@dataclass(frozen=True, slots=True, eq=False)
class Dominance:
    """The most that anybody with payoffs in [0, 1] loses by using model a instead of model b.

    `loss` is 0 where a is at least as good as b for everybody on these records: then a dominates b, and
    nobody should prefer b. `task` is the decision task that loses most. [`lower`, `upper`] holds the
    loss in the population with at least the `confidence`, by resampling rows (None without draws). `curve`
    is the Murphy difference h: what somebody who acts above the threshold mu loses by using a instead of
    b; below 0, a is better there. `band` are its pointwise limits.
    """

    loss: float
    task: WorstTask
    lower: float | None
    upper: float | None
    curve: ThresholdLossCurve
    band: DominanceBand | None
    confidence: float
    n: int
    draws: int
    seed: int | None
    dropped: int = 0
    names: tuple[str, str] = UNNAMED

    @property
    def approximate(self) -> tuple[str, ...]:
        """The fields that hold only approximately."""
        return () if self.lower is None else ("lower", "upper", "band")

    @property
    def dominates(self) -> bool:
        """Whether a is at least as good as b at every threshold, on these records."""
        return bool(np.all(self.curve.peaks <= 1e-12))

    @property
    def dominated(self) -> bool:
        """Whether b is at least as good as a at every threshold, on these records."""
        return bool(np.all(np.minimum(self.curve.before, self.curve.after) >= -1e-12))

    def __repr__(self) -> str:
        limits = "" if self.lower is None else f" in [{self.lower:.4g}, {self.upper:.4g}]"
        return f"Dominance(loss = {self.loss:.4g}{limits}, n = {self.n:,})"

    def __str__(self) -> str:
        first, second = self.names
        if self.dominates and self.dominated:
            return f"{at_start(first)} and {second} serve everybody equally well on these records."
        if self.dominates:
            return f"{at_start(first)} dominates: on these records nobody should prefer {second}."
        where = " and ".join(f"{mu:.3g}" for mu in self.task.thresholds)
        limits = ""
        if self.lower is not None:
            sure = confidence_text(self.confidence)
            limits = f" ({sure} interval {self.lower:.4g} to {self.upper:.4g}, approximate)"
        also = f" {at_start(second)} dominates: nobody should prefer {first}." if self.dominated else ""
        return (
            f"Using {first} instead of {second} loses at most {self.loss:.4g} per record{limits}, "
            f"for somebody who changes action at {where}.{also}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the scalars and the task, ready for JSON."""
        return {
            "loss": self.loss,
            "lower": self.lower,
            "upper": self.upper,
            "confidence": self.confidence,
            "approximate": list(self.approximate),
            "dominates": self.dominates,
            "dominated": self.dominated,
            "thresholds": self.task.thresholds.tolist(),
            "payoff": self.task.payoff.tolist(),
            "n": self.n,
            "draws": self.draws,
            "seed": self.seed,
            "dropped": self.dropped,
            "names": list(self.names),
        }


@overload
def dominance(
    y_true: Any, prob_a: Any, prob_b: Mapping[str, Any], *, sample_weight: Any = None,
    names: Sequence[str] | None = None, missing: Missing = "error", confidence: float = 0.95,
    draws: int = 999, seed: int | None = None,
) -> DominanceOver: ...  # fmt: skip


@overload
def dominance(
    y_true: Any, prob_a: Any, prob_b: Any, *, sample_weight: Any = None,
    names: Sequence[str] | None = None, missing: Missing = "error", confidence: float = 0.95,
    draws: int = 999, seed: int | None = None,
) -> Dominance: ...  # fmt: skip


def dominance(
    y_true: Any,
    prob_a: Any,
    prob_b: Any,
    *,
    sample_weight: Any = None,
    names: Sequence[str] | None = None,
    missing: Missing = "error",
    confidence: float = 0.95,
    draws: int = 999,
    seed: int | None = None,
) -> Dominance | DominanceOver:
    """Return the most that anybody loses by using model a instead of model b, on the same rows.

    Over all decision tasks with payoffs in [0, 1], the omniprediction gap of a against b (Ehm, Gneiting,
    Jordan & Krüger 2016, Murphy diagrams; section 1.4 of the survey). Unlike decision_loss it needs no
    predictions that repeat.

    Parameters
    ----------
    y_true, prob_a, prob_b : array
        Outcomes, and the predictions of the two models for the same records. Several baselines are given
        as a mapping of names to columns, or as a list of columns.
    sample_weight : array, optional
        Weights of the records.
    names : sequence of str, optional
        What the printed sentence calls the two models; by default the names of the columns, where they are
        series that have one.
    missing : {"error", "drop"}
        "drop" leaves out a row that lacks a value for either model.
    confidence : float
        Of the interval and of the band.
    draws : int
        Resamples of the rows, in pairs; 0 for no interval and no band.
    seed : int, optional
        Of the resamples; recorded in the result.

    Returns
    -------
    Dominance
        Prints as a sentence. For several baselines DominanceOver: the largest loss, the baseline that
        attains it, and the comparison with each.

    Examples
    --------
    >>> y, good, bad = [0, 0, 1, 1], [0.2, 0.2, 0.8, 0.8], [0.5, 0.5, 0.5, 0.5]
    >>> dominance(y, good, bad, draws=0).dominates
    True
    >>> print(dominance(y, good, bad, names=["lr", "base rate"], draws=0))
    lr dominates: on these records nobody should prefer base rate.
    >>> round(dominance(y, bad, good, draws=0).loss, 12)
    0.5
    >>> dominance(y, bad, {"better": good, "same": bad}, draws=0)
    DominanceOver(loss = 0.5, worst = 'better', of 2)
    """
    check_confidence(confidence)
    baselines = named_baselines(prob_b)
    if baselines is None:
        both = names_of_two(prob_a, prob_b, names)
        return _over_one(y_true, prob_a, prob_b, both, sample_weight, missing, confidence, draws, seed)
    tail, used = (1 - float(confidence)) / len(baselines), seed if draws == 0 else recorded_seed(seed)
    model, each = names_of_two(prob_a, None, names)[0], {}
    for name, column in baselines.items():
        both = (model, name)
        try:
            each[name] = _over_one(
                y_true, prob_a, column, both, sample_weight, missing, 1 - tail, draws, used
            )
        except InvalidInputError as error:
            raise type(error)(f"baseline {name!r}: {error}") from None
    return DominanceOver(each, float(confidence))


def _over_one(
    y_true: Any, prob_a: Any, prob_b: Any, names: tuple[str, str], sample_weight: Any, missing: Missing,
    confidence: float, draws: int, seed: int | None,
) -> Dominance:  # fmt: skip
    """Compare with one baseline."""
    outcomes, a, b, weights, dropped = _paired(y_true, prob_a, prob_b, sample_weight, missing)
    groups = Responses(a, b, weights, weights * outcomes, np.ones(len(a), dtype=np.int64))
    curve = curve_of(groups)
    task = worst_task_of(curve)
    n, confidence = len(a), float(confidence)
    if isinstance(draws, (int, np.integer)) and not isinstance(draws, bool) and draws == 0:
        return Dominance(task.loss, task, None, None, curve, None, confidence, n, 0, None, dropped, names)
    check_resampling(n)
    count, used = checked_draws(draws), recorded_seed(seed)
    lower, upper, band = _uncertainty(groups, outcomes, curve, confidence, count, used)
    return Dominance(task.loss, task, lower, upper, curve, band, confidence, n, count, used, dropped, names)


def _paired(
    y_true: Any, prob_a: Any, prob_b: Any, sample_weight: Any, missing: Missing
) -> tuple[Array, Array, Array, Array, int]:
    """Return outcomes, both predictions and normalised weights of the rows complete for both models."""
    a, b = (
        numeric_vector(prob_a, "prob_a").astype(np.float64),
        numeric_vector(prob_b, "prob_b").astype(np.float64),
    )
    check_same_length(a, b, ("prob_a", "prob_b"))
    check_aligned(prob_b, row_labels(prob_a), ("prob_b", "prob_a"))
    check_aligned(y_true, row_labels(prob_a), ("y_true", "prob_a"))
    absent = missing_rows(a, b)
    if absent is not None and missing == "drop":  # a gap in one model is a gap in both
        prob_a, prob_b = np.where(absent, np.nan, a), np.where(absent, np.nan, b)
    first = check_records(y_true, prob_a, sample_weight, missing, Names(prediction="prob_a"))
    second = check_records(y_true, prob_b, sample_weight, missing, Names(prediction="prob_b"))
    for checked, name in ((first, "prob_a"), (second, "prob_b")):
        warn_if_swapped(checked, Names(prediction=name))
    y, a, b = first.outcome.astype(np.float64), first.prediction + 0.0, second.prediction + 0.0
    mass = np.ones(len(a)) if first.weight is None else first.weight / first.largest
    order = np.lexsort((y, b, a, mass))  # rows that tie are the same row: their order decides nothing
    return y[order], a[order], b[order], mass[order] / mass[order].sum(), first.dropped


class _Curves:
    """The curve at a grid of thresholds, from either side, for any weights of the rows."""

    def __init__(self, groups: Responses, outcomes: Array, thresholds: Array) -> None:
        self.thresholds = thresholds
        self.size = len(thresholds) + 1
        self.outcomes = outcomes
        both = (groups.trusted, groups.rates)
        self.after = [np.searchsorted(thresholds, x, side="left") for x in both]  # v <= mu waits
        self.before = [np.searchsorted(thresholds, x, side="right") for x in both]  # v < mu waits

    def of(self, weights: Array) -> Array:
        """Return (2, grid): the limits from the left and from the right."""
        return np.stack([self._limit(self.before, weights), self._limit(self.after, weights)])

    def _limit(self, places: list[npt.NDArray[np.intp]], weights: Array) -> Array:
        """Sum over rows that wait by a and act by b, less those the other way round."""
        one, other = places
        height, slope = (
            np.cumsum(np.bincount(one, x, self.size) - np.bincount(other, x, self.size))[:-1]
            for x in (weights * self.outcomes, weights)
        )
        return np.asarray(height - self.thresholds * slope)


def _uncertainty(
    groups: Responses, outcomes: Array, curve: ThresholdLossCurve, confidence: float, draws: int, seed: int
) -> tuple[float, float, DominanceBand]:
    """Resample the rows: limits of the loss that hold jointly over all tasks, and a pointwise band.

    The loss is a supremum of linear functionals of the curve, so two losses differ by at most the loss of
    the difference of their curves; that difference is resampled.
    """
    thresholds = _spread(curve.thresholds)
    curves, n = _Curves(groups, outcomes, thresholds), len(groups.weights)
    whole = curves.of(groups.weights)

    def work(generator: np.random.Generator, rows: int) -> Array:
        moved = []
        for _ in range(rows):
            times = np.bincount(generator.integers(0, n, n), minlength=n)
            mass = times * groups.weights
            moved.append(curves.of(mass / mass.sum()) - whole)
        return np.stack(moved)

    moved = in_blocks(work, draws, width=n, seed=seed, threads=1)
    over = np.array([worst_loss(thresholds, step.max(axis=0)) for step in moved])
    under = np.array([worst_loss(thresholds, (-step).max(axis=0)) for step in moved])
    loss, tail = worst_task_of(curve).loss, (1 + confidence) / 2
    lower = max(0.0, loss - upper_quantile(over, tail))
    upper = min(1.0, loss + upper_quantile(under, tail))
    low, high = (np.quantile(moved.mean(axis=1), share, axis=0) for share in (1 - tail, tail))
    centre = whole.mean(axis=0)
    return lower, upper, DominanceBand(thresholds, centre - high, centre - low)


def _spread(thresholds: Array) -> Array:
    """Return the thresholds, or GRID of them where there are more."""
    if len(thresholds) <= GRID:
        return thresholds
    return thresholds[np.unique(np.linspace(0, len(thresholds) - 1, GRID).round().astype(np.intp))]
