"""load_recalibration: read a file of JSON, and refuse what a map cannot be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NoReturn

from calibrant.errors import CalibrantError, UnreadableFileError, sentence
from calibrant.recalibration.result import Recalibration

MOST_BYTES = 2**30


def load_recalibration(path: str | Path) -> Recalibration:
    """Read what `Recalibration.save` wrote; predictions are equal to the last bit.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    Recalibration
        The map, with its assessment where that was saved.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from calibrant import recalibrate
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "map.json"
    >>> recalibrate([0, 1, 0, 1], [0.2, 0.4, 0.6, 0.8], method="isotonic").save(file)
    >>> load_recalibration(file).predict([0.5]).tolist()
    [0.5]
    """
    try:
        return Recalibration.from_dict(_parsed(Path(path)))
    except OSError as error:
        reason = error.strerror or str(error)
    except CalibrantError as error:
        reason = str(error).rstrip(".")
    except (ValueError, RecursionError):  # no text, no JSON, or a whole number of thousands of digits
        reason = "got a file that is not JSON"
    raise UnreadableFileError(sentence(f"file {str(path)!r}", "must be a recalibration", reason))


def _parsed(path: Path) -> Any:
    """Read JSON of a size that a map can have; NaN, infinities and repeated fields are refused."""
    if path.exists() and not path.is_file():
        raise UnreadableFileError(sentence("recalibration", "must be a file", "got a folder, device or pipe"))
    if path.stat().st_size > MOST_BYTES:
        raise UnreadableFileError(sentence("recalibration", f"must have at most {MOST_BYTES:,} bytes"))
    text = path.read_text(encoding="utf-8")
    return json.loads(text, parse_constant=_no_constant, object_pairs_hook=_no_repeats)


def _no_constant(name: str) -> NoReturn:
    raise UnreadableFileError(sentence("numbers", "must be finite", f"got {name}"))


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise UnreadableFileError(sentence("fields", "must not be repeated"))
    return content
