"""Rows that several models share: named, checked once, complete for every model, in one order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.censoring import Censored, content_order, reordered, spread_out
from calibrant.clusters import Clusters
from calibrant.columns import cluster_labels
from calibrant.errors import DROP_MISSING, InvalidInputError, reject_rows
from calibrant.formatting import pluralize
from calibrant.frames import frame_columns, resolve_inputs
from calibrant.inference.bootstrap import tallied, weighted_draws
from calibrant.inference.null import ClusterSummary
from calibrant.inputs import (
    InputNames,
    check_aligned,
    missing_rows,
    numeric_vector,
    outcomes_of,
    positive_column,
    row_labels,
)
from calibrant.records import Missing, check_records, warn_if_swapped
from calibrant.results import Array


def _named_models(predictions: tuple[Any, ...], names: list[str] | None, least: int) -> dict[str, Any]:
    named = _named_already(predictions[0]) if len(predictions) == 1 else None
    if named is not None and names is not None:
        rule = "must not be combined with a mapping or a frame, which names the models"
        raise InvalidInputError("names", rule, f"got {names}")
    if named is None:
        letters = [chr(ord("a") + k) if k < 26 else f"model {k + 1}" for k in range(len(predictions))]
        chosen = letters if names is None else list(names)
        if len(chosen) != len(predictions) or len(set(chosen)) != len(chosen):
            got = f"got {pluralize(len(chosen), 'name')} for {pluralize(len(predictions), 'model')}"
            raise InvalidInputError("names", "must be one different name per model", got)
        named = dict(zip(chosen, predictions, strict=True))
    if len(named) < least:
        if least == 1:
            raise InvalidInputError("predictions", "must be those of a model or more", "got none")
        hint = "one model is compared between groups of rows by compare_groups, or by --groups"
        raise InvalidInputError("compare", "needs two models or more", f"got {len(named)}", hint)
    return named


def _named_already(models: Any) -> dict[str, Any] | None:
    """Return the models of a mapping or of a frame; None if it is neither."""
    if isinstance(models, Mapping):
        return dict(models)
    import narwhals as nw

    table: Any = nw.from_native(models, pass_through=True)
    if not isinstance(table, nw.DataFrame | nw.LazyFrame):
        return None
    names = table.collect_schema().names()
    return dict(zip(names, frame_columns(models, names), strict=True))


class CensoredSample(NamedTuple):
    censoring: Censored  # the rows from which it was estimated, those without weight included
    places: npt.NDArray[np.intp]  # of the paired rows among them
    clusters: Clusters | None

    def in_order(self, keys: Sequence[Array]) -> tuple[npt.NDArray[np.intp], CensoredSample]:
        """Return the order of the paired rows, which have these keys, and all rows with those first."""
        y, places, clusters = self.censoring, self.places, self.clusters
        if clusters is not None:
            known = [spread_out(key, places, len(y)) for key in keys]
            clusters = clusters.by_content(*known, y.time, y.event, y.strata)
        order = content_order(y, places, keys, None if clusters is None else clusters.codes)
        position = np.empty(len(y), dtype=np.intp)
        position[places] = np.arange(len(places))
        ordered = None if clusters is None else clusters.take(order)
        sample = CensoredSample(reordered(y, order), np.arange(len(places)), ordered)
        return position[order[: len(places)]], sample


@dataclass(frozen=True, eq=False)
class PairedRows:
    outcomes: Array
    models: dict[str, Array]
    weights: Array | None
    dropped: int
    clusters: Clusters | None = None
    censored: CensoredSample | None = None

    @cached_property
    def mass(self) -> Array:
        """The weights, so that they sum to 1."""
        n = len(self.outcomes)
        return np.full(n, 1.0 / n) if self.weights is None else self.weights / self.weights.sum()

    @property
    def events_and_others(self) -> tuple[Array, Array]:
        return self.mass * self.outcomes, self.mass * (1 - self.outcomes)

    def in_order(self) -> PairedRows:
        """Order rows, and number clusters, by their contents: neither labels nor row order matter."""
        keys = [self.outcomes, *self.models.values(), *([] if self.weights is None else [self.weights])]
        clusters = None if self.clusters is None or self.clusters.all_single else self.clusters
        clusters = clusters and clusters.by_content(*keys)  # single rows need none from here on
        rows = replace(self, clusters=clusters)
        if self.censored is not None:
            order, sample = self.censored.in_order(keys)
            return replace(rows.take(order), censored=sample)
        return rows.take(np.lexsort(keys if clusters is None else [clusters.codes, *keys]))

    def cluster_summary(self) -> ClusterSummary | None:
        if self.clusters is None:
            return None
        w = np.ones(len(self.outcomes)) if self.weights is None else self.weights
        expected = np.mean(list(self.models.values()), axis=0)
        return ClusterSummary.of_rows(self.clusters, self.outcomes, expected, w)

    def draw(self, generator: np.random.Generator, rows: int) -> tuple[Array, Array]:
        """Draw how often each row occurs in each resample, and the weight of one occurrence."""
        places = np.arange(len(self.outcomes))
        censoring, places, clusters = self.censored or (None, places, self.clusters)
        length = len(places if censoring is None else censoring)
        number = length if clusters is None else clusters.number
        drawn = tallied(generator.integers(0, number, size=(rows, number)), number)
        drawn = drawn if clusters is None else drawn[:, clusters.codes]
        return weighted_draws(censoring, places, self.weights, drawn)

    def take(self, rows: npt.NDArray[Any]) -> PairedRows:
        weights = None if self.weights is None else self.weights[rows]
        models = {name: p[rows] for name, p in self.models.items()}
        clusters = None if self.clusters is None else self.clusters.take(rows)
        censored = self.censored and self.censored._replace(places=self.censored.places[rows])
        return PairedRows(self.outcomes[rows], models, weights, self.dropped, clusters, censored)


def complete_rows(
    y_true: Any,
    named: dict[str, Any],
    sample_weight: Any,
    missing: Missing,
    pos_label: Any,
    clusters: Any = None,
    subject: str = "model {!r}",
) -> PairedRows:
    """Return the rows that are complete for every model and weigh something; errors name `subject`."""
    censoring = y_true if isinstance(y_true, Censored) else None
    if censoring is not None:
        y_true, sample_weight = y_true.outcome_and_weight(sample_weight)
    for name, p in named.items():
        names = InputNames(prediction=subject.format(name))
        checked = check_records(y_true, p, sample_weight, missing, names, pos_label=pos_label)
        if name == next(iter(named)):  # once, not for every model
            warn_if_swapped(checked, names, y_true, p)
    first, *others = named
    for name in others:
        check_aligned(named[name], row_labels(named[first]), (subject.format(name), subject.format(first)))
    y = outcomes_of(y_true, "y_true", pos_label).astype(np.float64)
    w = None if sample_weight is None else numeric_vector(sample_weight, "sample_weight").astype(np.float64)
    models = {
        name: positive_column(p, name, y_true, pos_label).astype(np.float64) for name, p in named.items()
    }
    labels, absent = None, missing_rows(y, w, *models.values())
    if clusters is not None:
        labels, absent = labeled_clusters(clusters, absent, len(y), missing)
    sample = None
    if censoring is not None and censoring.censored:
        sample = CensoredSample(censoring, np.arange(len(y)), labels)
    paired = PairedRows(y, models, w, 0, labels, sample)
    if absent is not None:
        if absent.all():
            rule = "must have a row without a missing value in any of them"
            raise InvalidInputError("models", rule, f"got {len(y):,}, none complete")
        paired = replace(paired.take(~absent), dropped=int(np.count_nonzero(absent)))
    if paired.weights is not None:
        weights = paired.weights / paired.weights.max()  # powers of huge ones would overflow
        paired = replace(paired, weights=weights).take(weights > 0)
    return paired


def paired_models(
    y_true: Any,
    predictions: tuple[Any, ...],
    sample_weight: Any,
    clusters: Any,
    names: list[str] | None,
    columns: Mapping[str, Any],
    missing: Missing,
    pos_label: Any,
    least: int = 2,
) -> PairedRows:
    """Return the complete rows of `least` models or more, given one by one, by name or as columns."""
    if any(one is not None for one in columns.values()):
        chosen = columns["prediction"]
        chosen = [chosen] if isinstance(chosen, str) else chosen
        read: dict[str, Any] = {**columns, "prediction": chosen}
        given = resolve_inputs(y_true, predictions or None, sample_weight, clusters=clusters, **read)
        y_true, predictions, sample_weight = given.y_true, (given.y_prob,), given.sample_weight
        clusters = given.extra["clusters"]
    named = _named_models(predictions, names, least)
    return complete_rows(y_true, named, sample_weight, missing, pos_label, clusters)


def labeled_clusters(
    clusters: Any, absent: npt.NDArray[np.bool_] | None, rows: int, missing: Missing
) -> tuple[Clusters, npt.NDArray[np.bool_] | None]:
    """Return the clusters of the rows, and the rows to leave out: those without a label among them."""
    labels, gaps = cluster_labels(clusters, rows)
    if missing == "error":
        reject_rows("clusters", "must not be missing", labels, gaps, DROP_MISSING)
    name = next(iter(clusters)) if isinstance(clusters, Mapping) else getattr(clusters, "name", None)
    found = Clusters.of(labels[~gaps] if not gaps.all() else labels, str(name or "cluster"))
    if len(found.codes) < len(labels):  # rows that are left out count with the first cluster
        codes = np.zeros(len(labels), dtype=np.intp)
        codes[~gaps] = found.codes
        found = replace(found, codes=codes)
    return found, (gaps if absent is None else absent | gaps) if gaps.any() else absent
