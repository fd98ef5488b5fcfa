"""Rows that several models share: named, checked once, complete for every model, in one order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, sentence
from calibrant.frames import frame_columns, inputs_of
from calibrant.inputs import (
    Names,
    check_aligned,
    missing_rows,
    numeric_vector,
    outcomes_of,
    positive_column,
    row_labels,
)
from calibrant.numerals import counted
from calibrant.records import Missing, check_records, warn_if_swapped
from calibrant.results import Array


def models_given(
    y_true: Any, predictions: tuple[Any, ...], sample_weight: Any, *, outcome: str | None,
    prediction: Sequence[str] | str | None, weight: str | None,
) -> tuple[Any, tuple[Any, ...], Any]:  # fmt: skip
    """Return outcomes, predictions and weights as they were given, or the columns of a frame."""
    if outcome is None and prediction is None and weight is None:
        return y_true, predictions, sample_weight
    columns = [prediction] if isinstance(prediction, str) else prediction
    given = inputs_of(
        y_true, predictions or None, sample_weight, outcome=outcome, prediction=columns, weight=weight
    )
    return given.y_true, (given.y_prob,), given.sample_weight


def named_models(predictions: tuple[Any, ...], names: list[str] | None, least: int = 2) -> dict[str, Any]:
    """Return the predictions of every model by name, however they were given."""
    named = _named_already(predictions[0]) if len(predictions) == 1 else None
    if named is not None and names is not None:
        rule = "must not be given beside a mapping or a frame, which names the models"
        raise InvalidInputError(sentence("names", rule, f"got {names}"))
    if named is None:
        letters = [chr(ord("a") + k) if k < 26 else f"model {k + 1}" for k in range(len(predictions))]
        chosen = letters if names is None else list(names)
        if len(chosen) != len(predictions) or len(set(chosen)) != len(chosen):
            got = f"got {counted(len(chosen), 'name')} for {counted(len(predictions), 'model')}"
            raise InvalidInputError(sentence("names", "must be one different name per model", got))
        named = dict(zip(chosen, predictions, strict=True))
    if len(named) < least:
        if least == 1:
            raise InvalidInputError(sentence("predictions", "must be those of a model or more", "got none"))
        hint = "one model is compared between groups of rows by compare_groups, or by --groups"
        raise InvalidInputError(sentence("compare", "needs two models or more", f"got {len(named)}", hint))
    return named


def _named_already(models: Any) -> dict[str, Any] | None:
    """Return the models of a mapping or of the columns of a frame; None if it is neither."""
    if isinstance(models, Mapping):
        return dict(models)
    import narwhals as nw

    table: Any = nw.from_native(models, pass_through=True)
    if not isinstance(table, nw.DataFrame | nw.LazyFrame):
        return None
    names = table.collect_schema().names()
    return dict(zip(names, frame_columns(models, names), strict=True))


@dataclass(frozen=True, slots=True, eq=False)
class PairedRows:
    """Rows that are complete for every model."""

    outcomes: Array
    models: dict[str, Array]
    weights: Array | None
    dropped: int

    def in_order(self) -> PairedRows:
        """Put the rows in order by everything that is known of them: rows that tie are the same row."""
        keys = [self.outcomes, *self.models.values(), *([] if self.weights is None else [self.weights])]
        return self.take(np.lexsort(keys))

    def take(self, rows: npt.NDArray[Any]) -> PairedRows:
        weights = None if self.weights is None else self.weights[rows]
        models = {name: p[rows] for name, p in self.models.items()}
        return PairedRows(self.outcomes[rows], models, weights, self.dropped)


def paired_rows(
    y_true: Any, named: dict[str, Any], sample_weight: Any, missing: Missing, pos_label: Any
) -> PairedRows:
    """Return the complete rows in an order that their own order does not decide."""
    return complete_rows(y_true, named, sample_weight, missing, pos_label).in_order()


def complete_rows(
    y_true: Any, named: dict[str, Any], sample_weight: Any, missing: Missing, pos_label: Any
) -> PairedRows:
    """Return the rows that are complete for every model and weigh something; count those that are not."""
    for name, p in named.items():
        names = Names(prediction=f"model {name!r}")
        checked = check_records(y_true, p, sample_weight, missing, names, pos_label=pos_label)
        warn_if_swapped(checked, names, y_true, p)
    first, *others = named
    for name in others:
        check_aligned(named[name], row_labels(named[first]), (f"model {name!r}", f"model {first!r}"))
    y = outcomes_of(y_true, "y_true", pos_label).astype(np.float64)
    w = None if sample_weight is None else numeric_vector(sample_weight, "sample_weight").astype(np.float64)
    models = {
        name: positive_column(p, name, y_true, pos_label).astype(np.float64) for name, p in named.items()
    }
    paired = PairedRows(y, models, w, 0)
    absent = missing_rows(y, w, *paired.models.values())
    if absent is not None:
        if absent.all():
            rule = "must have a row without a missing value in any of them"
            raise InvalidInputError(sentence("models", rule, f"got {len(y):,}, none complete"))
        paired = replace(paired.take(~absent), dropped=int(np.count_nonzero(absent)))
    if paired.weights is not None:
        paired = paired.take(paired.weights > 0)
    return paired
