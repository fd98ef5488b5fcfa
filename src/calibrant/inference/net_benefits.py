"""net_benefits: decision curves of several models on the same rows, with intervals and joint bands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from calibrant.formatting import dropped_note, format_value, pluralize
from calibrant.inference.decision_bands import DecisionRows, benefit, critical_value, difference
from calibrant.inference.intervals import check_confidence
from calibrant.inference.paired_rows import PairedRows, models_given, named_models, paired_rows
from calibrant.inference.signs import ClusterSummary
from calibrant.metrics.decisions.fixed_payoff import checked_thresholds
from calibrant.parallel import checked_draws, recorded_seed
from calibrant.records import Missing
from calibrant.results import (
    Array,
    Result,
    Table,
    TableCell,
    frame_of,
    number_cell,
    text_cell,
)

EVERYBODY, NOBODY = "treat all", "treat none"
FEW = 6  # thresholds that a sentence names one by one


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Benefit(Result):
    """Net benefit at each threshold, in true positives per record, between `lower` and `upper`."""

    value: Array
    lower: Array
    upper: Array


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BenefitDifference(Result):
    """Net benefit of the first model minus that of the second at each threshold.

    [`lower`, `upper`] holds the difference at one threshold that was chosen beforehand; the band
    [`band_lower`, `band_upper`] holds those at all thresholds, and for all pairs of models, at once.
    """

    first: str
    second: str
    value: Array
    lower: Array
    upper: Array
    band_lower: Array
    band_upper: Array

    @property
    def better(self) -> npt.NDArray[np.int64]:
        """1 where the first model is better beyond chance, -1 where the second is, and 0 elsewhere."""
        return np.asarray((self.band_lower > 0).astype(np.int64) - (self.band_upper < 0))


@dataclass(frozen=True, slots=True, eq=False)
class NetBenefits(Result):
    """Decision curves of models on the same rows; treating none has 0 at every threshold.

    Intervals are for one threshold at a time: read them at thresholds chosen beforehand. A difference is
    called beyond chance only where the joint band of all thresholds and pairs leaves out 0.
    """

    thresholds: Array
    models: Mapping[str, Benefit]
    treat_all: Benefit
    differences: tuple[BenefitDifference, ...]
    confidence: float
    n: int
    dropped: int
    draws: int = 0
    seed: int | None = None
    clusters: ClusterSummary | None = None

    DERIVED: ClassVar[tuple[str, ...]] = ("sentence", "approximate")

    def __repr__(self) -> str:
        count = pluralize(len(self.thresholds), "threshold")
        return f"NetBenefits({', '.join(self.models)}; {count}, n = {self.n:,})"

    @property
    def approximate(self) -> tuple[str, ...]:
        """The fields of the curves that hold only approximately."""
        return ("lower", "upper", *(("band_lower", "band_upper") if self.differences else ()))

    def best(self) -> list[str]:
        """Return who has the largest net benefit at each threshold; treating all or none may be."""
        names = [*self.models, EVERYBODY, NOBODY]
        curves = [benefit.value for benefit in self.models.values()]
        table = np.stack([*curves, self.treat_all.value, np.zeros(len(self.thresholds))])
        return [names[k] for k in np.argmax(table, axis=0)]

    def __str__(self) -> str:
        return " ".join([*map(self._sure, self.differences), *self._largest(), self._how()])

    def _largest(self) -> list[str]:
        """Say where each model has the largest net benefit; no winner where chance explains who leads."""
        if self.differences and not any(pair.better.any() for pair in self.differences):
            return []
        best = np.array(self.best())
        return [f"{m} has the largest net benefit at {self._thresholds(best == m)}." for m in self.models]

    def _sure(self, pair: BenefitDifference) -> str:
        if not pair.better.any():
            count = pluralize(len(self.thresholds), "threshold")
            return f"{pair.first} and {pair.second} differ at none of {count} by more than chance."
        first, second = self._thresholds(pair.better > 0), self._thresholds(pair.better < 0)
        return f"Beyond chance, {pair.first} is better than {pair.second} at {first}, and worse at {second}."

    def _thresholds(self, chosen: npt.NDArray[np.bool_]) -> str:
        """Say at how many thresholds, and at which: each of a few, or the two ends of an unbroken run."""
        at = self.thresholds[chosen]
        places = np.flatnonzero(chosen)
        which = ""
        if 0 < len(at) <= FEW:
            which = f" ({', '.join(f'{one:g}' for one in at)})"
        elif len(at) and places[-1] - places[0] + 1 == len(at):
            which = f" ({at[0]:g} to {at[-1]:g})"
        return f"{len(at) or 'none'} of {pluralize(len(self.thresholds), 'threshold')}{which}"

    def _how(self) -> str:
        rows = f"{pluralize(self.n, 'row')}{dropped_note(self.dropped)}"
        joint = "; claims hold over all thresholds at once" if self.differences else ""
        related = "" if self.clusters is None else f" {self.clusters}"
        return f"{rows}; approximate {100 * self.confidence:g} % intervals for one threshold{joint}.{related}"

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return a frame ("pandas", "polars" or "pyarrow"): one row per curve and threshold.

        Curves of the models and of treating all come first; then, with the second model under `minus`, the
        differences of every two models.
        """
        curves: list[tuple[str, str | None, Benefit | BenefitDifference]] = [
            *((name, None, benefit) for name, benefit in self._curves().items()),
            *((pair.first, pair.second, pair) for pair in self.differences),
        ]
        count = len(self.thresholds)
        columns = {
            "model": [name for name, _, _ in curves for _ in range(count)],
            "minus": [other for _, other, _ in curves for _ in range(count)],
            "threshold": np.tile(self.thresholds, len(curves)).tolist(),
            "net_benefit": np.concatenate([curve.value for _, _, curve in curves]).tolist(),
            "lower": np.concatenate([curve.lower for _, _, curve in curves]).tolist(),
            "upper": np.concatenate([curve.upper for _, _, curve in curves]).tolist(),
        }
        return frame_of(columns, backend)

    def _curves(self) -> dict[str, Benefit]:
        return {**self.models, EVERYBODY: self.treat_all}

    def sheet(self) -> Table:
        """Return the table: net true positives per 1,000 records, one line per threshold."""
        curves = self._curves()
        lines = tuple(
            (
                number_cell(t, f"{t:g}"),
                *(_per_thousand(benefit, k) for benefit in curves.values()),
                text_cell(best),
            )
            for k, (t, best) in enumerate(zip(self.thresholds.tolist(), self.best(), strict=True))
        )
        return Table(("threshold", *(f"{name} per 1,000" for name in curves), "largest"), lines)

    def difference_sheet(self) -> Table:
        """Return the table of what each model gains over another, one line per pair and threshold."""
        at = [number_cell(t, f"{t:g}") for t in self.thresholds.tolist()]
        lines = tuple(
            (text_cell(f"{pair.first} - {pair.second}"), at[k], _per_thousand(pair, k), _better(pair, k))
            for pair in self.differences
            for k in range(len(at))
        )
        return Table(("models", "threshold", "difference per 1,000", "better"), lines)

    def tables(self) -> tuple[Table, ...]:
        """Return the tables of the curves and of the differences."""
        return (self.sheet(), *((self.difference_sheet(),) if self.differences else ()))


def _better(pair: BenefitDifference, k: int) -> TableCell:
    """Name the better model where the joint band leaves out 0."""
    better = pair.better[k]
    return text_cell("within chance" if better == 0 else pair.first if better > 0 else pair.second)


def _per_thousand(benefit: Benefit | BenefitDifference, k: int) -> TableCell:
    value, low, high = (1000 * float(part[k]) for part in (benefit.value, benefit.lower, benefit.upper))
    return number_cell(value, f"{format_value(value)} ({format_value(low)} to {format_value(high)})")


def net_benefits(
    y_true: Any,
    *predictions: Any,
    thresholds: npt.ArrayLike | None = None,
    sample_weight: Any = None,
    clusters: Any = None,
    names: list[str] | None = None,
    missing: Missing = "error",
    pos_label: Any = None,
    outcome: str | None = None,
    prediction: Sequence[str] | str | None = None,
    weight: str | None = None,
    confidence: float = 0.95,
    draws: int = 999,
    seed: int | None = 0,
) -> NetBenefits:
    """Return the decision curves of one or more models on the same rows, with intervals.

    The interval at a threshold joins Wilson's intervals of the shares of true and false positives, with the
    variance that the records show, so weights that follow the outcome are allowed. "Beyond chance" is judged
    by a band over all thresholds and pairs, whose width comes from random signs (a sign swaps two models in
    a record): of two exchangeable models it names a better one in at most 1 - `confidence` of data sets.

    Parameters
    ----------
    y_true, predictions, sample_weight, names
        Outcomes, then the predictions one after the other, or one mapping from names to predictions, or a
        frame with a column for each model. Or one frame with `outcome`, `prediction` and `weight`.
    thresholds
        Probabilities from which on a record is treated; 0.01, 0.02, ..., 0.99 by default.
    clusters
        Labels of rows that belong together, or the name of their column.
    missing, pos_label, outcome, prediction, weight
        As in `compare`: a row that lacks a value for one model is left out for all.
    confidence
        Of the intervals and of the band.
    draws, seed
        Number of random signs per row for the band, and their seed (None for a fresh one).

    Returns
    -------
    NetBenefits

    Examples
    --------
    >>> y, p = [0, 1, 1, 0] * 50, [0.2, 0.4, 0.8, 0.6] * 50
    >>> found = net_benefits(y, {"model": p, "coin": [0.5] * 200}, thresholds=[0.3, 0.7])
    >>> found.best()
    ['model', 'model']
    """
    given = models_given(
        y_true, predictions, sample_weight, clusters, outcome=outcome, prediction=prediction, weight=weight
    )
    check_confidence(confidence)
    asked, count, used = checked_thresholds(thresholds), checked_draws(draws), recorded_seed(seed)
    named = named_models(given.predictions, names, 1)
    paired = paired_rows(given.y_true, named, given.sample_weight, missing, pos_label, given.clusters)
    curves = _Curves.of(paired, asked, confidence)
    pairs = list(combinations(paired.models, 2))
    share = 1 - (1 - confidence) / max(1, len(pairs))
    return NetBenefits(
        thresholds=asked,
        models={name: curves.benefit(acts) for name, acts in curves.acts.items()},
        treat_all=curves.benefit(np.full(len(paired.outcomes), len(asked))),
        differences=tuple(curves.difference(*pair, share=share, draws=count, seed=used) for pair in pairs),
        confidence=confidence,
        n=len(paired.outcomes),
        dropped=paired.dropped,
        draws=count if pairs else 0,
        seed=used if pairs else None,
        clusters=curves.clusters,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Curves:
    """The rows, and at how many of the ascending thresholds each model treats them."""

    rows: DecisionRows
    acts: Mapping[str, npt.NDArray[np.int64]]
    order: npt.NDArray[np.intp]  # of the thresholds asked for
    odds: Array
    z: float
    clusters: ClusterSummary | None

    @classmethod
    def of(cls, paired: PairedRows, asked: Array, confidence: float) -> _Curves:
        n = len(paired.outcomes)
        w = np.full(n, 1.0 / n) if paired.weights is None else paired.weights / paired.weights.sum()
        order = np.argsort(asked, kind="stable")
        grid = asked[order]
        rows = DecisionRows(paired.outcomes, w, paired.clusters)
        acts = {name: np.searchsorted(grid, p, side="right") for name, p in paired.models.items()}
        found = paired.cluster_summary()
        return cls(rows, acts, order, grid / (1 - grid), critical_value(confidence, found), found)

    def benefit(self, acts: npt.NDArray[np.int64]) -> Benefit:
        """Return the net benefit of treating each record at that many thresholds."""
        ends = benefit(self.rows, acts, np.ones(len(self.odds)), self.odds, self.z)
        return Benefit(*map(self._as_asked, (ends.value, ends.lower, ends.upper)))

    def difference(self, first: str, second: str, **how: Any) -> BenefitDifference:
        """Return what the first model gains over the second."""
        one, other = self.acts[first], self.acts[second]
        ends, band = difference(self.rows, one, other, np.ones(len(self.odds)), self.odds, self.z, **how)
        parts = (ends.value, ends.lower, ends.upper, band.lower, band.upper)
        return BenefitDifference(first, second, *map(self._as_asked, parts))

    def _as_asked(self, ascending: Array) -> Array:
        """Put values at ascending thresholds in the order in which thresholds were given."""
        found = np.empty_like(ascending)
        found[self.order] = ascending
        return found
