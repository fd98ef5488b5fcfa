"""DistanceForecaster: deterministic forecasts whose distance from calibration grows like sqrt(T) at most.

Each outcome is charged to an end of the cell that forecast it; docs/online-proofs.md has the certificate.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.kernels.online import cell_is_full, charged_right, run_grid, usable_cell
from calibrant.online.base import GuidedStream, Run
from calibrant.online.bounds import adaptive_bound, uniform_bound, uniform_cells
from calibrant.online.inputs import batch_ends, checked_count, checked_horizon
from calibrant.online.state import Fields
from calibrant.results import Array


class Grid:
    """Points, the charge and limit of each, and how often each cell was used; plain lists and floats."""

    def __init__(self, *, cells: int = 1, slack: float = 0.0, cost: float = 1.0, splits: bool = True) -> None:
        # slack 0: cells answer their middle, not the guide; cost scales the uses before one splits
        self.slack, self.cost, self.splits = slack, cost, splits
        self.points = [i / cells for i in range(cells + 1)]
        self.charges = [0.0] * (cells + 1)
        self.limits = [slack] * (cells + 1)
        self.uses = [0] * cells
        self.moved = 0.0
        self.spread = 0.0  # sum of the absolute charges
        self.rounds = 0
        self.steered = 0
        self.cell = cells // 2

    @property
    def certificate(self) -> float:
        return self.moved + self.spread

    def predict(self, guide: float | None) -> tuple[float, float, float]:
        """Return the cell's ends and the forecast."""
        points = self.points
        start = min(self.cell, len(points) - 2)
        if guide is not None:
            start = min(max(bisect_right(points, guide) - 1, 0), len(points) - 2)
        cell = usable_cell(self.charges, self.limits, start)
        self.cell = cell
        self.steered += guide is not None and cell != start
        low, high = points[cell], points[cell + 1]
        if guide is not None and self.slack > 0:
            return low, high, min(max(guide, low), high)
        return low, high, 0.5 * (low + high)

    def learn(self, low: float, high: float, prediction: float, outcome: float) -> None:
        """Charge an outcome to an end of the cell that forecast it, which may have been split since."""
        points, charges, limits = self.points, self.charges, self.limits
        i, k = bisect_left(points, low), bisect_left(points, high)
        right = charged_right(outcome, charges[i], charges[k], limits[i], limits[k], self.slack)
        c = k if right else i
        before = abs(charges[c])
        charges[c] += points[c] - outcome
        self.spread += abs(charges[c]) - before
        self.moved += abs(prediction - points[c])
        self.rounds += 1
        if self.splits and k == i + 1:
            self.uses[i] += 1
            if cell_is_full(self.uses[i], low, high, self.cost, self.slack):
                self._split(i)

    def _split(self, i: int) -> None:
        low, high = self.points[i], self.points[i + 1]
        limit = 2.0 * self.slack / (high - low)
        self.points.insert(i + 1, 0.5 * (low + high))
        self.charges.insert(i + 1, 0.0)
        self.limits.insert(i + 1, limit)
        self.limits[i], self.limits[i + 2] = max(self.limits[i], limit), max(self.limits[i + 2], limit)
        self.uses[i] = 0
        self.uses.insert(i + 1, 0)

    def run(
        self, outcomes: Array, guides: Array | None, ends: npt.NDArray[np.int64]
    ) -> tuple[Array, Array, npt.NDArray[np.bool_]]:
        """Forecast and learn batch by batch; return predictions, certificates and which were steered."""
        size, spare = len(outcomes), 0
        if self.splits:  # a level of 2^d cells takes at least 4^d uses to split; edited states may be nearer
            spare = len(self.points) + min(size, math.isqrt(3 * (self.rounds + size) + 1) + 3)
        held = (self.points, self.charges, self.limits)
        points, charges, limits = (np.concatenate([x, np.zeros(spare)]) for x in held)
        uses = np.concatenate([self.uses, np.zeros(spare + 1, np.int64)])
        counts = np.array([len(self.points), self.cell, self.steered], dtype=np.int64)
        sums = np.array([self.moved, self.spread])
        predictions, certificates, steered = np.empty(size), np.empty(size), np.empty(size, dtype=np.bool_)
        run_grid(
            outcomes, np.empty(0) if guides is None else guides, ends,
            points, charges, limits, uses, counts, sums,
            self.slack, self.cost, self.splits, predictions, certificates, steered,
        )  # fmt: skip
        size, self.cell, self.steered = map(int, counts)
        self.points, self.charges, self.limits = (x[:size].tolist() for x in (points, charges, limits))
        self.uses = uses[: size - 1].tolist()
        self.moved, self.spread = map(float, sums)
        self.rounds += len(outcomes)
        return predictions, certificates, steered

    def to_state(self) -> dict[str, Any]:
        names = ("points", "charges", "limits", "uses", "moved", "spread", "rounds", "steered", "cell")
        return {name: getattr(self, name) for name in names}

    def restore(self, fields: Fields) -> None:
        size = len(fields.items("points"))
        points = fields.numbers("points", size, 0, 1)
        ordered = all(a < b for a, b in pairwise(points))
        if size < 2 or points[0] != 0 or points[-1] != 1 or not ordered:
            raise fields.refused("points", "must rise from 0 to 1")
        if not self.splits and points != self.points:
            raise fields.refused("points", "must be those of the fixed grid")
        self.points = points
        self.charges = fields.numbers("charges", size)
        self.limits = fields.numbers("limits", size, 0)
        self.uses = fields.counts("uses", size - 1)
        self.moved = fields.number("moved", 0)
        self.spread = fields.number("spread")
        self.rounds, self.steered = fields.count("rounds"), fields.count("steered")
        self.cell = fields.count("cell", size - 2)
        owed = math.fsum(map(abs, self.charges))
        if abs(self.spread - owed) > 1e-6 * (1 + owed):
            raise fields.refused("spread", "must be the sum of the absolute charges")
        # else walks to the nearest usable cell would not end
        if self.charges[0] > self.limits[0] or self.charges[-1] < -self.limits[-1]:
            raise fields.refused("charges", "must not be over the limit at 0 nor under it at 1")
        if self.slack == 0 and any(self.limits):
            raise fields.refused("limits", "must be 0 without slack")
        if sum(self.uses) > self.rounds:
            raise fields.refused("uses", "must not exceed the rounds")

    def checked_ends(self, ends: list[Any], fields: Fields) -> tuple[float, float]:
        numbers = [end for end in ends if type(end) in (int, float) and end in self.points]
        if len(ends) != 2 or len(numbers) != 2 or not numbers[0] < numbers[1]:
            raise fields.refused("waiting", "must name two points of the grid")
        return float(numbers[0]), float(numbers[1])


class DistanceForecaster(GuidedStream):
    """Forecast any stream so that the forecasts stay close to calibrated, whatever happens.

    Deterministic, and good at any time without knowing how long the stream will be. After T rounds the
    distance to calibration, times T, is at most `certificate`, which is at most 3 sqrt((T + 1) / 2) - 2.
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

    SETTINGS = ("horizon", "delay")
    certifies = "distance to calibration"

    def __init__(self, *, horizon: int | None = None, delay: int = 0) -> None:
        super().__init__()
        self.delay = checked_count(delay, "delay")
        self.horizon = checked_horizon(horizon)
        cells = 1 if self.horizon is None else uniform_cells(self.horizon, self.delay)
        self._grid = Grid(cells=cells, cost=self.delay + 1.0, splits=self.horizon is None)

    @property
    def rounds(self) -> int:
        return self._grid.rounds

    @property
    def certificate(self) -> float:
        return self._grid.certificate

    def _promised(self, rounds: Any) -> Any:
        if self.horizon is None:
            return adaptive_bound(rounds, self.delay)
        return uniform_bound(rounds, uniform_cells(self.horizon, self.delay), self.delay)

    def _forecast(self, guide: float | None) -> tuple[float, tuple[Any, ...]]:
        low, high, prediction = self._grid.predict(guide)
        return prediction, (low, high)

    def _learn(self, answer: tuple[Any, ...], outcome: float) -> None:
        low, high = answer
        self._grid.learn(low, high, 0.5 * (low + high), outcome)

    def run(self, y: Any, p: Any = None, *, batches: Any = None) -> Run:
        """Forecast and learn many outcomes, as other forecasters do.

        Parameters
        ----------
        batches : array-like, optional
            A label per row; each stretch of equal labels (a day) is forecast whole, then learned.
        """
        return self._run(*self._columns(y, p), batches)

    def _run(self, outcomes: Array, guides: Array | None, batches: Any = None) -> Run:
        ends = batch_ends(batches, len(outcomes))
        found = self._grid.run(outcomes, guides, ends)
        return self._finished(*found, batch=int(np.diff(ends, prepend=0).max(initial=0)))

    def _state(self) -> dict[str, Any]:
        return self._grid.to_state()

    def _restore(self, fields: Fields) -> None:
        self._grid.restore(fields)

    def _checked_answer(self, answer: list[Any], fields: Fields) -> tuple[Any, ...]:
        return self._grid.checked_ends(answer, fields)
