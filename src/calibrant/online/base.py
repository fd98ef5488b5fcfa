"""What every forecaster and calibrator of streams shares: keys, saving, and what cannot be added."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Self

from calibrant.errors import InvalidInputError, sentence
from calibrant.online.pending import Pending
from calibrant.online.single_values import Key, checked_key
from calibrant.online.state import Fields, read_text, save_text

VERSION = 1


class Stream(ABC):
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
        """How many outcomes have been learnt."""

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
            What happened.
        key : str or int, optional
            The key the forecast was made with.
        """
        from calibrant.online.single_values import checked_outcome

        outcome = checked_outcome(y)
        self._learn(self._pending.take(key, learnt=True), outcome)

    def forget(self, key: Key = None) -> None:
        """Stop waiting for an outcome that will never be known."""
        self._pending.take(key, learnt=False)

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

    def _after_loading(self) -> None:  # noqa: B027 - most have nothing to do here
        """Put together what follows from the answers that wait."""

    def save(self, path: str | Path) -> None:
        """Write the state to a file, whole and under a lock."""
        save_text(path, self.to_json())

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Return the object whose state `save` wrote."""
        return cls.from_json(read_text(path))

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


def _saved_key(key: Any, fields: Fields) -> Key:
    try:
        return checked_key(key)
    except InvalidInputError:
        raise fields.refused("waiting", "must have keys of text or whole numbers") from None
