"""Names of groups and segments: one text per label, whatever type the column has."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, sentence

MISSING = "(missing)"


def label_name(label: Any) -> str:
    """Return the name of a label: 1, 1.0 and "1" are one group, missing is none of the texts.

    >>> label_name(1), label_name(1.0), label_name("nan"), label_name(float("nan"))
    ('1', '1', 'nan', '(missing)')
    """
    if isinstance(label, np.generic):
        label = label.item()
    if label is None or type(label).__name__ in ("NAType", "NaTType"):
        return MISSING
    if isinstance(label, float):
        return MISSING if math.isnan(label) else str(int(label)) if label.is_integer() else repr(label)
    name = str(label)
    if name == MISSING:
        rule = f"must not be the text {MISSING!r}, which stands for missing labels"
        raise InvalidInputError(sentence("group", rule, "got it", "rename that group"))
    return name


def list_of_names(groups: Any) -> list[str]:
    """Return the names of groups that a user lists; one text is no list of its letters."""
    single = isinstance(groups, (str, bytes)) or (isinstance(groups, np.ndarray) and groups.ndim == 0)
    if single or not isinstance(groups, Iterable):
        raise InvalidInputError(sentence("groups", "must be a list of names", f"got {groups!r}"))
    return [label_name(group) for group in groups]


def label_names(labels: Any) -> npt.NDArray[Any]:
    """Return the names of a whole column of labels."""
    if isinstance(labels, np.ma.MaskedArray):
        absent, labels = np.ma.getmaskarray(labels), labels.data.astype(object)
        labels[absent] = None
    column = np.asarray(labels) if hasattr(labels, "dtype") else np.array([*labels, None], object)[:-1]
    if column.ndim != 1:
        rule = "must be one-dimensional"
        raise InvalidInputError(sentence("groups", rule, f"got shape {column.shape}"))
    known: dict[Any, str] = {}
    return np.array([_remembered(item, known) for item in column.tolist()], dtype=object)


def _remembered(item: Any, known: dict[Any, str]) -> str:
    try:
        return known[type(item), item]
    except KeyError:
        return known.setdefault((type(item), item), label_name(item))
    except TypeError:  # cannot be hashed
        return label_name(item)
