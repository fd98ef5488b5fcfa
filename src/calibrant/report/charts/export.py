"""Charts as files for papers and slides: SVG, PDF or PNG, with or without title and caption."""

from __future__ import annotations

from pathlib import Path

from calibrant.errors import InvalidInputError, MissingDependencyError, sentence
from calibrant.report.charts.notebook import Chart

FORMATS = (".svg", ".pdf", ".png")


def without_text(chart: Chart, *, title: bool = False, caption: bool = False) -> Chart:
    """Return the chart without its title, its caption, or both: papers have their own."""
    kept = chart.copy(deep=False)
    words = kept.title.copy()
    if not caption:
        words.subtitle = []
    if not title:
        words.text = ""
    kept.title = words
    return kept


def image_of(chart: Chart, suffix: str) -> bytes:
    """Return the bytes of the chart in the format that a file name's suffix asks for."""
    try:
        import vl_convert
    except ImportError:
        hint = "pip install 'calibrant[report]'"
        raise MissingDependencyError(
            sentence("a chart as a file", "needs the package vl-convert-python", hint=hint)
        ) from None
    spec = chart.to_json(validate=False)
    if suffix == ".svg":
        return vl_convert.vegalite_to_svg(spec).encode()
    if suffix == ".pdf":
        return vl_convert.vegalite_to_pdf(spec)
    return vl_convert.vegalite_to_png(spec, scale=2)


def chart_target(text: str) -> tuple[str, Path]:
    """Take ``reliability=figure.svg`` apart, and refuse a format that does not exist."""
    name, _, path = text.partition("=")
    if not path:
        raise InvalidInputError(
            sentence("--chart", "must be NAME=FILE", f"got {text!r}", "for example reliability=figure.svg")
        )
    if Path(path).suffix.lower() not in FORMATS:
        raise InvalidInputError(
            sentence("--chart", f"must name a {', '.join(FORMATS)} file", f"got {path!r}")
        )
    return name, Path(path)
