"""incentives: would lying help, on predictions like these?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from calibrant.errors import InvalidInputError, reject_rows, sentence
from calibrant.forecasts import Forecasts
from calibrant.inputs import check_unit_interval, numeric_vector
from calibrant.measures.registry.lookup import find_measure
from calibrant.measures.registry.row import Measure
from calibrant.numerals import counted
from calibrant.progress import Progress
from calibrant.results import Array, Result
from calibrant.seeds import checked_draws, recorded_seed
from calibrant.truthfulness.expected import defined, levels_of, row_values
from calibrant.truthfulness.lies import HONEST, reports_of
from calibrant.truthfulness.replays import Replays, replayed

BOARD = ("brier", "log-loss", "atb", "kernel-squared", "smooth", "kuiper", "binned", "ece")
CLEAR = 2.0  # standard errors from which on a gain is taken for real
DRAWS, FEWEST = 999, 50
NUMBERS = 2 * 10**7  # outcomes drawn in all: on many predictions fewer replays say as much

RULES = (
    "Rank by brier or log-loss: strict, also when forecasters learn outcomes as they go.",
    "Show atb as the calibration column; do not rank by it alone, because pooling is free.",
    "Never rank by a binned error or ece: both reward blurring.",
    "Show wins beside means: winner-takes-all contests are truthful under no score, and with few "
    "questions luck wins.",
)


@dataclass(frozen=True, slots=True, repr=False)
class Incentive(Result):
    """One lie under one measure: the expected value with the lie and without, and how often the lie wins.

    `gain` is honest minus expected and `se` its standard error: 0 where all outcomes were enumerated, and for
    truthful measures, whose expected values are known. `wins` is how often the lie scores better than
    honesty, ties counting half.
    """

    measure: str
    lie: str
    honest: float
    expected: float
    gain: float
    se: float
    wins: float
    truthful: str

    @property
    def helps(self) -> bool:
        """Whether the gain is clear of noise."""
        return self.gain > CLEAR * self.se and self.gain > 1e-12

    def __str__(self) -> str:
        how = f"'{self.lie}' changes the expected value from {self.honest:.4g} to {self.expected:.4g}"
        verdict = "lying helps" if self.helps else "no standard lie helps"
        return f"{self.measure}: {verdict}; {how} and beats honesty {self.wins:.0%} of the time."


@dataclass(frozen=True, slots=True)
class Incentives:
    """Every standard lie under every measure, on predictions taken for the truth. Prints as a page.

    `enumerated` says that all outcomes were scored, so that everything is exact; there are `draws` of them.
    """

    table: tuple[Incentive, ...]
    n: int
    draws: int
    seed: int
    enumerated: bool = False

    @property
    def best(self) -> dict[str, Incentive]:
        """The lie with the largest gain, per measure."""
        collected: dict[str, Incentive] = {}
        for row in self.table:
            if row.measure not in collected or row.gain > collected[row.measure].gain:
                collected[row.measure] = row
        return collected

    def __repr__(self) -> str:
        helps = ", ".join(name for name, row in self.best.items() if row.helps) or "none"
        return f"Incentives(n = {self.n:,}, {counted(len(self.best), 'measure')}, lying helps under: {helps})"

    def __str__(self) -> str:
        drawn = f"{self.draws:,} replays of their outcomes (seed {self.seed})"
        how = f"{counted(self.draws, 'set')} of outcomes, which are all" if self.enumerated else drawn
        head = f"Would lying help? {counted(self.n, 'prediction')} taken for the truth, {how}."
        return "\n".join([head, *map(str, self.best.values()), *RULES])

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        table = [{**asdict(row), "helps": row.helps} for row in self.table]
        best = {name: row.lie for name, row in self.best.items()}
        how = {"draws": self.draws, "seed": self.seed, "enumerated": self.enumerated}
        return {"table": table, "best": best, "n": self.n, **how}


def incentives(
    y_prob: Any,
    measures: str | Sequence[str] | None = None,
    *,
    lies: Any = None,
    draws: int | None = None,
    seed: int | None = None,
    progress: Progress | None = None,
) -> Incentives:
    """Ask whether a perfect forecaster would gain by lying, on predictions like these.

    The predictions are taken for the true probabilities. Each lie is scored beside honesty on the same
    outcomes: on all that there are, for ten predictions or so; else on outcomes drawn again and again, with
    rare ones drawn by themselves so that none passes for impossible.

    Parameters
    ----------
    y_prob : array
        Predicted probabilities, up to a million or so.
    measures : str or sequence of str, optional
        Names of the registry; the usual columns of a leaderboard if absent.
    lies : sequence of str, or mapping from names to functions of y_prob, optional
        The standard lies if absent: everything to the mean, shrunk, sharpened, pooled, rounded, shifted,
        or made certain.
    draws : int, optional
        Replays, where outcomes are not enumerated; 999 if absent, fewer (50 at least) for more than 20,000
        distinct predictions.
    seed : int, optional
        Seed of the outcomes; recorded in the result.
    progress : callable, optional
        Called with the share that is done, from 0 to 1.

    Returns
    -------
    Incentives
        `table` has one row per measure and lie, `best` the best lie per measure.

    Examples
    --------
    >>> import numpy as np
    >>> found = incentives(np.linspace(0.1, 0.9, 50), ["ece", "brier"], seed=1)
    >>> found.best["ece"].helps, found.best["brier"].helps
    (True, False)
    """
    rows = [defined(find_measure(name)) for name in _chosen(measures)]
    truth = _checked(y_prob)
    p, counts = np.unique(truth + 0.0, return_counts=True)
    used = recorded_seed(seed)
    asked = max(FEWEST, min(DRAWS, NUMBERS // len(p))) if draws is None else draws
    replays = checked_draws(asked)
    if replays < 2:
        raise InvalidInputError(
            sentence("draws", "must be at least 2, for a standard error", f"got {replays}")
        )
    reports = {HONEST: p, **reports_of(lies, p, counts.astype(np.float64))}
    boards = [_Board(report, counts, rows) for report in reports.values()]

    def scored(events: Array) -> Array:
        return np.stack([board.values(events / len(truth)) for board in boards], axis=1)

    known = replayed(scored, p, counts, draws=replays, seed=used, progress=progress)
    population = scored((p * counts)[None])[0]
    means = [boards[0].mean(row) if row.fair else math.nan for row in rows]
    table = [
        _compared(row, name, known, (j, k), population[[0, j], k], means[k])
        for k, row in enumerate(rows)
        for j, name in enumerate(reports)
        if name != HONEST
    ]
    return Incentives(tuple(table), len(truth), len(known.values), used, enumerated=not known.parts)


class _Board:
    """One report under all measures."""

    def __init__(self, report: Array, counts: Any, rows: list[Measure]) -> None:
        self.rows = rows
        self.forecasts: Forecasts
        self.forecasts, level = levels_of(report, counts.astype(np.float64))
        self.order = None if np.all(level[1:] >= level[:-1]) else np.argsort(level, kind="stable")
        self.starts = np.searchsorted(np.sort(level), np.arange(self.forecasts.levels))

    def values(self, ones: Array) -> Array:
        """Return the measures (columns) of each row of outcomes: shares of records per prediction."""
        sums = np.add.reduceat(ones if self.order is None else ones[:, self.order], self.starts, axis=1)
        return np.column_stack([self._errors(row, sums) for row in self.rows])

    def mean(self, row: Measure) -> float:
        """Return the expected value of a truthful measure where the report is the truth."""
        calibrated = self.forecasts.with_outcomes(self.forecasts.weights * self.forecasts.values)
        mean = row.null.mean and row.null.mean(calibrated, row.settings())
        assert mean is not None  # every truthful measure has one, which a test sees
        return mean

    def _errors(self, row: Measure, sums: Array) -> Array:
        by_replay = row_values(row, dict(row.options), self.forecasts, sums)
        return np.asarray(np.abs(by_replay - row.ideal)) if row.signed else by_replay


def _compared(
    row: Measure, lie: str, known: Replays, at: tuple[int, int], populations: Array, mean: float
) -> Incentive:
    """Compare one lie with honesty; `populations` are the values with probabilities in place of outcomes."""
    honest, told = known.values[:, 0, at[1]], known.values[:, at[0], at[1]]
    gains = honest - told
    slack = 1e-12 * (1 + np.abs(honest))
    wins = min(1.0, known.mean((gains > slack) + 0.5 * (np.abs(gains) <= slack)))  # chances are rounded
    if row.fair:  # E[m(r, y)] = m(r, p) + a constant
        gain, error, level = float(populations[0] - populations[1]), 0.0, mean
    else:
        gain, error, level = known.mean(gains), known.error(gains), known.mean(honest)
    return Incentive(row.name, lie, level, level - gain, gain, error, wins, row.truthful)


def _chosen(measures: str | Sequence[str] | None) -> Sequence[str]:
    if measures is None:
        return BOARD
    if isinstance(measures, str):
        return [measures]
    if not isinstance(measures, Sequence) or not measures:
        raise InvalidInputError(sentence("measures", "must name a measure or more", f"got {measures!r}"))
    return list(measures)


def _checked(y_prob: Any) -> Array:
    truth = numeric_vector(y_prob, "y_prob").astype(np.float64)
    reject_rows("y_prob", "must not be missing", truth, np.isnan(truth), "leave such rows out")
    check_unit_interval(truth, "y_prob")
    return truth
