"""Forecasts: the one object that enters every room. Check, sort once, merge equal predictions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NoReturn

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, reject_name, reject_rows, sentence
from calibrant.inputs import (
    Names,
    check_same_length,
    check_unit_interval,
    check_weights,
    missing_rows,
    vector,
)
from calibrant.results import Array

Counts = npt.NDArray[np.int64]
Missing = Literal["error", "drop"]


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """What a sketch knows of the records inside each level: all that certificates need.

    Normalised as the weights are. An outcome of 0.3 counts as 0.3 of an outcome 1 and 0.7 of an outcome 0,
    so `over` + `under` is never less than the absolute residual mass of the cell, and equal to it for 0/1.
    """

    low: Array  # smallest prediction
    high: Array  # largest prediction
    over: Array  # sum of w (1 - y) v: the mass by which records with outcome 0 were predicted too high
    under: Array  # sum of w y (1 - v): the mass by which records with outcome 1 were predicted too low
    spread: Array  # sum of w v (1 - v)
    null_variance: Array  # sum of w^2 v (1 - v)

    def part(self, levels: slice, share: float) -> Cells:
        """Return the cells of a range of levels that holds `share` of the weight."""
        masses = (self.over[levels] / share, self.under[levels] / share, self.spread[levels] / share)
        return Cells(self.low[levels], self.high[levels], *masses, self.null_variance[levels] / share**2)


class Forecasts:
    """The joint distribution of (prediction, outcome): sorted, merged, weighted, immutable.

    One *level* is one distinct prediction. `values`, `weights` (which sum to 1), `outcomes` (the weight of
    y), `squared_weights`, `counts` and `extents` hold one number a level. An outcome is 0 or 1; a fraction
    stands for a known probability. A record of weight 0 carries nothing and is left out.

    >>> f = Forecasts([0, 1, 1, 0], [0.2, 0.7, 0.7, 0.7])
    >>> f.levels, f.values.tolist(), f.counts.tolist()
    (2, [0.2, 0.7], [1, 3])
    """

    values: Array
    outcomes: Array
    counts: Counts
    n: int  # records
    total_weight: float  # before normalisation
    binary: bool  # every outcome is 0 or 1
    dropped: int  # rows left out because a value was missing
    record_weights: Array | None  # normalised, in the order of the levels; None when all weigh the same
    record_outcomes: Array | None  # in that order; None for a sketch, and for 0/1 without weights
    cells: Cells | None  # None for exact data

    def __init__(
        self, y_true: Any, y_prob: Any, *, sample_weight: Any = None, missing: Missing = "error"
    ) -> None:
        self._take(y_true, y_prob, sample_weight, missing, Names())

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        outcome: str,
        prediction: str,
        weight: str | None = None,
        missing: Missing = "error",
    ) -> Forecasts:
        """Take columns of a mapping, or of any frame that narwhals knows (pandas, Polars, DuckDB, ...)."""
        wanted = [outcome, prediction] + ([weight] if weight else [])
        taken = frame_columns(frame, wanted)
        self = cls.__new__(cls)
        names = Names(*(f"column {name!r}" for name in wanted))
        self._take(taken[0], taken[1], taken[2] if weight else None, missing, names)
        return self

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
    ) -> Forecasts:
        """Build from levels that are already distinct, ascending and normalised (a sketch, a slice)."""
        self = cls.__new__(cls)
        self.__dict__.update(
            values=values,
            weights=weights,
            outcomes=outcomes,
            squared_weights=squared_weights,
            counts=counts,
            n=int(counts.sum()),
            total_weight=total_weight,
            binary=binary,
            dropped=dropped,
            record_weights=record_weights,
            record_outcomes=record_outcomes,
            cells=cells,
        )
        self._freeze()
        return self

    def with_outcomes(self, outcomes: Array) -> Forecasts:
        """Return the same predictions and weights with other outcomes, given as the weight of y per level."""
        other = Forecasts.__new__(Forecasts)
        other.__dict__.update(self.__dict__, outcomes=outcomes, record_outcomes=None)
        for derived in ("residuals", "curve"):
            other.__dict__.pop(derived, None)
        return other

    def _take(self, y_true: Any, y_prob: Any, sample_weight: Any, missing: Missing, names: Names) -> None:
        y, p, w, dropped = checked(y_true, y_prob, sample_weight, missing, names)
        total = float(len(p)) if w is None else float(np.max(w)) * float(np.sum(w / np.max(w)))
        uniform = w is None or bool(np.all(w == w[0]))
        binary = y.dtype.kind in "bui" or not np.any((y > 0) & (y < 1))
        merged = _merge_labels(y, p) if uniform and binary else _merge_weighted(y, p, None if uniform else w)
        self.__dict__.update(merged, cells=None, binary=binary, dropped=dropped, total_weight=total)
        self._freeze()

    def _freeze(self) -> None:
        for item in self.__dict__.values():
            if isinstance(item, np.ndarray):
                item.flags.writeable = False

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("Forecasts cannot be changed; make a new one")

    def __repr__(self) -> str:
        resolution = "" if self.exact else f", cells up to {self.extents.max():.2g} wide"
        return (
            f"Forecasts(n={self.n:,}, levels={self.levels:,}, mean prediction {self.mean_prediction:.4f}, "
            f"base rate {self.base_rate:.4f}{resolution})"
        )

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, levels: slice) -> Forecasts:
        """Return the forecasts of a range of levels, weights normalised anew."""
        if not isinstance(levels, slice) or levels.step not in (None, 1):
            raise TypeError("Forecasts are sliced by a range of levels, f[i:j]")
        start, stop, _ = levels.indices(self.levels)
        if stop <= start:
            raise InvalidInputError(sentence("slice", "must hold a level", f"got levels {start} to {stop}"))
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
        )

    def between(self, low: float, high: float) -> Forecasts:
        """Return the forecasts with low <= prediction <= high."""
        start = int(np.searchsorted(self.values, low, side="left"))
        return self[start : int(np.searchsorted(self.values, high, side="right"))]

    @cached_property
    def weights(self) -> Array:
        """Weight of each level; they sum to 1."""
        return _locked(self.counts / self.n)

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
        return _locked(np.concatenate(([0.0], np.cumsum(self.residuals))))

    @cached_property
    def extents(self) -> Array:
        """Spread of the raw predictions behind each level: all 0 unless this came from a sketch."""
        return _locked(np.zeros(self.levels) if self.cells is None else self.cells.high - self.cells.low)

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
        return float(self.weights @ self.values)

    @property
    def null_variance(self) -> float:
        """Variance of the mean residual if calibrated: sum of w_i^2 v_i (1 - v_i) over the records."""
        if self.cells is not None:
            return float(self.cells.null_variance.sum())
        return float(self.squared_weights @ (self.values * (1.0 - self.values)))


def frame_columns(frame: Any, wanted: list[str]) -> list[Any]:
    """Return columns of any frame as arrays; a lazy frame or relation is collected first."""
    if isinstance(frame, Mapping):
        _check_columns(wanted, list(frame))
        return [frame[name] for name in wanted]
    import narwhals as nw

    try:
        table: Any = nw.from_native(frame)
    except TypeError:
        found = f"got {type(frame).__name__}"
        raise InvalidInputError(
            sentence("frame", "must be a data frame", found, "pass arrays to Forecasts(...)")
        ) from None
    _check_columns(wanted, table.collect_schema().names())
    table = table.select(*dict.fromkeys(wanted))
    if isinstance(table, nw.LazyFrame):
        table = table.collect(backend="pyarrow")
    return [table[name].to_numpy() for name in wanted]


def _check_columns(wanted: list[str], known: list[str]) -> None:
    for name in wanted:
        if name not in known:
            raise reject_name("column", name, known)


def checked(
    y_true: Any, y_prob: Any, sample_weight: Any, missing: Missing, names: Names
) -> tuple[npt.NDArray[Any], Array, Array | None, int]:
    """Return outcome, prediction and positive weight, free of missing rows, and how many were dropped."""
    if missing not in ("error", "drop"):
        raise reject_name("missing", missing, ["error", "drop"])
    y, p = vector(y_true, names.outcome), vector(y_prob, names.prediction)
    w = None if sample_weight is None else vector(sample_weight, names.weight)
    check_same_length(y, p, (names.outcome, names.prediction))
    if w is not None:
        check_same_length(w, p, (names.weight, names.prediction))
    absent = missing_rows(y, p, w)
    if absent is not None and missing == "error":
        for array, name in ((y, names.outcome), (p, names.prediction), (w, names.weight)):
            if array is not None and array.dtype.kind == "f":
                reject_rows(
                    name,
                    "must not be missing",
                    array,
                    np.isnan(array),
                    'pass missing="drop" to leave such rows out and have them counted',
                )
    dropped = 0 if absent is None else int(np.count_nonzero(absent))
    if absent is not None:
        y, p, w = y[~absent], p[~absent], None if w is None else w[~absent]
        if len(p) == 0:
            raise InvalidInputError(
                sentence(
                    names.prediction,
                    "must have a row without missing values",
                    f"got {dropped:,} rows, all with one",
                )
            )
    check_unit_interval(y, names.outcome)
    check_unit_interval(p, names.prediction)
    weight = None if w is None else check_weights(w, names.weight)
    if weight is not None and not weight.all():
        kept = weight > 0
        y, p, weight = y[kept], p[kept], weight[kept]
    return y, p.astype(np.float64, copy=False), weight, dropped


def _merge_labels(y: npt.NDArray[Any], p: Array) -> dict[str, Any]:
    """Sort and merge unweighted 0/1 data by one vectorised sort of exact integer keys.

    A float64 in [0, 1] has its two top bits clear, so (bits << 1) | y orders by prediction, then outcome.
    """
    n = len(p)
    key = (p + 0.0).view(np.uint64)  # + 0.0 copies, and turns -0.0 into 0.0
    np.left_shift(key, np.uint64(1), out=key)
    np.bitwise_or(key, y.astype(np.uint8), out=key)
    key.sort()
    ones = key.astype(np.uint8) & np.uint8(1)
    np.right_shift(key, np.uint64(1), out=key)
    starts = _starts(key)
    if len(starts) == n:
        return {
            "values": key.view(np.float64),
            "outcomes": ones / float(n),
            "counts": np.ones(n, dtype=np.int64),
            "n": n,
            "record_weights": None,
            "record_outcomes": None,
        }
    return {
        "values": key[starts].view(np.float64),
        "outcomes": np.add.reduceat(ones, starts, dtype=np.int64) / n,
        "counts": np.diff(starts, append=n),
        "n": n,
        "record_weights": None,
        "record_outcomes": None,
    }


def _merge_weighted(y: npt.NDArray[Any], p: Array, w: Array | None) -> dict[str, Any]:
    """Sort and merge weighted or fractional data; `w` is None when every record weighs the same."""
    n = len(p)
    order = np.argsort(p)
    value = (p + 0.0)[order]
    starts = _starts(value)
    outcome = y.astype(np.float64)[order]
    counts = np.diff(starts, append=n)
    if w is None:
        return {
            "values": value[starts],
            "outcomes": np.add.reduceat(outcome, starts) / n,
            "counts": counts,
            "n": n,
            "record_weights": None,
            "record_outcomes": outcome,
        }
    weight = w[order] / np.max(w)  # first to a largest of 1, so that no sum overflows
    weight /= weight.sum()
    return {
        "values": value[starts],
        "outcomes": np.add.reduceat(weight * outcome, starts),
        "weights": np.add.reduceat(weight, starts),
        "squared_weights": np.add.reduceat(weight * weight, starts),
        "counts": counts,
        "n": n,
        "record_weights": weight,
        "record_outcomes": outcome,
    }


def _starts(ordered: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    """Return where each run of equal entries begins."""
    return np.concatenate(([0], np.flatnonzero(ordered[1:] != ordered[:-1]) + 1))


def _locked(array: Array) -> Array:
    array.flags.writeable = False
    return array
