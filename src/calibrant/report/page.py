"""The report page: one self-contained HTML file made of a verdict, sections, charts and numbers."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from calibrant.errors import MissingDependencyError, UnwritableFileError, sentence
from calibrant.files import atomic_write
from calibrant.report.charts.canvas import DARK, LIGHT, Spec, variables, with_variables
from calibrant.report.glossary import anchor, used
from calibrant.report.glossary import parts as pieces
from calibrant.results import Table, json_ready


@cache
def library() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script, safe inside a script element.

    Bundling takes seconds, so the result is kept in the user's cache folder, one file per version.
    """
    try:
        import vl_convert
    except ImportError:
        hint = "pip install 'calibrant[report]'"
        raise MissingDependencyError(
            sentence("the report", "needs the package vl-convert-python", hint=hint)
        ) from None
    kept = None
    with suppress(OSError, UnicodeDecodeError, RuntimeError):  # RuntimeError: the user has no home
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "calibrant"
        kept = folder / f"vega-{version('vl-convert-python')}.js"
        text = kept.read_text(encoding="utf-8")
        if "vegaEmbed" in text:  # complete
            return text
    code: str = vl_convert.javascript_bundle()  # type: ignore[call-arg]  # the stub forgets a default
    code = code.replace("</script", "<\\/script").replace("<!--", "<\\!--")
    if kept is not None:
        with suppress(OSError, UnwritableFileError):  # works without a cache
            kept.parent.mkdir(parents=True, exist_ok=True)
            atomic_write(kept, code)
    return code


MAX_SMALL_HEIGHT = 130  # pixels of a chart below the first screen
GROUPS_SHOWN = 50  # lines of a table of groups
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
    """What the head of a page says: one line in bold, a second sentence, and what to do next."""

    lead: str
    sentence: str
    next_step: str


@dataclass(frozen=True, slots=True)
class Overview:
    """What a page shows before anything is unfolded: charts by name, and tables with their headings."""

    figures: tuple[str, ...] = ()
    tables: tuple[tuple[str, Table], ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """One question of the report; everything in it is text, never markup."""

    id: str
    title: str
    texts: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()
    sheets: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    folded: bool = False
    half: bool = False  # of the width of a desktop


def rendered(
    *,
    title: str,
    verdict: PageVerdict,
    tone: str,
    facts: str,
    parts: list[Section],
    drawn: Mapping[str, Spec],
    numbers: Mapping[str, Any],
    subtitle: str = "",
    overview: Overview | None = None,
    raw: str = "Everything above, as JSON.",
) -> str:
    """Return a page in the style of the report, from its sections, charts and numbers."""
    from calibrant import __version__

    environment = _environment()
    from markupsafe import Markup  # comes with jinja2

    first = overview.figures if overview else tuple(drawn)
    figures = {name: _figure(spec, small=name not in first) for name, spec in drawn.items()}
    return str(environment.get_template("page.html").render(
        title=title,
        subtitle=subtitle,
        version=__version__,
        verdict=verdict,
        tone=tone,
        facts=facts,
        overview=overview or Overview(),
        raw=raw,
        sections=parts,
        figures=figures,
        words=used([*_texts(parts), *(figure.caption for figure in figures.values())]),
        pieces=pieces,
        anchor=anchor,
        light=Markup(variables(LIGHT)),
        dark=Markup(variables(DARK)),
        css=Markup((_TEMPLATE / "page.css").read_text(encoding="utf-8")),
        js=Markup((_TEMPLATE / "page.js").read_text(encoding="utf-8")),
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


def script_json(data: Any) -> str:
    r"""Return JSON that cannot end the script element around it, whatever text it holds.

    >>> script_json({"a": "</script>", "b": float("nan")})
    '{"a":"\\u003c/script\\u003e","b":null}'
    """
    code = json.dumps(json_ready(data), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        code = code.replace(character, f"\\u{ord(character):04x}")
    return code


def _figure(given: Spec, *, small: bool) -> Figure:
    """Move the title into the page and let the chart fill the width it is given; folded ones are smaller."""
    title, wide = given["title"], bool(given["usermeta"]["wide"]) and not small
    kept = {name: item for name, item in given.items() if name not in ("title", "usermeta")}
    if small and not given["usermeta"]["fixed"]:
        kept["height"] = min(kept["height"], MAX_SMALL_HEIGHT)
    spec = {**kept, "width": "container", "autosize": {"type": "fit-x", "contains": "padding"}}
    return Figure(title["text"], " ".join(title["subtitle"]), wide, with_variables(spec))
