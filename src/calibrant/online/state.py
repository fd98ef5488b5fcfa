"""States on disk: JSON text with a checksum, checked field by field, written atomically under a lock."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

from calibrant.errors import InvalidInputError, UnreadableFileError, sentence
from calibrant.files import CHECKSUM, JsonObject, atomic_write, checksum_of, lock_file, parse_json

LARGEST = 1.7e308  # finite, also where a whole number is too large for a float


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


def _lacks_checksum(text: str) -> bool:
    """Return whether a state has no checksum and is of a version that is written to files with one."""
    try:
        content = parse_json(text)
    except (ValueError, RecursionError):  # reported by whatever reads the text
        return False
    if not isinstance(content, JsonObject) or content.checksum is not None:
        return False
    named = [state for state in (content, *content.values()) if isinstance(state, dict)]
    return any(_number(state, "calibrant_monitor") >= 4 or _number(state, "version") >= 2 for state in named)


def _number(state: Mapping[str, Any], name: str) -> float:
    value = state.get(name)
    return value if isinstance(value, int | float) else 0.0


def _damaged(got: str) -> InvalidInputError:
    hint = "it was damaged or edited; load an older copy"
    return InvalidInputError(sentence("state", "must be as it was written", got, hint))


def not_a_state(kind: str, content: Any) -> InvalidInputError:
    """Build the error for text that no object of this kind wrote."""
    rule, hint = f"must be the JSON of a {kind}", f"pass what {kind}.to_json() returned"
    return InvalidInputError(sentence("text", rule, f"got {_shown(content)}", hint))


def _shown(content: Any) -> str:
    text = repr(content)
    return text if len(text) <= 60 else text[:57] + "..."


class Fields:
    """The fields of one state, each checked when it is taken."""

    def __init__(self, content: Any, kind: str) -> None:
        if not isinstance(content, dict):
            raise not_a_state(kind, content)
        self.content, self.kind = content, kind

    @classmethod
    def of(cls, text: Any, kind: str, version: int) -> Fields:
        """Read the text of a state of this kind and version."""
        content = parsed(text, kind)
        if content.get("kind") != kind or "version" not in content:
            raise not_a_state(kind, content)
        if content["version"] not in range(1, version + 1):
            rule = f"must be of version {version}"
            raise InvalidInputError(sentence("state", rule, f"got {content['version']!r}"))
        return cls(content, kind)

    def refused(self, name: str, rule: str) -> InvalidInputError:
        """Build the error for a field that breaks its rule."""
        subject, hint = f"field {name!r} of the state", "it may have been edited"
        return InvalidInputError(sentence(subject, rule, f"got {_shown(self.content.get(name))}", hint))

    def take(self, name: str) -> Any:
        """Return a field as it is."""
        if name not in self.content:
            rule = f"must hold every field of a {self.kind}"
            raise InvalidInputError(sentence("state", rule, f"got no {name!r}"))
        return self.content[name]

    def inner(self, name: str) -> Fields:
        """Return a field that is an object itself."""
        if not isinstance(self.take(name), dict):
            raise self.refused(name, "must be an object")
        return Fields(self.content[name], self.kind)

    def items(self, name: str) -> list[Any]:
        """Return a field that is a list."""
        if not isinstance(self.take(name), list):
            raise self.refused(name, "must be a list")
        return list(self.content[name])

    def count(self, name: str, most: float = 10**15) -> int:
        """Return a whole number from 0."""
        value = self.take(name)
        if type(value) is not int or not 0 <= value <= most:
            raise self.refused(name, "must be a whole number from 0" + _up_to(most))
        return value

    def flag(self, name: str) -> bool:
        """Return true or false."""
        if type(self.take(name)) is not bool:
            raise self.refused(name, "must be true or false")
        return bool(self.content[name])

    def number(self, name: str, low: float = -math.inf, high: float = math.inf) -> float:
        """Return a finite number within limits."""
        if not _is_number(self.take(name), low, high):
            raise self.refused(name, f"must be a finite number{_within(low, high)}")
        return float(self.content[name])

    def numbers(
        self, name: str, size: int, low: float = -math.inf, high: float = math.inf
    ) -> list[float]:  # fmt: skip
        """Return a list of `size` finite numbers within limits."""
        values = self.items(name)
        if len(values) != size or not all(_is_number(value, low, high) for value in values):
            raise self.refused(name, f"must be {size} finite numbers{_within(low, high)}")
        return [float(value) for value in values]

    def counts(self, name: str, size: int) -> list[int]:
        """Return a list of `size` whole numbers from 0."""
        values = self.items(name)
        if len(values) != size or not all(type(value) is int and 0 <= value < 2**62 for value in values):
            raise self.refused(name, f"must be {size} whole numbers from 0")
        return values

    def checked(self, name: str, check: Callable[[Any], Any]) -> Any:
        """Return what the check for an argument of the same meaning makes of a field."""
        value = self.take(name)
        try:
            return check(value)
        except InvalidInputError:
            raise self.refused(name, "must be what was written") from None


def _is_number(value: Any, low: float, high: float) -> bool:
    return type(value) in (int, float) and abs(value) <= LARGEST and low <= value <= high


def _within(low: float, high: float) -> str:
    if low == -math.inf and high == math.inf:
        return ""
    return f" from {low:g}" + _up_to(high)


def _up_to(most: float) -> str:
    return "" if most == math.inf else f" to {most:g}"


def read_text(path: str | Path) -> str:
    """Return the text of a state file."""
    try:
        if Path(path).exists() and not Path(path).is_file():
            got = "got a folder, device or pipe"
            raise UnreadableFileError(sentence(f"file {str(path)!r}", "must be readable", got))
        text = Path(path).read_text(encoding="utf-8")
        if _lacks_checksum(text):
            raise _damaged(f"got no checksum in {str(path)!r}")
        return text
    except OSError as error:
        reason = error.strerror or str(error)
    except UnicodeDecodeError:
        reason = "got bytes that are not text"
    raise UnreadableFileError(sentence(f"file {str(path)!r}", "must be readable", reason))


class Saved:
    """What is kept in files: a state as JSON text, written and read whole."""

    def to_json(self) -> str:
        """Return the whole state as JSON text."""
        raise NotImplementedError

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the object whose state this is; every field is checked."""
        raise NotImplementedError

    def save(self, path: str | Path) -> None:
        """Write the state to a file, whole and under a lock."""
        with lock_file(path):
            atomic_write(path, sealed(self.to_json()))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Return the object whose state `save` wrote."""
        return cls.from_json(read_text(path))
