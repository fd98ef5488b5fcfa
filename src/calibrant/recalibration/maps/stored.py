"""Numbers of stored maps: each field is checked before it is believed."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from calibrant.errors import UnreadableFileError, sentence
from calibrant.fits.logits import SMALLEST_CLIP
from calibrant.results import Array

MOST = 1e300  # of a coefficient: sums and products of a few with logits stay finite
LEAST = -MOST


def stored_number(fields: Mapping[str, Any], name: str, low: float = LEAST, high: float = MOST) -> float:
    """Return a field that is one finite number within limits."""
    value = fields[name]
    if not _is_finite(value) or not low <= value <= high:
        raise refused(name, f"must be a finite number{_within(low, high)}", value)
    return float(value)


def stored_numbers(
    fields: Mapping[str, Any],
    name: str,
    low: float = LEAST,
    high: float = MOST,
    size: int | None = None,
) -> Array:
    """Return a field that is a list of finite numbers within limits, as many as `size` says."""
    items = fields[name]
    plain = isinstance(items, list) and all(map(_is_finite, items))
    values = np.array(items, dtype=np.float64) if plain else np.array([math.nan])
    if not np.all(np.isfinite(values) & (values >= low) & (values <= high)):
        raise refused(name, f"must be a list of finite numbers{_within(low, high)}", items)
    if size is not None and len(values) != size:
        raise refused(name, f"must hold {size} numbers", items)
    return values


def stored_steps(fields: Mapping[str, Any], name: str, low: float = LEAST, high: float = MOST) -> Array:
    """Return a field that is a list of numbers, each above the one before it."""
    values = stored_numbers(fields, name, low, high)
    if np.any(np.diff(values) <= 0):
        raise refused(name, "must rise", fields[name])
    return values


def stored_clip(fields: Mapping[str, Any]) -> float:
    """Return how far from 0 and 1 a map keeps predictions."""
    return stored_number(fields, "clip", SMALLEST_CLIP, 0.5)


def _is_finite(item: Any) -> bool:
    """Return whether something is a number that a float can hold; JSON knows whole numbers of any length."""
    return type(item) in (int, float) and abs(item) <= sys.float_info.max


def refused(name: str, rule: str, got: Any) -> UnreadableFileError:
    """Build the error for a field that breaks its rule."""
    shown = repr(got)
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    return UnreadableFileError(sentence(f"field {name!r}", rule, f"got {shown}", "it may have been edited"))


def _within(low: float, high: float) -> str:
    return "" if low == LEAST and high == MOST else f" from {low:g} to {high:g}"
