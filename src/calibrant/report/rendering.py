"""How pages are made: one self-contained HTML file of a verdict, sections, charts and numbers."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

from calibrant.errors import MissingDependencyError, UnwritableFileError
from calibrant.files import atomic_write
from calibrant.report.charts.canvas import DARK, INSTALL, LIGHT, Spec, with_variables
from calibrant.report.glossary import anchor, used
from calibrant.report.glossary import parts as pieces
from calibrant.results import Table, json_ready

MAX_SMALL_HEIGHT = 115  # pixels of a chart below the first screen
GROUPS_SHOWN = 50  # lines of a table of groups
_TEMPLATE = Path(__file__).parent / "template"


@cache
def library() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one safe script, cached for the user: bundling is slow."""
    try:
        import vl_convert
    except ImportError:
        rule = "needs the package vl-convert-python"
        raise MissingDependencyError("the report", rule, hint=INSTALL) from None
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


class PageVerdict(NamedTuple):
    """What the head of a page says: one line in bold, a second sentence, and what to do next."""

    lead: str
    sentence: str
    next_step: str


class Overview(NamedTuple):
    """What a page shows before anything is unfolded: charts by name, and tables with their headings."""

    figures: Sequence[str] = ()
    tables: Sequence[tuple[str, Table]] = ()
    notes: Sequence[str] = ()


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
    parts: Sequence[Section],
    drawn: Mapping[str, Spec],
    numbers: Mapping[str, Any],
    subtitle: str = "",
    overview: Overview | None = None,
    verifiable: bool = False,
) -> str:
    """Return a page in the style of the report, from its sections, charts and numbers."""
    from calibrant import __version__

    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
        from markupsafe import Markup  # comes with jinja2
    except ImportError:
        raise MissingDependencyError("the report", "needs the package jinja2", hint=INSTALL) from None
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    first = overview.figures if overview else tuple(drawn)
    figures = {name: _figure(spec, small=name not in first) for name, spec in drawn.items()}
    sheets = [sheet for section in parts for sheet in section.sheets]
    linked = [text for section in parts for text in section.texts]
    linked += [cell.text for sheet in sheets for line in sheet.lines for cell in line if not cell.number]
    return str(environment.get_template("page.html").render(
        title=title,
        subtitle=subtitle,
        version=__version__,
        verdict=verdict,
        tone=tone,
        facts=facts,
        overview=overview or Overview(),
        verifiable=verifiable,
        sections=parts,
        figures=figures,
        glossary_half=len(list(takewhile(lambda section: section.half, reversed(parts)))) % 2 == 1,
        words=used([*linked, *(figure["caption"] for figure in figures.values())]),
        pieces=pieces,
        anchor=anchor,
        light=LIGHT,
        dark=DARK,
        css=Markup((_TEMPLATE / "page.css").read_text(encoding="utf-8")),
        js=Markup((_TEMPLATE / "page.js").read_text(encoding="utf-8")),
        library=Markup(library()),
        numbers=Markup(script_json(numbers)),
        charts=Markup(script_json({name: figure["spec"] for name, figure in figures.items()})),
    ))  # fmt: skip


def script_json(data: Any) -> str:
    r"""Return JSON that cannot end the script element around it, whatever text it holds.

    >>> script_json({"a": "</script>", "b": float("nan")})
    '{"a":"\\u003c/script\\u003e","b":null}'
    """
    code = json.dumps(json_ready(data), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        code = code.replace(character, f"\\u{ord(character):04x}")
    return code


def _figure(given: Spec, *, small: bool) -> dict[str, Any]:
    """Move title and caption into the page and let the chart fill its width; folded ones are smaller."""
    title, meta = given["title"], given["usermeta"]
    spec = {name: item for name, item in given.items() if name not in ("title", "usermeta")}
    spec |= {"width": "container", "autosize": {"type": "fit-x", "contains": "padding"}}
    if small and not meta["fixed"]:
        spec["height"] = min(spec["height"], MAX_SMALL_HEIGHT)
    return {
        "title": title["text"],
        "caption": " ".join(title["subtitle"]),
        "wide": meta["wide"] and not small,
        "spec": with_variables(spec),
    }
