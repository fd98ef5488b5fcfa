"""Outcomes of predictions taken for the truth: all of them, or drawn so that the rare ones are not missed."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.progress import Progress, tell
from calibrant.results import Array
from calibrant.seeds import in_blocks

Score = Callable[[Array], Array]  # events per prediction, one row per replay -> one row of values per replay
Draw = Callable[[np.random.Generator, int], Array]

ALL = 1024  # sets of outcomes up to which all are enumerated: 10 records have no more
MOST = 10**5  # the same where this many draws are asked for
SEEN = 10  # replays in which a prediction should have its unlikely outcome for plain draws to do


@dataclass(frozen=True, slots=True, eq=False)
class Replays:
    """Values over the outcomes: all of them with their `chances`, so that means are exact, or those drawn.

    Each of the `parts` drawn has the chance of its kind of outcomes and the rows that are of it.
    """

    values: Array
    chances: Array | None
    parts: tuple[tuple[float, slice], ...]

    def mean(self, figures: Array) -> float:
        """Return the expected value of figures, one per replay."""
        if self.chances is not None:
            return float(self.chances @ figures)
        return float(sum(chance * figures[rows].mean() for chance, rows in self.parts))

    def error(self, figures: Array) -> float:
        """Return the standard error of their mean."""
        spreads = (chance**2 * figures[rows].var(ddof=1) / len(figures[rows]) for chance, rows in self.parts)
        return math.sqrt(sum(spreads))


def replayed(
    score: Score, p: Array, counts: Any, *, draws: int, seed: int, progress: Progress | None = None
) -> Replays:
    """Score all outcomes of `counts` records of each distinct probability p if they are few, else `draws`.

    An outcome that no draw shows would pass for impossible, and a lie that denies it for a gain. So where
    some predictions are unlikely to have their rare outcome in the replays, half of the replays are drawn
    given that none of them has it and half given that one or more have, and the halves are weighted by their
    chances.
    """
    table = _everything(p, counts, min(MOST, max(ALL, draws)))
    if table is not None:
        return Replays(score(table), _chances(table, p, counts), ())
    rare = _rare(p, counts, draws)
    if not rare.any():
        kinds: list[tuple[float, int, Draw]] = [(1.0, draws, _plain(p, counts))]
    else:
        log_none = float((counts[rare] * np.log1p(-np.minimum(p, 1 - p)[rare])).sum())
        half = max(2, draws // 2)
        usual = np.where(rare, np.round(p), p)
        kinds = [
            (math.exp(log_none), max(2, draws - half), _plain(usual, counts)),
            (-math.expm1(log_none), half, _with_rare(p, usual, counts, rare)),
        ]
    return _joined(score, kinds, len(p), seed, progress)


def _joined(
    score: Score, kinds: list[tuple[float, int, Draw]], width: int, seed: int, progress: Progress | None
) -> Replays:
    """Draw and score every kind of outcomes, the first with the seed given."""
    values, parts = [], []
    done, everything = 0, sum(size for _, size, _ in kinds)
    for k, (chance, size, draw) in enumerate(kinds):
        before = done

        def work(generator: np.random.Generator, rows: int, draw: Draw = draw) -> Array:
            return score(draw(generator, rows))

        def advance(so_far: int, _: int, before: int = before) -> None:
            tell(progress, before + so_far, everything)

        values.append(in_blocks(work, size, width=width, seed=seed + k, threads=1, progress=advance))
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


def _chances(table: Array, p: Array, counts: Any) -> Array:
    """Return the probability of every row of events."""
    chances = np.ones(len(table))
    for events, chance, count in zip(table.T, p.tolist(), counts.tolist(), strict=True):
        if 0 < chance < 1:
            law = np.array([_binomial(k, count, chance) for k in range(count + 1)])
            chances *= law[events.astype(np.intp)]
    return chances


def _binomial(k: int, n: int, p: float) -> float:
    if n == 1:
        return p if k else 1 - p
    ways = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    return math.exp(ways + k * math.log(p) + (n - k) * math.log1p(-p))


def _rare(p: Array, counts: Any, draws: int) -> npt.NDArray[np.bool_]:
    """Mark the predictions whose unlikely outcome is expected in fewer than SEEN replays."""
    unlikely = np.minimum(p, 1 - p)
    some = -np.expm1(counts * np.log1p(-unlikely))
    return np.asarray((unlikely > 0) & (draws * some < SEEN))


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
