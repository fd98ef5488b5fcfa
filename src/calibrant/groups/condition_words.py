"""Conditions in words, so that quotes and signs in names and values are safe."""

from __future__ import annotations

import json
import re
from datetime import datetime
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


def label_in_words(value: Any) -> str:
    """Return a value as text; a moment without the zeros at its end, so that a date is one.

    >>> label_in_words(np.datetime64("2018-10-16T00:00:00.000000")), label_in_words(3)
    ('2018-10-16', '3')
    >>> label_in_words(np.datetime64("2018-10-16T08:30:00.500000"))
    '2018-10-16 08:30:00.5'
    """
    if not isinstance(value, np.datetime64 | datetime):
        return str(value)
    text = re.sub(r"\.(\d*?)0+$", r".\1", str(value).replace("T", " ")).rstrip(".")
    return text.removesuffix(" 00:00:00")


def value_in_words(value: Any, quoted: bool = False) -> str:
    """Return a value as it stands in a rule."""
    if isinstance(value, float | np.floating):
        return f"{value:.17g}" if float(f"{value:.12g}") != value else f"{value:.12g}"
    if not isinstance(value, str):
        return written(label_in_words(value))
    return _quoted(value) if quoted else written(value)
