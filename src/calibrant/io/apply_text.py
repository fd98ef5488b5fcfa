"""Add a column to CSV files: the bytes of all other cells stay as they are."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import IO

from calibrant.errors import UnreadableFileError, sentence
from calibrant.results import Array

BLOCK_BYTES = 2**22


class RecordWriter:
    """Copies the records of CSV text one by one, each with one more cell at its end.

    Parameters
    ----------
    source
        The text, from its first byte.
    separator
        What separates its cells.
    line_break
        What ends its lines.
    """

    def __init__(self, source: IO[bytes], separator: str, line_break: bytes) -> None:
        self._separator, self._break = separator.encode(), line_break
        self._record = _record_pattern(self._separator)
        self._records = self._split(source)

    def copy_header(self, out: IO[bytes] | None, name: str) -> None:
        """Copy everything up to the header, and the header with one more name; drop both without `out`."""
        for record in self._records:
            header = record.removeprefix(b"\xef\xbb\xbf")
            if out is not None:
                added = self._separator + _quoted(name, self._separator.decode()) if header else b""
                out.write(record + added + self._break)
            if header:
                return

    def copy_rows(self, out: IO[bytes], cells: list[bytes]) -> None:
        """Copy as many rows as there are cells, adding one of them to each; empty lines stay empty."""
        while cells:
            records = list(islice(self._records, len(cells)))
            if not records:
                raise _disagreement()
            rows = [record for record in records if record]
            lines: Iterable[bytes] = map(self._separator.join, zip(rows, cells, strict=False))
            if len(rows) < len(records):
                longer = iter(list(lines))
                lines = [next(longer) if record else b"" for record in records]
            out.write(self._break.join(lines) + self._break)
            cells = cells[len(rows) :]

    def check_end(self) -> None:
        """Refuse rows that were not copied: the file changed while it was read."""
        if any(self._records):
            raise _disagreement()

    def _split(self, source: IO[bytes]) -> Iterator[bytes]:
        """Yield the records without their line breaks; quotes may hold line breaks of their own."""
        held: list[bytes] = []
        for line in _lines(source, self._break):
            if not held and b'"' not in line:
                yield line
                continue
            held.append(line)
            if b'"' in line and self._record.fullmatch(whole := self._break.join(held)):
                yield whole
                held = []
        if held:
            yield self._break.join(held)


def _lines(source: IO[bytes], line_break: bytes) -> Iterator[bytes]:
    rest = b""
    while block := source.read(BLOCK_BYTES):
        *lines, rest = (rest + block).split(line_break)
        yield from lines
    if rest:
        yield rest


def _record_pattern(separator: bytes) -> re.Pattern[bytes]:
    """Return the pattern of a complete record: cells in quotes, or cells that do not begin with a quote."""
    mark = re.escape(separator)
    cell = rb'(?: *+"(?:[^"]|"")*+" *+|(?! *+")[^%s]*+)' % mark
    return re.compile(cell + rb"(?:" + mark + cell + rb")*+", re.DOTALL)


def _quoted(name: str, separator: str) -> bytes:
    """Return a name as a cell, in quotes where it needs them."""
    text = io.StringIO()
    csv.writer(text, delimiter=separator, lineterminator="").writerow([name])
    return text.getvalue().encode(errors="surrogateescape")


def number_cells(values: Array, decimal: str, separator: str) -> list[bytes]:
    """Return numbers as cells that read back to the last bit, empty for NaN."""
    texts = ["" if value != value else repr(value) for value in values.tolist()]
    if decimal == ",":
        marked = [text.replace(".", ",") for text in texts]
        texts = [f'"{text}"' if "," in text else text for text in marked] if separator == "," else marked
    return [text.encode() for text in texts]


def _disagreement() -> UnreadableFileError:
    return UnreadableFileError(sentence("rows", "must stay as they are while they are read", "got others"))
