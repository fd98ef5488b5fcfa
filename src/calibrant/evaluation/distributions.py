"""Evaluate forecast distributions: one verdict in words, tables, groups, charts and a page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from calibrant.distributions.forms import ALPHA, FORECAST, ForecastRows, Members
from calibrant.distributions.tables import QuantileTable, quantiles_of
from calibrant.distributions.thresholds import ThresholdTable, thresholds_of
from calibrant.distributions.uniformity import Pit, pit_of
from calibrant.errors import InvalidInputError
from calibrant.evaluation.tables import leading_groups
from calibrant.files import atomic_write, check_target
from calibrant.formatting import dropped_note, format_value, percent, pluralize
from calibrant.groups.audit import audit, group_codes
from calibrant.groups.audit_result import Audit, group_table
from calibrant.metrics.calling import shares_parameters
from calibrant.parallel import DRAWS
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
    reward for being too narrow; None where the forecasts do not determine it, and of quantiles twice their
    mean score, which approximates it. `bias_by_group` audits the
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
        for what, found in self._audits.items():
            wrong = [group for group in found.significant(ALPHA / 2) if group.name != "everyone"]
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

    @property
    def _audits(self) -> dict[str, Audit]:
        """The audits by the share that they look at."""
        audits = {"below the median": self.bias_by_group, "in the middle half": self.width_by_group}
        return {what: found for what, found in audits.items() if found is not None}

    def tables(self) -> tuple[Table, ...]:
        parts = (self.pit, self.quantiles, self.thresholds)
        found = [part.sheet() for part in parts if part is not None]
        for what, audited in self._audits.items():
            groups = group_table(leading_groups(audited))
            found.append(replace(groups, columns=(what, *groups.columns[1:])))
        return tuple(found)

    @property
    def charts(self) -> Mapping[str, Any]:
        """The Altair charts by name: pit, quantiles, thresholds, bias, width."""
        from calibrant.report.charts.canvas import as_charts

        return as_charts(self._specifications())

    def _specifications(self) -> dict[str, Any]:
        from calibrant.report.charts.distributions import curve_of_tests, pit_histogram
        from calibrant.report.charts.groups import forest

        drawn = {"pit": pit_histogram.spec(self.pit), "thresholds": curve_of_tests.spec(self.thresholds)}
        if self.quantiles is not None:
            drawn["quantiles"] = curve_of_tests.spec(self.quantiles)
        audits = {"bias": self.bias_by_group, "width": self.width_by_group}
        return drawn | {name: forest.spec(found) for name, found in audits.items() if found is not None}

    def to_html(self, path: str | Path) -> Path:
        """Write the report, one file complete in itself, and return its path."""
        from calibrant.report.rendering import GROUPS_SHOWN, Overview, PageVerdict, Section, rendered

        check_target(path)
        score = "" if self.crps is None else f"CRPS {format_value(self.crps)}. "
        found: dict[str, tuple[Any, str, str]] = {
            "pit": (self.pit, "Where do outcomes fall in their forecasts?", ""),
            "quantiles": (self.quantiles, "Do quantiles hold?", ""),
            "thresholds": (self.thresholds, "Is each threshold calibrated?", score),
            "bias": (
                self.bias_by_group, "For whom are forecasts too high or too low?",
                "Outcomes up to the forecast median: 50% are predicted for every group. ",
            ),
            "width": (
                self.width_by_group, "For whom are they too narrow or too wide?",
                "Outcomes in the middle half of the forecast: 50% are predicted for every group. ",
            ),
        }  # fmt: skip
        parts = []
        for name, (part, question, lead) in found.items():
            if isinstance(part, Audit):
                text, table = part.verdict, group_table(part.by_error()[:GROUPS_SHOWN])
            elif part is not None:
                text, table = str(part), part.sheet()
            else:
                continue
            figures = () if name == "pit" else (name,)  # which is at the top of the page
            parts.append(Section(name, question, (lead + text,), figures, (table,), folded=True, half=True))
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
    draws: int = DRAWS,
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
        Labels of rows that belong together; tests and limits allow for it, and are approximate.
    title, subtitle
        Of the report.

    Examples
    --------
    >>> from scipy.stats import norm
    >>> y = norm.rvs(size=500, random_state=1)
    >>> [evaluate_distributions(y, norm(0, width)).status for width in (0.5, 1)]
    ['too narrow', 'fine']
    """
    given = ForecastRows.of(y_true, forecast, levels, thresholds, missing, draws, seed, clusters)
    y, form = given.y, given.form
    if given.dropped and groups is not None:
        rule, hint = 'must be "error" with groups', "leave rows with a missing value out first"
        raise InvalidInputError("missing", rule, hint=hint)
    found = pit_of(given, groups=[] if groups is None else group_codes(groups, len(y)))
    fair = form.crps(y, fair=True) if isinstance(form, Members) else None
    crps, fair_crps = (None if one is None else float(np.mean(one)) for one in (form.crps(y), fair))
    bias: Audit | None = None
    width: Audit | None = None
    if groups is not None:
        how: dict[str, Any] = {"groups": groups, "clusters": clusters, "seed": given.seed}
        half, how["draws"] = np.full(len(y), 0.5), min(given.draws, 199)
        bias = audit(found.values <= 0.5, half, **how)
        width = audit(np.abs(found.values - 0.5) <= 0.25, half, **how)
    quantiles = quantiles_of(given, ranks=found.values) if len(form.levels) else None
    by_threshold = thresholds_of(given, thresholds if at is None else at, weights)
    return DistributionEvaluation(
        form.name, found, quantiles, by_threshold, crps, fair_crps, bias, width, *given.facts, title, subtitle
    )
