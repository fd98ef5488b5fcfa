"""Read the members of a zip archive, compressed with zstd or deflate, without holding its directory."""

from __future__ import annotations

import json
import struct
import sys
import zlib
from array import array
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from calibrant.errors import CalibrantError, MissingDependencyError
from calibrant.logs.json_stream import unreadable_log

STORED, DEFLATE, ZSTD = 0, 8, 93  # compression methods of zip archives
ENCRYPTED, UTF8_NAME = 0x1, 0x800  # flags of a member
IN_EXTRA_FIELD = 0xFFFFFFFF  # a number that is too large for its field is in the extra field instead
MAX_COMMENT = 2**16  # bytes at the end of an archive
MEMBER_HEADER = struct.Struct("<4s2xH18x2H")
RECORD = struct.Struct("<4s4xHH4x3L3H8xL")  # of a member in the directory
END = struct.Struct("<4s6xH2L2x")
LARGE_END = struct.Struct("<4s28x3Q")  # zip64
LARGE_END_LOCATOR = struct.Struct("<4s16x")


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
