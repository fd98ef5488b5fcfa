"""Do the groups differ from each other, and is there a trend: what the report says beside the audit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calibrant.groups.coding import code_columns
from calibrant.groups.compare_groups import PAIRED, compare_column
from calibrant.groups.subpopulations import as_masks
from calibrant.records import Checked

if TYPE_CHECKING:
    from calibrant.evaluation.findings import Findings
    from calibrant.groups.group_comparison import GroupComparison
    from calibrant.records import Records

MOST_EXACT = 200_000  # records: a report should not take minutes
MOST_DRAWS = 999


def group_differences(findings: Findings) -> tuple[GroupComparison, ...]:
    """Compare the values of every column of groups that has 2 to 30 of them; masks are no columns."""
    if findings.groups is None or findings.audit is None or findings.forecasts.cells is not None:
        return ()
    records: Records = findings.forecasts.records
    if as_masks(findings.groups, records.length, records.labels) is not None:
        return ()
    coded = code_columns(findings.groups, records.length, "groups", labels=records.labels)
    columns = [column.known_from(records.rows).take(records.rows) for column in coded]
    checked = _checked(records)
    exact = checked.binary and checked.weight is None and len(checked) <= MOST_EXACT
    return tuple(
        compare_column(
            column,
            checked,
            exact,
            not column.nominal,
            findings.confidence or 0.95,
            MOST_DRAWS,
            findings.seed,
            MOST_EXACT,
        )
        for column in columns
        if 2 <= len(column.labels) <= PAIRED
    )


def _checked(records: Records) -> Checked:
    """Return the records as checked rows, in their own order."""
    return Checked(
        records.outcome,
        records.prediction,
        records.weight if records.weighted else None,
        records.largest,
        None,
        len(records),
        records.dropped,
    )
