"""Files that were delivered twice: other names, the same bytes."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path

from calibrant.errors import CalibrantError, InvalidInputError, sentence
from calibrant.numerals import counted
from calibrant.scale.files import in_pieces_or_whole, open_files

BEGINNING = 2**16  # bytes that tell most files of one size apart


def refuse_same_contents(files: Sequence[Path], column: str) -> None:
    """Refuse files of which two hold the same rows, byte for byte; files without a row may be alike.

    Only files of one size and with one beginning are read to the end. `column` is one that they have.
    """
    alike = [list(files)]
    for key in (_size, _beginning, _digest):
        alike = [part for group in alike for part in _by(key, group)]
    repeated = [group for group in alike if _has_rows(group[0], column)]
    if repeated:
        first, second, *_ = repeated[0]
        others = sum(len(group) - 1 for group in repeated) - 1
        more = f" (and {counted(others, 'further copy', 'further copies')})" if others else ""
        got = f"got the same contents in {str(first)!r} and {str(second)!r}{more}"
        hint = "leave one out; --same counts both all the same"
        raise InvalidInputError(sentence("files", "must hold different rows", got, hint))


def _by(key: Callable[[Path], Hashable], files: Sequence[Path]) -> list[list[Path]]:
    """Return the files that share a key, without those that are alone."""
    groups: dict[Hashable, list[Path]] = defaultdict(list)
    for file in files:
        groups[key(file)].append(file)
    return [group for group in groups.values() if len(group) > 1]


def _size(file: Path) -> int:
    return file.stat().st_size


def _beginning(file: Path) -> bytes:
    with file.open("rb") as opened:
        return opened.read(BEGINNING)


def _digest(file: Path) -> bytes:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").digest()


def _has_rows(file: Path, column: str) -> bool:
    """Return whether a file has a row; one that cannot be read is told by whoever reads it."""

    def read(parallel: bool) -> bool:
        with open_files(file, [column], parallel) as (connection, parts):
            return bool(connection.execute(f"SELECT 1 FROM {parts[0].scan} LIMIT 1").fetchall())

    try:
        return in_pieces_or_whole(read)
    except CalibrantError:
        return False
