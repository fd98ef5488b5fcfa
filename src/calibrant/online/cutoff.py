"""CutoffForecaster: randomized forecasts whose cutoff (Kuiper) error grows like sqrt(T log T) at most."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.kernels.online import cutoff_pair, run_cutoff
from calibrant.online.base import GuidedStream, Run
from calibrant.online.bins import counter_uniform, counter_uniforms
from calibrant.online.bounds import cutoff_block, cutoff_bound
from calibrant.online.inputs import checked_horizon
from calibrant.online.state import Fields
from calibrant.parallel import recorded_seed
from calibrant.results import Array

MIN_POINTS_COMPILED = 128


class CutoffForecaster(GuidedStream):
    """Forecast any stream with a small cutoff calibration error, on average over its own coins.

    The cutoff error, also called proper calibration error, is the largest total of outcome - forecast over
    the rounds whose forecast lies in an interval: T times `kuiper_error`. Its mean after T rounds is at most
    1.2 sqrt(T ln(6 sqrt(T))) + sqrt(T) / 2, whatever the outcomes are and without knowing T in advance; with
    a known horizon, 0.76 replaces 1.2. The outcomes may depend on everything but the next coin.

    A decision maker who takes the best action under each forecast gains at most twice this error from any
    monotone change of the forecasts. No deterministic forecaster can promise it: against y = 1 whenever
    p < 1/2 its error is T / 4.
    The algorithm follows Okoroafor, Kleinberg and Kim (2025). No forecaster achieves O(sqrt T): a factor of
    at least sqrt(log log T) is needed (Theorem 11 of the proofs).

    `certificate` is the error so far, T times the Kuiper error, computed and not promised, so it may exceed
    `bound()`, which holds for its mean. Never show a forecast before the outcome is fixed, and keep saved
    states secret: the seed reveals all coins to come.

    Parameters
    ----------
    horizon : int, optional
        The number of rounds, if it is known.
    seed : int, optional
        Seed of the coins; drawn from the system by default.

    Examples
    --------
    >>> forecaster = CutoffForecaster(seed=0)
    >>> forecaster.run([1, 1, 0, 1, 0]).predictions
    array([1. , 0.5, 1. , 0.5, 0.5])
    """

    SETTINGS = ("horizon", "seed")
    certifies = "cutoff calibration error"

    def __init__(self, *, horizon: int | None = None, seed: int | None = None) -> None:
        super().__init__()
        self.horizon = checked_horizon(horizon)
        self.seed = recorded_seed(seed)
        self._forecasts = 0
        self._points, self._rate, self._block_end = cutoff_block(1, self.horizon)
        self._answers, self._events = np.zeros((2, self._points + 1), dtype=np.int64)
        self._last = 0

    @property
    def rounds(self) -> int:
        return int(self._answers.sum())

    def _curve(self) -> Any:
        """Return the total residual below each gap between points; exact, since points are dyadic."""
        answered = self._answers * (np.arange(self._points + 1) / self._points)
        return np.concatenate([[0.0], np.cumsum(self._events - answered)])

    @property
    def certificate(self) -> float:
        return float(np.ptp(self._curve()))

    def _promised(self, rounds: Any) -> Any:
        return cutoff_bound(rounds, self.horizon)

    def _begin_round(self) -> None:
        if self._forecasts < self._block_end:
            return  # else the points get finer and the rate lower
        points, self._rate, self._block_end = cutoff_block(self._forecasts + 1, self.horizon)
        finer = points // self._points
        refined = np.zeros((2, points + 1), dtype=np.int64)
        refined[:, ::finer] = self._answers, self._events
        self._answers, self._events = refined
        self._points, self._last = points, self._last * finer

    def _forecast(self, guide: float | None) -> tuple[float, tuple[Any, ...]]:
        self._begin_round()
        if self._points >= MIN_POINTS_COMPILED:
            cutoff_pair.compile_now()
        start = self._last if guide is None else int(guide * self._points + 0.5)
        low, high, chance = cutoff_pair(self._curve(), self._rate, start)
        self._last = int(low if high == low or counter_uniform(self.seed, self._forecasts) < chance else high)
        self._forecasts += 1
        answer = self._last / self._points
        return answer, (answer,)

    def _learn(self, answer: tuple[Any, ...], outcome: float) -> None:
        point = round(answer[0] * self._points)
        self._answers[point] += 1
        self._events[point] += int(outcome)

    def _run(self, outcomes: Array, guides: Array | None) -> Run:
        size, begin = len(outcomes), 0
        predictions, steered, errors = np.empty(size), np.empty(size, np.bool_), np.empty(size)
        while begin < size:
            self._begin_round()
            end = int(min(size, begin + self._block_end - self._forecasts))
            part, curve = slice(begin, end), self._curve()
            own = np.empty(0) if guides is None else guides[part]
            tosses = counter_uniforms(self.seed, self._forecasts, end - begin)
            if (end - begin) * self._points >= 100 * MIN_POINTS_COMPILED:
                run_cutoff.compile_now()
            out = (predictions[part], steered[part], errors[part])
            self._last = int(run_cutoff(outcomes[part], own, tosses, curve, self._rate, self._last, *out))
            points = np.rint(predictions[part] * self._points).astype(np.int64)
            self._answers += np.bincount(points, minlength=self._points + 1)
            self._events += np.bincount(points[outcomes[part] == 1], minlength=self._points + 1)
            self._forecasts += end - begin
            begin = end
        return self._finished(predictions, errors, steered, min(1, size))

    def _state(self) -> dict[str, Any]:
        counts = {"answers": self._answers.tolist(), "events": self._events.tolist()}
        return {"forecasts": self._forecasts, "last": self._last, **counts}

    def _restore(self, fields: Fields) -> None:
        self._forecasts = fields.count("forecasts")
        if self._forecasts:
            self._points, self._rate, self._block_end = cutoff_block(self._forecasts, self.horizon)
        self._answers = np.array(fields.counts("answers", self._points + 1), dtype=np.int64)
        self._events = np.array(fields.counts("events", self._points + 1), dtype=np.int64)
        self._last = fields.count("last", self._points)
        if (self._events > self._answers).any():
            raise fields.refused("events", "must not exceed the answers")
        if self.rounds > self._forecasts:
            raise fields.refused("forecasts", "must not be less than the outcomes learned")

    def _checked_answer(self, answer: list[Any], fields: Fields) -> tuple[Any, ...]:
        given = answer[0] if len(answer) == 1 else None
        if not isinstance(given, int | float) or not 0 <= given <= 1:
            raise fields.refused("waiting", "must hold the forecast of each key")
        return (float(given),)
