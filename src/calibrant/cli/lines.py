"""From the row of an error, which is counted from 0, to the line of the text file that was read."""

from __future__ import annotations

import csv
import re
import sys
from pathlib import Path

from calibrant.disk import SCRATCH
from calibrant.errors import UnreadableFileError
from calibrant.scale.database import ENDINGS
from calibrant.scale.dialect import read_dialect
from calibrant.scale.located import KINDS, PACKED, TEXT_KINDS

ROW = re.compile(r"in row (\d+) \([\d,]+ rows?\)")
ROW_OF_FILE = re.compile(r"""in row (\d+) of (['"])(.+?)\2""")
FARTHEST = 5_000_000  # rows that are counted again to find a line
ASIDE = ("--state", "--output", "--out", "-o", "--rules", "--config")  # options whose files hold no rows


def with_line(message: str, arguments: list[str] | None = None) -> str:
    """Add the line of the file, where one text file and no other file of rows is on the command line."""
    if (named := ROW_OF_FILE.search(message)) is not None:
        return _with_line_of(message, named)
    result = ROW.search(message)
    if result is None or int(result[1]) > FARTHEST:
        return message
    given = sys.argv[1:] if arguments is None else arguments
    words = [word for before, word in zip(["", *given], given, strict=False) if before not in ASIDE]
    files = [Path(word) for word in words if word == "-" or _may_hold_rows(Path(word))]
    known = len(files) == 1 and files[0].suffix.lower() in TEXT_KINDS
    line = _line(files[0], int(result[1])) if known else None
    if line is None:
        return message
    return f"{message[: result.end()]}, line {line:,} of {files[0].name}{message[result.end() :]}"


def _with_line_of(message: str, named: re.Match[str]) -> str:
    """Add the line where the message names one of several files."""
    path, row = Path(named[3]), int(named[1])
    if path.parent.name.startswith(SCRATCH):  # what was piped in, or the answer of a query
        return message[: named.start()] + f"in row {row}" + message[named.end() :]
    known = path.suffix.lower() in TEXT_KINDS and row <= FARTHEST
    line = _line(path, row) if known else None
    return message if line is None else f"{message[: named.end()]}, line {line:,}{message[named.end() :]}"


def _may_hold_rows(path: Path) -> bool:
    return path.suffix.lower() in (*KINDS, *PACKED, *ENDINGS) and path.is_file()


def _line(path: Path, row: int) -> int | None:
    """Return the line on which a row begins: after the header, lines without anything on them left out."""
    try:
        with path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
            reader = csv.reader(file, delimiter=read_dialect(path).separator)
            before, left = 0, row + 1  # the header comes before row 0
            for cells in reader:
                if cells and left == 0:
                    return before + 1
                left -= bool(cells)
                before = reader.line_num
    except (OSError, csv.Error, UnreadableFileError):
        return None
    return None
