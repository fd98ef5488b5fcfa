"""The first bytes of a text file, unpacked and decoded; what is not UTF-8 is refused."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import IO, cast

from calibrant.errors import UnreadableFileError, sentence

HEADER_BYTES = 2**22  # a header longer than this is not a header
LATIN = "Windows-1252 or Latin-1"
MARKS = {  # how files in other encodings begin
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}


def head_of(path: Path) -> bytes:
    """Return the first lines of a file, unpacked."""
    try:
        if path.suffix.lower() == ".zst":
            return _head_of_zstandard(path)
        with _opened(path) as stream:
            head = stream.readline(HEADER_BYTES)
            while not head.strip(b"\r\n") or head.count(b'"') % 2:
                line = stream.readline(HEADER_BYTES)
                head += line
                if not line or len(head) > HEADER_BYTES:
                    break
    except (OSError, EOFError, zlib.error) as error:
        raise UnreadableFileError(sentence(f"file {str(path)!r}", "must be readable", str(error))) from None
    if len(head) >= HEADER_BYTES:
        raise UnreadableFileError(
            sentence(
                f"file {str(path)!r}", "must have a header", f"got a line of over {HEADER_BYTES:,} bytes"
            )
        )
    return head


def _opened(path: Path) -> IO[bytes]:
    packed = path.suffix.lower() == ".gz"
    return cast("IO[bytes]", gzip.open(path)) if packed else path.open("rb")


def _head_of_zstandard(path: Path) -> bytes:
    """Let DuckDB unpack the first line: Python itself cannot before 3.14."""
    import duckdb

    from calibrant.scale.session import connect, literal

    whole_line = "delim = '\x1e', quote = '', escape = '', header = false, auto_detect = false"
    scan = f"read_csv({literal(str(path))}, {whole_line}, columns = {{'line': 'VARCHAR'}})"
    try:
        with connect([path]) as connection:
            rows = connection.execute(f"SELECT line FROM {scan} LIMIT 1").fetchall()
    except duckdb.Error as error:
        reason = str(error).splitlines()[0]
        raise UnreadableFileError(sentence(f"file {str(path)!r}", "must be readable", reason)) from None
    return str(rows[0][0]).encode() if rows else b""


def decoded(path: Path, head: bytes) -> str:
    name = f"file {str(path)!r}"
    for mark, encoding in MARKS.items():
        if head.startswith(mark):
            raise UnreadableFileError(not_utf8(name, encoding))
    if b"\0" in head:
        rule, got = "must be text", "got zero bytes in the header"
        raise UnreadableFileError(sentence(name, rule, got, "is it UTF-16, or not a CSV file"))
    try:
        return head.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UnreadableFileError(not_utf8(name, LATIN, f"byte 0x{head[error.start]:02x}")) from None


def not_utf8(name: str, encoding: str, byte: str = "") -> str:
    """Return the message for a file in another encoding, with the way to convert it."""
    got = f"got {byte} in the header, as in {encoding}" if byte else f"got {encoding}"
    source = encoding.split()[0].upper()
    return sentence(name, "must be UTF-8", got, f"iconv -f {source} -t UTF-8 FILE > utf8.csv")


def stray_byte(path: Path) -> tuple[int, int] | None:
    """Return the line and the value of the first byte that is not UTF-8, or None."""
    with _opened(path) as stream:
        for number, line in enumerate(stream, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                return number, line[error.start]
    return None
