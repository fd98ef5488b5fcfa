"""Probability integral transform: where outcomes fall in their forecast distributions, and exact tests."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from calibrant.distributions.forms import ALPHA, FORECAST, ForecastRows, Members
from calibrant.errors import InvalidInputError
from calibrant.formatting import percent, pluralize, pvalue_phrase
from calibrant.inference.pvalues import exceedance
from calibrant.inputs import check_same_length, to_array, whole_number
from calibrant.metrics.calling import shares_parameters
from calibrant.parallel import in_blocks
from calibrant.records import Missing
from calibrant.results import Array, Result, Table, number_cell, text_cell

MAX_BINS = 20
MAX_SIMULATED = 20_000  # records per draw; beyond, their law is rescaled
TESTS = ("kuiper", "ks", "cramer-von-mises")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Pit(Result):
    """Where the outcomes fall in their forecast distributions; uniform on [0, 1] if these are calibrated.

    `low` and `high` enclose F(y) per record; they differ where F jumps or is known at some points only.
    `values` are drawn uniformly between them with `seed`, which makes the tests exact. `statistics` and
    `pvalues` are by test; `verdict` uses Kuiper's. `mean` is 1/2 and `spread` 1 if calibrated: a spread
    above 1 means forecasts that are too narrow, below 1 too wide. `edges` and `shares` are the expected
    histogram, which does not depend on the seed.
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
        below, inner = self.values <= 0.5, np.abs(self.values - 0.5) <= 0.25
        median = f"{percent(float(below.mean()))} of outcomes fall below the forecast median"
        middle = f"{percent(float(inner.mean()))} of outcomes fall in the middle half of their forecasts"
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
    draws: int = 999,
    seed: int | None = 0,
) -> Pit:
    """Test whether outcomes are spread evenly over their forecast distributions.

    The probability integral transform of an outcome y is F(y). It is uniform if F is right. Where F jumps,
    or is known between some points only, it is drawn uniformly between F(y-) and F(y); with m exchangeable
    members between below / (m + 1) and (below + equal + 1) / (m + 1), so that the histogram of an ensemble
    is its rank histogram. Then Kuiper's, the Kolmogorov-Smirnov and the Cramér-von Mises statistic are
    compared with draws of uniform numbers.

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
    if clusters is not None and missing == "drop":
        hint = "leave such rows out first"
        raise InvalidInputError("missing", 'must be "error" with clusters', hint=hint)
    given = ForecastRows.of(y_true, forecast, levels, thresholds, missing, draws, seed)
    low, high = given.form.pit(given.y)
    if bins is None:
        ranks = given.form.values.shape[1] + 1 if isinstance(given.form, Members) else MAX_BINS + 1
        bins = ranks if ranks <= MAX_BINS else 10
    edges = np.linspace(0, 1, whole_number("bins", bins, 2, 1000) + 1)
    values = low + (high - low) * np.random.default_rng([given.seed, 1]).random(len(low))
    if clusters is None:
        codes, null = None, _null(len(values), given.draws, given.seed)
    else:
        codes = _codes(clusters, values)
        null = _resampled(values, codes, given.draws, given.seed)
    observed = statistics(np.sort(values)[None, :])[0].tolist()
    pvalues = map(exceedance, observed, null.T)
    return Pit(
        low, high, values,
        dict(zip(TESTS, observed, strict=True)),
        dict(zip(TESTS, pvalues, strict=True)),
        float(values.mean()), float(12 * np.mean((values - 0.5) ** 2)),
        edges, _expected_shares(low, high, edges), *given.facts,
        None if codes is None else int(codes.max()) + 1,
    )  # fmt: skip


def _codes(clusters: Any, values: Array) -> npt.NDArray[np.intp]:
    labels = to_array(clusters, "clusters")
    check_same_length(labels, values, ("clusters", "y_true"))
    names, codes = np.unique(labels.astype(str), return_inverse=True)
    if len(names) < 10:
        hint = "resampling so few says nothing"
        raise InvalidInputError("clusters", "must have at least 10 labels", f"got {len(names)}", hint)
    return codes


def statistics(rising: Array) -> Array:
    """Return Kuiper's, the KS and the Cramér-von Mises statistic of each row of ascending numbers."""
    n = rising.shape[1]
    above = (np.arange(1, n + 1) / n - rising).max(axis=1)
    below = (rising - np.arange(n) / n).max(axis=1)
    middle = (np.arange(1, n + 1) - 0.5) / n
    squares = 1 / (12 * n) + np.sum((rising - middle) ** 2, axis=1)
    return np.column_stack([above + below, np.maximum(above, below), squares])


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


def _resampled(values: Array, codes: npt.NDArray[np.intp], draws: int, seed: int) -> Array:
    """Return the statistics of resampled minus observed distribution functions, clusters drawn whole."""
    order, n = np.argsort(values), len(values)
    clusters = int(codes.max()) + 1

    def simulate(rng: np.random.Generator, rows: int) -> Array:
        drawn = rng.multinomial(clusters, np.full(clusters, 1 / clusters), size=rows)[:, codes[order]]
        totals = drawn.sum(axis=1, keepdims=True)
        gaps = np.cumsum(drawn, axis=1) / totals - np.arange(1, n + 1) / n
        above, below = gaps.max(axis=1, initial=0), -gaps.min(axis=1, initial=0)
        return np.column_stack([above + below, np.maximum(above, below), np.sum(gaps**2, axis=1)])

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
