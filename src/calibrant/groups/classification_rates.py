"""Error rates by group at a threshold: who is selected, who is missed, who is selected wrongly."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.columns import named_columns
from calibrant.forecasts import Forecasts
from calibrant.formatting import percent
from calibrant.groups.audit_result import Group
from calibrant.groups.rules import Rule, single_column, written_labels
from calibrant.groups.statistics import ROWS
from calibrant.inference.group_interval import wilson_interval
from calibrant.inputs import closed_share
from calibrant.metrics.calling import shares_parameters
from calibrant.records import Missing, check_records
from calibrant.results import Result, Table, frame_of, number_cell, text_cell

Z = 1.959964
MIN_SELECTED = 0.05  # share above 1/2 below which the base rate is the threshold
TRADE_OFF = (
    "Calibration and error rates cannot both be equal across groups unless their base rates are equal or the "
    "predictions are perfect (Kleinberg, Mullainathan & Raghavan 2016; Chouldechova 2017)."
)


@dataclass(frozen=True, slots=True)
class Rate(Result):
    """A share of `of` records with its 95% interval; nan without such records."""

    value: float
    lower: float
    upper: float
    of: int

    def __str__(self) -> str:
        if self.of == 0:
            return "–"
        return f"{percent(self.value)} ({percent(self.lower)} to {percent(self.upper)})"


@dataclass(frozen=True, slots=True)
class GroupErrorRates(Result):
    """One group: share selected, false positive rate (among non-events), false negative rate (events)."""

    name: str
    n: int
    selected: Rate
    false_positive: Rate
    false_negative: Rate


@dataclass(frozen=True, slots=True)
class ErrorRates(Result):
    """Error rates of every group of one column, where records at or above `threshold` are selected."""

    column: str
    threshold: float
    groups: tuple[GroupErrorRates, ...]
    n: int
    dropped: int

    def __str__(self) -> str:
        worst = max(self.groups, key=lambda g: g.false_negative.value if g.false_negative.of else -1.0)
        missed = "no group has an event that could be missed"
        if worst.false_negative.of:
            missed = f"{worst.name} misses the most events: {worst.false_negative}"
        return f"At a threshold of {self.threshold:g}, {missed}. {TRADE_OFF}"

    def sheet(self) -> Table:
        """Return the table of the groups."""
        columns = (self.column, "records", "selected", "false positive rate", "false negative rate")
        lines = []
        for group in self.groups:
            rates = (group.selected, group.false_positive, group.false_negative)
            cells = (number_cell(rate.value, str(rate)) for rate in rates)
            lines.append((text_cell(group.name), number_cell(group.n, f"{group.n:,}"), *cells))
        return Table(columns, tuple(lines))

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return a frame ("pandas", "polars" or "pyarrow") with one row per group."""
        columns: dict[str, list[Any]] = {
            "group": [group.name for group in self.groups],
            "n": [group.n for group in self.groups],
        }
        for name in ("selected", "false_positive", "false_negative"):
            rates = [getattr(group, name) for group in self.groups]
            columns[name] = [rate.value for rate in rates]
            columns[f"{name}_lower"] = [rate.lower for rate in rates]
            columns[f"{name}_upper"] = [rate.upper for rate in rates]
        return frame_of(columns, backend)


@shares_parameters(ROWS)
def error_rates(
    y_true: Any,
    y_prob: Any,
    groups: Any,
    *,
    threshold: float = 0.5,
    sample_weight: Any = None,
    missing: Missing = "error",
    pos_label: Any = None,
) -> ErrorRates:
    """Return the share selected, false positive rate and false negative rate of each group.

    Parameters
    ----------
    groups
        One label per row, or one named column.
    threshold
        Records with this prediction or a higher one are selected.
    pos_label
        The label that counts as 1.

    Examples
    --------
    >>> found = error_rates([0, 1, 0, 1], [0.2, 0.7, 0.6, 0.4], ["a", "a", "b", "b"])
    >>> [(g.name, g.selected.value, g.false_positive.value, g.false_negative.value) for g in found.groups]
    [('a', 0.5, 0.0, 0.0), ('b', 0.5, 1.0, 1.0)]
    """
    closed_share("threshold", threshold)
    checked = check_records(y_true, y_prob, sample_weight, missing, kind="labels", pos_label=pos_label)
    column = single_column("groups", groups, checked, "audit takes several columns and their combinations")
    weight = np.ones(len(checked)) if checked.weight is None else checked.weight / checked.weight.max()
    members = ((name, column.codes == code) for code, name in enumerate(written_labels(column)))
    found = _rates(members, checked.outcome > 0, checked.prediction >= threshold, weight)
    return ErrorRates(column.name, float(threshold), found, len(checked), checked.dropped)


def audited_error_rates(
    forecasts: Forecasts, groups: Any, audited: Sequence[Group], threshold: float | None = None
) -> ErrorRates | None:
    """Return the error rates of groups of an audit of rows; None without rows or outcomes of 0 and 1."""
    if groups is None or forecasts.cells is not None or not forecasts.binary:
        return None
    if threshold is None:  # the base rate where hardly any prediction exceeds 0.5
        many = float(forecasts.weights[forecasts.values > 0.5].sum()) >= MIN_SELECTED
        threshold = 0.5 if many else float(f"{forecasts.base_rate:.2g}")
    records, columns = forecasts.records, dict(named_columns(groups, "groups"))

    def inside(rule: Rule) -> npt.NDArray[np.bool_]:
        used = {condition.column: columns[condition.column] for condition in rule.conditions}
        return rule.members(used)[records.rows] if used else np.ones(len(records), dtype=bool)

    members = ((str(group.rule), inside(group.rule)) for group in audited)
    chosen, weight = records.prediction >= threshold, np.asarray(records.weight)
    found = _rates(members, np.asarray(records.outcome) > 0, chosen, weight / weight.max())
    return ErrorRates("group", float(threshold), found, len(records), records.dropped)


def _rates(
    members: Iterable[tuple[str, npt.NDArray[np.bool_]]],
    event: npt.NDArray[np.bool_],
    chosen: npt.NDArray[np.bool_],
    weight: npt.NDArray[np.float64],
) -> tuple[GroupErrorRates, ...]:
    def rate(hit: npt.NDArray[np.bool_], inside: npt.NDArray[np.bool_]) -> Rate:
        """Return the share of hits, with Wilson's interval at the effective number of records."""
        mass = weight[inside]
        if len(mass) == 0:
            return Rate(float("nan"), float("nan"), float("nan"), 0)
        share = mass @ hit[inside] / mass.sum()
        low, high = wilson_interval(share, mass.sum() ** 2 / (mass @ mass), Z)
        return Rate(float(share), float(low), float(high), len(mass))

    return tuple(
        GroupErrorRates(
            name,
            int(np.count_nonzero(inside)),
            rate(chosen, inside),
            rate(chosen, inside & ~event),
            rate(~chosen, inside & event),
        )
        for name, inside in members
    )
