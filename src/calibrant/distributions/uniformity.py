"""Probability integral transform: where outcomes fall in their forecast distributions, and exact tests."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from calibrant.clusters import Clusters
from calibrant.distributions.forms import (
    ALPHA,
    FORECAST,
    CdfValues,
    Distribution,
    ForecastRows,
    Members,
    Quantiles,
)
from calibrant.formatting import percent, pluralize, pvalue_phrase
from calibrant.inference.pvalues import exceedance
from calibrant.inputs import whole_number
from calibrant.kernels.ordering import canonical
from calibrant.metrics.calling import shares_parameters
from calibrant.parallel import DRAWS, in_blocks
from calibrant.records import Missing
from calibrant.results import Array, Result, Table, number_cell, text_cell

MAX_BINS = 20
TIE_DRAWS = 50  # over which statistics are averaged where F(y) is drawn
MAX_PATTERNS = 2000  # kinds of rows that are drawn; beyond, some represent all
MAX_SIMULATED = 20_000  # records per draw; beyond, their law is rescaled
TESTS = ("kuiper", "ks", "cramer-von-mises")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Pit(Result):
    """Where the outcomes fall in their forecast distributions; uniform on [0, 1] if these are calibrated.

    `low` and `high` enclose F(y) per record; they differ where F jumps or is known at some points only.
    `values` are drawn uniformly between them with `seed`. `statistics` and `pvalues` are by test; `verdict`
    uses Kuiper's. `mean` is 1/2 and `spread` 1 if calibrated: a spread above 1 means forecasts that are too
    narrow, below 1 too wide. `below_median`, `inner_half`, `edges` and `shares` say which share of outcomes
    is expected where, and do not depend on the seed.
    """

    HIDDEN: ClassVar = ("low", "high", "values")
    DERIVED: ClassVar = ("sentence", "status")

    low: Array
    high: Array
    values: Array
    statistics: dict[str, float]
    pvalues: dict[str, float]
    mean: float
    spread: float
    edges: Array
    shares: Array
    below_median: float
    inner_half: float
    n: int
    dropped: int
    draws: int
    seed: int
    clusters: int | None = None

    @property
    def pvalue(self) -> float:
        """The p-value of Kuiper's test."""
        return self.pvalues["kuiper"]

    @property
    def status(self) -> str:
        """One of "too narrow", "too wide", "biased", "not uniform", or "fine" if nothing is rejected."""
        if self.pvalue > ALPHA:
            return "fine"
        bias, width = self._deviations
        if max(abs(bias), abs(width)) < 1.96:
            return "not uniform"
        if abs(bias) > abs(width):
            return "biased"
        return "too narrow" if width > 0 else "too wide"

    @property
    def _deviations(self) -> tuple[float, float]:
        """Mean and spread in standard errors of a uniform law."""
        return (self.mean - 0.5) * (12 * self.n) ** 0.5, (self.spread - 1) / 12 * (180 * self.n) ** 0.5

    @property
    def verdict(self) -> str:
        """What the shape of the histogram says, in words."""
        bias, width = self._deviations
        median = f"{percent(self.below_median)} of outcomes fall below the forecast median"
        middle = f"{percent(self.inner_half)} of outcomes fall in the middle half of their forecasts"
        biased = f"biased: forecasts are too {'high' if bias < 0 else 'low'}; {median}"
        wrong = f"too {'narrow' if width > 0 else 'wide'}: {middle}"
        lead, second, size = (biased, wrong, width) if self.status == "biased" else (wrong, biased, bias)
        if self.status == "fine":
            lead, size = f"No miscalibration found in {pluralize(self.n, 'record')}: {median}, {middle}", 0.0
        elif self.status == "not uniform":
            lead, size = f"Wrong in shape: {median}, {middle}", 0.0
        also = f" Also {second}." if abs(size) > 3 else ""
        return f"{lead[0].upper()}{lead[1:]} ({pvalue_phrase(self.pvalue, self.draws)}).{also}"

    sentence = verdict  # of the JSON

    def __str__(self) -> str:
        tests = "; ".join(f"{name} {pvalue_phrase(p, self.draws)}" for name, p in self.pvalues.items())
        return f"{self.verdict} Uniformity: {tests}. Seed {self.seed}."

    def sheet(self) -> Table:
        """Return the histogram as a table."""
        lines = (
            (
                text_cell(f"{low:.3g} to {high:.3g}"),
                *(number_cell(part, percent(part)) for part in (share, high - low)),
            )
            for (low, high), share in zip(pairwise(self.edges), self.shares, strict=True)
        )
        return Table(("F(y)", "outcomes", "if calibrated"), tuple(lines))


@shares_parameters(FORECAST)
def pit(
    y_true: Any,
    forecast: Any,
    *,
    levels: Any = None,
    thresholds: Any = None,
    bins: int | None = None,
    clusters: Any = None,
    missing: Missing = "error",
    draws: int = DRAWS,
    seed: int | None = 0,
) -> Pit:
    """Test whether outcomes are spread evenly over their forecast distributions.

    The probability integral transform of an outcome y is F(y). It is uniform if F is right. Where F jumps,
    or is known between some points only, it is spread evenly between F(y-) and F(y); with m exchangeable
    members between below / (m + 1) and (below + equal + 1) / (m + 1), so that the histogram of an ensemble
    is its rank histogram. Then Kuiper's, the Kolmogorov-Smirnov and the Cramér-von Mises statistic are
    compared with draws of uniform numbers. Those of an ensemble, quantiles or values of the CDF are taken
    at the ends of cells, and drawn with the same ties; at a quantile, outcomes equal to it count either way.

    Parameters
    ----------
    bins
        Bins of the histogram; by default 10, or one per rank of a small ensemble.
    clusters
        Labels of rows that belong together; p-values then resample clusters, and are approximate.

    Examples
    --------
    >>> found = pit([2.0], [[1.0, 2.0, 3.0]])
    >>> found.low.tolist(), found.high.tolist()
    ([0.25], [0.75])
    """
    return pit_of(ForecastRows.of(y_true, forecast, levels, thresholds, missing, draws, seed, clusters), bins)


def pit_of(given: ForecastRows, bins: int | None = None, groups: Sequence[npt.NDArray[Any]] = ()) -> Pit:
    """Return the PIT; codes of `groups` tell apart records that are equal otherwise."""
    low, high = given.form.pit(given.y)
    if bins is None:
        ranks = given.form.values.shape[1] + 1 if isinstance(given.form, Members) else MAX_BINS + 1
        bins = ranks if ranks <= MAX_BINS else 10
    edges = np.linspace(0, 1, whole_number("bins", bins, 2, 1000) + 1)
    values, rng = low.copy(), np.random.default_rng([given.seed, 1])
    jumps = bool(np.any(high > low))
    order = np.arange(len(low))
    if jumps:  # drawn in an order that depends on what records hold alone, not on that of the rows
        hashed = [(column + 0.0).view(np.uint64) for column in given.columns[1:]]
        codes = [] if given.clusters is None else [given.clusters.codes]
        order = canonical(given.y, given.y, None, [*hashed, *codes, *groups])[0]
    start, width = low[order], (high - low)[order]
    values[order] += width * rng.random(len(low))
    if not isinstance(given.form, Distribution):
        observed, null = _in_cells(given, given.form)
    elif given.clusters is None:
        drawn = (start + width * rng.random(len(low)) for _ in range(TIE_DRAWS if jumps else 1))
        observed = np.mean([statistics(np.sort(one)[None, :])[0] for one in drawn], axis=0)
        null = _null(len(values), given.draws, given.seed)
    else:
        observed = statistics(np.sort(values)[None, :])[0]
        null = _resampled(values, given.clusters, given.draws, given.seed)
    left, right = low - 0.5, high - 0.5
    quarters = _expected_shares(low, high, np.linspace(0, 1, 5))
    return Pit(
        low, high, values,
        dict(zip(TESTS, observed.tolist(), strict=True)),
        dict(zip(TESTS, map(exceedance, observed.tolist(), null.T), strict=True)),
        float(np.mean(low + high)) / 2, float(4 * np.mean(left**2 + left * right + right**2)),
        edges, _expected_shares(low, high, edges),
        float(quarters[:2].sum()), float(quarters[1:3].sum()), *given.facts,
        None if given.clusters is None else given.clusters.number,
    )  # fmt: skip


def statistics(rising: Array) -> Array:
    """Return Kuiper's, the KS and the Cramér-von Mises statistic of each row of ascending numbers."""
    n = rising.shape[1]
    above = (np.arange(1, n + 1) / n - rising).max(axis=1)
    below = (rising - np.arange(n) / n).max(axis=1)
    middle = (np.arange(1, n + 1) - 0.5) / n
    squares = 1 / (12 * n) + np.sum((rising - middle) ** 2, axis=1)
    return np.column_stack([above + below, np.maximum(above, below), squares])


def _in_cells(given: ForecastRows, form: Members | Quantiles | CdfValues) -> tuple[Array, Array]:
    """Return the statistics at the bounds of the cells of all records, and draws of them."""
    n, bounds = len(given.y), form.bounds
    inner, widths = bounds[1:-1], np.diff(bounds)

    def taken(least: Array, most: Array) -> Array:
        above, below = np.maximum(least - inner, 0), np.maximum(inner - most, 0)
        kuiper, largest = above.max(axis=1) + below.max(axis=1), np.maximum(above, below).max(axis=1)
        squares = (above + below) ** 2 @ (widths[1:] + widths[:-1]) / 2
        return np.column_stack([kuiper, largest, n * squares])

    curves = np.array([[part.sum() for part in pair] for pair in _curves(form, given.y)]).T / n
    observed, clusters = taken(curves[:1], curves[1:])[0], given.clusters
    if clusters is not None:
        many = clusters.number
        sums = np.array([[clusters.total(part) for part in pair] for pair in _curves(form, given.y)])
        sizes, widened = clusters.total(np.ones(n)), math.sqrt(many / (many - 1))

        def resample(rng: np.random.Generator, rows: int) -> Array:
            drawn = rng.multinomial(many, np.full(many, 1 / many), size=rows)
            total = (drawn @ sizes)[:, None]
            parts = ((drawn @ sums[:, k].T / total - curves[k]) * widened + inner for k in (0, 1))
            return taken(*parts)

        return observed, in_blocks(resample, given.draws, width=many, seed=given.seed)
    patterns, counts = np.unique(form.places(given.y), axis=0, return_counts=True)
    some = np.unique(np.linspace(0, len(patterns) - 1, MAX_PATTERNS).astype(int))
    used = int(counts[some].sum())

    def simulate(rng: np.random.Generator, rows: int) -> Array:
        total = np.zeros((rows, len(inner)))
        for places, count in zip(patterns[some], counts[some], strict=True):
            ends = np.unique([0.0, *places, 1.0])
            size = np.diff(ends)
            widest = np.maximum(size, np.finfo(float).tiny)[:, None]
            parts = np.clip((inner - ends[:-1, None]) / widest, 0, 1)
            total += rng.multinomial(count, size, size=rows) @ parts
        curve = inner + (total / used - inner) * np.sqrt(used / n)
        return taken(curve, curve)

    return observed, in_blocks(simulate, given.draws, width=len(widths), seed=given.seed)


def _curves(form: Members | Quantiles | CdfValues, y: Array) -> Iterator[tuple[Array, Array]]:
    """Yield the part of each outcome up to every inner bound, least and most."""
    low, high = form.pit(y)
    width = np.maximum(high - low, np.finfo(float).tiny)
    for k, bound in enumerate(form.bounds[1:-1]):
        if isinstance(form, Quantiles):
            # a law that jumps at its quantile only promises that the level is between
            yield (y < form.values[:, k]).astype(np.float64), (y <= form.values[:, k]).astype(np.float64)
        else:
            part = np.clip((bound - low) / width, 0, 1)
            yield part, part


def _null(n: int, draws: int, seed: int) -> Array:
    """Return the statistics of uniform numbers: exact up to 20,000 records, then rescaled (Stephens)."""
    size = min(n, MAX_SIMULATED)

    def simulate(rng: np.random.Generator, rows: int) -> Array:
        gaps = rng.standard_exponential((rows, size + 1))
        sums = np.cumsum(gaps, axis=1)
        return statistics(sums[:, :-1] / sums[:, -1:])

    roots = np.sqrt([size, n])
    one, other = np.array([roots + 0.155 + 0.24 / roots, roots + 0.12 + 0.11 / roots, [1.0, 1.0]]).T
    return np.asarray(in_blocks(simulate, draws, width=size, seed=seed) * (one / other))


def _resampled(values: Array, clusters: Clusters, draws: int, seed: int) -> Array:
    """Return the statistics of resampled minus observed distribution functions, clusters drawn whole."""
    order, many, n = np.argsort(values), clusters.number, len(values)
    codes, rising = clusters.codes[order], values[order]
    ends = np.append(rising[1:] > rising[:-1], True)
    sizes = np.diff(np.flatnonzero(ends), prepend=-1)
    widened = math.sqrt(many / (many - 1))  # resamples vary less than new clusters do

    def simulate(rng: np.random.Generator, rows: int) -> Array:
        drawn = rng.multinomial(many, np.full(many, 1 / many), size=rows)[:, codes]
        totals = drawn.sum(axis=1, keepdims=True)
        gaps = (np.cumsum(drawn, axis=1) / totals - np.arange(1, n + 1) / n)[:, ends] * widened
        above, below = gaps.max(axis=1, initial=0), -gaps.min(axis=1, initial=0)
        return np.column_stack([above + below, np.maximum(above, below), gaps**2 @ sizes])

    return in_blocks(simulate, draws, width=n, seed=seed)


def _expected_shares(low: Array, high: Array, edges: Array) -> Array:
    """Return the share of each bin, every record spread evenly over its interval."""
    width = np.where(high > low, high - low, 1.0)
    shares = []
    for left, right in pairwise(edges.tolist()):
        spread = np.clip(np.minimum(high, right) - np.maximum(low, left), 0, None) / width
        at = (low >= left) & ((low < right) | (right == edges[-1]))
        shares.append(np.where(high > low, spread, at).mean())
    return np.array(shares)
