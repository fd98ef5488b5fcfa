"""Rules in files: the conditions of a rule as JSON, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np

from calibrant.errors import InvalidInputError, sentence
from calibrant.groups.conditions import Condition, Masked, OneOf, Within
from calibrant.groups.rules import Rule

FORMAT, VERSION = "calibrant_rules", 1
KINDS: Mapping[str, type[Condition]] = {"one of": OneOf, "within": Within, "mask": Masked}


def rule_to_list(rule: Rule) -> list[dict[str, Any]]:
    """Return the conditions of a rule, ready for JSON.

    >>> rule_to_list(Rule([Within("age", 43.0, None)]))[0]["low"]
    43.0
    """
    return [_written(condition) for condition in rule.conditions]


def rule_from_list(items: Sequence[Mapping[str, Any]]) -> Rule:
    """Rebuild a rule; what is no condition is refused."""
    return Rule([_read(item) for item in items])


def rules_to_json(rules: Sequence[Rule]) -> str:
    """Return rules as the text of a file, each in words and as conditions."""
    listed = [{"rule": str(rule), "conditions": rule_to_list(rule)} for rule in rules]
    return json.dumps({FORMAT: VERSION, "rules": listed}, indent=1, ensure_ascii=False) + "\n"


def rules_from_json(text: str, subject: str) -> tuple[Rule, ...]:
    """Read what `rules_to_json` wrote; anything else is refused, by the name of its file."""
    try:
        stored = json.loads(text)
        if stored[FORMAT] != VERSION:
            raise ValueError
        return tuple(rule_from_list(item["conditions"]) for item in stored["rules"])
    except (KeyError, TypeError, ValueError):
        hint = "calibrant audit --rules writes one"
        raise InvalidInputError(sentence(subject, "must be a file of rules", hint=hint)) from None


def _written(condition: Condition) -> dict[str, Any]:
    kind = next(name for name, one in KINDS.items() if isinstance(condition, one))
    return {"kind": kind} | {f.name: _plain(getattr(condition, f.name)) for f in fields(condition)}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    if isinstance(value, np.datetime64 | date):
        return {"moment": str(np.datetime64(value))}
    if isinstance(value, np.timedelta64 | timedelta):
        return {"microseconds": int(np.timedelta64(value).astype("timedelta64[us]").astype(np.int64))}
    if isinstance(value, time):
        return {"time": value.isoformat()}
    if isinstance(value, Decimal):
        return float(value)  # as conditions compare it
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, bool | int | float | str):
        return value
    got = f"got {value!r} of type {type(value).__name__}"
    raise InvalidInputError(sentence("a rule that is saved", "must speak of numbers, text or dates", got))


def _read(item: Mapping[str, Any]) -> Condition:
    try:
        kind = KINDS[item["kind"]]
        condition = kind(**{name: _value(value) for name, value in item.items() if name != "kind"})
        lists = [getattr(condition, name, ()) for name in ("values", "categories")]
        if not isinstance(condition.column, str) or not all(
            isinstance(one, tuple | type(None)) for one in lists
        ):
            raise TypeError
        return condition
    except (KeyError, TypeError, ValueError, AttributeError):
        rule = "must be a mask, one of some values, or within limits"
        raise InvalidInputError(sentence("a condition of a rule", rule, f"got {item!r}")) from None


def _value(stored: Any) -> Any:
    if isinstance(stored, list):
        return tuple(_value(one) for one in stored)
    if not isinstance(stored, Mapping):
        return stored
    ((unit, value),) = stored.items()
    if unit == "moment":
        return np.datetime64(value)
    return np.timedelta64(value, "us") if unit == "microseconds" else time.fromisoformat(value)
