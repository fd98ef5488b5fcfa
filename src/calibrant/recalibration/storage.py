"""Recalibrations as JSON: numbers and no code, exact after a round trip, versioned."""

from __future__ import annotations

import hashlib
import json
import math
import os
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from calibrant.errors import CalibrantError, UnreadableFileError, sentence
from calibrant.recalibration.assess import Assessment
from calibrant.recalibration.maps.forms import map_from_dict, map_to_dict
from calibrant.recalibration.result import FitFacts, Recalibration
from calibrant.recalibration.samples import Sample

FORMAT = 1


def as_dict(fitted: Recalibration, *, assess: bool = True) -> dict[str, Any]:
    """Return everything but the records; without an assessment that is not known yet, if told so."""
    if not assess and "_assessed" not in fitted.__dict__:
        fitted = replace(fitted).with_assessment("the records were not kept")
    knots = fitted.knots
    facts = asdict(fitted.fit)
    if fitted.sample is not None:
        facts["data"] = _hash(fitted.sample)
    assessment = fitted.assessment
    return {
        "calibrant_recalibration": FORMAT,
        "method": fitted.method,
        "chosen": fitted.chosen,
        "options": _plain(fitted.options),
        "map": map_to_dict(fitted.map),
        "fit": facts,
        "notes": list(fitted.notes),
        "details": _plain(fitted.details),
        "columns": fitted.columns,
        "knots": None if knots is None else [knots.values.tolist(), knots.rates.tolist()],
        "assessment": None if assessment is None else assessment.to_dict(),
        "why_not_assessed": fitted.why_not_assessed,
    }


def _hash(sample: Sample) -> str:
    levels = sample.levels
    digest = hashlib.blake2b(digest_size=16)
    for column in (levels.values, levels.rates, levels.weights):
        digest.update(column.tobytes())
    return digest.hexdigest()


def _plain(item: Any) -> Any:
    """Return options and details as JSON can hold them."""
    if isinstance(item, Mapping):
        return {str(key): _plain(value) for key, value in item.items()}
    if isinstance(item, (list, tuple)):
        return [_plain(value) for value in item]
    if isinstance(item, float) and not math.isfinite(item):
        return None
    if hasattr(item, "tolist"):
        return item.tolist()
    return item if isinstance(item, (str, int, float, bool, type(None))) else str(item)


def save(fitted: Recalibration, path: Path) -> None:
    """Write to a temporary file beside `path`, then rename: a reader sees the whole file or none."""
    text = json.dumps(as_dict(fitted), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    if not path.parent.is_dir():
        raise UnreadableFileError(sentence(f"folder {str(path.parent)!r}", "must exist"))
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
        part = Path(name)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            part.chmod(0o644)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UnreadableFileError(sentence(f"file {str(path)!r}", "must be writable", reason)) from None


def load_recalibration(path: str | Path) -> Recalibration:
    """Read what `Recalibration.save` wrote; predictions are equal to the last bit.

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
        return from_dict(json.loads(Path(path).read_text(encoding="utf-8")))
    except OSError as error:
        reason = error.strerror or str(error)
    except (UnicodeDecodeError, json.JSONDecodeError):
        reason = "got a file that is not JSON"
    except CalibrantError as error:
        reason = str(error).rstrip(".")
    raise UnreadableFileError(sentence(f"file {str(path)!r}", "must be a recalibration", reason))


def from_dict(stored: Any) -> Recalibration:
    """Rebuild a recalibration from `to_dict`; unknown formats are refused."""
    if not isinstance(stored, Mapping) or "calibrant_recalibration" not in stored:
        raise UnreadableFileError(
            sentence("recalibration", "must be as calibrant writes it", "got other JSON")
        )
    if stored["calibrant_recalibration"] != FORMAT:
        found = f"got format {stored['calibrant_recalibration']}, this calibrant reads {FORMAT}"
        raise UnreadableFileError(sentence("recalibration", "must be of a known format", found))
    try:
        assessed = stored["assessment"]
        return Recalibration(
            method=str(stored["method"]),
            chosen=str(stored["chosen"]),
            options=MappingProxyType(dict(stored["options"])),
            map=map_from_dict(stored["map"]),
            fit=FitFacts(**stored["fit"]),
            notes=tuple(stored["notes"]),
            details=MappingProxyType(dict(stored["details"])),
            columns=stored.get("columns"),
        ).with_assessment(
            str(stored["why_not_assessed"]) if assessed is None else Assessment.from_dict(assessed)
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, CalibrantError):
            raise
        raise UnreadableFileError(sentence("recalibration", "must be complete", f"got {error!r}")) from None
