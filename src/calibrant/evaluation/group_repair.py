"""For whom, after the fix: what a shift per group would do to every group, on held-out records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.errors import CalibrantError
from calibrant.groups.coding import code_columns
from calibrant.recalibration.assess import Assessment
from calibrant.recalibration.columns import columns_of
from calibrant.recalibration.for_whom import ForWhom, smallest_judged
from calibrant.recalibration.recalibrate import fit_sample
from calibrant.recalibration.samples import Rows, rows_of
from calibrant.recalibration.table import find_method

if TYPE_CHECKING:
    from calibrant.evaluation.findings import Findings
    from calibrant.records import Records

METHOD = "hierarchical"
MOST_RECORDS = 60_000  # on all of which the repair is tried, in about three seconds; a million take a minute
SAMPLED = 20_000  # of more records so many are tried, so that the report of a large file stays quick
MOST_VALUES = 300  # of all group columns together
MERGED = "the rows behind these forecasts are not known any more"
FRACTIONS = "outcomes are fractions, and audits by group need 0 or 1"


@dataclass(frozen=True, slots=True, eq=False)
class GroupRepair:
    """A repair by the groups that were named: its assessment, and the audits before and after."""

    assessment: Assessment
    whom: ForWhom
    shifts: tuple[dict[str, Any], ...]
    tried_on: int  # records,
    of: int  # so many
    columns: tuple[str, ...]  # of groups
    drawn: int  # data sets simulated by the audit of the evaluation

    @property
    def sampled(self) -> bool:
        """Whether only some of the records were tried."""
        return self.tried_on < self.of

    @property
    def draws(self) -> int | None:
        """How many data sets the audits of the repair simulated, where that of the evaluation had others."""
        draws = self.whom.before.draws
        return None if draws == self.drawn else draws

    @property
    def smallest(self) -> int:
        """How many records a group needs for its gain to be judged."""
        return smallest_judged(self.tried_on)


def group_repair(findings: Findings) -> GroupRepair | str | None:
    """Try a repair by the groups of an evaluation; the reason as text where it cannot be, None without."""
    if findings.audit is None:
        return None
    if findings.groups is None or findings.forecasts.cells is not None:
        return MERGED
    if not findings.forecasts.binary:
        return FRACTIONS
    try:
        return _tried(_sample(findings), findings)
    except CalibrantError as reason:
        return str(reason)


def _tried(sample: Rows, findings: Findings) -> GroupRepair | str:
    values = sum(len(np.unique(column.astype(str))) for column in (sample.covariates or {}).values())
    if values > MOST_VALUES:
        return f"the groups have {values:,} values, and the report tries at most {MOST_VALUES}"
    fitted = fit_sample(sample, find_method(METHOD), {}, seed=findings.seed)
    result = fitted.assessment
    if result is None or result.for_whom is None:
        return fitted.why_not_assessed
    return GroupRepair(
        result,
        result.for_whom,
        tuple(fitted.details["shifts"]),
        sample.n,
        len(findings.forecasts.records),
        tuple(sample.covariates or ()),
        findings.draws,
    )


def _sample(findings: Findings) -> Rows:
    """Return the records with the columns of groups; a random part of them where they are many."""
    records: Records = findings.forecasts.records
    columns = columns_of(findings.groups, records.length, "groups")
    if len(records) > MOST_RECORDS:
        coded = code_columns(findings.groups, records.length, "groups")
        records = records.refined([column.codes for column in coded])  # so that row order draws nobody
        drawn = np.random.default_rng(findings.seed).choice(len(records), SAMPLED, replace=False)
        records = records.take(np.sort(drawn).astype(np.int32))
    return rows_of(
        records.outcome,
        records.prediction,
        np.array(records.weight),
        covariates={name: column[records.rows] for name, column in columns.items()},
        groups=tuple(columns),
    )
