"""net_benefits: decision curves of several models on the same rows, with intervals and joint bands.

docs/interval-proofs.md has how shares are joined to intervals, and why these and the bands hold.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.clusters import Clusters
from calibrant.formatting import dropped_note, format_value, pluralize
from calibrant.inference.bootstrap import upper_quantile
from calibrant.inference.group_interval import wilson_interval
from calibrant.inference.null import ClusterSummary, draw_signs
from calibrant.inference.paired_rows import PairedRows, paired_models
from calibrant.inference.pvalues import bonferroni
from calibrant.inputs import open_share
from calibrant.metrics.calling import shares_parameters
from calibrant.metrics.decisions.fixed_payoff import checked_thresholds
from calibrant.parallel import DRAWS, checked_draws, dot, in_blocks, recorded_seed
from calibrant.records import Missing
from calibrant.results import Array, Result, Table, TableCell, frame_of, number_cell, text_cell

MAX_CLUSTER_TOTALS = 2**22  # held at a time
MAX_SIGNED = 50_000  # records that differ, up to which each has its own sign; more are drawn as normal cells

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Benefit(Result):
    """Net benefit at each threshold, in true positives per record, between `lower` and `upper`."""

    value: Array
    lower: Array
    upper: Array


class Share(NamedTuple):
    """Records that count from threshold `start` to before `stop`, and what each of them adds to the share."""

    start: Ints
    stop: Ints
    terms: Array

    def summed(self, terms: Array, width: int) -> Array:
        steps = np.bincount(self.start, terms, width + 1) - np.bincount(self.stop, terms, width + 1)
        found = np.cumsum(steps)[:width]
        return np.where(found > 1e-13 * terms.sum(), found, 0.0)  # the rest is rounding


@dataclass(frozen=True, slots=True, eq=False)
class _Shares:
    factors: Array  # (shares, thresholds)
    value: Array
    covariance: Array  # (shares, shares, thresholds)
    size: Array  # that Wilson's intervals take

    @classmethod
    def of(cls, rows: PairedRows, shares: Sequence[Share], factors: Array) -> _Shares:
        w, clusters, width = rows.mass, rows.clusters, factors.shape[1]
        value = np.stack([share.summed(share.terms, width) for share in shares])
        covariance, effect, squares = _by_records(shares, w, value), 1.0, dot(w, w)
        if clusters is not None:
            covariance = _by_clusters(shares, clusters, w, value, covariance)
            totals = clusters.total(w)
            effect = max(1.0, dot(totals, totals) / squares)  # none was seen: assume the worst correlation
        variance = np.einsum("iit->it", covariance)
        largest = [dot(w, one.terms) / one.terms.sum() if one.terms.any() else w.max() for one in shares]
        unseen = np.array([1 / (effect * max(squares, weight)) for weight in largest])[:, None]
        inner = (value > 1e-14) & (value < 1 - 1e-14) & (variance > 0)
        spread = np.divide(value * (1 - value), variance, out=np.ones_like(value), where=inner)
        return cls(factors, value, covariance, np.where(inner, spread, unseen))

    def ends(self, z: float) -> Benefit:
        low, high = wilson_interval(self.value, self.size, z)
        total = (self.factors * self.value).sum(axis=0)
        positive = self.factors > 0
        down = self.factors * (self.value - np.where(positive, low, high))
        up = self.factors * (np.where(positive, high, low) - self.value)
        return Benefit(total, total - self._joined(down), total + self._joined(up))

    def _joined(self, parts: Array) -> Array:
        spread = np.sqrt(np.maximum(np.einsum("iit->it", self.covariance), 0.0))
        squares = (parts**2).sum(axis=0)
        for i, j in combinations(range(len(parts)), 2):
            product = spread[i] * spread[j]
            related = np.divide(self.covariance[i, j], product, out=np.zeros_like(product), where=product > 0)
            signs = np.sign(self.factors[i]) * np.sign(self.factors[j])
            squares = squares + 2 * np.clip(related, -1, 1) * signs * parts[i] * parts[j]
        return np.asarray(np.sqrt(np.maximum(squares, 0.0)))


def critical_value(confidence: float, clusters: ClusterSummary | None = None) -> float:
    from scipy.special import ndtri, stdtrit

    share = (1 + confidence) / 2
    return float(ndtri(share) if clusters is None else stdtrit(max(1.0, clusters.effective - 1), share))


def benefit(rows: PairedRows, acts: Ints, gain: Array, cost: Array, z: float) -> Benefit:
    start, (events, others) = np.zeros_like(acts), rows.events_and_others
    shares = [Share(start, acts, events), Share(start, acts, others)]
    return _Shares.of(rows, shares, np.stack([gain, -cost])).ends(z)


def difference(
    rows: PairedRows,
    first: Ints,
    second: Ints,
    gain: Array,
    cost: Array,
    z: float,
    *,
    share: float,
    draws: int,
    seed: int,
) -> tuple[Benefit, Benefit]:
    """Return what the first model gains over the second: intervals by threshold, and a joint band."""
    low, high = np.minimum(first, second), np.maximum(first, second)
    stops = np.where(first > second, high, low), np.where(second > first, high, low)
    kinds = [Share(low, stop, terms) for terms in rows.events_and_others for stop in stops]
    shares = _Shares.of(rows, kinds, np.stack([gain, -gain, -cost, cost]))
    del kinds, stops  # several columns, while the draws need memory
    single = shares.ends(z)
    drawn, mass = _drawn_curves(rows, low, high, np.where(first > second, 1.0, -1.0), gain, cost, draws, seed)
    half = np.minimum(single.value - single.lower, single.upper - single.value)
    centered = drawn - mass * single.value
    band = shares.ends(max(z, _critical(centered, half / z, share)))
    spread = np.sqrt(np.mean(drawn**2, axis=0))
    beyond = np.abs(single.value) > _critical(drawn, spread, share) * spread
    lower = np.where(beyond, band.lower, np.minimum(band.lower, 0.0))
    return single, Benefit(band.value, lower, np.where(beyond, band.upper, np.maximum(band.upper, 0.0)))


def _critical(drawn: Array, scale: Array, share: float) -> float:
    inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    return upper_quantile(np.abs(drawn * inverse).max(axis=1), share)


def _by_records(shares: Sequence[Share], w: Array, value: Array) -> Array:
    """Return sum of w^2 (I_i - a_i) (I_j - a_j) over the records, from sums over those that count."""
    (number, width), squares = value.shape, dot(w, w)
    own = [share.summed(w * share.terms, width) for share in shares]
    covariance = np.empty((number, number, width))
    for i, one in enumerate(shares):
        for j in range(i, number):
            other = shares[j]
            same = one.stop is other.stop  # the same records: i = j, or events and others of fractions
            both = one.summed(one.terms * other.terms, width) if same else 0.0
            found = both - value[i] * own[j] - value[j] * own[i] + value[i] * value[j] * squares
            covariance[i, j] = covariance[j, i] = found
    return covariance


def _by_clusters(shares: Sequence[Share], clusters: Clusters, w: Array, value: Array, plain: Array) -> Array:
    """Return the same with cluster totals in place of records; never less variance than `plain`."""
    (number, width), whole = value.shape, clusters.total(w)
    found, together = np.zeros((number, number, width)), max(1, MAX_CLUSTER_TOTALS // (width + 1))
    steps = [_steps(clusters, share, width).T.tocsr() for share in shares]
    for first in range(0, clusters.number, together):
        part = slice(first, first + together)
        totals = np.stack([np.cumsum(table[part].toarray(), axis=1)[:, :width] for table in steps])
        totals -= whole[part, None] * value[:, None]
        found += np.einsum("ict,jct->ijt", totals, totals)
    least, own = np.einsum("iit->it", plain), np.einsum("iit->it", found)
    factor = np.sqrt(np.maximum(1.0, np.divide(least, own, out=np.ones_like(own), where=own > 0)))
    return np.asarray(found * factor[:, None] * factor[None])


def _steps(clusters: Clusters, share: Share, width: int) -> Any:
    """Return what each cluster adds to the share at each threshold (up at the start, down at the stop)."""
    start, stop = share.start, share.stop
    terms = share.terms * (stop > start)  # what cancels leaves no rounding behind
    return clusters.matrix(terms, start, width + 1) - clusters.matrix(terms, stop, width + 1)


def _drawn_curves(
    rows: PairedRows, low: Ints, high: Ints, sign: Array, gain: Array, cost: Array, draws: int, seed: int
) -> tuple[Array, Array]:
    """Return the differences under random signs, and the signed sums of the weights, one row per draw."""
    differ, width = high > low, len(gain)
    if not differ.any():
        return np.zeros((draws, width)), np.zeros((draws, 1))
    w, y, low, high = sign[differ] * rows.mass[differ], rows.outcomes[differ], low[differ], high[differ]
    parts = np.stack([w * y, w * (1 - y)])
    rest = math.sqrt(max(0.0, dot(rows.mass, rows.mass) - dot(w, w)))
    units, normal = Clusters.of_single_records(len(low)), False
    if rows.clusters is not None:
        units = rows.clusters.take(differ)
    elif len(low) > MAX_SIGNED:
        # the sum of many signs is nearly normal: records that count between the same thresholds are merged
        # into a cell with a normal multiplier and the root of their sum of squares
        codes = (low * (int(high.max()) + 1) + high) * 3 + (parts[0] != 0) + 2 * (parts[1] != 0) - 1
        _, first, cell = np.unique(codes, return_index=True, return_inverse=True)
        parts = np.stack([np.sqrt(np.bincount(cell.reshape(-1), terms**2)) for terms in parts])
        low, high, units, normal = low[first], high[first], Clusters.of_single_records(len(first)), True
    events, others = (_steps(units, Share(low, high, terms), width) for terms in parts)
    number, plain = units.number, units.total(np.abs(parts).sum(axis=0))

    def work(generator: np.random.Generator, count: int) -> Array:
        if normal:
            multipliers = generator.standard_normal((number, count))
        else:
            multipliers = draw_signs(generator, number, count)
        up, down = (np.cumsum((part @ multipliers)[:width], axis=0) for part in (events, others))
        mass = plain @ multipliers + rest * generator.standard_normal(count)
        return np.column_stack([mass, (gain[:, None] * up - cost[:, None] * down).T])

    drawn = in_blocks(work, draws, width=max(number, width), seed=seed, threads=1)
    return drawn[:, 1:], drawn[:, :1]


TREAT_ALL, TREAT_NONE = "treat all", "treat none"
MAX_THRESHOLDS_NAMED = 6  # thresholds that a sentence names one by one


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BenefitDifference(Result):
    """Net benefit of the first model minus that of the second at each threshold."""

    first: str
    second: str
    value: Array
    lower: Array  # of one threshold that was chosen beforehand
    upper: Array
    band_lower: Array  # of all thresholds and all pairs of models at once
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
        """Return who has the largest net benefit at each threshold: a model, treating all or none."""
        names = [*self.models, TREAT_ALL, TREAT_NONE]
        curves = [benefit.value for benefit in self.models.values()]
        table = np.stack([*curves, self.treat_all.value, np.zeros(len(self.thresholds))])
        return [names[k] for k in np.argmax(table, axis=0)]

    def __str__(self) -> str:
        rows = f"{pluralize(self.n, 'row')}{dropped_note(self.dropped)}"
        joint = "; claims hold over all thresholds at once" if self.differences else ""
        related = "" if self.clusters is None else f" {self.clusters}"
        note = f"{rows}; approximate {100 * self.confidence:g}% intervals for one threshold{joint}.{related}"
        return " ".join([*map(self._verdict, self.differences), *self._largest(), note])

    def _largest(self) -> list[str]:
        """Say where each model has the largest net benefit; no winner where chance explains who leads."""
        if self.differences and not any(pair.better.any() for pair in self.differences):
            return []
        best = np.array(self.best())
        return [f"{m} has the largest net benefit at {self._thresholds(best == m)}." for m in self.models]

    def _verdict(self, pair: BenefitDifference) -> str:
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
        if 0 < len(at) <= MAX_THRESHOLDS_NAMED:
            which = f" ({', '.join(f'{one:g}' for one in at)})"
        elif len(at) and places[-1] - places[0] + 1 == len(at):
            which = f" ({at[0]:g} to {at[-1]:g})"
        return f"{len(at) or 'none'} of {pluralize(len(self.thresholds), 'threshold')}{which}"

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
        return {**self.models, TREAT_ALL: self.treat_all}

    def sheet(self) -> Table:
        """Return the table: net true positives per 1,000 records, one line per threshold."""
        curves = self._curves()
        lines = []
        for k, (t, best) in enumerate(zip(self.thresholds.tolist(), self.best(), strict=True)):
            benefits = (_per_thousand(benefit, k) for benefit in curves.values())
            lines.append((number_cell(t, f"{t:g}"), *benefits, text_cell(best)))
        return Table(("threshold", *(f"{name} per 1,000" for name in curves), "largest"), tuple(lines))

    def difference_sheet(self) -> Table:
        """Return the table of what each model gains over another, one line per pair and threshold."""
        lines = []
        for pair in self.differences:
            winners = {0: "within chance", 1: pair.first, -1: pair.second}
            for k, (t, better) in enumerate(zip(self.thresholds.tolist(), pair.better.tolist(), strict=True)):
                names = f"{pair.first} - {pair.second}"
                cells = text_cell(names), number_cell(t, f"{t:g}"), _per_thousand(pair, k)
                lines.append((*cells, text_cell(winners[better])))
        return Table(("models", "threshold", "difference per 1,000", "better"), tuple(lines))

    def tables(self) -> tuple[Table, ...]:
        return (self.sheet(), *((self.difference_sheet(),) if self.differences else ()))


def _per_thousand(benefit: Benefit | BenefitDifference, k: int) -> TableCell:
    value, low, high = (1000 * float(part[k]) for part in (benefit.value, benefit.lower, benefit.upper))
    return number_cell(value, f"{format_value(value)} ({format_value(low)} to {format_value(high)})")


@shares_parameters("")
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
    draws: int = DRAWS,
    seed: int | None = 0,
) -> NetBenefits:
    """Return the decision curves of one or more models on the same rows, with intervals.

    The interval at a threshold joins Wilson's intervals of the shares of true and false positives, with the
    variance that the records show, so weights that follow the outcome are allowed. "Beyond chance" is judged
    by a band over all thresholds and pairs: of two exchangeable models it names a better one in at most
    1 - `confidence` of data sets.

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
    draws
        Number of random signs per row for the band.

    Examples
    --------
    >>> y, p = [0, 1, 1, 0] * 50, [0.2, 0.4, 0.8, 0.6] * 50
    >>> found = net_benefits(y, {"model": p, "coin": [0.5] * 200}, thresholds=[0.3, 0.7])
    >>> found.best()
    ['model', 'model']
    """
    open_share("confidence", confidence)
    asked, count, used = checked_thresholds(thresholds), checked_draws(draws), recorded_seed(seed)
    columns = {"outcome": outcome, "prediction": prediction, "weight": weight}
    rows = paired_models(
        y_true, predictions, sample_weight, clusters, names, columns, missing, pos_label, least=1
    ).in_order()
    n, order, found = len(rows.outcomes), np.argsort(asked, kind="stable"), rows.cluster_summary()
    grid = asked[order]
    z = critical_value(confidence, found)
    payoffs = np.ones(len(grid)), grid / (1 - grid)

    as_asked = np.argsort(order)

    def curve(acts: Ints) -> Benefit:
        ends = benefit(rows, acts, *payoffs, z)
        return Benefit(ends.value[as_asked], ends.lower[as_asked], ends.upper[as_asked])

    def gained(first: str, second: str) -> BenefitDifference:
        settings: dict[str, Any] = {"share": bonferroni(confidence, len(pairs)), "draws": count, "seed": used}
        ends, band = difference(rows, acts[first], acts[second], *payoffs, z, **settings)
        parts = (ends.value, ends.lower, ends.upper, band.lower, band.upper)
        return BenefitDifference(first, second, *(part[as_asked] for part in parts))

    # at how many of the ascending thresholds each model treats each row
    acts = {name: np.searchsorted(grid, p, side="right") for name, p in rows.models.items()}
    pairs = list(combinations(rows.models, 2))
    return NetBenefits(
        thresholds=asked,
        models={name: curve(own) for name, own in acts.items()},
        treat_all=curve(np.full(n, len(asked))),
        differences=tuple(gained(*pair) for pair in pairs),
        confidence=confidence,
        n=n,
        dropped=rows.dropped,
        draws=count if pairs else 0,
        seed=used if pairs else None,
        clusters=found,
    )
