"""Maps of several classes: softmax, one against the rest, and the predicted class alone."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from calibrant.errors import InvalidInputError
from calibrant.fits.softmax import MIN_PROBABILITY, softmax_rates
from calibrant.recalibration.maps.base import (
    MAX_LOGIT,
    Algebra,
    Map,
    map_of_one_column,
    refused,
    stored_numbers,
)
from calibrant.results import Array

PREDICT_HINT = "use predict; the saved file holds all of its numbers"


class ClassMap(Map):
    multiclass: ClassVar[bool] = True

    @property
    @abstractmethod
    def classes(self) -> int:
        """How many columns the map takes."""

    def expression(self, p: Any, algebra: Algebra) -> Any:
        raise InvalidInputError(
            "a map of several classes", "cannot be written as SQL of one column", hint=PREDICT_HINT
        )

    @abstractmethod
    def expressions(self, columns: Sequence[Any], algebra: Algebra) -> list[Any]:
        """Return an expression per class, of all columns."""


@dataclass(frozen=True, slots=True, eq=False)
class SoftmaxMap(ClassMap):
    """softmax(M ln p + b): temperature, vector and Dirichlet maps."""

    form: ClassVar[str] = "softmax"
    matrix: Array
    intercepts: Array

    @property
    def classes(self) -> int:
        return len(self.intercepts)

    def predict(self, p: Array, covariates: Mapping[str, Any] | None = None) -> Array:
        return softmax_rates(p, self.matrix, self.intercepts)

    def expressions(self, columns: Sequence[Any], algebra: Algebra) -> list[Any]:
        """Return 1 / sum of e^(eta_other - eta): no term is large unless the whole is nearly 0."""
        logs = [algebra.log(algebra.clip(column, MIN_PROBABILITY, 1.0)) for column in columns]

        def odds(other: int, one: int) -> Any:
            slopes = self.matrix[other] - self.matrix[one]
            ahead = algebra.number(float(self.intercepts[other] - self.intercepts[one]))
            for log, slope in zip(logs, slopes.tolist(), strict=True):
                ahead = ahead + log * slope
            return algebra.exp(algebra.clip(ahead, -MAX_LOGIT, MAX_LOGIT))

        places = range(self.classes)
        one = algebra.number(1.0)
        return [one / sum((odds(m, k) for m in places if m != k), start=one) for k in places]

    @classmethod
    def from_dict(cls, numbers: Mapping[str, Any]) -> Self:
        intercepts = stored_numbers(numbers, "intercepts")
        rows = numbers["matrix"]
        if not isinstance(rows, list) or len(rows) != len(intercepts) or not rows:
            raise refused("matrix", f"must have {len(intercepts)} rows", rows)
        matrix = [stored_numbers({"matrix": row}, "matrix", size=len(rows)) for row in rows]
        return cls(np.array(matrix), intercepts)


class MapPerClass(ClassMap):
    maps: tuple[Map, ...]

    @property
    def classes(self) -> int:
        return len(self.maps)


@dataclass(frozen=True, slots=True, eq=False)
class OneVsRestMap(MapPerClass):
    form: ClassVar[str] = "one-vs-rest"
    maps: tuple[Map, ...]

    def predict(self, p: Array, covariates: Mapping[str, Any] | None = None) -> Array:
        """Map each column, then normalize the rows; a row of zeros becomes equal shares."""
        rates = np.column_stack([one.predict(p[:, k]) for k, one in enumerate(self.maps)])
        sums = rates.sum(axis=1, keepdims=True)
        return np.where(sums > 0, rates / np.where(sums > 0, sums, 1.0), 1.0 / rates.shape[1])

    def expressions(self, columns: Sequence[Any], algebra: Algebra) -> list[Any]:
        rates = [one.expression(column, algebra) for one, column in zip(self.maps, columns, strict=True)]
        total = sum(rates[1:], start=rates[0])
        even = algebra.number(1.0 / len(rates))
        return [algebra.when(total == 0.0, even, rate / total) for rate in rates]

    @classmethod
    def from_dict(cls, numbers: Mapping[str, Any]) -> Self:
        return cls(_maps(numbers))


@dataclass(frozen=True, slots=True, eq=False)
class TopLabelMap(MapPerClass):
    """The top class mapped by a pooled map, then by its own; the other classes keep their proportions."""

    form: ClassVar[str] = "top-label"
    pooled: Map
    maps: tuple[Map, ...]

    def predict(self, p: Array, covariates: Mapping[str, Any] | None = None) -> Array:
        rows, top = np.arange(len(p)), p.argmax(axis=1)
        before = p[rows, top]
        after = self.pooled.predict(before)
        for k, one in enumerate(self.maps):
            after[top == k] = one.predict(after[top == k])
        others = p.copy()
        others[rows, top] = 0.0
        rest = others.sum(axis=1, keepdims=True)  # 1 - before would lose the digits of a rest of 1e-16
        even = 1.0 / (p.shape[1] - 1)
        share = np.where(rest > 0, others / np.where(rest > 0, rest, 1.0), even)
        rates = (1.0 - after)[:, None] * share
        rates[rows, top] = after
        return np.asarray(rates)

    def expressions(self, columns: Sequence[Any], algebra: Algebra) -> list[Any]:
        """Return, per class, a choice by which column is the first of the largest."""
        tops = [
            one.expression(self.pooled.expression(column, algebra), algebra)
            for one, column in zip(self.maps, columns, strict=True)
        ]
        rates = []
        for k, column in enumerate(columns):
            *before, rate = [
                tops[j] if j == k else self._scaled(column, columns, j, tops[j], algebra)
                for j in range(self.classes)
            ]
            for j in reversed(range(self.classes - 1)):  # here none before j is the largest
                later = algebra.greatest(columns[j + 1 :])
                rate = algebra.when(columns[j] < later, rate, before[j])
            rates.append(rate)
        return rates

    def _scaled(self, column: Any, columns: Sequence[Any], top: int, after: Any, algebra: Algebra) -> Any:
        """Return the part of a class in what the top class leaves; equal parts if the others have none."""
        first, *more = [one for k, one in enumerate(columns) if k != top]
        rest = sum(more, start=first)
        share = algebra.when(rest == 0.0, algebra.number(1.0 / (self.classes - 1)), column / rest)
        return (-after + 1.0) * share

    @classmethod
    def from_dict(cls, numbers: Mapping[str, Any]) -> Self:
        return cls(map_of_one_column(numbers["pooled"]), _maps(numbers))


def _maps(numbers: Mapping[str, Any]) -> tuple[Map, ...]:
    maps = tuple(map_of_one_column(one) for one in numbers["maps"])
    if len(maps) < 2:
        raise refused("maps", "must hold a map for each of two classes or more", numbers["maps"])
    return maps
