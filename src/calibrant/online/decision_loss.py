"""DecisionLossForecaster: randomized forecasts on which no decision maker regrets much, in any group."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import numpy as np

from calibrant.errors import InvalidInputError, LevelSetWarning, reject_name
from calibrant.forecasts import Forecasts
from calibrant.inputs import check_same_length
from calibrant.metrics.decisions.worst_case import decision_loss
from calibrant.online.base import Run
from calibrant.online.bins import BinForecaster
from calibrant.online.bounds import decision_loss_bins, decision_loss_bound
from calibrant.online.inputs import EVERYBODY, MISSING, Key, checked_probability, label_name, list_of_names

Potential = Literal["exponential", "quadratic"]


class DecisionLossForecaster(BinForecaster):
    """Forecast any stream so that decision makers who trust the forecasts lose little, in every group.

    After T rounds T times the calibration decision loss (CDL) has a mean of at most `bound()`, which is
    O(sqrt(T) log T); the outcomes may depend on everything but the next coin. In the manner of Hu and Wu
    (2024), with the potential of Luo and Schapire (2015). With groups, which may overlap, the same holds for
    each of them at once: online multi-calibration. No bound is proved for outcomes that come late.

    `certificate` is T times the CDL of the answers so far, computed and not promised. Never show a forecast
    before the outcome is fixed, and keep saved states secret: the seed reveals all coins to come.

    Parameters
    ----------
    horizon : int, optional
        The number of rounds, if it is known.
    bins : int, optional
        The number of bins; by default those whose bound is smallest for the horizon, or for the epoch.
    potential : "exponential" or "quadratic"
        How excesses are weighed. The second often loses less, but has no bound.
    groups : iterable, optional
        Names of groups. Everybody is always one of them.
    seed : int, optional
        Seed of the coins; drawn from the system by default.

    Examples
    --------
    >>> forecaster = DecisionLossForecaster(bins=4, groups=["north", "old"], seed=0)
    >>> forecaster.predict_one(groups=["old"])
    0.625
    >>> forecaster.learn_one(1)
    >>> forecaster.rounds
    1
    """

    SETTINGS = ("potential", "groups", "horizon", "bins", "seed")
    certifies = "decision loss"
    FIRST_EPOCH, EPOCH_FACTOR = 64, 4

    def __init__(
        self,
        *,
        horizon: int | None = None,
        bins: int | None = None,
        potential: Potential = "exponential",
        groups: Iterable[Any] | None = None,
        seed: int | None = None,
    ) -> None:
        if potential not in ("exponential", "quadratic"):
            raise reject_name("potential", potential, ["exponential", "quadratic"])
        self.potential: Potential = potential
        self.groups = () if groups is None else tuple(list_of_names(groups))
        self._numbers = {name: number for number, name in enumerate([EVERYBODY, *self.groups])}
        super().__init__(horizon, bins, len(self._numbers), potential == "quadratic", seed)

    @classmethod
    def _arguments(cls, stored: dict[str, Any]) -> dict[str, Any]:
        if not isinstance(stored["groups"], list):
            return stored
        return {**stored, "groups": [None if name == MISSING else name for name in stored["groups"]]}

    def _suited_bins(self, epoch: int) -> int:
        if self.horizon is not None:
            return decision_loss_bins(self.horizon, self._groups)
        end = self.FIRST_EPOCH * self.EPOCH_FACTOR**epoch
        begin = end // self.EPOCH_FACTOR if epoch else 0
        return decision_loss_bins(end - begin, self._groups)

    @property
    def certificate(self) -> float:
        return self.group_certificate(EVERYBODY)

    def group_certificate(self, group: Any) -> float:
        """Return T times the decision loss of the answers in a group, T counting its outcomes."""
        number = self._number(group)
        counts = np.concatenate([table.answers[number] for table in self._tables]).astype(np.float64)
        events = np.concatenate([table.events[number] for table in self._tables])
        middles = np.concatenate([(np.arange(t.bins) + 0.5) / t.bins for t in self._tables])
        used = counts > 0
        if not used.any():
            return 0.0
        forecasts = Forecasts(events[used] / counts[used], middles[used], sample_weight=counts[used])
        with warnings.catch_warnings():  # a bin used once does not mean continuous predictions
            warnings.simplefilter("ignore", LevelSetWarning)
            loss = float(decision_loss(forecasts))
        return loss * float(counts.sum())

    def _promised(self, rounds: int) -> Any:
        return None if self._quadratic else super()._promised(rounds)

    def _epoch_bound(self, rounds: Any, bins: int) -> float:
        return decision_loss_bound(rounds, bins, self._groups)

    def group_bound(self, group: Any) -> float | None:
        """Return what the mean of a group's certificate cannot exceed now."""
        number = self._number(group)
        if self._quadratic or not self._kept_in_time:
            return None
        parts = ((table.rounds(number), table.rounds(), table.bins) for table in self._tables)
        return float(sum(decision_loss_bound(own, m, self._groups, planned=n) for own, n, m in parts))

    def _number(self, group: Any) -> int:
        name = label_name(group)
        if name not in self._numbers:
            raise reject_name("group", name, list(self._numbers))
        return self._numbers[name]

    def predict_one(
        self, guide: float | None = None, *, groups: Iterable[Any] = (), key: Key = None
    ) -> float:
        """Return the forecast of the next outcome, as other forecasters do.

        Parameters
        ----------
        groups : iterable
            The groups that the next outcome belongs to, besides everybody.
        """
        key = self._pending.check_free(key)
        start = None if guide is None else checked_probability(guide, "guide")
        if isinstance(groups, str):
            raise InvalidInputError("groups", "must be a list of names", f"got {groups!r}")
        members = (0, *sorted({self._number(group) for group in groups} - {0}))
        prediction, answer = self._draw(start, members)
        self._pending.add(key, answer)
        return prediction

    def run(self, y: Any, p: Any = None, *, groups: Mapping[Any, Any] | None = None) -> Run:
        """Forecast and learn many outcomes, as other forecasters do; certificate and bound are None.

        Parameters
        ----------
        groups : mapping of names to arrays of bool, optional
            Which rows belong to each group.
        """
        outcomes, guides = self._columns(y, p)
        named = groups or {}
        members = np.full((len(outcomes), 1 + len(named)), -1, dtype=np.int64)  # -1: not a member
        members[:, 0] = 0
        numbered = sorted((self._number(name), name) for name in named)
        for column, (number, name) in enumerate(numbered, start=1):
            inside = np.asarray(named[name])
            if inside.dtype.kind != "b":
                got = f"got dtype {inside.dtype}"
                raise InvalidInputError(f"group {name!r}", "must be an array of bool", got)
            check_same_length(inside, outcomes, (f"group {name!r}", "y"))
            members[:, column] = np.where(inside & (number > 0), number, -1)
        return self._run_epochs(outcomes, guides, members, followed=False)
