"""DistanceForecaster: deterministic forecasts whose distance from calibration grows like sqrt(T) at most."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from calibrant.online.base import Stream
from calibrant.online.bounds import adaptive_bound, as_numbers, uniform_bound, uniform_cells
from calibrant.online.grid import Grid
from calibrant.online.input_columns import batch_ends, outcome_column, probability_column
from calibrant.online.run import Run
from calibrant.online.single_values import Key, checked_count, checked_horizon, checked_probability
from calibrant.online.state import Fields


class DistanceForecaster(Stream):
    """Forecast any stream so that the forecasts stay close to calibrated, whatever happens.

    Deterministic, and good at any time without knowing how long the stream will be. After T rounds the
    distance to calibration, times T, is at most `certificate`, which is at most 3 sqrt((T + 1) / 2) - 2.
    It keeps an imaginary forecaster that sees each outcome first and answers a grid point; see the proofs.
    In the manner of Arunachaleswaran, Collina, Roth and Shi (2025), on a grid that refines where it is used.

    Not bounded are `upper_distance`, and the expected calibration error: against y = 1 whenever p < 1/2
    every deterministic forecaster has an error of T / 2. Use ExpectedErrorForecaster for that.

    Parameters
    ----------
    horizon : int, optional
        The number of rounds, if it is known: a fixed grid then promises 1.225 sqrt(T). On easy streams the
        adaptive grid is far better, so it is the default.
    delay : int, default 0
        How many earlier outcomes may still be unknown when a forecast is made.

    Examples
    --------
    >>> forecaster = DistanceForecaster()
    >>> for outcome in [1, 1, 0, 1]:
    ...     p = forecaster.predict_one()
    ...     forecaster.learn_one(outcome)
    >>> forecaster
    DistanceForecaster(rounds=4, certificate=1.25, bound=2.74342)
    """

    certifies = "distance to calibration"

    def __init__(self, *, horizon: int | None = None, delay: int = 0) -> None:
        super().__init__()
        self.delay = checked_count(delay, "delay")
        self.horizon = checked_horizon(horizon)
        cells = 1 if self.horizon is None else uniform_cells(self.horizon, self.delay)
        self._grid = Grid(cells=cells, cost=self.delay + 1.0, splits=self.horizon is None)

    @property
    def rounds(self) -> int:
        """How many outcomes have been learnt."""
        return self._grid.rounds

    @property
    def certificate(self) -> float:
        """What the distance to calibration, times the rounds so far, provably does not exceed."""
        return self._grid.certificate

    def bound(self, T: int | None = None) -> float | None:
        """Return what the certificate cannot exceed after T rounds (default: now).

        None if more outcomes than `delay` allows were unknown at once.
        """
        t = self.rounds if T is None else checked_count(T, "T")
        return float(self._promised(t)) if self._kept_in_time else None

    def _promised(self, rounds: Any) -> Any:
        if self.horizon is None:
            return adaptive_bound(rounds, self.delay)
        return uniform_bound(rounds, uniform_cells(self.horizon, self.delay), self.delay)

    def predict_one(self, guide: float | None = None, *, key: Key = None) -> float:
        """Return the forecast of the next outcome.

        Parameters
        ----------
        guide : float, optional
            Somebody's prediction: the answer is the middle of the usable cell nearest to it.
        key : str or int, optional
            A name for the outcome, where it may come late. Without one, learn it before the next forecast.

        Returns
        -------
        float
        """
        key = self._pending.check_free(key)
        low, high, prediction = self._grid.predict(
            None if guide is None else checked_probability(guide, "guide")
        )
        self._pending.add(key, (low, high))
        return prediction

    def _learn(self, answer: tuple[Any, ...], outcome: float) -> None:
        low, high = answer
        self._grid.learn(low, high, 0.5 * (low + high), outcome)

    def run(self, y: Any, p: Any = None, *, batches: Any = None) -> Run:
        """Forecast and learn many outcomes, exactly as step by step, but compiled.

        Parameters
        ----------
        y : array-like of 0 and 1
            The outcomes, in order.
        p : array-like, optional
            Guides.
        batches : array-like, optional
            A label per row; each stretch of equal labels (a day) is forecast whole, then learnt.

        Returns
        -------
        Run
        """
        self._check_nothing_waits()
        outcomes = outcome_column(y)
        guides = None if p is None else probability_column(p, outcomes, "p")
        ends = batch_ends(batches, len(outcomes))
        before = self.rounds
        predictions, certificates, steered = self._grid.run(outcomes, guides, ends)
        self._pending.note_batch(int(np.diff(ends, prepend=0).max(initial=0)))
        after = np.arange(before + 1, before + len(outcomes) + 1)
        bound = as_numbers(self._promised(after)) if self._kept_in_time else None
        return Run(predictions, certificates, bound, steered, learnt_before=before)

    def _to_state(self) -> dict[str, Any]:
        return {"horizon": self.horizon, "delay": self.delay, **self._grid.to_state()}

    @classmethod
    def _from_fields(cls, fields: Fields) -> Self:
        self = cls(horizon=fields.checked("horizon", checked_horizon), delay=fields.count("delay"))
        self._grid.restore(fields)
        return self

    def _checked_answer(self, answer: list[Any], fields: Fields) -> tuple[Any, ...]:
        return self._grid.checked_ends(answer, fields)
