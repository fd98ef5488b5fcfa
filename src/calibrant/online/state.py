"""States on disk: JSON text with a checksum, checked field by field, written atomically under a lock."""

from __future__ import annotations

import hashlib
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from calibrant.errors import InvalidInputError, UnreadableFileError
from calibrant.files import CHECKSUM, JsonObject, atomic_write, checksum_of, lock_file, parse_json

MAX_FLOAT = 1.7e308  # finite, also where a whole number is too large for a float
CHECKSUM_SINCE = {"calibrant_monitor": 4, "version": 2}  # from these versions on, files must have one


def parsed(text: Any, kind: str) -> dict[str, Any]:
    """Return the JSON object that `text` is; NaN, repeated fields and a wrong checksum are refused."""
    try:
        content = parse_json(text)
    except (TypeError, ValueError, RecursionError):
        raise not_a_state(kind, text) from None
    if not isinstance(content, JsonObject):
        raise not_a_state(kind, content)
    if content.checksum is not None and content.checksum != checksum_of(content):
        with_spaces = hashlib.sha256(json.dumps(content).encode()).hexdigest()  # of versions before 0.3
        if content.checksum != with_spaces[:32]:
            raise _damaged("got another checksum")
    return content


def sealed(text: str) -> str:
    """Return the JSON text of a state with a checksum of its contents as the last field."""
    return f'{text[:-1]}, "{CHECKSUM}": "{checksum_of(json.loads(text))}"}}'


def read_text(path: str | Path) -> str:
    try:
        if Path(path).exists() and not Path(path).is_file():
            got = "got a folder, device or pipe"
            raise UnreadableFileError(f"file {str(path)!r}", "must be readable", got)
        text = Path(path).read_text(encoding="utf-8")
        if _lacks_checksum(text):
            raise _damaged(f"got no checksum in {str(path)!r}")
        return text
    except OSError as error:
        reason = error.strerror or str(error)
    except UnicodeDecodeError:
        reason = "got bytes that are not text"
    raise UnreadableFileError(f"file {str(path)!r}", "must be readable", reason)


def _lacks_checksum(text: str) -> bool:
    try:
        content = parse_json(text)
    except (ValueError, RecursionError):  # reported by whatever reads the text
        return False
    if not isinstance(content, JsonObject) or content.checksum is not None:
        return False
    states = [state for state in (content, *content.values()) if isinstance(state, dict)]
    versions = ((state.get(name), first) for state in states for name, first in CHECKSUM_SINCE.items())
    return any(isinstance(version, int | float) and version >= first for version, first in versions)


def _damaged(got: str) -> InvalidInputError:
    hint = "it was damaged or edited; load an older copy"
    return InvalidInputError("state", "must be as it was written", got, hint)


def not_a_state(kind: str, content: Any) -> InvalidInputError:
    rule, hint = f"must be the JSON of a {kind}", f"pass what {kind}.to_json() returned"
    if kind == "Monitor" and isinstance(content, dict) and "everybody" in content:
        hint = "this state has groups (--by): load it with GroupMonitor"
    return InvalidInputError("text", rule, f"got {_shown(content)}", hint)


def _shown(content: Any) -> str:
    text = repr(content)
    return text if len(text) <= 60 else text[:57] + "..."


class Fields:
    def __init__(self, content: Any, kind: str) -> None:
        if not isinstance(content, dict):
            raise not_a_state(kind, content)
        self.content, self.kind = content, kind

    def refused(self, name: str, rule: str) -> InvalidInputError:
        subject, hint = f"field {name!r} of the state", "it may have been edited"
        return InvalidInputError(subject, rule, f"got {_shown(self.content.get(name))}", hint)

    def take(self, name: str, rule: str = "", holds: Callable[[Any], bool] = lambda _: True) -> Any:
        """Return a field for which the rule holds."""
        if name not in self.content:
            raise InvalidInputError("state", f"must hold every field of a {self.kind}", f"got no {name!r}")
        if not holds(self.content[name]):
            raise self.refused(name, rule)
        return self.content[name]

    def inner(self, name: str) -> Fields:
        return Fields(self.take(name, "must be an object", lambda x: isinstance(x, dict)), self.kind)

    def items(self, name: str) -> list[Any]:
        return list(self.take(name, "must be a list", lambda x: isinstance(x, list)))

    def flag(self, name: str) -> bool:
        return bool(self.take(name, "must be true or false", lambda x: type(x) is bool))

    def count(self, name: str, most: float = 10**15) -> int:
        rule = f"must be a whole number from 0{_up_to(most)}"
        return int(self.take(name, rule, lambda x: type(x) is int and 0 <= x <= most))

    def counts(self, name: str, size: int) -> list[int]:
        values = self.items(name)
        if len(values) != size or not all(type(value) is int and 0 <= value < 2**62 for value in values):
            raise self.refused(name, f"must be {size} whole numbers from 0")
        return values

    def number(self, name: str, low: float = -math.inf) -> float:
        rule = f"must be a finite number{_within(low, math.inf)}"
        return float(self.take(name, rule, lambda x: _is_number(x, low, math.inf)))

    def numbers(self, name: str, size: int, low: float = -math.inf, high: float = math.inf) -> list[float]:
        values = self.items(name)
        if len(values) != size or not all(_is_number(value, low, high) for value in values):
            raise self.refused(name, f"must be {size} finite numbers{_within(low, high)}")
        return [float(value) for value in values]


def _is_number(value: Any, low: float, high: float) -> bool:
    return type(value) in (int, float) and abs(value) <= MAX_FLOAT and low <= value <= high


def _within(low: float, high: float) -> str:
    return "" if low == -math.inf and high == math.inf else f" from {low:g}{_up_to(high)}"


def _up_to(most: float) -> str:
    return "" if most == math.inf else f" to {most:g}"


class Saved(ABC):
    """What is kept in files: a state as JSON text, written and read whole."""

    @abstractmethod
    def to_json(self) -> str:
        """Return the whole state as JSON text."""

    @classmethod
    @abstractmethod
    def from_json(cls, text: str) -> Self:
        """Return the object whose state this is; every field is checked."""

    def save(self, path: str | Path) -> None:
        """Write the state to a file, whole and under a lock."""
        with lock_file(path):
            atomic_write(path, sealed(self.to_json()))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Return the object whose state `save` wrote."""
        return cls.from_json(read_text(path))
