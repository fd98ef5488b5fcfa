"""OnlineCalibrator: turns given predictions into calibrated ones, with a certificate for any future."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError
from calibrant.inputs import flag, open_share, positive_share
from calibrant.kernels.online import (
    EXPERTS,
    FILTER,
    expert_answers,
    experts_learn,
    mixed,
    reweigh,
    run_experts,
)
from calibrant.online.base import Pending, Run, Stream
from calibrant.online.bounds import SLACK, SPLIT_COST, guard_bound
from calibrant.online.distance import Grid
from calibrant.online.inputs import (
    Key,
    batch_ends,
    checked_bins,
    checked_count,
    checked_probability,
    label_name,
    outcome_column,
    probability_column,
    rows_by_name,
)
from calibrant.online.state import Fields
from calibrant.results import Array

NAMES = ("raw", "platt", "platt, forgetting", "raw + bin's residual", "bin's rate")  # of the experts
MIN_DECAY = 1e-300  # a smaller one forgets no more, since variances stop at 1, and would overflow
MAX_RATE = 2.0  # the largest for which squared error on [0, 1] is mixable
WHOLE_STREAM = "all"  # the one segment of a stream that is not cut
_STATE_FIELDS = ("weights", "filters", "answered", "residuals", "events")
_FRESH_FILTER = [1.0, 0.0, 0.25, 0.0, 0.25]  # slope, intercept, and the three entries of their covariance


class Experts:
    """The experts of one segment; single steps are fastest with plain lists and floats."""

    def __init__(self, *, bins: int, decay: float, prior: float, delay: int) -> None:
        self.decay, self.rate = max(decay, MIN_DECAY), MAX_RATE / (delay + 1)
        others = math.log((1 - prior) / (EXPERTS - 1))
        self.weights = [math.log(prior), *[others] * (EXPERTS - 1)]
        self.filters = [*_FRESH_FILTER, *_FRESH_FILTER]
        self.answered = [0] * bins
        self.residuals = [0.0] * bins
        self.events = [0] * bins
        self.waiting = Pending()  # of this segment: answers without content

    @property
    def rounds(self) -> int:
        return sum(self.answered)

    def answers(self, p: float) -> list[float]:
        out = [0.0] * EXPERTS
        expert_answers(p, self.filters, self.answered, self.residuals, self.events, out)
        return out

    def learn(self, answers: list[float], outcome: float) -> None:
        reweigh(self.weights, answers, outcome, self.rate)
        state = self.filters, self.answered, self.residuals, self.events
        experts_learn(answers[0], outcome, *state, self.decay)

    def run(self, outcomes: Array, raw: Array, ends: npt.NDArray[np.int64]) -> tuple[Array, Array]:
        state: list[Any] = [np.array(getattr(self, name)) for name in _STATE_FIELDS]
        mixtures, history = np.empty(len(outcomes)), np.empty((len(outcomes), EXPERTS))
        run_experts(outcomes, raw, ends, *state, self.decay, self.rate, mixtures, history)  # type: ignore[call-arg]
        for name, array in zip(_STATE_FIELDS, state, strict=True):
            setattr(self, name, array.tolist())
        self.waiting.note_batch(int(np.diff(ends, prepend=0).max(initial=0)))
        return mixtures, _shares(history)

    def to_state(self) -> dict[str, Any]:
        learned = {name: getattr(self, name) for name in _STATE_FIELDS}
        return {"rounds": self.rounds, **self.waiting.to_state(), "experts": learned}

    def restore(self, state: Fields) -> None:
        fields, bins = state.inner("experts"), len(self.answered)
        self.weights = fields.numbers("weights", EXPERTS, high=0)
        self.filters = fields.numbers("filters", 2 * FILTER, -1e50, 1e50)
        covariances = (self.filters[2:5], self.filters[7:10])
        if any(p < 0 or q < 0 or p * q < r * r * (1 - 1e-9) - 1e-12 for p, r, q in covariances):
            raise fields.refused("filters", "must hold covariances")
        self.answered, self.events = fields.counts("answered", bins), fields.counts("events", bins)
        self.residuals = fields.numbers("residuals", bins)
        for name, values in (("events", self.events), ("residuals", self.residuals)):
            if any(abs(value) > n for value, n in zip(values, self.answered, strict=True)):
                raise fields.refused(name, "must not exceed the answers")
        if state.count("rounds") != self.rounds:
            raise state.refused("rounds", "must be what the experts have learned")
        self.waiting = Pending.from_state(state)


def _shares(logs: Array) -> Array:
    weights = np.exp(logs - logs.max(axis=1, keepdims=True, initial=-np.inf))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


class OnlineCalibrator(Stream):
    """Recalibrate predictions as outcomes arrive; no history is needed.

    Five experts on the incoming p (see `weights`) are mixed by Vovk's aggregating algorithm. A guard lets the
    mixture pass, or moves it to the nearest prediction that is defensible. What is promised for any outcomes:

    - With the guard: T times the distance to calibration is at most `certificate`, which is at most
      `bound()`, about 2.44 T^(2/3).
    - While the guard has not moved anything, or without it: the total Brier score exceeds that of the raw
      predictions by at most `brier_bound()`, ln(2) / 2 = 0.347 over the whole stream and for ever.

    With `by` the experts learn each segment separately, and the Brier promise is per segment; the guard and
    its certificate are about all together. Where each segment needs a certificate, use a calibrator for each.

    Parameters
    ----------
    by : str, optional
        Name of what divides the stream, such as "league"; every prediction is then passed with its segment.
    guard : bool, default True
        Whether to keep the certificate. It rarely moves a prediction.
    bins : int, default 10
        Bins of the two experts that work by bin.
    decay : float, default 0.998
        How much of the past the forgetting expert keeps from one outcome to the next.
    prior : float, default 0.5
        Weight of the raw predictions at the start; the promise is ln(1 / prior) / 2.
    delay : int, default 0
        How many earlier outcomes of the segment, such as games of the same day, may still be unknown when a
        prediction is made. The Brier promise is then (delay + 1) ln(2) / 2, for batches that are forecast
        whole and learned whole; weights move more slowly. The certificate holds for any delay.

    Examples
    --------
    >>> calibrator = OnlineCalibrator()
    >>> round(calibrator.transform_one(0.2), 4)
    0.2066
    >>> calibrator.learn_one(1)
    >>> calibrator
    OnlineCalibrator(rounds=1, certificate=0.793436, bound=5.5)
    """

    SETTINGS = ("by", "guard", "bins", "decay", "prior", "delay")
    certifies = "distance to calibration"

    def __init__(
        self,
        *,
        by: str | None = None,
        guard: bool = True,
        bins: int = 10,
        decay: float = 0.998,
        prior: float = 0.5,
        delay: int = 0,
    ) -> None:
        super().__init__()
        if by is not None and not isinstance(by, str):
            raise InvalidInputError("by", "must be the name of what segments", f"got {by!r}")
        self.by, self.guard = by, flag("guard", guard)
        self.bins = checked_bins(bins)
        self.decay = positive_share("decay", decay)
        self.prior = open_share("prior", prior)
        self.delay = checked_count(delay, "delay")
        self._segments: dict[str, Experts] = {} if by else {WHOLE_STREAM: self._fresh()}
        self._guard = Grid(slack=SLACK, cost=SPLIT_COST) if guard else None

    def _fresh(self) -> Experts:
        return Experts(bins=self.bins, decay=self.decay, prior=self.prior, delay=self.delay)

    @property
    def rounds(self) -> int:
        return sum(segment.rounds for segment in self._segments.values())

    @property
    def segments(self) -> list[str]:
        """The names of the segments seen so far."""
        return list(self._segments)

    @property
    def steered(self) -> int:
        """How many predictions the guard moved."""
        return self._guard.steered if self._guard else 0

    @property
    def certificate(self) -> float | None:
        """What the distance to calibration, times the rounds so far, does not exceed; None without guard."""
        return self._guard.certificate if self._guard else None

    def _promised(self, rounds: Any) -> Any:
        return guard_bound(rounds, max(self.delay, self._pending.most - 1)) if self.guard else None

    @property
    def _kept_in_time(self) -> bool:
        return True  # the bound is proved for outcomes in any order, and grows with the most that waited

    @property
    def most_pending(self) -> int:
        """The most outcomes of one segment that ever were unknown at once."""
        return max((segment.waiting.most for segment in self._segments.values()), default=0)

    def brier_bound(self) -> float | None:
        """Return by how much the total Brier score exceeds that of the raw predictions at most.

        None if the guard has moved a prediction, more outcomes of a segment than `delay` allows were unknown
        at once, or a prediction was made between two outcomes of one batch.
        """
        rolling = any(segment.waiting.rolling for segment in self._segments.values())
        if self.steered or rolling or self.most_pending > self.delay + 1:
            return None
        return max(1, len(self._segments)) * (self.delay + 1) * -math.log(self.prior) / 2  # theorem 8

    def weights(self, by: Any = None) -> dict[str, float]:
        """Return the weight of each expert now, in a segment where there are several."""
        experts = self._segments.get(self._name(by)) or self._fresh()
        return dict(zip(NAMES, _shares(np.array([experts.weights]))[0].tolist(), strict=True))

    def _name(self, by: Any) -> str:
        if self.by is not None:
            return label_name(by)
        if by is not None:
            rule, hint = "needs a calibrator that was made with by=", 'OnlineCalibrator(by="league")'
            raise InvalidInputError("by", rule, f"got {by!r}", hint)
        return WHOLE_STREAM

    def transform_one(self, p: float, *, by: Any = None, key: Key = None) -> float:
        """Return the calibrated prediction.

        Parameters
        ----------
        p : float
            The prediction to calibrate.
        by : str or number, optional
            Its segment, if the calibrator has segments; a missing label is a segment of its own.
        key : str or int, optional
            A name for the outcome, where it may come late. Without one, learn it before the next prediction.
        """
        key = self._pending.check_free(key)
        raw, name = checked_probability(p, "p"), self._name(by)
        segment = self._segments.get(name)
        if segment is None:  # setdefault would build a segment at every step
            segment = self._segments[name] = self._fresh()
        answers = segment.answers(raw)
        prediction = mixed(segment.weights, answers)
        cell: tuple[float, ...] = ()
        if self._guard is not None:
            cell = self._guard.predict(prediction)
            prediction = cell[2]
        self._pending.add(key, (name, *answers, *cell))
        segment.waiting.add(key, ())
        return prediction

    def _take(self, key: Key, *, learned: bool) -> tuple[Any, ...]:
        answer = super()._take(key, learned=learned)
        self._segments[answer[0]].waiting.take(key, learned=learned)
        return answer

    def _learn(self, answer: tuple[Any, ...], outcome: float) -> None:
        name, *numbers = answer
        self._segments[name].learn(numbers[:EXPERTS], outcome)
        if self._guard is not None:
            low, high, prediction = numbers[EXPERTS:]
            self._guard.learn(low, high, prediction, outcome)

    def run(self, y: Any, p: Any, *, by: Any = None, batches: Any = None) -> Run:
        """Calibrate and learn many rows, exactly as step by step, but compiled.

        Parameters
        ----------
        y : array-like of 0 and 1
            The outcomes, in order.
        p : array-like
            The predictions to calibrate.
        by : array-like, optional
            The segment of each row, if the calibrator has segments.
        batches : array-like, optional
            A label per row; each stretch of equal labels (a day) is calibrated whole, then learned.
        """
        self._check_nothing_waits()
        outcomes = outcome_column(y)
        raw = probability_column(p, outcomes, "p")
        ends = batch_ends(batches, len(outcomes))
        batch = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
        mixtures, weights = np.empty(len(outcomes)), np.empty((len(outcomes), len(NAMES)))
        for name, rows in self._rows(by, outcomes).items():
            own = np.flatnonzero(np.diff(batch[rows], append=-1)) + 1
            segment = self._segments.setdefault(name, self._fresh())
            mixtures[rows], weights[rows] = segment.run(outcomes[rows], raw[rows], own)
        largest = int(np.diff(ends, prepend=0).max(initial=0))
        found: tuple[Array, Array | None, Any] = mixtures, None, np.zeros(len(outcomes), dtype=np.bool_)
        if self._guard is not None:
            found = self._guard.run(outcomes, mixtures, ends)
        return replace(self._finished(*found, batch=largest), weights=weights)

    def _rows(self, by: Any, outcomes: Array) -> dict[str, Any]:
        if (by is None) != (self.by is None):
            named = f"must name the segment of each row: the calibrator was made with by={self.by!r}"
            rule = named if self.by else "must be left out: the calibrator has no segments"
            raise InvalidInputError("by", rule, f"got {'none' if by is None else 'a column'}")
        if by is None:
            return {WHOLE_STREAM: np.arange(len(outcomes))}
        return rows_by_name(by, outcomes, ("by", "y"))

    def _state(self) -> dict[str, Any]:
        segments = [[name, segment.to_state()] for name, segment in self._segments.items()]
        watching = {} if self._guard is None else {"watch": self._guard.to_state()}
        return {"segments": segments, **watching}

    def _restore(self, fields: Fields) -> None:
        self._segments = {}
        for row in fields.items("segments"):
            fits = isinstance(row, list) and len(row) == 2 and isinstance(row[0], str)
            if not fits or row[0] in self._segments:
                raise fields.refused("segments", "must list each name once, with its state")
            self._segments[row[0]] = segment = self._fresh()
            segment.restore(Fields(row[1], fields.kind))
        if self.by is None and list(self._segments) != [WHOLE_STREAM]:
            raise fields.refused("segments", f"must be one, {WHOLE_STREAM!r}, without by")
        if self._guard is not None:
            self._guard.restore(fields.inner("watch"))
            if self._guard.rounds != self.rounds:
                raise fields.refused("watch", "must have as many rounds as the segments")

    def _checked_answer(self, answer: list[Any], fields: Fields) -> tuple[Any, ...]:
        expected = EXPERTS + (3 if self.guard else 0)
        if len(answer) != expected + 1 or answer[0] not in list(self._segments):
            raise fields.refused("waiting", "must name a segment and its answers")
        numbers = Fields({"waiting": answer[1:]}, fields.kind).numbers("waiting", expected, 0, 1)
        if self._guard is not None:
            low, high = self._guard.checked_ends(numbers[5:7], fields)
            if not low <= numbers[7] <= high:
                raise fields.refused("waiting", "must hold a prediction within its cell")
        return (answer[0], *numbers)

    @classmethod
    def from_json(cls, text: str) -> Self:
        self = super().from_json(text)
        for key, answer in self._pending.waiting.items():
            self._segments[answer[0]].waiting.waiting[key] = ()
        return self
