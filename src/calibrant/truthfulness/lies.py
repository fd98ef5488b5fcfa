"""The standard lies: what a forecaster may report instead of the probabilities believed in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from calibrant.errors import CalibrantError, InvalidInputError, reject_name, sentence
from calibrant.results import Array

HONEST = "honest"  # what the report is called that lies are compared with
Lie = Callable[[Array, Array], Array]  # distinct predictions and how many records have each -> reports


def _mean(p: Array, counts: Array) -> Array:
    return np.full(len(p), float(p @ counts) / float(counts.sum()))


def _shrunk(share: float) -> Lie:
    def lie(p: Array, counts: Array) -> Array:
        centre = _mean(p, counts)
        return centre + share * (p - centre)

    return lie


def _sharpened(factor: float) -> Lie:
    def lie(p: Array, counts: Array) -> Array:
        """p^k / (p^k + (1 - p)^k): the log odds times k."""
        return np.asarray(p**factor / (p**factor + (1 - p) ** factor))

    return lie


def _pooled(cells: int) -> Lie:
    def lie(p: Array, counts: Array) -> Array:
        cell = np.minimum((p * cells).astype(np.intp), cells - 1)
        total = np.bincount(cell, p * counts, cells)
        held = np.bincount(cell, counts, cells)
        return np.asarray((total / np.maximum(held, 1))[cell])

    return lie


def _rounded(p: Array, counts: Array) -> Array:
    return np.round(p, 1)


def _shifted(p: Array, counts: Array) -> Array:
    return np.minimum(p + 0.05, 1.0)


def _certain(p: Array, counts: Array) -> Array:
    return (p >= 0.5).astype(np.float64)


LIES: Mapping[str, Lie] = {
    "mean": _mean,
    "shrink 0.8": _shrunk(0.8),
    "sharpen 1.2": _sharpened(1.2),
    "sharpen 2": _sharpened(2.0),
    "pool 10": _pooled(10),
    "round 0.1": _rounded,
    "shift 0.05": _shifted,
    "0/1": _certain,
}


def reports_of(lies: Any, p: Array, counts: Array) -> dict[str, Array]:
    """Return what each lie reports for the distinct predictions p; `lies` are names, or name -> function."""
    chosen = dict(LIES) if lies is None else _named(lies)
    if not chosen or HONEST in chosen:
        rule = f"must name a lie or more, and none of them {HONEST!r}"
        raise InvalidInputError(sentence("lies", rule, f"got {list(chosen)}"))
    return {name: _checked(name, _told(name, lie, p, counts)) for name, lie in chosen.items()}


def _told(name: str, lie: Lie, p: Array, counts: Array) -> Array:
    try:
        return np.asarray(lie(p.copy(), counts), dtype=np.float64)
    except CalibrantError:
        raise
    except Exception as error:  # the user's function may raise anything
        rule = "must be a function of the predictions that returns numbers"
        got = f"it raised {type(error).__name__}: {error}"
        raise InvalidInputError(sentence(f"lie {name!r}", rule, got)) from error


def _named(lies: Any) -> dict[str, Lie]:
    if isinstance(lies, Mapping):
        for name, lie in lies.items():
            if not callable(lie):
                got = f"got {type(lie).__name__} for {name!r}"
                raise InvalidInputError(sentence("lies", "must map names to functions of y_prob", got))
        return {str(name): _of_prediction(str(name), lie) for name, lie in lies.items()}
    if not isinstance(lies, Iterable):
        raise InvalidInputError(sentence("lies", "must be names, or map names to functions", f"got {lies!r}"))
    names = [lies] if isinstance(lies, str) else list(lies)
    for name in names:
        if name not in list(LIES):
            raise reject_name("lie", name, list(LIES))
    return {name: LIES[name] for name in names}


def _of_prediction(name: str, lie: Callable[[Array], Any]) -> Lie:
    """Let a function of the user stand beside the standard lies: it sees every prediction, in order.

    A mean of the distinct ones alone would be another. Predictions that are equal get equal reports.
    """

    def report(p: Array, counts: Array) -> Array:
        times = counts.astype(np.int64)
        told = np.asarray(lie(np.repeat(p, times)), dtype=np.float64)
        if told.shape != (times.sum(),):
            rule, got = "must return one report per prediction", f"got shape {told.shape} for {times.sum():,}"
            raise InvalidInputError(sentence(f"lie {name!r}", rule, got))
        first: Array = told[np.cumsum(times) - times]
        if not np.array_equal(np.repeat(first, times), told, equal_nan=True):
            rule = "must return the same report for the same prediction"
            raise InvalidInputError(sentence(f"lie {name!r}", rule, "got different ones"))
        return first

    return report


def _checked(name: str, report: Array) -> Array:
    if not np.all((report >= 0) & (report <= 1)):  # also false for NaN
        bad = report[~((report >= 0) & (report <= 1))][0]
        raise InvalidInputError(sentence(f"lie {name!r}", "must return reports in [0, 1]", f"got {bad}"))
    return report
