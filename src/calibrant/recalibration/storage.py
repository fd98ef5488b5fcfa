"""Recalibrations as JSON: numbers and no code, exact after a round trip, versioned."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from calibrant.disk import write_whole
from calibrant.errors import CalibrantError, UnreadableFileError, sentence
from calibrant.recalibration.assess import Assessment
from calibrant.recalibration.fit_facts import FitFacts
from calibrant.recalibration.maps import forms as _all_forms  # noqa: F401  # loaded, map_from_dict knows them
from calibrant.recalibration.maps.classes import ClassMap
from calibrant.recalibration.maps.form import Map, map_from_dict, map_to_dict
from calibrant.recalibration.maps.identity import IdentityMap
from calibrant.recalibration.maps.stored import refused, stored_number
from calibrant.recalibration.samples import Sample

if TYPE_CHECKING:
    from calibrant.recalibration.result import Recalibration

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
        "classes": list(fitted.classes),
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


def save_recalibration(fitted: Recalibration, path: Path) -> None:
    """Write the file whole or not at all."""
    text = json.dumps(as_dict(fitted), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    write_whole(path, text)


def stored_fields(stored: Any) -> tuple[dict[str, Any], Assessment | str]:
    """Check what `as_dict` made; return the fields of a recalibration, and its assessment apart from them."""
    if not isinstance(stored, Mapping) or "calibrant_recalibration" not in stored:
        raise UnreadableFileError(
            sentence("recalibration", "must be as calibrant writes it", "got other JSON")
        )
    if stored["calibrant_recalibration"] != FORMAT:
        got = f"got format {stored['calibrant_recalibration']}, this calibrant reads {FORMAT}"
        raise UnreadableFileError(sentence("recalibration", "must be of a known format", got))
    try:
        assessed = stored["assessment"]
        fields: dict[str, Any] = {
            "method": _words(stored, "method"),
            "chosen": _words(stored, "chosen"),
            "options": MappingProxyType(dict(stored["options"])),
            "map": map_from_dict(stored["map"]),
            "fit": _fit_facts(stored["fit"]),
            "notes": tuple(str(note) for note in stored["notes"]),
            "details": MappingProxyType(dict(stored["details"])),
            "columns": None if stored.get("columns") is None else _whole(stored, "columns"),
        }
        _check_columns(fields["map"], fields["columns"])
        fields["classes"] = _class_names(stored.get("classes", []), fields["columns"])
        verdict = str(stored["why_not_assessed"]) if assessed is None else Assessment.from_dict(assessed)
        return fields, verdict
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        if isinstance(error, CalibrantError):
            raise
        raise UnreadableFileError(sentence("recalibration", "must be complete", f"got {error!r}")) from None


def _check_columns(fitted: Map, columns: int | None) -> None:
    """Refuse a number of columns that is not that of the map: only no change takes any number."""
    known = fitted.classes if isinstance(fitted, ClassMap) else None
    if columns != known and not isinstance(fitted, IdentityMap):
        raise refused("columns", "must be the number of classes of the map", columns)


def _class_names(names: Any, columns: int | None) -> tuple[str, ...]:
    """Read the names of the columns, none in older files."""
    distinct = isinstance(names, list) and all(isinstance(name, str) for name in names)
    if not distinct or len(names) not in (0, columns) or len(set(names)) < len(names):
        raise refused("classes", "must be different texts, one for each column", names)
    return tuple(names)


def _fit_facts(fields: Mapping[str, Any]) -> FitFacts:
    """Read what a map was fitted to, field by field."""
    rates = {name: stored_number(fields, name, 0.0, 1.0) for name in ("base_rate", "low", "high")}
    if rates["low"] > rates["high"]:
        raise refused("low", "must not lie above high", rates["low"])
    counts = {name: _whole(fields, name) for name in ("n", "levels", "seed")}
    sizes = {name: stored_number(fields, name, 0.0, 1.7e308) for name in ("effective_n", "at_ends")}
    texts = {name: _words(fields, name) for name in ("weights", "data") if name in fields}
    unknown = set(fields) - {*rates, *counts, *sizes, *texts}
    if unknown:
        raise refused("fit", "must not hold other fields", sorted(unknown))
    return FitFacts(**rates, **counts, **sizes, **texts)  # type: ignore[arg-type] # each has its own type


def _whole(fields: Mapping[str, Any], name: str) -> int:
    value = fields[name]
    if type(value) is not int or value < 0:
        raise refused(name, "must be a whole number from 0", value)
    return value


def _words(fields: Mapping[str, Any], name: str) -> str:
    value = fields[name]
    if not isinstance(value, str):
        raise refused(name, "must be text", value)
    return value
