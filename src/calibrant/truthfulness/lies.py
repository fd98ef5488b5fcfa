"""incentives: would lying help, on predictions like these? The standard lies, and replays of the outcomes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from calibrant.errors import CalibrantError, InvalidInputError
from calibrant.forecasts import Forecasts
from calibrant.formatting import pluralize
from calibrant.inputs import checked_predictions
from calibrant.metrics.calling import check_choice, shares_parameters
from calibrant.metrics.lookup import find_measure
from calibrant.metrics.registry import Measure
from calibrant.parallel import DRAWS, Progress, checked_draws, in_blocks, recorded_seed, report_progress
from calibrant.results import Array, Result
from calibrant.truthfulness.search import defined, levels_of, row_values

HONEST = "honest"  # what the report is called that lies are compared with
Lie = Callable[[Array, Array], Array]  # distinct predictions and how many records have each -> reports


def _mean(p: Array, counts: Array) -> Array:
    return np.full(len(p), float(p @ counts) / float(counts.sum()))


def _sharpened(p: Array, factor: float) -> Array:
    return np.asarray(p**factor / (p**factor + (1 - p) ** factor))


def _pooled(p: Array, counts: Array) -> Array:
    """Report the mean prediction of each tenth of [0, 1]."""
    cell = np.minimum((p * 10).astype(np.intp), 9)
    total, held = np.bincount(cell, p * counts, 10), np.bincount(cell, counts, 10)
    return np.asarray((total / np.maximum(held, 1))[cell])


LIES: Mapping[str, Lie] = {
    "mean": _mean,
    "shrink 0.8": lambda p, counts: _mean(p, counts) + 0.8 * (p - _mean(p, counts)),
    "sharpen 1.2": lambda p, counts: _sharpened(p, 1.2),
    "sharpen 2": lambda p, counts: _sharpened(p, 2.0),
    "pool 10": _pooled,
    "round 0.1": lambda p, counts: np.round(p, 1),
    "shift 0.05": lambda p, counts: np.minimum(p + 0.05, 1.0),
    "0/1": lambda p, counts: (p >= 0.5).astype(np.float64),
}


def reports_of(lies: Any, p: Array, counts: Array) -> dict[str, Array]:
    """Return what each lie reports for the distinct predictions p; `lies` are names, or name -> function."""
    chosen: dict[str, Lie] = {}
    if isinstance(lies, Mapping):
        for name, lie in lies.items():
            if not callable(lie):
                got = f"got {type(lie).__name__} for {name!r}"
                raise InvalidInputError("lies", "must map names to functions of y_prob", got)
            chosen[str(name)] = _of_prediction(str(name), lie)
    elif lies is None or isinstance(lies, Iterable):
        for name in LIES if lies is None else [lies] if isinstance(lies, str) else lies:
            check_choice("lie", name, list(LIES))
            chosen[name] = LIES[name]
    else:
        raise InvalidInputError("lies", "must be names, or map names to functions", f"got {lies!r}")
    if not chosen or HONEST in chosen:
        rule = f"must name at least one lie, and none of them {HONEST!r}"
        raise InvalidInputError("lies", rule, f"got {list(chosen)}")
    return {name: lie(p, counts) for name, lie in chosen.items()}


def _of_prediction(name: str, lie: Callable[[Array], Any]) -> Lie:
    """Return a user's function of all predictions, in order, as a lie about the distinct ones."""
    subject = f"lie {name!r}"

    def report(p: Array, counts: Array) -> Array:
        times = counts.astype(np.int64)
        try:
            reported = np.asarray(lie(np.repeat(p, times)), dtype=np.float64)
        except CalibrantError:
            raise
        except Exception as error:  # the user's function may raise anything
            rule = "must be a function of the predictions that returns numbers"
            raise InvalidInputError(subject, rule, f"it raised {type(error).__name__}: {error}") from error
        if reported.shape != (times.sum(),):
            got = f"got shape {reported.shape} for {times.sum():,}"
            raise InvalidInputError(subject, "must return one report per prediction", got)
        first: Array = reported[np.cumsum(times) - times]
        if not np.array_equal(np.repeat(first, times), reported, equal_nan=True):
            rule = "must return the same report for the same prediction"
            raise InvalidInputError(subject, rule, "got different ones")
        wrong = ~((first >= 0) & (first <= 1))  # also true for NaN
        if wrong.any():
            raise InvalidInputError(subject, "must return reports in [0, 1]", f"got {first[wrong][0]}")
        return first

    return report


Score = Callable[[Array], Array]  # events per prediction, one row per replay -> one row of values per replay
Draw = Callable[[np.random.Generator, int], Array]

MAX_ENUMERATED = 1024  # sets of outcomes up to which all are enumerated: 10 records have no more
MAX_ENUMERATED_ON_REQUEST = 10**5  # the same where this many draws are asked for
MIN_UNLIKELY_REPLAYS = 10  # in which a prediction has its unlikely outcome, for plain draws to suffice


@dataclass(frozen=True, slots=True, eq=False)
class Replays:
    """Values over all outcomes and their `chances`, or over those drawn: each part's chance and rows."""

    values: Array
    chances: Array | None
    parts: tuple[tuple[float, slice], ...]

    def mean(self, figures: Array) -> float:
        if self.chances is not None:
            return float(self.chances @ figures)
        return float(sum(chance * figures[rows].mean() for chance, rows in self.parts))

    def error(self, figures: Array) -> float:
        spreads = (chance**2 * figures[rows].var(ddof=1) / len(figures[rows]) for chance, rows in self.parts)
        return math.sqrt(sum(spreads))


def replayed(
    score: Score, p: Array, counts: Any, *, draws: int, seed: int, progress: Progress | None = None
) -> Replays:
    """Score all outcomes of `counts` records of each distinct probability p if they are few, else `draws`."""
    from scipy.stats import binom

    table = _everything(p, counts, min(MAX_ENUMERATED_ON_REQUEST, max(MAX_ENUMERATED, draws)))
    if table is not None:
        return Replays(score(table), np.prod(binom.pmf(table, counts, p), axis=1), ())
    # An outcome that no draw shows would pass for impossible, and a lie that denies it for a gain: where
    # that may happen, half of the replays are drawn given that a rare outcome shows.
    unlikely = np.minimum(p, 1 - p)  # rare: expected in fewer than 10 replays
    rare = (unlikely > 0) & (draws * -np.expm1(counts * np.log1p(-unlikely)) < MIN_UNLIKELY_REPLAYS)
    if not rare.any():
        kinds: list[tuple[float, int, Draw]] = [(1.0, draws, _plain(p, counts))]
    else:
        log_none = float((counts[rare] * np.log1p(-unlikely[rare])).sum())
        half = max(2, draws // 2)
        usual = np.where(rare, np.round(p), p)
        kinds = [
            (math.exp(log_none), max(2, draws - half), _plain(usual, counts)),
            (-math.expm1(log_none), half, _with_rare(p, usual, counts, rare)),
        ]
    values, parts = [], []
    done, everything = 0, sum(size for _, size, _ in kinds)
    for k, (chance, size, draw) in enumerate(kinds):

        def work(generator: np.random.Generator, rows: int, draw: Draw = draw) -> Array:
            return score(draw(generator, rows))

        def advance(so_far: int, _: int, before: int = done) -> None:
            report_progress(progress, before + so_far, everything)

        values.append(in_blocks(work, size, width=len(p), seed=seed + k, threads=1, progress=advance))
        parts.append((chance, slice(done, done + size)))
        done += size
    return Replays(np.concatenate(values), None, tuple(parts))


def _everything(p: Array, counts: Any, most: int) -> Array | None:
    """Return every table of events per prediction, None where there are more than `most`."""
    choices: list[Any] = []
    size = 1
    for chance, count in zip(p.tolist(), counts.tolist(), strict=True):
        choices.append(range(count + 1) if 0 < chance < 1 else (int(chance) * count,))
        size *= len(choices[-1])
        if size > most:
            return None
    return np.array(list(itertools.product(*choices)), dtype=np.float64)


def _plain(p: Array, counts: Any) -> Draw:
    if counts.sum() == len(p):
        return lambda generator, size: np.asarray(generator.random((size, len(p))) < p, dtype=np.float64)
    return lambda generator, size: np.asarray(
        generator.binomial(counts, p, size=(size, len(p))), dtype=np.float64
    )


def _with_rare(p: Array, usual: Array, counts: Any, rare: npt.NDArray[np.bool_]) -> Draw:
    """Draw outcomes given that one rare prediction or more has its unlikely outcome."""
    unlikely, held = np.minimum(p, 1 - p)[rare], counts[rare]
    none = np.exp(held * np.log1p(-unlikely))
    first = np.cumsum(np.concatenate(([1.0], np.cumprod(none)[:-1])) * -np.expm1(held * np.log1p(-unlikely)))
    plain = _plain(usual, counts)

    def draw(generator: np.random.Generator, size: int) -> Array:
        events = plain(generator, size)
        flips = generator.binomial(held, unlikely, size=(size, len(held)))
        one = np.minimum(np.searchsorted(first, generator.random(size) * first[-1], "right"), len(held) - 1)
        flips[np.arange(len(held)) < one[:, None]] = 0
        flips[np.arange(size), one] = _at_least_one(generator, held[one], unlikely[one])
        events[:, rare] = np.where(p[rare] < 0.5, flips, held - flips)
        return events

    return draw


def _at_least_one(generator: np.random.Generator, held: Any, chance: Array) -> Any:
    """Draw binomial numbers given that they are not 0: where the first comes, and how many follow."""
    some = -np.expm1(held * np.log1p(-chance))
    place = np.ceil(np.log1p(-generator.random(len(held)) * some) / np.log1p(-chance))
    place = np.clip(place, 1, held).astype(np.int64)
    return 1 + generator.binomial(held - place, chance)


BOARD = ("brier", "log-loss", "atb", "kernel-squared", "smooth", "kuiper", "ece", "level-set")
CLEAR = 2.0  # standard errors from which on a gain is taken for real
FEWEST = 50
NUMBERS = 2 * 10**7  # outcomes drawn in all: on many predictions fewer replays say as much

RULES = (
    "Rank by brier or log-loss: strict, also when forecasters learn outcomes as they go.",
    "Show atb as the calibration column; do not rank by it alone, because pooling is free.",
    "Never rank by ECE, over bins or level by level: both reward blurring.",
    "Show wins as well as means: winner-takes-all contests are truthful under no score, and with few "
    "questions luck wins.",
)


@dataclass(frozen=True, slots=True, repr=False)
class Incentive(Result):
    """One lie under one measure: the expected value with the lie and without, and how often the lie wins.

    `gain` is honest minus expected and `se` its standard error, 0 where expected values are known exactly.
    `wins` is how often the lie scores better than honesty, ties counting half.
    """

    DERIVED: ClassVar = ("helps",)

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
class Incentives(Result):
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
        by_measure: dict[str, list[Incentive]] = {}
        for row in self.table:
            by_measure.setdefault(row.measure, []).append(row)
        return {name: max(rows, key=lambda row: row.gain) for name, rows in by_measure.items()}

    def __repr__(self) -> str:
        helps = ", ".join(name for name, row in self.best.items() if row.helps) or "none"
        return (
            f"Incentives(n = {self.n:,}, {pluralize(len(self.best), 'measure')}, lying helps under: {helps})"
        )

    def __str__(self) -> str:
        drawn = f"{self.draws:,} replays of their outcomes (seed {self.seed})"
        how = f"{pluralize(self.draws, 'set')} of outcomes, which are all" if self.enumerated else drawn
        head = f"Would lying help? {pluralize(self.n, 'prediction')} taken for the truth, {how}."
        return "\n".join([head, *map(str, self.best.values()), *RULES])

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        return Result.to_dict(self) | {"best": {name: row.lie for name, row in self.best.items()}}


@shares_parameters("")
def incentives(
    y_prob: Any,
    measures: str | Sequence[str] | None = None,
    *,
    lies: Any = None,
    draws: int | None = None,
    seed: int | None = 0,
    progress: Progress | None = None,
) -> Incentives:
    """Ask whether a perfect forecaster would gain by lying, on predictions like these.

    The predictions are taken for the true probabilities. Each lie is scored next to honesty on the same
    outcomes: on all that there are, for ten predictions or so; else on outcomes drawn again and again.

    Parameters
    ----------
    y_prob : array
        Predicted probabilities, up to a million or so.
    measures : str or sequence of str, optional
        Names of the registry; the usual columns of a leaderboard if absent.
    lies : sequence of str, or mapping from names to functions of y_prob, optional
        The standard lies if absent: the mean, shrunk, sharpened, pooled, rounded, shifted or made certain.
    draws : int, optional
        Replays, where outcomes are not enumerated; 999 if absent, fewer for many distinct predictions.

    Examples
    --------
    >>> import numpy as np
    >>> found = incentives(np.linspace(0.1, 0.9, 50), ["level-set", "brier"], seed=1)
    >>> found.best["level-set"].helps, found.best["brier"].helps
    (True, False)
    """
    names = BOARD if measures is None else [measures] if isinstance(measures, str) else measures
    if not isinstance(names, Sequence) or not names:
        raise InvalidInputError("measures", "must name a measure or more", f"got {measures!r}")
    rows = [defined(find_measure(name)) for name in names]
    truth = checked_predictions(y_prob, "y_prob")
    p, counts = np.unique(truth + 0.0, return_counts=True)
    used = recorded_seed(seed)
    replays = checked_draws(max(FEWEST, min(DRAWS, NUMBERS // len(p))) if draws is None else draws)
    if replays < 2:
        raise InvalidInputError("draws", "must be at least 2, for a standard error", f"got {replays}")
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
    def __init__(self, report: Array, counts: Any, rows: list[Measure]) -> None:
        self.rows = rows
        self.forecasts: Forecasts
        self.forecasts, level = levels_of(report, counts.astype(np.float64))
        self.order = None if np.all(level[1:] >= level[:-1]) else np.argsort(level, kind="stable")
        self.starts = np.searchsorted(np.sort(level), np.arange(self.forecasts.levels))

    def values(self, ones: Array) -> Array:
        """Return the measures (columns) of each row of outcomes: shares of records per prediction."""
        sums = np.add.reduceat(ones if self.order is None else ones[:, self.order], self.starts, axis=1)
        return np.column_stack(
            [row_values(row, dict(row.options), self.forecasts, sums) for row in self.rows]
        )

    def mean(self, entry: Measure) -> float:
        """Return the expected value of a truthful measure where the report is the truth."""
        calibrated = self.forecasts.with_outcomes(self.forecasts.weights * self.forecasts.values)
        mean = entry.null.mean and entry.null.mean(calibrated, entry.settings())
        assert mean is not None  # every truthful measure has one, which a test sees
        return mean


def _compared(
    entry: Measure, lie: str, known: Replays, at: tuple[int, int], populations: Array, mean: float
) -> Incentive:
    """Compare one lie with honesty; `populations` are the values with probabilities in place of outcomes."""
    honest, reported = known.values[:, 0, at[1]], known.values[:, at[0], at[1]]
    gains = honest - reported
    slack = 1e-12 * (1 + np.abs(honest))
    wins = min(1.0, known.mean((gains > slack) + 0.5 * (np.abs(gains) <= slack)))  # chances are rounded
    if entry.fair:  # E[m(r, y)] = m(r, p) + a constant
        gain, error, level = float(populations[0] - populations[1]), 0.0, mean
    else:
        gain, error, level = known.mean(gains), known.error(gains), known.mean(honest)
    return Incentive(entry.name, lie, level, level - gain, gain, error, wins, entry.truthful)
