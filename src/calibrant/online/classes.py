"""ClassForecaster: randomized forecasts of several classes on which no decision maker regrets much."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from calibrant.errors import InvalidInputError
from calibrant.inputs import to_array, whole_number
from calibrant.online.base import Stream
from calibrant.online.bins import counter_uniforms
from calibrant.online.bounds import class_bound, class_rate
from calibrant.online.inputs import Key, checked_horizon
from calibrant.online.state import Fields
from calibrant.parallel import recorded_seed
from calibrant.results import Array

MAX_CLASSES = 10**4


class ClassForecaster(Stream):
    """Forecast a stream of several classes so that decision makers who trust the forecasts regret little.

    The forecast is the frequency of each class so far, after adding a random number of imaginary outcomes
    to every class. Whatever the outcomes are, a decision maker with payoffs between 0 and 1 who takes the
    best action under each forecast expects at most `bound()` less in total than the best single action in
    hindsight: 2 sqrt(K T) - K for K classes and a known horizon T, and 2 sqrt(2 K T) otherwise. This is
    U-calibration (Kleinberg et al. 2023), with the noise of Luo, Senapati and Sharan (2024). It promises less
    than calibration, which takes far more rounds with several classes.

    `certificate` is None: the largest regret over all decision makers is not computed. Never show a forecast
    before the outcome is fixed, and keep saved states secret: the seed reveals all coins to come.

    Parameters
    ----------
    classes : int or list
        The number of classes, which are then named 0, 1, 2, ..., or their names (text or whole numbers).
    horizon : int, optional
        The number of rounds, if it is known.
    seed : int, optional
        Seed of the coins; drawn from the system by default.

    Examples
    --------
    >>> forecaster = ClassForecaster(["a", "b", "c"], seed=0)
    >>> forecaster.run(["a", "c", "c", "a"])[-1].round(3)
    array([0.25, 0.25, 0.5 ])
    """

    SETTINGS = ("classes", "horizon", "seed")
    certifies = "U-calibration error"

    def __init__(
        self, classes: int | Sequence[Any], *, horizon: int | None = None, seed: int | None = None
    ) -> None:
        super().__init__()
        self.classes = _checked_classes(classes)
        self.horizon = checked_horizon(horizon)
        self.seed = recorded_seed(seed)
        self._forecasts = 0
        self._counts = np.zeros(len(self.classes), dtype=np.int64)

    @property
    def rounds(self) -> int:
        return int(self._counts.sum())

    @property
    def certificate(self) -> None:
        return

    def _promised(self, rounds: int) -> float:
        return class_bound(rounds, len(self.classes), self.horizon)

    def predict_one(self, *, key: Key = None) -> Array:
        """Return the probability of each class in the next round.

        Parameters
        ----------
        key : str or int, optional
            A name for the outcome, where it may come late. Without one, learn it before the next forecast.
        """
        key = self._pending.check_free(key)
        size = len(self.classes)
        uniform = counter_uniforms(self.seed, size * self._forecasts, size)
        self._forecasts += 1
        rate = class_rate(self._forecasts, size, self.horizon)
        noise = np.zeros(size) if rate >= 1 else np.floor(np.log1p(-uniform) / math.log1p(-rate))
        counted = self._counts + noise
        total = counted.sum()
        self._pending.add(key, ())
        return np.asarray(counted / total if total else np.full(size, 1 / size))

    def learn_one(self, y: Any, *, key: Key = None) -> None:
        """Learn the class of the forecast with this key."""
        place = self._place(y)
        self._learn(self._take(key, learned=True), place)

    def _learn(self, answer: tuple[Any, ...], outcome: float) -> None:
        self._counts[int(outcome)] += 1

    def _place(self, label: Any) -> int:
        label = label.item() if isinstance(label, np.generic) else label
        if isinstance(label, bool) or (isinstance(label, float) and label.is_integer()):
            label = int(label)
        if type(label) not in (int, str) or label not in self.classes:
            shown = ", ".join(map(repr, self.classes[:5])) + (", ..." if len(self.classes) > 5 else "")
            raise InvalidInputError("y", f"must be one of the classes {shown}", f"got {label!r}")
        return self.classes.index(label)

    def run(self, y: Any) -> Array:
        """Forecast and learn many outcomes, exactly as step by step.

        Parameters
        ----------
        y : array-like of classes
            The outcomes, in order; fixed without knowing the coins.
        """
        self._check_nothing_waits()
        labels = to_array(y, "y").tolist()
        for label in labels:
            self._place(label)
        forecasts = np.empty((len(labels), len(self.classes)))
        for t, label in enumerate(labels):
            forecasts[t] = self.predict_one()
            self.learn_one(label)
        return forecasts

    def _state(self) -> dict[str, Any]:
        return {"forecasts": self._forecasts, "counts": self._counts.tolist()}

    def _restore(self, fields: Fields) -> None:
        self._forecasts = fields.count("forecasts")
        self._counts = np.array(fields.counts("counts", len(self.classes)), dtype=np.int64)
        if self.rounds > self._forecasts:
            raise fields.refused("forecasts", "must not be less than the outcomes learned")

    def _checked_answer(self, answer: list[Any], fields: Fields) -> tuple[Any, ...]:
        if answer:
            raise fields.refused("waiting", "must hold keys alone")
        return ()


def _checked_classes(classes: Any) -> tuple[str | int, ...]:
    if isinstance(classes, (int, np.integer)) and not isinstance(classes, bool):
        return tuple(range(whole_number("classes", classes, 2, MAX_CLASSES)))
    listed = isinstance(classes, (list, tuple, range, np.ndarray))
    names = tuple(c.item() if isinstance(c, np.generic) else c for c in classes) if listed else ()
    if not all(type(c) in (int, str) for c in names) or len(set(names)) < max(2, len(names)):
        rule = "must be a number from 2, or two or more different names (text or whole numbers)"
        raise InvalidInputError("classes", rule, f"got {classes!r}")
    return names
