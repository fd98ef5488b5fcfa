"""Error rates by group at a threshold: how many are selected, and how often that is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.columns import named_columns
from calibrant.results import Table, number_cell, text_cell

if TYPE_CHECKING:
    from calibrant.evaluation.findings import Findings
    from calibrant.groups.audit_result import Group

MIN_SELECTED = 0.05  # share above 1/2 below which the base rate is the threshold


def usual_threshold(found: Findings) -> float:
    """Return 0.5, or the base rate rounded to two digits where hardly any prediction exceeds 0.5."""
    values, weights = found.forecasts.values, found.forecasts.weights
    if float(weights[values > 0.5].sum()) >= MIN_SELECTED:
        return 0.5
    return float(f"{found.facts.base_rate:.2g}")


def error_rate_table(found: Findings, groups: Sequence[Group], threshold: float) -> Table | None:
    """Return share selected, false positive and false negative rate per group; None without the rows."""
    if found.groups is None or found.forecasts.cells is not None or not found.forecasts.binary:
        return None
    records, columns = found.forecasts.records, dict(named_columns(found.groups, "groups"))
    outcome, weight = np.asarray(records.outcome) > 0, np.asarray(records.weight)
    selected = np.asarray(records.prediction) >= threshold
    lines = []
    for group in groups:
        used: dict[str, Any] = {one.column: columns[one.column] for one in group.rule.conditions}
        inside = group.rule.members(used)[records.rows] if used else np.ones(len(records), dtype=bool)
        mass = weight * inside
        rates = (
            _share(mass, selected),
            _share(mass * ~outcome, selected),
            _share(mass * outcome, ~selected),
        )
        cells = (number_cell(rate, "–" if rate is None else f"{100 * rate:.1f}%") for rate in rates)
        lines.append((text_cell(str(group.rule)), number_cell(group.size, f"{group.size:,}"), *cells))
    columns_shown = ("group", "records", "selected", "false positive rate", "false negative rate")
    return Table(columns_shown, tuple(lines))


def _share(mass: np.ndarray[Any, Any], chosen: np.ndarray[Any, Any]) -> float | None:
    total = float(mass.sum())
    return float(mass[chosen].sum()) / total if total > 0 else None
