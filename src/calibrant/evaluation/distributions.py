"""Evaluate forecast distributions: one verdict in words, tables, groups, charts and a page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from calibrant.distributions.forms import FORECAST, ForecastRows, Members
from calibrant.distributions.tables import QuantileTable, ThresholdTable, quantiles_of, thresholds_of
from calibrant.distributions.uniformity import Pit, pit
from calibrant.errors import InvalidInputError
from calibrant.files import atomic_write, check_target
from calibrant.formatting import dropped_note, format_value, percent, pluralize
from calibrant.groups.audit import audit
from calibrant.groups.audit_result import Audit, group_table
from calibrant.metrics.calling import shares_parameters
from calibrant.records import Missing
from calibrant.results import Result, Table

NEXT_STEPS = {
    "too narrow": "Widen the forecasts, or recalibrate them on recent outcomes.",
    "too wide": "Sharpen the forecasts, or recalibrate them on recent outcomes.",
    "biased": "Correct the bias before anything else.",
    "not uniform": "Look at the histogram below for the part that is wrong.",
    "fine": "Nothing to repair here; look at the groups below.",
}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DistributionEvaluation(Result):
    """How calibrated forecast distributions are: by PIT, by quantile, by threshold and by group.

    `crps` is the mean continuous ranked probability score, `fair_crps` that of an ensemble without the
    reward for being too narrow; None where the forecasts do not determine it. `bias_by_group` audits the
    share of outcomes below the forecast median, `width_by_group` the share in the middle half.
    """

    DERIVED: ClassVar = ("sentence", "status")

    form: str
    pit: Pit
    quantiles: QuantileTable | None
    thresholds: ThresholdTable
    crps: float | None
    fair_crps: float | None
    bias_by_group: Audit | None
    width_by_group: Audit | None
    n: int
    dropped: int
    draws: int
    seed: int
    title: str
    subtitle: str = ""

    @property
    def status(self) -> str:
        """One of "too narrow", "too wide", "biased", "not uniform" or "fine"."""
        return self.pit.status

    @property
    def verdict(self) -> str:
        """What is wrong and for whom, in words."""
        parts = [self.pit.verdict]
        audits = (self.bias_by_group, "below the median"), (self.width_by_group, "in the middle half")
        for found, what in audits:
            wrong = [] if found is None else [g for g in found.significant() if g.name != "everyone"]
            if wrong:
                worst = wrong[0]
                parts.append(
                    f"Off for {pluralize(len(wrong), 'group')} by the share {what}; most for {worst.rule}: "
                    f"{percent(worst.mean_outcome)} of {pluralize(worst.size, 'outcome')}."
                )
        return " ".join(parts)

    sentence = verdict  # of the JSON

    def __str__(self) -> str:
        score = "" if self.crps is None else f" CRPS {format_value(self.crps)}."
        quantiles = "" if self.quantiles is None else f" {self.quantiles}"
        return f"{self.verdict}{score}{quantiles} {self.thresholds}"

    def tables(self) -> tuple[Table, ...]:
        parts = (self.pit, self.quantiles, self.thresholds)
        return tuple(part.sheet() for part in parts if part is not None)

    @property
    def charts(self) -> Mapping[str, Any]:
        """The Altair charts by name: pit, quantiles, thresholds, groups."""
        from calibrant.report.charts.canvas import as_charts

        return as_charts(self._specifications())

    def _specifications(self) -> dict[str, Any]:
        from calibrant.report.charts.distributions import pit_histogram, quantile_coverage, threshold_curve
        from calibrant.report.charts.groups import forest

        drawn = {"pit": pit_histogram.spec(self.pit), "thresholds": threshold_curve.spec(self.thresholds)}
        if self.quantiles is not None:
            drawn["quantiles"] = quantile_coverage.spec(self.quantiles)
        audits = {"bias": self.bias_by_group, "width": self.width_by_group}
        return drawn | {name: forest.spec(found) for name, found in audits.items() if found is not None}

    def to_html(self, path: str | Path) -> Path:
        """Write the report, one file complete in itself, and return its path."""
        from calibrant.report.rendering import GROUPS_SHOWN, Overview, PageVerdict, Section, rendered

        check_target(path)
        parts: list[Section] = []

        def add(name: str, question: str, text: str, table: Table) -> None:
            figures = () if name == "pit" else (name,)  # which is at the top of the page
            parts.append(Section(name, question, (text,), figures, (table,), folded=True, half=True))

        def add_audit(name: str, question: str, audited: Audit | None, what: str) -> None:
            if audited is not None:
                text = f"Outcomes {what}: 50% are predicted for every group. {audited.verdict}"
                add(name, question, text, group_table(audited.by_error()[:GROUPS_SHOWN]))

        add("pit", "Where do outcomes fall in their forecasts?", str(self.pit), self.pit.sheet())
        if self.quantiles is not None:
            add("quantiles", "Do quantiles hold?", str(self.quantiles), self.quantiles.sheet())
        score = "" if self.crps is None else f"CRPS {format_value(self.crps)}. "
        text = f"{score}{self.thresholds}"
        add("thresholds", "Is each threshold calibrated?", text, self.thresholds.sheet())
        question, what = "For whom are forecasts too high or too low?", "up to the forecast median"
        add_audit("bias", question, self.bias_by_group, what)
        question, what = "For whom are they too narrow or too wide?", "in the middle half of the forecast"
        add_audit("width", question, self.width_by_group, what)
        table = (self.quantiles or self.pit).sheet()
        lead, more, rest = self.verdict.partition("). ")  # after the p-value, where the first sentence ends
        facts = f"{pluralize(self.n, 'outcome')}{dropped_note(self.dropped)}; forecasts given as {self.form}"
        page = rendered(
            title=self.title,
            subtitle=self.subtitle,
            verdict=PageVerdict(f"{lead})." if more else lead, rest, NEXT_STEPS[self.status]),
            tone="good" if self.status == "fine" else "bad",
            facts=facts,
            overview=Overview(("pit",), (("", table.without("score")),)),
            parts=parts,
            drawn=self._specifications(),
            numbers=self.to_dict(),
        )
        return atomic_write(path, page)


@shares_parameters(FORECAST)
def evaluate_distributions(
    y_true: Any,
    forecast: Any,
    *,
    levels: Any = None,
    thresholds: Any = None,
    at: Any = None,
    weights: Any = None,
    groups: Any = None,
    clusters: Any = None,
    missing: Missing = "error",
    draws: int = 999,
    seed: int | None = 0,
    title: str = "Calibration of forecast distributions",
    subtitle: str = "",
) -> DistributionEvaluation:
    """Evaluate forecast distributions: too narrow, too wide, biased or fine, and for whom.

    Parameters
    ----------
    at, weights
        Thresholds to measure calibration at, fixed beforehand, and their weights, as in `threshold_table`.
    groups
        Columns whose values are groups, or a mapping of names to masks; adds audits of bias and width.
    clusters
        Labels of rows that belong together, for the tests of uniformity.
    title, subtitle
        Of the report.

    Examples
    --------
    >>> from scipy.stats import norm
    >>> y = norm.rvs(size=500, random_state=1)
    >>> [evaluate_distributions(y, norm(0, width)).status for width in (0.5, 1)]
    ['too narrow', 'fine']
    """
    given = ForecastRows.of(y_true, forecast, levels, thresholds, missing, draws, seed)
    y, form = given.y, given.form
    if given.dropped and groups is not None:
        rule, hint = 'must be "error" with groups', "leave rows with a missing value out first"
        raise InvalidInputError("missing", rule, hint=hint)
    how: dict[str, Any] = {"draws": given.draws, "seed": given.seed}
    found = pit(
        y_true, forecast, levels=levels, thresholds=thresholds, clusters=clusters, missing=missing, **how
    )
    fair = form.crps(y, fair=True) if isinstance(form, Members) else None
    crps, fair_crps = (None if one is None else float(np.mean(one)) for one in (form.crps(y), fair))
    bias: Audit | None = None
    width: Audit | None = None
    if groups is not None:
        half, how["draws"] = np.full(len(y), 0.5), min(given.draws, 199)
        bias = audit(found.values <= 0.5, half, groups=groups, **how)
        width = audit(np.abs(found.values - 0.5) <= 0.25, half, groups=groups, **how)
    ranks = found.values if isinstance(form, Members) else None
    quantiles = quantiles_of(given, ranks=ranks) if len(form.levels) else None
    by_threshold = thresholds_of(given, thresholds if at is None else at, weights)
    return DistributionEvaluation(
        form.name, found, quantiles, by_threshold, crps, fair_crps, bias, width, *given.facts, title, subtitle
    )
