"""Read JSON piece by piece: lines, long arrays, and zip archives whose members are zstd or deflate."""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from calibrant.errors import CalibrantError, MissingDependencyError, UnreadableFileError

CHUNK = 1 << 16  # characters read at a time
NEAR_END = 64  # an error this close to the end of what was read may only mean that more is needed
ZSTD = 93  # the compression method of zip archives
CUT_OFF = "the file is cut off"


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
            while self._at < len(self._text):
                if not self._text[self._at].isspace():
                    return self._text[self._at]
                self._move(self._at + 1)
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
                offset = error.pos - self._at
                complete = error.pos < len(self._text) - NEAR_END and "Unterminated" not in error.msg
                if complete or not self._read(2 * (len(self._text) - self._at)):
                    raise self._malformed(self._at + offset, error.msg) from None
                continue
            except (ValueError, RecursionError) as error:
                raise unreadable_log(self.path, f"line {self.line}", "must be JSON", f"got {error}") from None
            if end == len(self._text) and self._read():  # a number may go on
                continue
            self._move(end)
            return decoded

    def elements(self) -> Iterator[tuple[Any, int]]:
        self.take("[")
        if self.peek() == "]":
            self.take("]")
            return
        while True:
            self.peek()
            line = self.line
            yield self.value(), line
            if self.take(",]") == "]":
                return

    def _malformed(self, at: int, reason: str) -> UnreadableFileError:
        line = self.line + self._text.count("\n", self._at, at)
        cut = "Unterminated" in reason or at >= len(self._text.rstrip())
        return unreadable_log(self.path, f"line {line}", "must be JSON", CUT_OFF if cut else f"got {reason}")

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
        scanner.take("{")
        while scanner.peek() != "}":
            key = scanner.value()
            scanner.take(":")
            if key == streamed and scanner.peek() == "[":
                yield from ((key, element, line) for element, line in scanner.elements())
            else:
                line = scanner.line
                yield str(key), scanner.value(), line
            if scanner.take(",}") == "}":
                return


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


class Archive:
    """A zip archive of JSON members, read one at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._zip = self._opened()
        self.names = list(dict.fromkeys(self._zip.namelist()))  # a member written twice: the last one counts

    def load(self, name: str) -> Any:
        info = self._zip.getinfo(name)
        try:
            try:
                data = self._zip.read(info)
            except NotImplementedError:
                data = self._unpacked(info)
            return json.loads(data)
        except CalibrantError:
            raise
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError) as error:
            raise unreadable_log(
                self.path, f"member {name!r}", "must be complete JSON", f"got {error}"
            ) from None

    def _opened(self) -> zipfile.ZipFile:
        try:
            return zipfile.ZipFile(self.path)
        except (zipfile.BadZipFile, EOFError, ValueError) as error:
            hint = "copy the file again, or wait until the run has ended"
            raise unreadable_log(self.path, "", "must be a whole zip archive", f"got {error}", hint) from None

    def _unpacked(self, info: zipfile.ZipInfo) -> bytes:
        """Decompress a zstd member, which the standard library reads from Python 3.14 on."""
        if info.compress_type != ZSTD:
            raise ValueError(f"compression method {info.compress_type}")
        try:
            import zstandard
        except ImportError:
            rule = "is compressed with zstd, which needs Python 3.14 or the package zstandard"
            hint = "pip install 'calibrant[logs]', or inspect log convert FILE --to json --output-dir DIR"
            raise MissingDependencyError(f"file {str(self.path)!r}", rule, hint=hint) from None
        with self.path.open("rb") as file:
            file.seek(info.header_offset + 26)
            name, extra = struct.unpack("<HH", file.read(4))
            file.seek(name + extra, 1)
            packed = file.read(info.compress_size)
        try:
            data: bytes = zstandard.ZstdDecompressor().decompressobj().decompress(packed)
        except zstandard.ZstdError as error:
            raise ValueError(str(error)) from None
        if zlib.crc32(data) != info.CRC:
            raise ValueError("a wrong checksum")
        return data
