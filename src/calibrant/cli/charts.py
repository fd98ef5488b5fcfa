"""Charts as files: the options --chart and --chart-text, and what they do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, TypeVar

import click

from calibrant.cli.options import files_read, refuse_typed
from calibrant.cli.showing import note
from calibrant.disk import check_target, write_whole
from calibrant.errors import reject_name

F = TypeVar("F", bound=Callable[..., Any])
TEXTS = ("none", "title", "caption", "both")


def charts_out(verb: F) -> F:
    """Add --chart and --chart-text."""
    for option in (
        click.option(
            "--chart-text",
            type=click.Choice(TEXTS),
            default="none",
            show_default=True,
            help="What a saved chart says of itself; papers have captions of their own.",
        ),
        click.option(
            "--chart",
            "charts",
            multiple=True,
            metavar="NAME=FILE",
            help="Save a chart as SVG, PDF or PNG, e.g. reliability=figure.pdf.",
        ),
    ):
        verb = option(verb)
    return verb


def check_chart_targets(charts: tuple[str, ...]) -> None:
    """Refuse targets that cannot be written before anything is measured."""
    if not charts:
        refuse_typed("needs --chart", "chart_text")
        return  # loading the charts takes its time
    from calibrant.report.charts.export import chart_target

    for text in charts:
        check_target(chart_target(text)[1], files_read())


def check_chart_names(drawn: Mapping[str, Any], charts: tuple[str, ...]) -> None:
    """Refuse charts that there are not, before any result is printed."""
    for text in charts:
        name = text.partition("=")[0]
        if name not in drawn:
            raise reject_name("--chart", name, list(drawn))


def write_charts(drawn: Mapping[str, Any], charts: tuple[str, ...], text: str) -> None:
    """Write the charts that were asked for, each as its file name says; functions draw theirs now."""
    if not charts:
        return
    from calibrant.report.charts.export import chart_target, image_of, without_text

    for name, path in map(chart_target, charts):
        made = drawn[name]() if isinstance(drawn[name], FunctionType) else drawn[name]
        shown = without_text(made, title=text in ("title", "both"), caption=text in ("caption", "both"))
        note(f"chart: {write_whole(path, image_of(shown, path.suffix.lower()))}")
