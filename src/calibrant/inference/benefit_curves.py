"""Decision curves as results: net benefit of models at thresholds, their differences, and how they print."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.frames import frame_of
from calibrant.numerals import counted, left_out, short
from calibrant.results import Array, Result
from calibrant.sheets import Cell, Sheet, number_cell, paragraphs, text_cell

EVERYBODY, NOBODY = "treat all", "treat none"
FEW = 6  # thresholds that a sentence names one by one


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Benefit(Result):
    """Net benefit at each threshold, in true positives per record, between `lower` and `upper`."""

    value: Array
    lower: Array
    upper: Array


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BenefitDifference(Result):
    """Net benefit of the first model minus that of the second at each threshold, with its interval."""

    first: str
    second: str
    value: Array
    lower: Array
    upper: Array


@dataclass(frozen=True, slots=True, eq=False)
class NetBenefits(Result):
    """Decision curves of models on the same rows; treating none has 0 at every threshold.

    Intervals are for one threshold at a time: look at those that were chosen before, not at the best.
    """

    thresholds: Array
    models: Mapping[str, Benefit]
    treat_all: Benefit
    differences: tuple[BenefitDifference, ...]
    confidence: float
    n: int
    dropped: int

    def __repr__(self) -> str:
        count = counted(len(self.thresholds), "threshold")
        return f"NetBenefits({', '.join(self.models)}; {count}, n = {self.n:,})"

    @property
    def approximate(self) -> tuple[str, ...]:
        """The fields of the curves that hold only approximately."""
        return ("lower", "upper")

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, ready for JSON."""
        return {"sentence": str(self), **Result.to_dict(self), "approximate": list(self.approximate)}

    def best(self) -> list[str]:
        """Return who has the largest net benefit at each threshold; treating all or none may be."""
        names = [*self.models, EVERYBODY, NOBODY]
        curves = [benefit.value for benefit in self.models.values()]
        table = np.stack([*curves, self.treat_all.value, np.zeros(len(self.thresholds))])
        return [names[k] for k in np.argmax(table, axis=0)]

    def __str__(self) -> str:
        return " ".join([*map(self._sure, self.differences), *self._largest(), self._how()])

    def _largest(self) -> list[str]:
        """Say where each model has the largest net benefit; no winner where chance explains who leads."""
        if self.differences and not any(map(_beyond_chance, self.differences)):
            return []
        best = np.array(self.best())
        return [f"{m} has the largest net benefit at {self._thresholds(best == m)}." for m in self.models]

    def _sure(self, pair: BenefitDifference) -> str:
        better, worse = pair.lower > 0, pair.upper < 0
        if not (better | worse).any():
            count = counted(len(self.thresholds), "threshold")
            return f"{pair.first} and {pair.second} differ at none of {count} by more than chance."
        first, second = self._thresholds(better), self._thresholds(worse)
        return f"Beyond chance, {pair.first} is better than {pair.second} at {first}, and worse at {second}."

    def _thresholds(self, chosen: npt.NDArray[np.bool_]) -> str:
        """Say at how many thresholds, and at which: each of a few, or the two ends of an unbroken run."""
        at = self.thresholds[chosen]
        places = np.flatnonzero(chosen)
        which = ""
        if 0 < len(at) <= FEW:
            which = f" ({', '.join(f'{one:g}' for one in at)})"
        elif len(at) and places[-1] - places[0] + 1 == len(at):
            which = f" ({at[0]:g} to {at[-1]:g})"
        return f"{len(at) or 'none'} of {counted(len(self.thresholds), 'threshold')}{which}"

    def _how(self) -> str:
        level = f"{100 * self.confidence:g} %"
        return (
            f"{counted(self.n, 'row')}{left_out(self.dropped)}; approximate {level} intervals, one "
            "threshold at a time."
        )

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return a frame ("pandas", "polars" or "pyarrow"): one row per curve and threshold.

        Curves of the models and of treating all come first; then, with the second model under `minus`, the
        differences of every two models.
        """
        curves: list[tuple[str, str | None, Benefit | BenefitDifference]] = [
            *((name, None, benefit) for name, benefit in self._curves().items()),
            *((pair.first, pair.second, pair) for pair in self.differences),
        ]
        count = len(self.thresholds)
        columns = {
            "model": [name for name, _, _ in curves for _ in range(count)],
            "minus": [other for _, other, _ in curves for _ in range(count)],
            "threshold": np.tile(self.thresholds, len(curves)).tolist(),
            "net_benefit": np.concatenate([curve.value for _, _, curve in curves]).tolist(),
            "lower": np.concatenate([curve.lower for _, _, curve in curves]).tolist(),
            "upper": np.concatenate([curve.upper for _, _, curve in curves]).tolist(),
        }
        return frame_of(columns, backend)

    def _curves(self) -> dict[str, Benefit]:
        return {**self.models, EVERYBODY: self.treat_all}

    def sheet(self) -> Sheet:
        """Return the table: net true positives per 1,000 records, one line per threshold."""
        curves = self._curves()
        lines = tuple(
            (
                number_cell(t, f"{t:g}"),
                *(_per_thousand(benefit, k) for benefit in curves.values()),
                text_cell(best),
            )
            for k, (t, best) in enumerate(zip(self.thresholds.tolist(), self.best(), strict=True))
        )
        return Sheet(("threshold", *(f"{name} per 1,000" for name in curves), "largest"), lines)

    def difference_sheet(self) -> Sheet:
        """Return the table of what each model gains over another, one line per pair and threshold."""
        at = [number_cell(t, f"{t:g}") for t in self.thresholds.tolist()]
        lines = tuple(
            (text_cell(f"{pair.first} - {pair.second}"), at[k], _per_thousand(pair, k), _better(pair, k))
            for pair in self.differences
            for k in range(len(at))
        )
        return Sheet(("models", "threshold", "difference per 1,000", "better"), lines)

    def _repr_html_(self) -> str:
        differences = self.difference_sheet().as_html() if self.differences else ""
        return paragraphs(str(self)) + self.sheet().as_html() + differences


def _beyond_chance(pair: BenefitDifference) -> bool:
    """Return whether two models differ beyond chance at any threshold."""
    return bool(((pair.lower > 0) | (pair.upper < 0)).any())


def _better(pair: BenefitDifference, k: int) -> Cell:
    """Say which model is better where the interval leaves out 0."""
    if pair.lower[k] > 0 or pair.upper[k] < 0:
        return text_cell(pair.first if pair.lower[k] > 0 else pair.second)
    return text_cell("within chance")


def _per_thousand(benefit: Benefit | BenefitDifference, k: int) -> Cell:
    value, low, high = (1000 * float(part[k]) for part in (benefit.value, benefit.lower, benefit.upper))
    return number_cell(value, f"{short(value)} ({short(low)} to {short(high)})")
