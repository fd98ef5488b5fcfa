"""Forecasts that wait for their outcome: kept by key until it is learnt or forgotten."""

from __future__ import annotations

from typing import Any

from calibrant.errors import InvalidInputError, sentence
from calibrant.online.single_values import Key, checked_key


class Pending:
    """What was answered and not yet learnt, and the most that ever waited at once.

    `rolling` says whether an answer was given after an outcome was learnt while others still waited: the
    stream then does not come in batches that are forecast whole and learnt whole.
    """

    def __init__(self) -> None:
        self.waiting: dict[Key, tuple[Any, ...]] = {}
        self.most = 0
        self.rolling = False
        self._learning = False  # something was learnt since nothing waited

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

    def take(self, key: Key, *, learnt: bool) -> tuple[Any, ...]:
        """Return the answer and stop waiting for it."""
        answer = self.peek(key)
        del self.waiting[checked_key(key)]
        self._learning = bool(self.waiting) and (self._learning or learnt)
        return answer

    def note_batch(self, size: int) -> None:
        """Count a batch that was forecast and learnt as a whole."""
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
