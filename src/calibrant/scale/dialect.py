"""How a CSV file is written, taken from its header alone: nothing is guessed from the rows below it."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from calibrant.errors import UnreadableFileError, sentence
from calibrant.scale.file_head import decoded, head_of

SEPARATORS = ",;\t|"
LINE_BREAK = re.compile("\r\n|\r|\n")
UTF8_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class CsvDialect:
    """The names in the header, in order; what separates cells; how many empty lines come first."""

    names: tuple[str, ...]
    separator: str
    empty_lines: int


def read_dialect(path: Path, wanted: Sequence[str] = ()) -> CsvDialect:
    """Read the header of a CSV file, refusing what is not UTF-8 text.

    Cells are separated by what stands most often in the header, unless another separator gives the wanted
    columns and this one does not (`a,b;p` has the columns `a,b` and `p` for whoever wants these).
    """
    head = head_of(path)
    text = decoded(path, head.removeprefix(UTF8_MARK))
    lines = io.StringIO(text, newline="")
    empty = 0
    while (line := lines.readline()) in ("\n", "\r\n", "\r"):
        empty += 1
    if not line.strip():
        raise UnreadableFileError(sentence(f"file {str(path)!r}", "must have a header", "got empty lines"))
    header = text[lines.tell() - len(line) :]
    try:
        known = [CsvDialect(_cells(header, separator), separator, empty) for separator in _separators(line)]
    except csv.Error as error:
        raise UnreadableFileError(
            sentence(f"file {str(path)!r}", "must have a header", f"got a first line with a {error}")
        ) from None
    dialect = next((one for one in known if set(wanted) <= set(one.names)), known[0])
    _refuse_mixed_breaks(path, header, dialect.names)
    return dialect


def _refuse_mixed_breaks(path: Path, header: str, names: Sequence[str]) -> None:
    """Refuse a name with another line break than that of its line: DuckDB would find no rows below it."""
    broken = [name for name in names if LINE_BREAK.search(name)]
    if broken and len(set(LINE_BREAK.findall(header))) > 1:
        rule, got = (
            "must have line breaks of one kind in its header",
            f"got another in the name {broken[0]!r}",
        )
        raise UnreadableFileError(sentence(f"file {str(path)!r}", rule, got, "rename that column"))


def _separators(line: str) -> list[str]:
    """Return the separators, the one that stands most often in the header, outside of quotes, first."""
    unquoted = "".join(line.split('"')[::2])
    return sorted(SEPARATORS, key=lambda separator: -unquoted.count(separator))


def _cells(header: str, separator: str) -> tuple[str, ...]:
    return tuple(
        name.strip() for name in next(csv.reader(io.StringIO(header, newline=""), delimiter=separator))
    )
