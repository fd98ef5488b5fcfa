"""How a CSV file is written, taken from its header alone: nothing is guessed from the rows below it."""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from calibrant.errors import UnreadableFileError

MAX_HEADER_BYTES = 2**22  # a header longer than this is not a header
MAX_HEADER_LINES = 1000  # of a file that DuckDB unpacks: empty ones, and a header with line breaks in quotes
LATIN_ENCODINGS = "Windows-1252 or Latin-1"
BYTE_ORDER_MARKS = {  # how files in other encodings begin
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}


def head_of(path: Path) -> bytes:
    try:
        packed = path.suffix.lower() == ".zst"
        with io.BytesIO(_start_of_zstandard(path)) if packed else opened(path) as stream:
            head = stream.readline(MAX_HEADER_BYTES)
            while not head.strip(b"\r\n") or head.count(b'"') % 2:
                line = stream.readline(MAX_HEADER_BYTES)
                head += line
                if not line or len(head) > MAX_HEADER_BYTES:
                    break
    except (OSError, EOFError, zlib.error) as error:
        raise UnreadableFileError(f"file {str(path)!r}", "must be readable", str(error)) from None
    if len(head) >= MAX_HEADER_BYTES:
        got = f"got a line of over {MAX_HEADER_BYTES:,} bytes"
        raise UnreadableFileError(f"file {str(path)!r}", "must have a header", got)
    return head


def opened(path: Path) -> IO[bytes]:
    """Open a file for reading, unpacked if gzip has packed it."""
    packed = path.suffix.lower() == ".gz"
    return cast("IO[bytes]", gzip.open(path)) if packed else path.open("rb")


def _start_of_zstandard(path: Path) -> bytes:
    """Let DuckDB unpack the first lines: Python itself cannot before 3.14."""
    import duckdb

    from calibrant.io.session import connect, literal

    whole_line = "delim = '\x1e', quote = '', escape = '', header = false, auto_detect = false"
    scan = f"read_csv({literal(str(path))}, {whole_line}, columns = {{'line': 'VARCHAR'}})"
    try:
        with connect([path]) as connection:
            rows = connection.execute(f"SELECT line FROM {scan} LIMIT {MAX_HEADER_LINES}").fetchall()
    except duckdb.Error as error:
        reason, *more = str(error).splitlines()
        if any("not utf-8" in line for line in more):
            raise not_utf8(f"file {str(path)!r}", LATIN_ENCODINGS, line_of(reason)) from None
        raise UnreadableFileError(f"file {str(path)!r}", "must be readable", reason) from None
    return "".join(f"{line or ''}\n" for (line,) in rows).encode()


def line_of(reason: str) -> str:
    """Say in which line DuckDB found bytes that are not text, as far as it says.

    >>> line_of("Invalid Input Error: CSV Error on Line: 601")
    'other bytes in line 601'
    """
    _, mark, line = reason.rpartition("CSV Error on Line: ")
    return f"other bytes in line {int(line):,}" if mark and line.isdigit() else "other bytes"


def decoded(path: Path, head: bytes) -> str:
    name = f"file {str(path)!r}"
    for mark, encoding in BYTE_ORDER_MARKS.items():
        if head.startswith(mark):
            raise not_utf8(name, encoding)
    if b"\0" in head:
        rule, got = "must be text", "got zero bytes in the header"
        raise UnreadableFileError(name, rule, got, "is it UTF-16, or not a CSV file")
    try:
        return head.decode("utf-8")
    except UnicodeDecodeError as error:
        got = f"byte 0x{head[error.start]:02x} in the header"
        raise not_utf8(name, LATIN_ENCODINGS, got) from None


def not_utf8(name: str, encoding: str, found: str = "") -> UnreadableFileError:
    got = f"got {found}, as in {encoding}" if found else f"got {encoding}"
    source = encoding.split()[0].upper()
    hint = f"iconv -f {source} -t UTF-8 FILE > utf8.csv"
    return UnreadableFileError(name, "must be UTF-8", got, hint)


def stray_byte(path: Path) -> tuple[int, int] | None:
    """Return the line and the value of the first byte that is not UTF-8; None where Python cannot look."""
    if path.suffix.lower() == ".zst":
        return None
    with opened(path) as stream:
        for number, line in enumerate(stream, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                return number, line[error.start]
    return None


SEPARATORS = ",;\t|"
LINE_BREAK = re.compile("\r\n|\r|\n")
UTF8_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class CsvDialect:
    names: tuple[str, ...]
    separator: str
    empty_lines: int


def read_dialect(path: Path, wanted: Sequence[str] = ()) -> CsvDialect:
    """Read the header of a CSV file, refusing what is not UTF-8 text."""
    name, head = f"file {str(path)!r}", head_of(path)
    text = decoded(path, head.removeprefix(UTF8_MARK))
    lines = io.StringIO(text, newline="")
    empty = 0
    while (line := lines.readline()) in ("\n", "\r\n", "\r"):
        empty += 1
    if not line.strip():
        raise UnreadableFileError(name, "must have a header", "got empty lines")
    header = text[lines.tell() - len(line) :]
    unquoted = "".join(line.split('"')[::2])
    likely = sorted(SEPARATORS, key=lambda separator: -unquoted.count(separator))
    try:
        known = [CsvDialect(_cells(header, separator), separator, empty) for separator in likely]
    except csv.Error as error:
        raise UnreadableFileError(name, "must have a header", f"got a first line with a {error}") from None
    # the most frequent separator, unless only another gives the wanted columns: `a,b` and `p` in `a,b;p`
    dialect = next((one for one in known if set(wanted) <= set(one.names)), known[0])
    broken = [column for column in dialect.names if LINE_BREAK.search(column)]
    if broken and len(set(LINE_BREAK.findall(header))) > 1:  # DuckDB would find no rows below it
        rule, got = "must have line breaks of one kind in its header", f"got another in {broken[0]!r}"
        raise UnreadableFileError(name, rule, got, "rename that column")
    return dialect


def line_break_of(path: Path) -> bytes:
    found = LINE_BREAK.search(decoded(path, head_of(path)))
    return found[0].encode() if found else b"\n"


def _cells(header: str, separator: str) -> tuple[str, ...]:
    return tuple(
        name.strip() for name in next(csv.reader(io.StringIO(header, newline=""), delimiter=separator))
    )
