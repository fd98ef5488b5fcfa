"""ExpectedErrorForecaster: randomised forecasts whose ECE grows like T^(2/3) at most."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Self

import numpy as np

from calibrant.online.bin_tables import BinForecaster, Stretch
from calibrant.online.bounds import as_numbers, expected_error_bins, expected_error_bound
from calibrant.online.input_columns import outcome_column, probability_column
from calibrant.online.run import Run
from calibrant.online.single_values import (
    Key,
    checked_bins,
    checked_count,
    checked_horizon,
    checked_probability,
)
from calibrant.online.state import Fields
from calibrant.results import Array


class ExpectedErrorForecaster(BinForecaster):
    """Forecast any stream with a small expected calibration error (ECE), on average over its own coins.

    After T rounds T times the ECE has a mean of at most T / (2 m) + sqrt(m T) with m bins: 1.5 T^(2/3) for
    a known horizon, up to rounding, and 2.31 T^(2/3) without one. The outcomes may depend on everything
    but the next coin. In the manner of Foster (1999) and Foster and Vohra (1998).

    `certificate` is the error so far, T times the ECE, computed and not promised; so it may exceed
    `bound()`, which holds for its mean. (With a delay and no horizon epochs may share an answer; their errors
    are added up, and that is no less.) Never show a forecast before the outcome is fixed, and keep saved
    states secret: the seed tells all coins to come.

    Parameters
    ----------
    horizon : int, optional
        The number of rounds, if it is known.
    bins : int, optional
        The number of bins; by default what suits the horizon, or twice as many in every epoch.
    delay : int, default 0
        How many earlier outcomes may still be unknown when a forecast is made. The bound then has
        sqrt((2 delay + 1) m T).
    seed : int, optional
        Of the coins; drawn from the system by default.

    Examples
    --------
    >>> forecaster = ExpectedErrorForecaster(bins=4, seed=0)
    >>> forecaster.run([1, 1, 0, 1, 0]).predictions
    array([0.625, 0.875, 0.875, 0.875, 0.625])
    """

    certifies = "expected calibration error"
    FIRST_EPOCH = EPOCH_FACTOR = 8

    def __init__(
        self, *, horizon: int | None = None, bins: int | None = None, delay: int = 0, seed: int | None = None
    ) -> None:
        self.delay = checked_count(delay, "delay")
        super().__init__(horizon, bins, 1, True, seed)

    def _suited_bins(self, epoch: int) -> int:
        if self.horizon is not None:
            return expected_error_bins(self.horizon, self.delay)
        return expected_error_bins(self.EPOCH_FACTOR**epoch, self.delay)

    @property
    def certificate(self) -> float:
        """T times the expected calibration error of the answers so far, summed over the epochs."""
        return sum(table.error() for table in self._tables)

    def bound(self, T: int | None = None) -> float | None:
        """Return what the mean of the certificate cannot exceed after T rounds (default: now).

        None if more outcomes than `delay` allows were unknown at once.
        """
        if not self._kept_in_time:
            return None
        parts = self._learnt_per_epoch() if T is None else self._per_epoch(checked_count(T, "T"))
        return float(sum(expected_error_bound(t, m, self.delay) for t, m in parts))

    def predict_one(self, guide: float | None = None, *, key: Key = None) -> float:
        """Return the forecast of the next outcome.

        Parameters
        ----------
        guide : float, optional
            Somebody's prediction: the search for a bin starts there.
        key : str or int, optional
            A name for the outcome, where it may come late. Without one, learn it before the next forecast.

        Returns
        -------
        float
        """
        key = self._pending.check_free(key)
        chosen = self._draw(None if guide is None else checked_probability(guide, "guide"), (0,))
        self._pending.add(key, (len(self._tables) - 1, chosen, 0))
        return self._answer(chosen)

    def run(self, y: Any, p: Any = None) -> Run:
        """Forecast and learn many outcomes, exactly as step by step, but compiled.

        Parameters
        ----------
        y : array-like of 0 and 1
            The outcomes, in order; fixed without knowing the coins.
        p : array-like, optional
            Guides.

        Returns
        -------
        Run
        """
        self._check_nothing_waits()
        outcomes = outcome_column(y)
        guides = None if p is None else probability_column(p, outcomes, "p")
        run, stretches = self._run(outcomes, guides, np.zeros((len(outcomes), 1), dtype=np.int64))
        return replace(run, bound=self._running_bound(stretches) if self._kept_in_time else None)

    def _running_bound(self, stretches: list[Stretch]) -> Array:
        """Return the bound after each row of a run."""
        bounds = [np.empty(0)]
        for stretch in stretches:
            closed = [(table.rounds(), table.bins) for table in self._tables[: stretch.epoch]]
            owed = sum(float(expected_error_bound(t, m, self.delay)) for t, m in closed)
            bins = self._tables[stretch.epoch].bins
            bounds.append(owed + as_numbers(expected_error_bound(stretch.rounds, bins, self.delay)))
        return np.concatenate(bounds)

    def _to_state(self) -> dict[str, Any]:
        return {"delay": self.delay, **super()._to_state()}

    @classmethod
    def _from_fields(cls, fields: Fields) -> Self:
        self = cls(
            horizon=fields.checked("horizon", checked_horizon),
            bins=None if fields.take("bins") is None else fields.checked("bins", checked_bins),
            delay=fields.count("delay"),
            seed=fields.count("seed", math.inf),
        )
        self._restore(fields)
        return self
