"""What forecasters and calibrators of streams share: keys of late outcomes, saving, runs, certificates."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, sentence
from calibrant.online.inputs import (
    Key,
    checked_key,
    checked_outcome,
    checked_probability,
    outcome_column,
    probability_column,
)
from calibrant.online.state import Fields, Saved
from calibrant.results import Array


class Pending:
    """What was answered and not yet learned, and the largest number that ever waited at once.

    `rolling` says whether an answer was given after an outcome was learned while others still waited: the
    stream then does not come in batches that are forecast whole and learned whole.
    """

    def __init__(self) -> None:
        self.waiting: dict[Key, tuple[Any, ...]] = {}
        self.most = 0
        self.rolling = False
        self._learning = False  # something was learned since nothing waited

    def __len__(self) -> int:
        return len(self.waiting)

    def check_free(self, key: Key) -> Key:
        """Return the key as it is stored, refusing one that waits already."""
        key = checked_key(key)
        if key not in self.waiting:
            return key
        if key is None:
            rule = "needs a key while an earlier forecast without one waits for its outcome"
            hint = "call learn_one or forget first, or pass key="
            raise InvalidInputError(sentence("the forecast", rule, hint=hint))
        raise InvalidInputError(sentence("key", "must not be waiting already", f"got {key!r} again"))

    def add(self, key: Key, answer: tuple[Any, ...]) -> None:
        """Keep an answer under a key that is free."""
        self.rolling |= bool(self.waiting) and self._learning
        self._learning &= bool(self.waiting)
        self.waiting[key] = answer
        self.most = max(self.most, len(self.waiting))

    def peek(self, key: Key) -> tuple[Any, ...]:
        """Return the answer that waits under this key."""
        key = checked_key(key)
        if key in self.waiting:
            return self.waiting[key]
        waiting = ", ".join(map(repr, list(self.waiting)[:5])) or "none"
        got = "got no key" if key is None else f"got {key!r}"
        hint = f"forecast first; waiting: {waiting}{', ...' if len(self.waiting) > 5 else ''}"
        raise InvalidInputError(sentence("key", "must belong to a forecast that waits", got, hint))

    def take(self, key: Key, *, learned: bool) -> tuple[Any, ...]:
        """Return the answer and stop waiting for it."""
        answer = self.peek(key)
        del self.waiting[checked_key(key)]
        self._learning = bool(self.waiting) and (self._learning or learned)
        return answer

    def note_batch(self, size: int) -> None:
        """Count a batch that was forecast and learned as a whole."""
        self.most = max(self.most, size)

    def to_state(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        waiting = [[key, *answer] for key, answer in self.waiting.items()]
        flags = {"rolling": self.rolling, "learning": self._learning}
        return {"waiting": waiting, "most": self.most, **flags}

    @classmethod
    def from_state(
        cls, waiting: dict[Key, tuple[Any, ...]], most: int, rolling: bool, learning: bool
    ) -> Pending:
        """Return what `to_state` wrote, its fields checked by the caller."""
        self = cls()
        self.waiting, self.most, self.rolling, self._learning = waiting, most, rolling, learning
        return self


VERSION = 2  # from 2 on, files must have their checksum


class Stream(Saved, ABC):
    """A player in one stream: it forecasts, then learns the outcome, at once or late by its key.

    One rule for late outcomes holds for all: nothing is refused, but when more than `delay` earlier
    forecasts wait at the moment of a new one, the promise whose proof needs it is withdrawn: `bound()` of the
    forecasters and `brier_bound()` of the calibrator are None from then on. The certificate, which is
    computed and not promised, holds all the same.
    """

    delay: int = 0
    certifies: ClassVar[str]  # what the certificate is about

    def __init__(self) -> None:
        self._pending = Pending()

    @property
    def pending(self) -> int:
        """How many forecasts wait for their outcome."""
        return len(self._pending)

    @property
    @abstractmethod
    def rounds(self) -> int:
        """How many outcomes have been learned."""

    @property
    @abstractmethod
    def certificate(self) -> float | None:
        """The total error so far, or a number that it provably does not exceed; see the class."""

    @abstractmethod
    def bound(self, T: int | None = None) -> float | None:
        """Return what is promised after T rounds (by default: now), or None where nothing is."""

    @abstractmethod
    def _learn(self, answer: tuple[Any, ...], outcome: float) -> None:
        """Learn the outcome of an answer that waited."""

    @abstractmethod
    def _to_state(self) -> dict[str, Any]:
        """Return settings and state, ready for JSON, without the answers that wait."""

    @classmethod
    @abstractmethod
    def _from_fields(cls, fields: Fields) -> Self:
        """Return the object whose state this is, without the answers that wait."""

    @abstractmethod
    def _checked_answer(self, answer: list[Any], fields: Fields) -> tuple[Any, ...]:
        """Return a saved answer, or refuse it."""

    def learn_one(self, y: Any, *, key: Key = None) -> None:
        """Learn the outcome, 0 or 1, of the forecast with this key.

        Parameters
        ----------
        y : 0 or 1
            The observed outcome.
        key : str or int, optional
            The key the forecast was made with.
        """
        outcome = checked_outcome(y)
        self._learn(self._pending.take(key, learned=True), outcome)

    def forget(self, key: Key = None) -> None:
        """Stop waiting for an outcome that will never be known."""
        self._pending.take(key, learned=False)

    @property
    def _kept_in_time(self) -> bool:
        """Whether at most `delay` earlier forecasts ever waited when a new one was made."""
        return self._pending.most <= self.delay + 1

    def _check_nothing_waits(self) -> None:
        if self.pending:
            hint = "call learn_one or forget for each first"
            got = f"got {self.pending:,} that wait"
            raise InvalidInputError(sentence("run", "needs every earlier outcome", got, hint))

    def to_json(self) -> str:
        """Return the whole state as JSON text; loading it and going on is as if nothing had happened."""
        head = {"kind": type(self).__name__, "version": VERSION}
        return json.dumps({**head, **self._to_state(), "pending": self._pending.to_state()}, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the object whose state this is; every field is checked."""
        fields = Fields.of(text, cls.__name__, VERSION)
        self = cls._from_fields(fields)
        inner = fields.inner("pending")
        waiting: dict[Key, tuple[Any, ...]] = {}
        for row in inner.items("waiting"):
            key = _saved_key(row[0] if isinstance(row, list) and row else [], inner)
            if key in waiting:
                raise inner.refused("waiting", "must list each key once, with its answer")
            waiting[key] = self._checked_answer(row[1:], inner)
        most = inner.count("most")
        if most < len(waiting):
            raise inner.refused("most", "must not be less than the answers that wait")
        self._pending = Pending.from_state(waiting, most, inner.flag("rolling"), inner.flag("learning"))
        self._after_loading()
        return self

    def _after_loading(self) -> None:
        """Put together what follows from the answers that wait."""

    def __add__(self, other: object) -> Any:
        name = type(self).__name__
        rule = "cannot be added: its state is a position in one game against one stream"
        hint = "certificates add: use calibrant.online.total_certificate([a, b])"
        raise InvalidInputError(sentence(f"a {name}", rule, hint=hint))

    def __repr__(self) -> str:
        certificate, bound = self.certificate, self.bound()
        result = "none" if certificate is None else f"{certificate:.6g}"
        promised = "none" if bound is None else f"{bound:.6g}"
        return f"{type(self).__name__}(rounds={self.rounds:,}, certificate={result}, bound={promised})"


class GuidedStream(Stream):
    """A forecaster of outcomes 0 and 1 that may start from a prediction from elsewhere."""

    @abstractmethod
    def _forecast(self, guide: float | None) -> tuple[float, tuple[Any, ...]]:
        """Return the next forecast, and what is kept until its outcome is learned."""

    def _run(self, outcomes: Array, guides: Array | None) -> Run:
        """Forecast and learn many outcomes."""
        raise NotImplementedError

    def predict_one(self, guide: float | None = None, *, key: Key = None) -> float:
        """Return the forecast of the next outcome.

        Parameters
        ----------
        guide : float, optional
            A prediction from elsewhere: the search for the forecast starts there.
        key : str or int, optional
            A name for the outcome, where it may come late. Without one, learn it before the next forecast.

        Returns
        -------
        float
        """
        key = self._pending.check_free(key)
        prediction, answer = self._forecast(None if guide is None else checked_probability(guide, "guide"))
        self._pending.add(key, answer)
        return prediction

    def run(self, y: Any, p: Any = None) -> Run:
        """Forecast and learn many outcomes, exactly as step by step, but compiled.

        Parameters
        ----------
        y : array-like of 0 and 1
            The outcomes, in order; fixed without knowing the coins, where there are any.
        p : array-like, optional
            Guides.

        Returns
        -------
        Run
        """
        self._check_nothing_waits()
        outcomes = outcome_column(y)
        return self._run(outcomes, None if p is None else probability_column(p, outcomes, "p"))


def _saved_key(key: Any, fields: Fields) -> Key:
    try:
        return checked_key(key)
    except InvalidInputError:
        raise fields.refused("waiting", "must have keys of text or whole numbers") from None


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """The forecasts of many rounds and the account after each of them.

    Attributes
    ----------
    predictions : array
        One forecast per row.
    certificate : array or None
        The certificate after each row; None where it is not kept (no guard; decision loss).
    bound : array or None
        What is promised after each row; None where nothing is.
    steered : array of bool
        Whether the answer left the cell or bin of the guide.
    weights : array of shape (rows, 5) or None
        The experts' weights that each row was mixed with (OnlineCalibrator).
    learnt_before : int
        How many outcomes had been learned before the first row; the account includes them.
    """

    predictions: Array
    certificate: Array | None
    bound: Array | None
    steered: npt.NDArray[np.bool_]
    weights: Array | None = None
    learnt_before: int = 0

    @property
    def rounds(self) -> npt.NDArray[np.int64]:
        """How many outcomes had been learned after each row, in all."""
        return self.learnt_before + np.arange(1, len(self) + 1)

    def taken(self, rows: npt.NDArray[np.bool_]) -> Run:
        """Return some of the rows, such as those whose outcome is known."""
        given = ((part.name, getattr(self, part.name)) for part in fields(self))
        kept: dict[str, Any] = {name: item[rows] for name, item in given if isinstance(item, np.ndarray)}
        return replace(self, **kept)

    def __len__(self) -> int:
        return len(self.predictions)

    def __repr__(self) -> str:
        last = [_last(name, getattr(self, name)) for name in ("certificate", "bound")]
        return f"Run(rows={len(self):,}, {', '.join(last)}, steered={int(self.steered.sum()):,})"

    def to_dict(self) -> dict[str, Any]:
        """Return all columns as lists, ready for JSON."""
        columns = {part.name: getattr(self, part.name) for part in fields(self)}
        return {
            name: item.tolist() if isinstance(item, np.ndarray) else item for name, item in columns.items()
        }


def _last(name: str, column: Array | None) -> str:
    return f"{name}={'none' if column is None or not len(column) else format(column[-1], '.6g')}"


def total_certificate(streams: Iterable[Stream]) -> float:
    """Return a certificate for the union of several streams: the sum of their certificates.

    The distance to calibration, the expected calibration error and the decision loss, times the number of
    records, of a union of streams are at most the sums over the streams.

    Parameters
    ----------
    streams : iterable
        Forecasters or calibrators that certify the same kind of error.

    Returns
    -------
    float

    Examples
    --------
    >>> from calibrant.online import DistanceForecaster
    >>> parts = [DistanceForecaster(), DistanceForecaster()]
    >>> _ = parts[0].run([1, 1, 0, 1]), parts[1].run([0])
    >>> total_certificate(parts)
    1.75
    """
    if not isinstance(streams, Iterable):
        raise InvalidInputError(sentence("streams", "must be a list", f"got {streams!r}", "write [a, b]"))
    parts = list(streams)
    for part in parts:
        if not isinstance(part, Stream) or part.certificate is None:
            rule = "must each have a certificate"
            raise InvalidInputError(sentence("streams", rule, f"got {part!r}"))
    kinds = sorted({part.certifies for part in parts})
    if len(kinds) > 1:
        rule = "must certify the same error to be added"
        raise InvalidInputError(sentence("streams", rule, f"got {' and '.join(kinds)}"))
    return float(sum(part.certificate or 0.0 for part in parts))
