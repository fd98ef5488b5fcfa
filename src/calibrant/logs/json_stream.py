"""Read JSON piece by piece: lines, long arrays and objects."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from calibrant.errors import UnreadableFileError

CHUNK = 1 << 16  # characters read at a time
NEAR_END = 64  # an error this close to the end of what was read may only mean that more is needed
CUT_OFF = "the file is cut off"
VISIBLE = re.compile(r"\S")


def unreadable_log(path: Path, where: str, rule: str, got: str = "", hint: str = "") -> UnreadableFileError:
    place = f"file {str(path)!r}" + (f", {where}" if where else "")
    return UnreadableFileError(place, rule, got, hint)


class JsonScanner:
    """Decode one JSON document value by value, holding only the value at hand."""

    def __init__(self, path: Path, file: TextIO) -> None:
        self.path, self._file = path, file
        self.line = 1
        self._text, self._at, self._ended = "", 0, False
        self._decoder = json.JSONDecoder()

    def peek(self) -> str:
        """Return the next character that is not a space, "" at the end."""
        while True:
            found = VISIBLE.search(self._text, self._at)
            self._move(found.start() if found else len(self._text))
            if found:
                return found.group()
            if not self._read():
                return ""

    def take(self, wanted: str) -> str:
        """Consume and return one of the wanted characters, or refuse the document."""
        found = self.peek()
        if not found or found not in wanted:
            got = f"got {found!r}" if found else CUT_OFF
            shown = " or ".join(repr(one) for one in wanted)
            raise unreadable_log(self.path, f"line {self.line}", f"must be JSON with {shown} here", got)
        self._move(self._at + 1)
        return found

    def value(self) -> Any:
        """Decode the next value, reading on until it is complete."""
        self.peek()
        while True:
            try:
                decoded, end = self._decoder.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                line = self.line + self._text.count("\n", self._at, error.pos)
                open_end, at_end = "Unterminated" in error.msg, error.pos >= len(self._text.rstrip())
                complete = error.pos < len(self._text) - NEAR_END and not open_end
                if complete or not self._read(2 * (len(self._text) - self._at)):
                    got = CUT_OFF if open_end or at_end else f"got {error.msg}"
                    raise unreadable_log(self.path, f"line {line}", "must be JSON", got) from None
                continue
            except (ValueError, RecursionError) as error:
                raise unreadable_log(self.path, f"line {self.line}", "must be JSON", f"got {error}") from None
            if end == len(self._text) and self._read():  # a number may go on
                continue
            self._move(end)
            return decoded

    def lines(self, start: str, end: str) -> Iterator[int]:
        """Yield the line of each part of an array or object; the caller takes the part before the next."""
        self.take(start)
        following = self.take(end) if self.peek() == end else ","
        while following != end:
            self.peek()
            yield self.line
            following = self.take(f",{end}")

    def elements(self) -> Iterator[tuple[Any, int]]:
        yield from ((self.value(), line) for line in self.lines("[", "]"))

    def _move(self, to: int) -> None:
        self.line += self._text.count("\n", self._at, to)
        self._at = to

    def _read(self, size: int = CHUNK) -> bool:
        if self._ended:
            return False
        try:
            more = self._file.read(max(size, CHUNK))
        except UnicodeDecodeError as error:
            raise unreadable_log(self.path, f"after line {self.line}", "must be UTF-8", f"{error}") from None
        self._ended = not more
        self._text, self._at = self._text[self._at :] + more, 0
        return bool(more)


def object_items(path: Path, streamed: str = "") -> Iterator[tuple[str, Any, int]]:
    """Yield key, value and line of a JSON object; the elements of the array `streamed` come one by one."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        scanner = JsonScanner(path, file)
        for _ in scanner.lines("{", "}"):
            key = scanner.value()
            scanner.take(":")
            if scanner.peek() == "[" and key == streamed:
                yield from ((key, element, line) for element, line in scanner.elements())
            else:
                line = scanner.line
                yield str(key), scanner.value(), line


def array_items(path: Path) -> Iterator[tuple[Any, int]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        yield from JsonScanner(path, file).elements()


def json_lines(path: Path) -> Iterator[tuple[Any, int]]:
    """Yield the value of each line; a line that is cut off or malformed is refused by its number."""
    with path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            if not raw.strip():
                continue
            try:
                yield json.loads(raw), number
            except json.JSONDecodeError as error:
                cut = not raw.endswith(b"\n")
                got = CUT_OFF if cut else f"got {error.msg} in column {error.colno}"
                raise unreadable_log(path, f"line {number}", "must be JSON", got) from None
            except (ValueError, RecursionError) as error:
                raise unreadable_log(path, f"line {number}", "must be JSON", f"got {error}") from None
