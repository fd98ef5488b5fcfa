"""evaluate: findings that can draw themselves, as charts and as one HTML page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant.errors import InvalidInputError, sentence
from calibrant.evaluation.findings import Findings, compute_findings, details, more_groups
from calibrant.evaluation.tables import first_table, footnotes, leading_groups
from calibrant.evaluation.verdict import disagreement_note
from calibrant.files import atomic_write, check_target
from calibrant.formatting import pluralize
from calibrant.frames import resolve_inputs
from calibrant.groups.audit_result import group_table
from calibrant.metrics.calling import as_forecasts
from calibrant.records import Missing
from calibrant.results import html_paragraphs

if TYPE_CHECKING:
    from calibrant.report.charts.reliability import CurveName, ScaleName


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Evaluation(Findings):
    """How far from calibrated, whether that is real, where, for whom and at what cost.

    Print it for a table; `to_html` writes the report, `to_dict` the versioned JSON, `charts` the pictures.
    """

    @property
    def charts(self) -> Mapping[str, Any]:
        """The Altair charts by name; each can be shown in a notebook or saved on its own."""
        from calibrant.evaluation.repair_preview import group_differences, propose
        from calibrant.report.charts import charts

        return charts(self, propose(self.forecasts, seed=self.seed), group_differences(self))

    def _repr_html_(self) -> str:
        verdict = self.verdict
        shown = html_paragraphs(verdict.what, verdict.whom)
        shown += first_table(self.rows, self.confidence).as_html()
        if self.audit is not None:
            shown += group_table(leading_groups(self.audit)).as_html()
            shown += html_paragraphs(more_groups(self))
        notes = (*footnotes(self.rows), disagreement_note(verdict, self.rows), *details(self))
        return shown + html_paragraphs(f"Next: {verdict.next_step}", " ".join(filter(None, notes)))

    def to_html(self, path: str | Path) -> Path:
        """Write the report, one file complete in itself, and return its path."""
        from calibrant.report.page import page

        check_target(path)
        return atomic_write(path, page(self))


def evaluate(
    y_true: Any,
    y_prob: Any = None,
    *,
    sample_weight: Any = None,
    clusters: Any = None,
    groups: Any = None,
    ids: Any = None,
    measures: Sequence[str] | None = None,
    confidence: float = 0.95,
    draws: int = 199,
    seed: int | None = 0,
    missing: Missing = "error",
    pos_label: Any = None,
    outcome: str | None = None,
    prediction: str | None = None,
    weight: str | None = None,
    title: str = "Calibration report",
    subtitle: str = "",
    progress: Callable[[float], object] | None = None,
) -> Evaluation:
    """Evaluate predictions: how far from calibrated, is that real, where, for whom and at what cost?

    Parameters
    ----------
    y_true, y_prob, sample_weight
        Outcomes, predictions and weights; or Forecasts or a Sketch alone; or a frame with the names of its
        columns.
    outcome, prediction, weight
        Columns of the frame: any that narwhals knows (pandas, Polars, DuckDB, ...), or a mapping of names
        to arrays.
    clusters
        Labels of rows that belong together (patients of a hospital), or the name of their column: tests and
        intervals then allow for correlation within clusters.
    groups
        A mapping of names to boolean masks, or columns whose values are groups (a frame, a mapping, a named
        series, or names of columns of the frame); adds an audit of them. Those that a Sketch was made
        by are audited without being asked for, and names choose some of them.
    ids
        The point behind each record (a column or its name): records with equal features share one, and it
        has one prediction. Adds the distance to calibration itself, which predictions alone only bracket.
    pos_label
        The label that counts as 1, for outcomes that are text, categories or -1 and 1.
    measures
        Rows to show; by default the headline rows of the registry.
    confidence
        Of the intervals, 0 for none.
    draws, seed
        Simulations, and the seed of everything random; None draws a seed, and the result records it.
    missing
        Refuse rows with a missing value ("error"), or leave them out and count them ("drop").
    title, subtitle
        Heading of the report, and the line below it.
    progress
        Called with the share of the work that is done.

    Returns
    -------
    Evaluation

    Examples
    --------
    >>> frame = {"won": [0, 1, 1, 0] * 50, "chance": [0.2, 0.7, 0.6, 0.3] * 50, "team": ["a", "b"] * 100}
    >>> found = evaluate(frame, outcome="won", prediction="chance", groups=["team"], draws=19, seed=1)
    >>> sorted(group.rule for group in found.audit.groups)
    ['everyone', 'team = a', 'team = b']
    """
    if isinstance(y_prob, Mapping) and outcome is None:
        rule, hint = "must be one column of predictions", "compare(y_true, predictions) takes several models"
        raise InvalidInputError(sentence("y_prob", rule, f"got {pluralize(len(y_prob), 'column')}", hint))
    return compute_findings(
        Evaluation,
        y_true,
        y_prob,
        sample_weight=sample_weight,
        clusters=clusters,
        groups=groups,
        ids=ids,
        measures=measures,
        confidence=confidence,
        draws=draws,
        seed=seed,
        missing=missing,
        pos_label=pos_label,
        outcome=outcome,
        prediction=prediction,
        weight=weight,
        title=title,
        subtitle=subtitle,
        progress=progress,
    )


def reliability_diagram(
    y_true: Any,
    y_prob: Any = None,
    *,
    sample_weight: Any = None,
    curve: CurveName = "isotonic",
    scale: ScaleName = "auto",
    missing: Missing = "error",
    pos_label: Any = None,
    outcome: str | None = None,
    prediction: str | None = None,
    weight: str | None = None,
    seed: int = 0,
) -> Any:
    """Draw observed frequencies against predictions: a chart that a notebook shows and ``.save`` writes.

    Parameters
    ----------
    y_true, y_prob, sample_weight
        Outcomes, predictions and weights; or Forecasts alone; or a frame with the names of its columns.
    outcome, prediction, weight
        Columns of the frame.
    curve
        "isotonic" with the band of calibrated predictions (CORP), "spline" with its confidence band, as in
        clinical papers, or "smoothed" with a Gaussian kernel.
    scale
        "linear", or "logit" for rare events; "auto" chooses by the predictions.
    missing
        Refuse rows with a missing value ("error"), or leave them out ("drop").
    pos_label
        The label that counts as 1, for outcomes that are text, categories or -1 and 1.
    seed
        Seed of the simulated band.

    Returns
    -------
    altair.LayerChart
        ``.save("diagram.svg")`` writes SVG, PNG, PDF or HTML.

    Examples
    --------
    >>> chart = reliability_diagram([0, 0, 1, 1], [0.1, 0.4, 0.6, 0.9])
    >>> chart.title.text
    'Reliability diagram'
    """
    from calibrant.report.charts import reliability_diagram as draw

    given = resolve_inputs(
        y_true, y_prob, sample_weight, outcome=outcome, prediction=prediction, weight=weight
    )
    forecasts = as_forecasts(given.y_true, given.y_prob, given.sample_weight, missing, pos_label)
    return draw(forecasts, curve=curve, scale=scale, seed=seed)
