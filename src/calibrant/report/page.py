"""The report: one HTML file, complete in itself, that answers the questions in order."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant.errors import MissingDependencyError, sentence
from calibrant.evaluation.facts import facts_sentence
from calibrant.evaluation.group_differences import group_differences
from calibrant.evaluation.group_repair import group_repair
from calibrant.evaluation.proposal import propose
from calibrant.report.charts.all import specifications
from calibrant.report.charts.layers import Spec
from calibrant.report.glossary import anchor, used
from calibrant.report.glossary import parts as pieces
from calibrant.report.palette import DARK, LIGHT, variables, with_variables
from calibrant.report.repair_sections import in_short
from calibrant.report.section import Section
from calibrant.report.sections import sections
from calibrant.report.vega import library

if TYPE_CHECKING:
    from calibrant.evaluation.findings import Findings

TONES = {
    "calibrated": "good",
    "miscalibrated": "bad",
    "groups": "bad",
    "too little data": "unknown",
    "untested": "unknown",
}
RAW = (
    "Verdict, measures, distances and the audit of groups, as JSON. What repairs would do is in that of "
    "calibrant recalibrate --json, how groups differ in that of calibrant compare --groups."
)
_TEMPLATE = Path(__file__).parent / "template"


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart as the page shows it: heading and caption in HTML, the drawing from its specification."""

    title: str
    caption: str
    wide: bool
    spec: Spec


@dataclass(frozen=True, slots=True)
class PageVerdict:
    """What the head of a page says."""

    lead: str
    sentence: str
    next_step: str


def page(evaluation: Findings) -> str:
    """Return the report as HTML; the same evaluation gives the same bytes."""
    proposal = propose(evaluation.forecasts, seed=evaluation.seed)
    differences, repaired = group_differences(evaluation), group_repair(evaluation)
    said = evaluation.verdict
    return rendered(
        title=evaluation.title,
        verdict=PageVerdict(said.lead, said.sentence, f"{said.next_step} {in_short(repaired)}".rstrip()),
        tone=TONES[said.status],
        facts=facts_sentence(evaluation.facts),
        parts=sections(evaluation, proposal, repaired, differences),
        drawn=specifications(evaluation, proposal, differences),
        numbers=evaluation.to_dict(),
        raw=RAW,
    )


def rendered(
    *,
    title: str,
    verdict: PageVerdict,
    tone: str,
    facts: str,
    parts: list[Section],
    drawn: Mapping[str, Spec],
    numbers: Mapping[str, Any],
    raw: str = "Everything above, as JSON.",
) -> str:
    """Return a page in the style of the report, from its sections, charts and numbers."""
    from calibrant import __version__

    environment = _environment()
    from markupsafe import Markup  # comes with jinja2

    figures = {name: _figure(spec) for name, spec in drawn.items()}
    return str(environment.get_template("page.html").render(
        title=title,
        version=__version__,
        verdict=verdict,
        tone=tone,
        facts=facts,
        raw=raw,
        sections=parts,
        figures=figures,
        words=used(_texts(parts)),
        pieces=pieces,
        anchor=anchor,
        light=Markup(variables(LIGHT)),
        dark=Markup(variables(DARK)),
        css=Markup(_part("page.css")),
        js=Markup(_part("page.js")),
        library=Markup(library()),
        numbers=Markup(script_json(numbers)),
        charts=Markup(script_json({name: figure.spec for name, figure in figures.items()})),
    ))  # fmt: skip


def _texts(parts: list[Section]) -> Iterator[str]:
    """Yield every text of the sections in which words may be linked."""
    for section in parts:
        yield from section.texts
        for sheet in section.sheets:
            yield from (cell.text for line in sheet.lines for cell in line if not cell.number)


def _environment() -> Any:
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    except ImportError:
        hint = "pip install 'calibrant[report]'"
        raise MissingDependencyError(sentence("the report", "needs the package jinja2", hint=hint)) from None
    return Environment(
        loader=FileSystemLoader(_TEMPLATE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _part(name: str) -> str:
    return (_TEMPLATE / name).read_text(encoding="utf-8")


def script_json(data: Any) -> str:
    r"""Return JSON that cannot end the script element around it, whatever text it holds.

    >>> script_json({"a": "</script>", "b": float("nan")})
    '{"a":"\\u003c/script\\u003e","b":null}'
    """
    code = json.dumps(_finite(data), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        code = code.replace(character, f"\\u{ord(character):04x}")
    return code


def _finite(item: Any) -> Any:
    """Replace what JSON cannot say (NaN, infinity) by null."""
    if isinstance(item, Mapping):
        return {str(key): _finite(value) for key, value in item.items()}
    if isinstance(item, (list, tuple)):
        return [_finite(value) for value in item]
    return None if isinstance(item, float) and not math.isfinite(item) else item


def _figure(given: Spec) -> Figure:
    """Move the title into the page and let the chart fill the width it is given."""
    title, wide = given["title"], bool(given["usermeta"]["wide"])
    kept = {name: item for name, item in given.items() if name not in ("title", "usermeta")}
    spec = {**kept, "width": "container", "autosize": {"type": "fit-x", "contains": "padding"}}
    return Figure(title["text"], " ".join(title["subtitle"]), wide, with_variables(spec))
