"""evaluate: findings that can draw themselves, as charts and as one HTML page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibrant.disk import check_target, write_whole
from calibrant.evaluation.evaluate import find
from calibrant.evaluation.facts import facts_sentence
from calibrant.evaluation.findings import Findings, headline
from calibrant.evaluation.row_tests import why_rows_differ
from calibrant.evaluation.sheets import measure_sheet
from calibrant.records import Missing
from calibrant.sheets import paragraphs


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Evaluation(Findings):
    """How far from calibrated, whether that is real, where, for whom and at what cost.

    Print it for a table; `to_html` writes the report, `to_dict` the versioned JSON, `charts` the pictures.
    """

    @property
    def charts(self) -> Mapping[str, Any]:
        """The Altair charts by name; each can be shown in a notebook or saved on its own."""
        from calibrant.evaluation.group_differences import group_differences
        from calibrant.evaluation.proposal import propose
        from calibrant.report.charts.all import charts

        return charts(self, propose(self.forecasts, seed=self.seed), group_differences(self))

    def _repr_html_(self) -> str:
        following = f"What next: {self.verdict.next_step}"
        lines = (self.title, headline(self.verdict), following, facts_sentence(self.facts))
        groups = "" if self.audit is None else self.audit._repr_html_()
        table = measure_sheet(self.rows, self.confidence).as_html()
        return paragraphs(*lines) + table + paragraphs(why_rows_differ(self.verdict, self.rows)) + groups

    def to_html(self, path: str | Path) -> Path:
        """Write the report, one file complete in itself, and return its path."""
        from calibrant.report.page import page

        check_target(path)
        return write_whole(path, page(self))


def evaluate(
    y_true: Any,
    y_prob: Any = None,
    *,
    sample_weight: Any = None,
    groups: Any = None,
    ids: Any = None,
    measures: Sequence[str] | None = None,
    confidence: float = 0.95,
    draws: int = 199,
    seed: int | None = None,
    missing: Missing = "error",
    pos_label: Any = None,
    outcome: str | None = None,
    prediction: str | None = None,
    weight: str | None = None,
    title: str = "Calibration report",
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
        Simulations, and the seed of everything random, which is drawn and recorded when it is not given.
    missing
        Refuse rows with a missing value ("error"), or leave them out and count them ("drop").
    title
        Of the report.
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
    return find(
        Evaluation,
        y_true,
        y_prob,
        sample_weight=sample_weight,
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
        progress=progress,
    )
