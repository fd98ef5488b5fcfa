"""Forecasts: the one object that every measure reads. Checked, sorted once, equal predictions merged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NoReturn, Self

import numpy as np
import numpy.typing as npt

from calibrant.censoring import Censored
from calibrant.clusters import Clusters
from calibrant.columns import cluster_labels
from calibrant.errors import DROP_MISSING, InvalidInputError, reject_rows
from calibrant.formatting import format_mean
from calibrant.frames import resolve_inputs
from calibrant.parallel import chunked_sum, cumulative, dot
from calibrant.records import Missing, Records, ValidRows, check_records, warn_if_swapped
from calibrant.results import Array

Counts = npt.NDArray[np.int64]


def merged_labels(checked: ValidRows) -> dict[str, Any]:
    """Sort and merge unweighted 0/1 data by one vectorized sort of exact integer keys."""
    n = len(checked)
    # a float64 in [0, 1] has its two top bits clear: (bits << 1) | y orders by prediction, then outcome
    key = (checked.prediction + 0.0).view(np.uint64)  # + 0.0 copies, and turns -0.0 into 0.0
    np.left_shift(key, np.uint64(1), out=key)
    np.bitwise_or(key, checked.outcome.astype(np.uint8), out=key)
    key.sort()
    ones = key.astype(np.uint8) & np.uint8(1)
    np.right_shift(key, np.uint64(1), out=key)
    changes = key[1:] != key[:-1]
    counts: Counts = np.ones(n, dtype=np.int64)
    sums: npt.NDArray[Any] = ones
    if not changes.all():
        starts = _after(changes)
        key, counts = key[starts], np.diff(starts, append=n)
        sums = np.add.reduceat(ones, starts, dtype=np.int64)
    merged = {"values": key.view(np.float64), "outcomes": sums / float(n), "counts": counts}
    return {**merged, "total_weight": checked.largest * n, "binary": True}


def merged_records(records: Records) -> dict[str, Any]:
    """Merge records in canonical order, so that every sum is the same in its last digit for any row order."""
    n, weight, outcome = len(records), records.weight, records.outcome
    starts = _after(records.prediction[1:] != records.prediction[:-1])
    merged: dict[str, Any] = {"values": records.prediction[starts], "counts": np.diff(starts, append=n)}
    merged |= {"binary": records.binary, "total_weight": records.largest * n}
    if not records.weighted:
        sums = np.add.reduceat(outcome, starts)
        return {**merged, "outcomes": sums / n, "record_outcomes": None if merged["binary"] else outcome}
    total = weight.sum()
    weight = weight / total
    product = weight * outcome
    outcomes = np.add.reduceat(product, starts)
    np.multiply(weight, weight, out=product)  # fresh memory costs more than the product
    return {
        **merged,
        "total_weight": records.largest * float(total),
        "outcomes": outcomes,
        "weights": np.add.reduceat(weight, starts),
        "squared_weights": np.add.reduceat(product, starts),
        "record_weights": weight,
        "record_outcomes": outcome,
    }


def _after(changes: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
    return np.concatenate(([0], np.flatnonzero(changes) + 1))


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """What a sketch knows of the records inside each level, normalized as weights are."""

    low: Array
    high: Array
    # an outcome of 0.3 counts as 0.3 of an outcome 1 and 0.7 of an outcome 0: `over` + `under` is at least
    # the absolute residual mass of the cell, and equal to it for 0/1
    over: Array  # sum of w (1 - y) v: the mass by which records with outcome 0 were predicted too high
    under: Array  # sum of w y (1 - v): the mass by which records with outcome 1 were predicted too low
    spread: Array  # sum of w v (1 - v)
    null_variance: Array  # sum of w^2 v (1 - v)

    def part(self, levels: slice, share: float) -> Cells:
        masses = (self.over[levels] / share, self.under[levels] / share, self.spread[levels] / share)
        return Cells(self.low[levels], self.high[levels], *masses, self.null_variance[levels] / share**2)


class Forecasts:
    """The joint distribution of (prediction, outcome): sorted, merged, weighted, immutable.

    One *level* is one distinct prediction. `values`, `weights` (which sum to 1), `outcomes` (the weight of
    y), `squared_weights`, `counts` and `extents` hold one number per level. An outcome is 0 or 1; a fraction
    is a known probability. A record of weight 0 carries nothing and is left out.

    >>> f = Forecasts([0, 1, 1, 0], [0.2, 0.7, 0.7, 0.7])
    >>> f.levels, f.values.tolist(), f.counts.tolist()
    (2, [0.2, 0.7], [1, 3])
    """

    values: Array
    outcomes: Array
    counts: Counts
    n: int  # records
    total_weight: float  # before normalization
    binary: bool  # every outcome is 0 or 1
    dropped: int  # rows left out because a value was missing
    record_weights: Array | None = None  # normalized, by level; None when all weigh the same
    record_outcomes: Array | None = None  # in that order; None for a sketch, and for 0/1 without weights
    cells: Cells | None = None  # None for exact data
    censoring: Censored | None = None  # known where rows were censored: weights then follow the outcome
    clusters: Clusters | None = None  # rows that belong together, in the order of the levels

    def __init__(
        self,
        y_true: Any,
        y_prob: Any,
        *,
        sample_weight: Any = None,
        missing: Missing = "error",
        pos_label: Any = None,
    ) -> None:
        checked = check_records(y_true, y_prob, sample_weight, missing, pos_label=pos_label)
        warn_if_swapped(checked, y_true=y_true, y_prob=y_prob)
        self._take(checked)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        outcome: str,
        prediction: str,
        weight: str | None = None,
        missing: Missing = "error",
        pos_label: Any = None,
    ) -> Forecasts:
        """Take columns of a mapping, or of any frame that narwhals knows (pandas, Polars, DuckDB, ...)."""
        given = resolve_inputs(frame, outcome=outcome, prediction=prediction, weight=weight or None)
        options: dict[str, Any] = {"missing": missing, "pos_label": pos_label}
        return cls(given.y_true, given.y_prob, sample_weight=given.sample_weight, **options)

    @classmethod
    def of_checked(cls, checked: ValidRows) -> Forecasts:
        """Merge rows that have been checked; labels of equal weight need not be put in order first."""
        return cls.__new__(cls)._take(checked)

    @classmethod
    def of_records(cls, records: Records) -> Forecasts:
        """Merge records that are in order already; they stay at hand."""
        return cls.__new__(cls)._set(records, **merged_records(records), records=records)

    @classmethod
    def from_levels(
        cls,
        values: Array,
        weights: Array,
        outcomes: Array,
        *,
        squared_weights: Array,
        counts: Counts,
        total_weight: float,
        binary: bool = True,
        dropped: int = 0,
        record_weights: Array | None = None,
        record_outcomes: Array | None = None,
        cells: Cells | None = None,
        clusters: Clusters | None = None,
        censoring: Censored | None = None,
    ) -> Forecasts:
        """Build from levels that are already distinct, ascending and normalized (a sketch, a slice)."""
        known = {name: given for name, given in locals().items() if name != "cls"}
        return cls.__new__(cls)._set(n=int(counts.sum()), **known)

    def with_clusters(self, labels: Any, missing: Missing = "error") -> Forecasts:
        """Return the same forecasts that know which rows belong together: `labels` has one for each row.

        Rows without a label are refused, or left out and counted with ``missing="drop"``.
        """
        records = self.records
        given, gaps = cluster_labels(labels, records.length)
        kept = ~gaps[records.rows]
        if not kept.all():
            if missing == "error":
                used = np.isin(np.arange(records.length), records.rows)
                reject_rows("clusters", "must not be missing", given, gaps & used, DROP_MISSING)
            records = replace(records.take(kept), dropped=records.dropped + int(np.count_nonzero(~kept)))
        other = Forecasts.of_records(records)
        name = next(iter(labels)) if isinstance(labels, Mapping) else getattr(labels, "name", None)
        clusters = Clusters.of(given[records.rows], str(name or "cluster"))
        clusters = clusters.by_content(records.prediction, records.outcome, records.weight)
        other.__dict__.update(clusters=clusters, record_outcomes=records.outcome)
        return other

    def with_outcomes(self, outcomes: Array) -> Forecasts:
        """Return the same predictions and weights with other outcomes, given as the weight of y per level.

        Where single records are known, each takes the rate of its level.
        """
        other = Forecasts.__new__(Forecasts)
        known = self.record_outcomes is not None
        rates = np.repeat(outcomes / self.weights, self.counts) if known else None
        other.__dict__.update(self.__dict__, outcomes=outcomes, record_outcomes=rates)
        for derived in ("residuals", "curve", "records", "_source", "_probe", "_merged"):
            other.__dict__.pop(derived, None)
        return other

    def with_record_outcomes(self, outcomes: Array) -> Forecasts:
        """Return the same predictions and weights with other outcomes, one per record by level."""
        starts = np.concatenate(([0], np.cumsum(self.counts)[:-1]))
        if self.record_weights is None:
            other = self.with_outcomes(np.add.reduceat(outcomes, starts) / self.n)
        else:
            other = self.with_outcomes(np.add.reduceat(self.record_weights * outcomes, starts))
        other.__dict__["record_outcomes"] = outcomes
        return other

    def _take(self, checked: ValidRows) -> Self:
        """Merge the rows; their records are made, perhaps again, when they are asked for."""
        simple = checked.weight is None and checked.binary
        merged = merged_labels(checked) if simple else merged_records(Records.of(checked))
        return self._set(checked, **merged, _source=checked, _probe=_probe(checked))

    def _set(self, rows: ValidRows | None = None, **parts: Any) -> Self:
        if rows is not None:
            parts |= {"n": len(rows), "dropped": rows.dropped, "censoring": rows.censoring}
        for item in parts.values():
            if isinstance(item, np.ndarray):
                item.flags.writeable = False
        self.__dict__.update(parts)
        return self

    @cached_property
    def records(self) -> Records:
        """The rows behind these forecasts, in the canonical order; a sketch and a part have none.

        They are sorted when first asked for, so the arrays that were given must not have changed since.
        """
        checked: ValidRows | None = self.__dict__.get("_source")
        if checked is None:
            hint = "pass outcomes and predictions, or Forecasts made from them"
            raise InvalidInputError("rows", "are not known behind these Forecasts", hint=hint)
        made = Records.of(checked)
        again = Forecasts.of_records(made)
        before = (self.__dict__["_probe"], self.values, self.outcomes)
        now = (_probe(checked), again.values, again.outcomes)
        if not all(np.array_equal(one, other) for one, other in zip(before, now, strict=True)):
            rule = "must not change while Forecasts made of them are in use"
            raise InvalidInputError("y_true and y_prob", rule, hint="pass copies")
        return made

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("Forecasts cannot be changed; make a new one")

    def __repr__(self) -> str:
        resolution = "" if self.exact else f", cells up to {self.extents.max():.2g} wide"
        means = f"{format_mean(self.mean_prediction)}, base rate {format_mean(self.base_rate)}{resolution}"
        return f"Forecasts(n={self.n:,}, levels={self.levels:,}, mean prediction {means})"

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, levels: slice) -> Forecasts:
        """Return the forecasts of a range of levels, with weights normalized again."""
        if not isinstance(levels, slice) or levels.step not in (None, 1):
            raise TypeError("Forecasts are sliced by a range of levels, f[i:j]")
        start, stop, _ = levels.indices(self.levels)
        if stop <= start:
            raise InvalidInputError("slice", "must hold a level", f"got levels {start} to {stop}")
        share = float(self.weights[levels].sum())
        first, last = int(self.counts[:start].sum()), int(self.counts[:stop].sum())
        records, outcomes, cells = self.record_weights, self.record_outcomes, self.cells
        return Forecasts.from_levels(
            self.values[levels],
            self.weights[levels] / share,
            self.outcomes[levels] / share,
            squared_weights=self.squared_weights[levels] / share**2,
            counts=self.counts[levels],
            total_weight=self.total_weight * share,
            binary=self.binary,
            record_weights=None if records is None else records[first:last] / share,
            record_outcomes=None if outcomes is None else outcomes[first:last],
            cells=None if cells is None else cells.part(levels, share),
            clusters=None if self.clusters is None else self.clusters.take(slice(first, last)),
            censoring=self.censoring,
        )

    def between(self, low: float, high: float) -> Forecasts:
        """Return the forecasts with low <= prediction <= high."""
        start = int(np.searchsorted(self.values, low, side="left"))
        return self[start : int(np.searchsorted(self.values, high, side="right"))]

    @cached_property
    def weights(self) -> Array:
        """Weight of each level; they sum to 1."""
        return _locked(np.full(self.n, 1 / self.n) if self.levels == self.n else self.counts / self.n)

    @cached_property
    def squared_weights(self) -> Array:
        """Sum of the squared record weights of each level, for null variances."""
        return _locked(self.weights / self.n)

    @cached_property
    def residuals(self) -> Array:
        """b_j = weight of the outcome minus weight times prediction."""
        expected = self.weights * self.values
        return _locked(np.subtract(self.outcomes, expected, out=expected))

    @cached_property
    def curve(self) -> Array:
        """The cumulative residuals C_0 = 0, C_1, ..., C_m: C_j sums the residuals of the first j levels."""
        return _locked(cumulative(self.residuals))

    @cached_property
    def extents(self) -> Array:
        """Spread of the raw predictions behind each level: all 0 unless this came from a sketch."""
        return _locked(np.zeros(self.levels) if self.cells is None else self.cells.high - self.cells.low)

    @property
    def outcome_weighted(self) -> bool:
        """Whether weights follow the outcome, so that outcomes cannot be drawn given the weights."""
        return self.censoring is not None and self.record_weights is not None

    @property
    def levels(self) -> int:
        """How many distinct predictions there are."""
        return len(self.values)

    @property
    def exact(self) -> bool:
        """Whether each level is one prediction; False where a sketch merged several."""
        return self.cells is None or not bool(np.any(self.extents))

    @property
    def base_rate(self) -> float:
        """Weighted mean outcome."""
        return float(self.outcomes.sum())

    @property
    def mean_prediction(self) -> float:
        """Weighted mean prediction."""
        return dot(self.weights, self.values)

    @cached_property
    def null_variance(self) -> float:
        """Variance of the mean residual if calibrated: sum of w_i^2 v_i (1 - v_i) over the records."""
        if self.cells is not None:
            return float(self.cells.null_variance.sum())
        v, squares = self.values, self.squared_weights
        return chunked_sum(lambda part: squares[part] * (v[part] * (1.0 - v[part])), len(v))

    @cached_property
    def largest_variance(self) -> float:
        """The largest variance that calibration gives to the residual of one level."""
        v, squares = self.values, self.squared_weights
        return float(np.max(squares * (v * (1 - v))))


def _probe(checked: ValidRows) -> Array:
    """Return up to 64 of the numbers given, to notice later if they were changed."""
    rows = np.linspace(0, len(checked) - 1, min(64, len(checked))).astype(np.intp)
    return np.concatenate((checked.prediction[rows], checked.outcome[rows]))


def _locked(array: Array) -> Array:
    array.flags.writeable = False
    return array
