"""ExpectedErrorForecaster, and the coins and tables of bins that randomized forecasters share."""

from __future__ import annotations

import math
from abc import abstractmethod
from itertools import count, product
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from calibrant.kernels.online import chosen_pair, run_bins, settle, weight_of, weights_of
from calibrant.online.base import GuidedStream, Run, Stream
from calibrant.online.bounds import expected_error_bins, expected_error_bound
from calibrant.online.inputs import checked_bins, checked_count, checked_horizon
from calibrant.online.state import Fields
from calibrant.parallel import recorded_seed
from calibrant.results import Array

_MAX_UINT64 = 2**64 - 1
_INCREMENT, _MULTIPLIER_1, _MULTIPLIER_2 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_TO_UNIT = 1.0 / 2**53


# Coins come from a seed and a counter: a saved forecaster needs two whole numbers to continue unchanged.
def counter_uniform(seed: int, counter: Any) -> Any:
    """Return the uniform number in [0, 1) of this seed and counter, or of each counter in an array of uint64.

    >>> counter_uniform(0, 0)
    0.6524484863740322
    """
    return (_mixed(_mixed(seed & _MAX_UINT64) ^ counter) >> 11) * _TO_UNIT


def _mixed(x: Any) -> Any:
    """Return one output of splitmix64 (Steele, Lea and Flood 2014)."""
    z = (x + _INCREMENT) & _MAX_UINT64
    z = ((z ^ (z >> 30)) * _MULTIPLIER_1) & _MAX_UINT64
    z = ((z ^ (z >> 27)) * _MULTIPLIER_2) & _MAX_UINT64
    return z ^ (z >> 31)


def counter_uniforms(seed: int, first: int, count: int) -> Array:
    return np.asarray(counter_uniform(seed, np.arange(first, first + count, dtype=np.uint64)))


class BinTable:
    """How often each bin was answered and how many events followed, per group, with the weights."""

    def __init__(self, bins: int, groups: int, quadratic: bool) -> None:
        self.bins, self.quadratic = bins, quadratic
        self.answers, self.events = ([[0] * bins for _ in range(groups)] for _ in range(2))
        fresh = weight_of(0.0, 0.0, quadratic)
        self.up, self.down = ([[fresh] * bins for _ in range(groups)] for _ in range(2))

    def run(
        self, outcomes: Array, guides: Array, members: Any, tosses: Array, last: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_], Array]:
        """Forecast and learn many rounds; return the bins, which left the guide's, and the error gained."""
        answers, events = (np.array(table, dtype=np.int64) for table in (self.answers, self.events))
        up, down, start = np.array(self.up), np.array(self.down), np.array([last], dtype=np.int64)
        size = len(outcomes)
        chosen, steered, errors = np.empty(size, np.int64), np.empty(size, np.bool_), np.empty(size)
        state = answers, events, up, down, start
        run_bins(outcomes, guides, members, tosses, *state, self.quadratic, chosen, steered, errors)
        self.answers, self.events = answers.tolist(), events.tolist()
        self.up, self.down = up.tolist(), down.tolist()
        return chosen, steered, errors

    def error(self) -> float:
        """Return the sum of |events - answers times middle|: the expected calibration error, times n."""
        middles = (np.arange(self.bins) + 0.5) / self.bins
        return float(np.abs(np.array(self.events[0]) - np.array(self.answers[0]) * middles).sum())

    def rounds(self, group: int = 0) -> int:
        return sum(self.answers[group])

    def restore(self, fields: Fields) -> None:
        for name in ("answers", "events"):
            rows = fields.items(name)
            if len(rows) != len(self.answers):
                raise fields.refused(name, f"must be {len(self.answers)} lists, one per group")
            inner = [Fields({name: row}, fields.kind).counts(name, self.bins) for row in rows]
            setattr(self, name, inner)
        if (np.array(self.events) > np.array(self.answers)).any():
            raise fields.refused("events", "must not exceed the answers")
        for g, i in product(range(len(self.answers)), range(self.bins)):
            weights = weights_of(self.answers[g][i], self.events[g][i], i, self.bins, self.quadratic)
            self.up[g][i], self.down[g][i] = weights


class BinForecaster(Stream):
    """Answers the middle of a bin, or of one of two neighbors by a coin; a fresh table every epoch."""

    FIRST_EPOCH: ClassVar[int]  # rounds
    EPOCH_FACTOR: ClassVar[int]

    def __init__(
        self, horizon: int | None, bins: int | None, groups: int, quadratic: bool, seed: int | None
    ) -> None:
        super().__init__()
        self.horizon = checked_horizon(horizon)
        self.bins = None if bins is None else checked_bins(bins)
        self.seed = recorded_seed(seed)
        self._groups, self._quadratic = groups, quadratic
        self._forecasts = 0  # made so far: the counter of the coins, and what ends an epoch
        self._tables: list[BinTable] = []
        self._open_epoch()

    @abstractmethod
    def _suited_bins(self, epoch: int) -> int:
        """Return the number of bins of an epoch, where the user has not chosen it."""

    @abstractmethod
    def _epoch_bound(self, rounds: Any, bins: int) -> Any:
        """Return what is promised for an epoch of that many rounds; promises add over the epochs."""

    def _open_epoch(self) -> None:
        bins = self.bins or self._suited_bins(len(self._tables))
        self._tables.append(BinTable(bins, self._groups, self._quadratic))
        self._last = bins // 2

    @property
    def _one_table(self) -> bool:
        return self.horizon is not None or self.bins is not None

    def _end_of(self, epoch: int) -> float:
        return math.inf if self._one_table else self.FIRST_EPOCH * self.EPOCH_FACTOR**epoch

    def _current_table(self) -> BinTable:
        if self._forecasts >= self._end_of(len(self._tables) - 1):
            self._open_epoch()
        return self._tables[-1]

    @property
    def rounds(self) -> int:
        return sum(table.rounds() for table in self._tables)

    def _draw(self, guide: float | None, groups: tuple[int, ...]) -> tuple[float, tuple[Any, ...]]:
        """Return the forecast, and what is kept of it: epoch, bin and groups."""
        table = self._current_table()
        start = self._last if guide is None else min(int(guide * table.bins), table.bins - 1)
        low, high, chance = chosen_pair(table.up, table.down, groups, start, table.bins)
        self._last = low
        if high != low and counter_uniform(self.seed, self._forecasts) >= chance:
            self._last = high
        self._forecasts += 1
        return (self._last + 0.5) / table.bins, (len(self._tables) - 1, self._last, *groups)

    def _learn(self, answer: tuple[Any, ...], outcome: float) -> None:
        epoch, chosen, *groups = answer
        table = self._tables[epoch]
        counts = table.answers, table.events, table.up, table.down
        settle(*counts, tuple(groups), chosen, outcome, self._quadratic)

    def _run_epochs(self, outcomes: Array, guides: Array | None, members: Any, followed: bool) -> Run:
        """Forecast and learn many rounds, epoch by epoch, with the account after each if it is followed."""
        size, begin, before = len(outcomes), 0, self.rounds
        predictions, steered = np.empty(size), np.empty(size, np.bool_)
        errors, bounds = np.empty(size), np.empty(size)
        while begin < size:
            table = self._current_table()
            end = int(min(size, begin + self._end_of(len(self._tables) - 1) - self._forecasts))
            part = slice(begin, end)
            if followed:
                closed = sum(float(self._epoch_bound(old.rounds(), old.bins)) for old in self._tables[:-1])
                rounds = table.rounds() + np.arange(1, end - begin + 1)
                bounds[part] = closed + self._epoch_bound(rounds, table.bins)
            error = sum(old.error() for old in self._tables)
            tosses = counter_uniforms(self.seed, self._forecasts, end - begin)
            own = np.empty(0) if guides is None else guides[part]
            chosen, steered[part], gained = table.run(outcomes[part], own, members[part], tosses, self._last)
            predictions[part], errors[part] = (chosen + 0.5) / table.bins, error + gained
            self._last, self._forecasts = int(chosen[-1]), self._forecasts + end - begin
            begin = end
        self._pending.note_batch(min(1, size))
        certificate = errors if followed else None
        bound = bounds if followed and self._kept_in_time else None
        return Run(predictions, certificate, bound, steered, learnt_before=before)

    def _promised(self, rounds: int) -> Any:
        return sum(self._epoch_bound(t, m) for t, m in self._per_epoch(rounds))

    def _per_epoch(self, rounds: int) -> list[tuple[int, int]]:
        """Return the rounds and bins of each epoch, after that many outcomes, if none is forgotten."""
        if self._one_table:
            return [(rounds, self._tables[0].bins)]
        learned = [table.rounds() for table in self._tables]
        if rounds > self.rounds:  # any of those that wait may come next
            for epoch, *_ in self._pending.waiting.values():
                learned[epoch] += 1
        more, begin = rounds - sum(learned), self._forecasts
        if rounds < self.rounds:  # which rounds came first is not known: as if nothing had been forgotten
            learned, more, begin = [], rounds, 0
        parts: list[tuple[int, int]] = []
        while more > 0 or len(parts) < len(learned):
            epoch = len(parts)
            new = int(max(0, min(more, self._end_of(epoch) - begin)))
            parts.append((sum(learned[epoch : epoch + 1]) + new, self._suited_bins(epoch)))
            more, begin = more - new, begin + new
        return parts

    def _state(self) -> dict[str, Any]:
        epochs = [{"answers": table.answers, "events": table.events} for table in self._tables]
        return {"forecasts": self._forecasts, "last": self._last, "epochs": epochs}

    def _restore(self, fields: Fields) -> None:
        self._forecasts = fields.count("forecasts")
        epochs = fields.items("epochs")
        expected = next(k for k in count(1) if self._end_of(k - 1) >= self._forecasts)
        if len(epochs) != expected:
            raise fields.refused("epochs", f"must be {expected} after {self._forecasts:,} forecasts")
        while len(self._tables) < expected:
            self._open_epoch()
        for table, state in zip(self._tables, epochs, strict=True):
            table.restore(Fields(state, fields.kind))
        self._last = fields.count("last", self._tables[-1].bins - 1)
        if self.rounds > self._forecasts:
            raise fields.refused("forecasts", "must not be less than the outcomes learned")

    def _checked_answer(self, answer: list[Any], fields: Fields) -> tuple[Any, ...]:
        counts = Fields({"waiting": answer}, fields.kind).counts("waiting", len(answer))
        fits = len(counts) >= 3 and counts[0] < len(self._tables) and counts[1] < self._tables[counts[0]].bins
        if not fits or max(counts[2:]) >= self._groups:
            raise fields.refused("waiting", "must name an epoch, a bin and groups")
        return tuple(counts)


class ExpectedErrorForecaster(BinForecaster, GuidedStream):
    """Forecast any stream with a small expected calibration error (ECE), on average over its own coins.

    After T rounds T times the ECE has a mean of at most T / (2 m) + sqrt(m T) with m bins: 1.5 T^(2/3) for
    a known horizon, up to rounding, and 2.31 T^(2/3) without one. The outcomes may depend on everything
    but the next coin. In the manner of Foster (1999) and Foster and Vohra (1998).

    `certificate` is the error so far, T times the ECE, computed and not promised; so it may exceed
    `bound()`, which holds for its mean. Never show a forecast before the outcome is fixed, and keep saved
    states secret: the seed reveals all coins to come.

    Parameters
    ----------
    horizon : int, optional
        The number of rounds, if it is known.
    bins : int, optional
        The number of bins; by default what suits the horizon, or twice as many in every epoch.
    delay : int, default 0
        How many earlier outcomes may still be unknown when a forecast is made.
    seed : int, optional
        Seed of the coins; drawn from the system by default.

    Examples
    --------
    >>> forecaster = ExpectedErrorForecaster(bins=4, seed=0)
    >>> forecaster.run([1, 1, 0, 1, 0]).predictions
    array([0.625, 0.875, 0.875, 0.875, 0.625])
    """

    SETTINGS = ("delay", "horizon", "bins", "seed")
    certifies = "expected calibration error"
    FIRST_EPOCH = EPOCH_FACTOR = 8

    def __init__(
        self, *, horizon: int | None = None, bins: int | None = None, delay: int = 0, seed: int | None = None
    ) -> None:
        self.delay = checked_count(delay, "delay")
        super().__init__(horizon, bins, 1, True, seed)

    def _suited_bins(self, epoch: int) -> int:
        rounds = self.EPOCH_FACTOR**epoch if self.horizon is None else self.horizon
        return expected_error_bins(rounds, self.delay)

    @property
    def certificate(self) -> float:
        """T times the expected calibration error of the answers so far, summed over the epochs."""
        return sum(table.error() for table in self._tables)

    def _epoch_bound(self, rounds: Any, bins: int) -> Any:
        return expected_error_bound(rounds, bins, self.delay)

    def _forecast(self, guide: float | None) -> tuple[float, tuple[Any, ...]]:
        return self._draw(guide, (0,))

    def _run(self, outcomes: Array, guides: Array | None) -> Run:
        members = np.zeros((len(outcomes), 1), dtype=np.int64)
        return self._run_epochs(outcomes, guides, members, followed=True)
