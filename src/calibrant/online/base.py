"""What forecasters and calibrators of streams share: keys of late outcomes, saving, runs, certificates."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from calibrant.errors import CalibrantError, InvalidInputError
from calibrant.online.inputs import (
    Key,
    checked_count,
    checked_key,
    checked_outcome,
    checked_probability,
    outcome_column,
    probability_column,
)
from calibrant.online.state import Fields, Saved, not_a_state, parsed
from calibrant.results import Array, Result

VERSION = 2  # of the states; all versions before it are read, too
UNCHANGED = "must be what was written"


@dataclass(eq=False)
class Pending:
    """What was answered and not yet learned, and the largest number that ever waited at once."""

    most: int = 0
    rolling: bool = False  # not batch by batch: an answer came while only some had been learned
    learning: bool = False  # something was learned since nothing waited
    waiting: dict[Key, tuple[Any, ...]] = field(default_factory=dict)

    def check_free(self, key: Key) -> Key:
        """Return the key as it is stored, refusing one that waits already."""
        key = checked_key(key)
        if key not in self.waiting:
            return key
        if key is None:
            rule = "needs a key while an earlier forecast without one waits for its outcome"
            hint = "call learn_one or forget first, or pass key="
            raise InvalidInputError("the forecast", rule, hint=hint)
        raise InvalidInputError("key", "must not be waiting already", f"got {key!r} again")

    def add(self, key: Key, answer: tuple[Any, ...]) -> None:
        self.rolling |= bool(self.waiting) and self.learning
        self.learning &= bool(self.waiting)
        self.waiting[key] = answer
        self.note_batch(len(self.waiting))

    def take(self, key: Key, *, learned: bool) -> tuple[Any, ...]:
        key = checked_key(key)
        if key not in self.waiting:
            waiting = ", ".join(map(repr, list(self.waiting)[:5])) or "none"
            got = "got no key" if key is None else f"got {key!r}"
            hint = f"forecast first; waiting: {waiting}{', ...' if len(self.waiting) > 5 else ''}"
            raise InvalidInputError("key", "must belong to a forecast that waits", got, hint)
        answer = self.waiting.pop(key)
        self.learning = bool(self.waiting) and (self.learning or learned)
        return answer

    def note_batch(self, size: int) -> None:
        self.most = max(self.most, size)

    def to_state(self) -> dict[str, Any]:
        return {"most": self.most, "rolling": self.rolling, "learning": self.learning}

    @classmethod
    def from_state(cls, fields: Fields) -> Pending:
        return cls(fields.count("most"), fields.flag("rolling"), fields.flag("learning"))


class Stream(Saved):
    """A player in one stream: it forecasts, then learns the outcome, at once or late by its key."""

    SETTINGS: ClassVar[tuple[str, ...]]  # arguments of the constructor, saved under their names
    certifies: ClassVar[str]  # what the certificate is about
    delay: int = 0

    def __init__(self) -> None:
        self._pending = Pending()

    @property
    def pending(self) -> int:
        """How many forecasts wait for their outcome."""
        return len(self._pending.waiting)

    @property
    @abstractmethod
    def rounds(self) -> int:
        """How many outcomes have been learned."""

    @property
    @abstractmethod
    def certificate(self) -> float | None:
        """The total error so far, or a number that it provably does not exceed; see the class."""

    def bound(self, T: int | None = None) -> float | None:
        """Return what is promised for the certificate, or its mean, after T rounds (default: now).

        None where nothing is: see the class, and if more outcomes than `delay` allows were unknown at once.
        """
        rounds = self.rounds if T is None else checked_count(T, "T")
        promised = self._promised(rounds) if self._kept_in_time else None
        return None if promised is None else float(promised)

    @abstractmethod
    def _promised(self, rounds: Any) -> Any:
        """Return the bound after that many rounds, a number or an array; None if there is none."""

    @property
    def _kept_in_time(self) -> bool:
        """Whether bounds hold: their proofs allow `delay` earlier forecasts to wait at a new one."""
        return self._pending.most <= self.delay + 1

    @abstractmethod
    def _learn(self, answer: tuple[Any, ...], outcome: float) -> None: ...

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
        self._learn(self._take(key, learned=True), outcome)

    def forget(self, key: Key = None) -> None:
        """Stop waiting for an outcome that will never be known."""
        self._take(key, learned=False)

    def _take(self, key: Key, *, learned: bool) -> tuple[Any, ...]:
        return self._pending.take(key, learned=learned)

    def _check_nothing_waits(self) -> None:
        if self.pending:
            got, hint = f"got {self.pending:,} that wait", "call learn_one or forget for each first"
            raise InvalidInputError("run", "needs every earlier outcome", got, hint)

    def _columns(self, y: Any, p: Any) -> tuple[Array, Array | None]:
        self._check_nothing_waits()
        outcomes = outcome_column(y)
        return outcomes, None if p is None else probability_column(p, outcomes, "p")

    def _finished(self, predictions: Array, certificates: Array | None, steered: Any, batch: int) -> Run:
        self._pending.note_batch(batch)
        before = self.rounds - len(predictions)
        after = np.arange(before + 1, self.rounds + 1)
        bound = self._promised(after) if self._kept_in_time else None
        return Run(predictions, certificates, bound, steered, learnt_before=before)

    def _settings(self) -> dict[str, Any]:
        given = ((name, getattr(self, name)) for name in self.SETTINGS)
        return {name: list(value) if isinstance(value, tuple) else value for name, value in given}

    @abstractmethod
    def _state(self) -> dict[str, Any]:
        """Return what changes from round to round, ready for JSON, without the answers that wait."""

    @abstractmethod
    def _restore(self, fields: Fields) -> None: ...

    @abstractmethod
    def _checked_answer(self, answer: list[Any], fields: Fields) -> tuple[Any, ...]:
        """Return a saved answer that waits, or refuse it."""

    def to_json(self) -> str:
        """Return the whole state as JSON text; loading it and going on is as if nothing had happened."""
        head = {"kind": type(self).__name__, "version": VERSION}
        waiting = [[key, *answer] for key, answer in self._pending.waiting.items()]
        pending = {"waiting": waiting, **self._pending.to_state()}
        state = {**head, **self._settings(), **self._state(), "pending": pending}
        return json.dumps(state, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the object whose state this is; every field is checked."""
        content, kind = parsed(text, cls.__name__), cls.__name__
        if content.get("kind") != kind or "version" not in content:
            raise not_a_state(kind, content)
        if content["version"] not in range(1, VERSION + 1):
            raise InvalidInputError("state", f"must be of version {VERSION}", f"got {content['version']!r}")
        fields = Fields(content, kind)
        self = cls._made_with(fields)
        self._restore(fields)
        inner = fields.inner("pending")
        self._pending = Pending.from_state(inner)
        for row in inner.items("waiting"):
            try:
                key = checked_key(row[0] if isinstance(row, list) and row else [])
            except InvalidInputError:
                raise inner.refused("waiting", "must have keys of text or whole numbers") from None
            if key in self._pending.waiting:
                raise inner.refused("waiting", "must list each key once, with its answer")
            self._pending.waiting[key] = self._checked_answer(row[1:], inner)
        if self._pending.most < self.pending:
            raise inner.refused("most", "must not be less than the answers that wait")
        return self

    @classmethod
    def _made_with(cls, fields: Fields) -> Self:
        stored = {name: fields.take(name) for name in cls.SETTINGS}
        try:
            self = cls(**cls._arguments(stored))
        except CalibrantError as error:
            if error.subject not in cls.SETTINGS:
                raise
            raise fields.refused(error.subject, UNCHANGED) from None
        for name, value in self._settings().items():
            if value != stored[name]:
                raise fields.refused(name, UNCHANGED)
        return self

    @classmethod
    def _arguments(cls, stored: dict[str, Any]) -> dict[str, Any]:
        return stored

    def __add__(self, other: object) -> Any:
        name = type(self).__name__
        rule = "cannot be added: its state is a position in one game against one stream"
        hint = "certificates add: use calibrant.online.total_certificate([a, b])"
        raise InvalidInputError(f"a {name}", rule, hint=hint)

    def __repr__(self) -> str:
        certificate, bound = (_shown(value) for value in (self.certificate, self.bound()))
        return f"{type(self).__name__}(rounds={self.rounds:,}, certificate={certificate}, bound={bound})"


class GuidedStream(Stream):
    """A forecaster of outcomes 0 and 1 that may start from a prediction from elsewhere."""

    @abstractmethod
    def _forecast(self, guide: float | None) -> tuple[float, tuple[Any, ...]]:
        """Return the next forecast, and what is kept until its outcome is learned."""

    @abstractmethod
    def _run(self, outcomes: Array, guides: Array | None) -> Run: ...

    def predict_one(self, guide: float | None = None, *, key: Key = None) -> float:
        """Return the forecast of the next outcome.

        Parameters
        ----------
        guide : float, optional
            A prediction from elsewhere: the search for the forecast starts there.
        key : str or int, optional
            A name for the outcome, where it may come late. Without one, learn it before the next forecast.
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
        """
        return self._run(*self._columns(y, p))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Run(Result):
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
        certificate, bound = (
            _shown(None if column is None or not len(column) else column[-1])
            for column in (self.certificate, self.bound)
        )
        steered = f"steered={int(self.steered.sum()):,}"
        return f"Run(rows={len(self):,}, certificate={certificate}, bound={bound}, {steered})"


def _shown(value: float | None) -> str:
    return "none" if value is None else f"{value:.6g}"


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
        raise InvalidInputError("streams", "must be a list", f"got {streams!r}", "write [a, b]")
    parts = list(streams)
    for part in parts:
        if not isinstance(part, Stream) or part.certificate is None:
            raise InvalidInputError("streams", "must each have a certificate", f"got {part!r}")
    kinds = " and ".join(sorted({part.certifies for part in parts}))
    if " and " in kinds:
        raise InvalidInputError("streams", "must certify the same error to be added", f"got {kinds}")
    return float(sum(part.certificate or 0.0 for part in parts))
