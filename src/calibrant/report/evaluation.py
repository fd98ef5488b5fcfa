"""evaluate: findings that can draw themselves, as charts and as one HTML page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from calibrant.disk import check_target, write_whole
from calibrant.evaluation.evaluate import find
from calibrant.evaluation.facts import facts_sentence
from calibrant.evaluation.findings import Findings, headline
from calibrant.evaluation.sheets import measure_sheet
from calibrant.records import Missing


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Evaluation(Findings):
    """How far from calibrated, whether that is real, where, for whom and at what cost.

    Print it for a table; `to_html` writes the report, `to_dict` the versioned JSON, `charts` the pictures.
    """

    @property
    def charts(self) -> Mapping[str, Any]:
        """The Altair charts by name; each can be shown in a notebook or saved on its own."""
        from calibrant.report.charts.all import charts

        return charts(self)

    def _repr_html_(self) -> str:
        lines = (self.title, headline(self.verdict), facts_sentence(self.facts))
        return (
            "".join(f"<p>{escape(line)}</p>" for line in lines)
            + measure_sheet(self.rows, self.confidence).as_html()
        )

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
    measures: Sequence[str] | None = None,
    confidence: float = 0.95,
    draws: int = 199,
    seed: int | None = None,
    missing: Missing = "error",
    title: str = "Calibration report",
    progress: Callable[[float], object] | None = None,
) -> Evaluation:
    """Evaluate predictions: pass outcomes and predictions, or Forecasts alone.

    `groups` (a mapping of names to boolean masks, or columns whose values are groups) adds an audit of them.
    `measures` names the rows to show; by default the headline rows of the registry. `confidence` is that of
    the intervals, 0 for none. Everything random comes from `seed`, which is drawn and recorded when it is
    not given. `progress` is called with the share of the work that is done.
    """
    return find(
        Evaluation,
        y_true,
        y_prob,
        sample_weight=sample_weight,
        groups=groups,
        measures=measures,
        confidence=confidence,
        draws=draws,
        seed=seed,
        missing=missing,
        title=title,
        progress=progress,
    )
