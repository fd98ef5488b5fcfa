"""Conditions in words, so that quotes and signs in names and values are safe."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np

AMBIGUOUS = re.compile(
    r'[=<>{},"\\\x00-\x1f\x7f-\x9f\u2028\u2029]|^[\s(]|\s$|^$|^missing$| (and|or|in|is|not) '
)


def written(name: str) -> str:
    """Return a column or category as it stands in a rule: quoted where it could be read as something else.

    >>> written("age"), written("rate = high")
    ('age', '"rate = high"')
    """
    return _quoted(name) if AMBIGUOUS.search(name) else name


def _quoted(text: str) -> str:
    """Quote as JSON does; what would break the line or steer a terminal is escaped."""
    plain = json.dumps(text, ensure_ascii=False)
    return re.sub(r"[\x7f-\x9f\u2028\u2029]", lambda found: f"\\u{ord(found[0]):04x}", plain)


def value_in_words(value: Any, quoted: bool = False) -> str:
    """Return a value as it stands in a rule."""
    if isinstance(value, float | np.floating):
        return f"{value:.17g}" if float(f"{value:.12g}") != value else f"{value:.12g}"
    if not isinstance(value, str):
        return written(str(value))
    return _quoted(value) if quoted else written(value)
