"""Read JSON piece by piece: lines, long arrays, and zip archives whose members are zstd or deflate."""

from __future__ import annotations

import json
import re
import struct
import sys
import zlib
from array import array
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import IO, Any, NamedTuple, TextIO

import numpy as np

from calibrant.errors import CalibrantError, MissingDependencyError, UnreadableFileError

CHUNK = 1 << 16  # characters read at a time
NEAR_END = 64  # an error this close to the end of what was read may only mean that more is needed
STORED, DEFLATE, ZSTD = 0, 8, 93  # compression methods of zip archives
ENCRYPTED, UTF8_NAME = 0x1, 0x800  # flags of a member
IN_EXTRA_FIELD = 0xFFFFFFFF  # a number that is too large for its field is in the extra field instead
MAX_COMMENT = 2**16  # bytes at the end of an archive
MEMBER_HEADER = struct.Struct("<4s2xH18x2H")
RECORD = struct.Struct("<4s4xHH4x3L3H8xL")  # of a member in the directory
END = struct.Struct("<4s6xH2L2x")
LARGE_END = struct.Struct("<4s28x3Q")  # zip64
LARGE_END_LOCATOR = struct.Struct("<4s16x")
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


class Member(NamedTuple):
    """What the directory of a zip archive says of a member."""

    name: str
    flags: int
    method: int
    checksum: int
    packed_size: int
    size: int
    offset: int


def is_zip(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"PK\x03\x04"


class Archive:
    """A zip archive whose directory is read in each pass: `zipfile` keeps it, with 600 bytes per member."""

    def __init__(self, path: Path) -> None:
        self.path = path
        hashes, offsets = array("q"), array("q")
        try:
            self._find_directory()
            for one in self._directory():
                hashes.append(hash(one.name))
                offsets.append(one.offset)
        except ValueError as error:
            hint = "copy the file again, or wait until the run has ended"
            raise unreadable_log(self.path, "", "must be a whole zip archive", f"got {error}", hint) from None
        self._offsets = np.sort(np.append(np.array(offsets, dtype=np.int64), self._start))
        different, counts = np.unique(np.array(hashes, dtype=np.int64), return_counts=True)
        self._repeated = frozenset(different[counts > 1].tolist())

    def members(self) -> Iterator[Member]:
        """Yield the members in order; of those written twice, the last one in the place of the first."""
        repeated = (one for one in self._directory() if hash(one.name) in self._repeated)
        latest = {one.name: one for one in repeated} if self._repeated else {}
        for one in self._directory():
            if hash(one.name) not in self._repeated:
                yield one
            elif one.name in latest:
                yield latest.pop(one.name)

    def load(self, member: Member) -> Any:
        try:
            return json.loads(self._unpacked(member))
        except CalibrantError:
            raise
        except (zlib.error, OSError, ValueError, RecursionError) as error:
            where = f"member {member.name!r}"
            raise unreadable_log(self.path, where, "must be complete JSON", f"got {error}") from None

    def _find_directory(self) -> None:
        """Find the directory from the end of the file, where large archives have a second record (zip64)."""
        with self.path.open("rb") as file:
            end = file.seek(max(0, self.path.stat().st_size - END.size - MAX_COMMENT))
            tail = file.read()
            place = tail.rfind(b"PK\5\6")
            if place < 0 or len(tail) < place + END.size:
                raise ValueError("no directory at the end of the file")
            _, self._count, size, start = END.unpack_from(tail, place)
            end += place
            large_end = end - LARGE_END_LOCATOR.size - LARGE_END.size
            if large_end >= 0:
                file.seek(large_end)
                mark, *large = _fields(file, LARGE_END)
                if mark == b"PK\6\6" and _fields(file, LARGE_END_LOCATOR)[0] == b"PK\6\7":
                    (self._count, size, start), end = large, large_end
        self._start, self._end = end - size, end
        self._shift = self._start - start  # what was written before the archive
        if self._start < 0 or self._shift < 0:
            raise ValueError("a directory that does not fit into the file")

    def _directory(self) -> Iterator[Member]:
        with self.path.open("rb") as file:
            file.seek(self._start)
            for _ in range(self._count):
                mark, flags, method, checksum, packed, size, named, extra, comment, offset = _fields(
                    file, RECORD
                )
                name, more = _name(file.read(named), flags), file.read(extra)
                if mark != b"PK\1\2":
                    raise ValueError("a damaged directory")
                file.seek(comment, 1)
                if IN_EXTRA_FIELD in (size, packed, offset):
                    size, packed, offset = _large_numbers(more, size, packed, offset)
                if offset + self._shift > self._start:
                    raise ValueError(f"a member {name!r} behind the directory")
                yield Member(name, flags, method, checksum, packed, size, offset + self._shift)
            if file.tell() != self._end:
                raise ValueError("more members than the archive says")

    def _unpacked(self, member: Member) -> bytes:
        with self.path.open("rb") as file:
            file.seek(member.offset)
            mark, flags, named, extra = _fields(file, MEMBER_HEADER)
            if mark != b"PK\3\4" or _name(file.read(named), flags) != member.name:
                raise ValueError("another member than the directory says")
            end = file.seek(extra, 1) + member.packed_size
            following = np.searchsorted(self._offsets, member.offset, side="right")
            if end > self._offsets[following]:
                raise ValueError("members that overlap")
            packed = file.read(member.packed_size)
        if member.flags & ENCRYPTED or member.method not in (STORED, DEFLATE, ZSTD):
            raise ValueError("an encrypted member or an unknown compression")
        data = packed
        if member.method == DEFLATE:
            data = zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, member.size + 1)
        elif member.method == ZSTD:
            data = self._from_zstd(packed)
        if len(data) != member.size or zlib.crc32(data) != member.checksum:
            raise ValueError("a wrong size or checksum")
        return data

    def _from_zstd(self, packed: bytes) -> bytes:
        """Decompress what the standard library can read from Python 3.14 on."""
        name = "compression.zstd" if sys.version_info >= (3, 14) else "zstandard"
        try:
            library = import_module(name)
        except ImportError:
            rule = "is compressed with zstd, which needs Python 3.14 or the package zstandard"
            hint = "pip install 'calibrant[logs]', or inspect log convert FILE --to json --output-dir DIR"
            raise MissingDependencyError(f"file {str(self.path)!r}", rule, hint=hint) from None
        decompressor = library.ZstdDecompressor()
        try:
            if name == "zstandard":
                decompressor = decompressor.decompressobj()
            data: bytes = decompressor.decompress(packed)
        except library.ZstdError as error:
            raise ValueError(str(error)) from None
        return data


def _fields(file: IO[bytes], form: struct.Struct) -> tuple[Any, ...]:
    data = file.read(form.size)
    if len(data) < form.size:
        raise ValueError("an archive that is cut off")
    return form.unpack(data)


def _name(raw: bytes, flags: int) -> str:
    return raw.decode("utf-8" if flags & UTF8_NAME else "cp437")


def _large_numbers(extra: bytes, *numbers: int) -> list[int]:
    """Replace numbers that do not fit into 32 bits by those of the zip64 field, which has them in order."""
    while len(extra) >= 4:
        kind, size = struct.unpack_from("<HH", extra)
        if kind == 1:
            large = [int.from_bytes(extra[at : at + 8], "little") for at in range(4, 4 + size, 8)]
            return [large.pop(0) if number == IN_EXTRA_FIELD and large else number for number in numbers]
        extra = extra[4 + size :]
    return list(numbers)
