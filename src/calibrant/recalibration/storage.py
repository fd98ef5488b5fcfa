"""Recalibrations as JSON: numbers and no code, exact after a round trip, versioned."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from calibrant.errors import CalibrantError, UnreadableFileError
from calibrant.files import CHECKSUM, checksum_of
from calibrant.recalibration.assess import Assessment
from calibrant.recalibration.maps import groups, piecewise  # noqa: F401  # kinds of maps that files hold
from calibrant.recalibration.maps.base import (
    IdentityMap,
    Map,
    map_from_dict,
    refused,
    stored_number,
)
from calibrant.recalibration.maps.classes import ClassMap
from calibrant.results import json_object

if TYPE_CHECKING:
    from calibrant.recalibration.result import Recalibration


@dataclass(frozen=True, slots=True)
class FitFacts:
    n: int
    effective_n: float
    base_rate: float
    low: float  # smallest prediction seen
    high: float
    levels: int  # distinct predictions
    at_ends: float  # records predicted at exactly 0 or 1 (their effective number)
    weights: str  # "sampling" or "frequency"
    seed: int
    data: str = ""  # hash of the levels


FORMAT = 2  # from 2 on with a checksum
READABLE = (1, 2)
NOT_YET = "it was not assessed before it was saved"


def as_dict(fitted: Recalibration) -> dict[str, Any]:
    facts = asdict(fitted.fit)
    if fitted.sample is not None:
        levels, digest = fitted.sample.levels, hashlib.blake2b(digest_size=16)
        for column in (levels.values, levels.rates, levels.weights):
            digest.update(column.tobytes())
        facts["data"] = digest.hexdigest()
    assessment = fitted.assessment if fitted.is_assessed else None
    why_not = fitted.why_not_assessed if fitted.is_assessed else NOT_YET
    fields = {
        "calibrant_recalibration": FORMAT,
        "method": fitted.method,
        "chosen": fitted.chosen,
        "options": fitted.options,
        "map": fitted.map,
        "fit": facts,
        "notes": fitted.notes,
        "details": fitted.details,
        "columns": fitted.columns,
        "classes": fitted.classes,
        "knots": fitted.knots,
        "assessment": assessment,
        "why_not_assessed": why_not,
    }
    stored = json_object(fields)
    return {**stored, CHECKSUM: checksum_of(stored)}


def stored_fields(stored: Any) -> tuple[dict[str, Any], Assessment | str]:
    """Check what `as_dict` made; return the fields of a recalibration, and its assessment apart from them."""
    if not isinstance(stored, Mapping) or "calibrant_recalibration" not in stored:
        raise UnreadableFileError("recalibration", "must be as calibrant writes it", "got other JSON")
    if stored["calibrant_recalibration"] not in READABLE:
        got = f"got format {stored['calibrant_recalibration']}, this calibrant reads {FORMAT}"
        raise UnreadableFileError("recalibration", "must be of a known format", got)
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
        _check_types(stored)
        _check_checksum(stored)
        return fields, verdict
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        if isinstance(error, CalibrantError):
            raise
        raise UnreadableFileError("recalibration", "must be complete", f"got {error!r}") from None


def _check_checksum(stored: Mapping[str, Any]) -> None:
    given = getattr(stored, CHECKSUM, None) or stored.get(CHECKSUM)
    if given is None and stored["calibrant_recalibration"] == 1:
        return
    if given != checksum_of(stored):
        got = "got no checksum" if given is None else "got another checksum"
        hint = "it was damaged or edited; fit it again, or load an older copy"
        raise UnreadableFileError("recalibration", "must be as it was written", got, hint)


def _check_types(stored: Mapping[str, Any]) -> None:
    for name in ("options", "details"):
        if not isinstance(stored[name], Mapping):
            raise refused(name, "must be an object", stored[name])
    assessed = stored["assessment"]
    if assessed is not None:
        for name in ("gain", "lower", "upper", "before", "after", "confidence"):
            stored_number(assessed, name)
        for name in ("n", "folds"):
            _whole(assessed, name)
        _words(assessed, "verdict")


def _check_columns(fitted: Map, columns: int | None) -> None:
    """Refuse a number of columns that is not that of the map: only no change takes any number."""
    known = fitted.classes if isinstance(fitted, ClassMap) else None
    if columns != known and not isinstance(fitted, IdentityMap):
        raise refused("columns", "must be the number of classes of the map", columns)


def _class_names(names: Any, columns: int | None) -> tuple[str, ...]:
    distinct = isinstance(names, list) and all(isinstance(name, str) for name in names)
    if not distinct or len(names) not in (0, columns) or len(set(names)) < len(names):
        raise refused("classes", "must be different texts, one for each column", names)
    return tuple(names)


def _fit_facts(fields: Mapping[str, Any]) -> FitFacts:
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
