"""States on disk: JSON text that is checked field by field, written whole and under a lock."""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from calibrant.disk import check_target, write_whole
from calibrant.errors import InvalidInputError, UnreadableFileError, UnwritableFileError, sentence

LARGEST = 1.7e308  # finite, also where a whole number is too large for a float
SEAL = ', "checksum": "'
PATIENCE = 30.0  # seconds to wait for another process that holds the lock


def parsed(text: Any, kind: str) -> dict[str, Any]:
    """Return the JSON object that `text` is; NaN, infinities and repeated fields are refused."""
    try:
        content = json.loads(_unsealed(text), parse_constant=_no_constant, object_pairs_hook=_no_repeats)
    except (TypeError, ValueError, RecursionError):
        raise not_a_state(kind, text) from None
    if not isinstance(content, dict):
        raise not_a_state(kind, content)
    return content


def sealed(text: str) -> str:
    """Return the JSON text of a state with a checksum as its last field: for disks, which forget bits."""
    return f'{text[:-1]}{SEAL}{_checksum(text)}"}}'


def _unsealed(text: Any) -> Any:
    """Return the text without its checksum, which must be right; text without one is taken as it is."""
    body, mark, seal = text.rpartition(SEAL) if isinstance(text, str) else ("", "", "")
    if not mark:
        return text
    if seal.rstrip() != f'{_checksum(body + "}")}"}}':
        hint = "it was damaged or edited; load an older copy"
        raise InvalidInputError(sentence("state", "must be as it was written", "got another checksum", hint))
    return body + "}"


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError("a field is repeated")
    return content


def not_a_state(kind: str, content: Any) -> InvalidInputError:
    """Build the error for text that no object of this kind wrote."""
    shown = repr(content)
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    rule, hint = f"must be the JSON of a {kind}", f"pass what {kind}.to_json() returned"
    return InvalidInputError(sentence("text", rule, f"got {shown}", hint))


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
        if content["version"] != version:
            rule = f"must be of version {version}"
            raise InvalidInputError(sentence("state", rule, f"got {content['version']!r}"))
        return cls(content, kind)

    def refused(self, name: str, rule: str) -> InvalidInputError:
        """Build the error for a field that breaks its rule."""
        shown = repr(self.content.get(name))
        shown = shown if len(shown) <= 60 else shown[:57] + "..."
        subject, hint = f"field {name!r} of the state", "it may have been edited"
        return InvalidInputError(sentence(subject, rule, f"got {shown}", hint))

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
        """Return a list of so many finite numbers within limits."""
        values = self.items(name)
        if len(values) != size or not all(_is_number(value, low, high) for value in values):
            raise self.refused(name, f"must be {size} finite numbers{_within(low, high)}")
        return [float(value) for value in values]

    def counts(self, name: str, size: int) -> list[int]:
        """Return a list of so many whole numbers from 0."""
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


def save_text(path: str | Path, text: str) -> None:
    """Write a state whole, holding the lock of its file."""
    with locked(path):
        write_whole(path, sealed(text))


def read_text(path: str | Path) -> str:
    """Return the text of a state file."""
    try:
        if Path(path).exists() and not Path(path).is_file():
            raise UnreadableFileError(
                sentence(f"file {str(path)!r}", "must be readable", "got a folder, device or pipe")
            )
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        reason = error.strerror or str(error)
    except UnicodeDecodeError:
        reason = "got bytes that are not text"
    raise UnreadableFileError(sentence(f"file {str(path)!r}", "must be readable", reason))


@contextmanager
def locked(path: str | Path, patience: float = PATIENCE) -> Iterator[None]:
    """Hold the lock of a state file, `.NAME.lock` beside it, from reading to writing.

    The system releases it when the process ends, however it ends. The empty file stays: removing it would
    let two processes lock two different files of the same name.
    """
    target = Path(path)
    check_target(target)
    try:
        handle = os.open(target.with_name(f".{target.name}.lock"), os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UnwritableFileError(sentence(f"file {str(path)!r}", "must be writable", reason)) from None
    try:
        _wait_for(handle, target, patience)
        yield
    finally:
        os.close(handle)


def _wait_for(handle: int, target: Path, patience: float) -> None:
    give_up = time.monotonic() + patience
    while not _try_lock(handle):
        if time.monotonic() > give_up:
            rule = f"must not be in use by another process for more than {patience:g} seconds"
            raise UnreadableFileError(sentence(f"file {str(target)!r}", rule))
        time.sleep(0.05)


def _try_lock(handle: int) -> bool:
    """Return whether the lock was free; Windows has no fcntl."""
    try:
        import fcntl
    except ImportError:
        return _try_lock_on_windows(handle)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _try_lock_on_windows(handle: int) -> bool:
    import msvcrt

    try:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    except OSError:
        return False
    return True
