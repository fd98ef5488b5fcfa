"""What all charts share: Vega-Lite specifications, a canvas for data, colors, and Altair for notebooks.

Specifications are plain dictionaries. Altair is loaded for notebooks and files only, because importing it
takes longer than drawing every chart of a page. Names that users gave belong in data, captions and the
domains of scales: Vega-Lite makes code of `sort` lists, and of the titles of fields unless a mark has a
`description`, where a line break would end the script. The colors are those of Okabe & Ito.
"""

from __future__ import annotations

import functools
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, ParamSpec

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, MissingDependencyError
from calibrant.formatting import without_noise
from calibrant.results import Array, Catalogue

INSTALL = "pip install 'calibrant[report]'"
Spec = dict[str, Any]  # a specification of Vega-Lite, or a part of one
TYPES = {"Q": "quantitative", "N": "nominal"}


def field(shorthand: str, **options: Any) -> Spec:
    """Return what a channel shows: a column with its type, and how.

    >>> field("rate:Q", title=None)
    {'field': 'rate', 'type': 'quantitative', 'title': None}
    >>> field("upper")  # the end of a bar or a band has the type of its beginning
    {'field': 'upper'}
    """
    name, _, kind = shorthand.partition(":")
    return {"field": name, **({"type": TYPES[kind]} if kind else {}), **options}


class Layer(Spec):
    """Data, the marks that show them, and which column each channel shows; methods return changed copies."""

    def mark(self, kind: str, **look: Any) -> Layer:
        return Layer({**self, "mark": {"type": kind, **look}})

    def encode(self, **channels: Any) -> Layer:
        """Let channels show fields, in addition to those set before."""
        shown = {name: field(given) if isinstance(given, str) else given for name, given in channels.items()}
        return Layer({**self, "encoding": {**self.get("encoding", {}), **shown}})

    def hover(self, points: int, across: str, labels: Mapping[str, str]) -> Layer:
        """Return invisible full-height rules that show the numbers of the point nearest to the pointer."""
        thick = min(60.0, max(5.0, 1.2 * WIDTH / max(1, points)))
        tips = [field(f"{name}:Q", title=name, format=form) for name, form in labels.items()]
        return self.mark("rule", strokeWidth=thick, opacity=0).encode(x=f"{across}:Q", tooltip=tips)

    def tips(self, formats: Mapping[str, str], *names: str) -> Layer:
        """Show names, and numbers in their formats, under the pointer."""
        shown = [field(f"{name}:Q", format=form) for name, form in formats.items()]
        return self.encode(tooltip=[*map(field, names), *shown])

    def where(self, test: str) -> Layer:
        """Keep the rows for which an expression is true."""
        return Layer({**self, "transform": [*self.get("transform", ()), {"filter": test}]})


# Every color is used through its name. Charts carry the light value; the page turns it into a CSS variable
# of the same name, so that dark mode and print need no second drawing.
_COLORS = {  # on a light page, on a dark page
    "ink": ("#1b2733", "#e6ebf0"),
    "quiet": ("#5d6b79", "#9fadba"),
    "grid": ("#e4e8ec", "#2c3742"),
    "paper": ("#ffffff", "#141b22"),
    "band": ("#c9d1d9", "#3c4854"),
    "density": ("#a9b4bf", "#55626f"),
    "model": ("#0072b2", "#56b4e9"),
    "second": ("#d55e00", "#ff9a4d"),
    "third": ("#00795a", "#3fd1a5"),
    "mark": ("#f3c76b", "#8a6a1f"),
}
LIGHT, DARK = ({name: pair[dark] for name, pair in _COLORS.items()} for dark in (0, 1))
CURVES = [LIGHT[name] for name in ("model", "second", "third")]  # as many as stay apart on paper
_NAMES = {value: name for name, value in LIGHT.items()}


def with_variables(spec: Any) -> Any:
    """Return a chart specification in which every color of the palette is a CSS variable.

    >>> with_variables({"mark": {"color": LIGHT["model"]}})
    {'mark': {'color': 'var(--model)'}}
    """
    if isinstance(spec, dict):
        data = ("data", "datasets")  # may hold any text, a color among them: left alone
        return {key: item if key in data else with_variables(item) for key, item in spec.items()}
    if isinstance(spec, list):
        return [with_variables(item) for item in spec]
    return f"var(--{_NAMES[spec]})" if isinstance(spec, str) and spec in _NAMES else spec


WIDTH, HEIGHT = 560, 330
MAX_AXIS_GAP = 0.1  # of what is shown: an axis that begins so near to 0 begins at 0
ONE_POINT = 1e-9  # numbers that lie this close together are shown as one
POINTS = 400  # a curve on the page has about as many points as a screen can show


class Canvas:
    """Collects the data of one chart, each set once, under the names by which layers call them."""

    def __init__(self) -> None:
        self._datasets: dict[str, list[dict[str, Any]]] = {}

    def on(self, columns: Mapping[str, Iterable[Any]]) -> Layer:
        name = f"data{len(self._datasets)}"
        lists = [[_short(item) for item in column] for column in columns.values()]
        self._datasets[name] = [dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True)]
        return Layer({"data": {"name": name}})

    def zero_line(self, channel: str = "y") -> Layer:
        return self.on({"zero": [0.0]}).mark("rule", color=LIGHT["quiet"]).encode(**{channel: "zero:Q"})

    def labeled_line(self, name: str, value: float, label: str, middle: float, **look: Any) -> list[Layer]:
        """Return a vertical line and its label, on the side where there is more space."""
        data = self.on({name: [value], "label": [label]})
        side = {"align": "right", "dx": -6} if value > middle else {"align": "left", "dx": 6}
        words = data.mark("text", color=LIGHT["ink"], baseline="top", fontSize=12, **side)
        return [
            data.mark("rule", color=LIGHT["second"], **look).encode(x=f"{name}:Q"),
            words.encode(x=f"{name}:Q", y={"value": 4}, text="label:N"),
        ]

    def lines(
        self, across: str, places: Iterable[Any], up: str, curves: Mapping[str, Iterable[Any]]
    ) -> Layer:
        """Return a layer of named curves over the same places, with a color for each name."""
        places, names = list(places), list(curves)
        layer = self.on(
            {
                across: places * len(names),
                up: [value for curve in curves.values() for value in curve],
                "line": [name for name in names for _ in places],
            }
        )
        scale, flat = {"domain": names, "range": CURVES[: len(names)]}, {"direction": "horizontal"}
        return layer.encode(color=field("line:N", scale=scale, legend=flat))

    def finished(
        self, layers: Sequence[Layer], title: str, caption: str, *, height: int = HEIGHT, wide: bool = False,
        fixed: bool = False,
    ) -> Spec:  # fmt: skip
        """Stack the layers; on a page, `wide` asks for a whole row, and `fixed` keeps the height."""
        return {
            "config": _config(),
            "layer": list(layers),
            "datasets": self._datasets,
            "description": caption,
            "height": height,
            "title": {
                "text": title,
                "subtitle": textwrap.wrap(caption, 92),
                "anchor": "start",
                "frame": "group",
            },
            "usermeta": {"wide": wide, "fixed": fixed},
            "width": WIDTH,
        }


def _short(item: Any) -> Any:
    if isinstance(item, (float, np.floating)):
        return without_noise(float(item))  # few bytes, and predictions that begin alike stay apart
    return item.item() if isinstance(item, np.generic) else item


def _config() -> dict[str, Any]:
    ink, quiet, grid = LIGHT["ink"], LIGHT["quiet"], LIGHT["grid"]
    return {
        "font": "system-ui, sans-serif",
        "background": LIGHT["paper"],
        "view": {"stroke": None},
        "title": {"color": ink, "subtitleColor": quiet, "subtitlePadding": 6, "offset": 10, "fontSize": 15},
        "axis": {
            "labelColor": quiet,
            "titleColor": ink,
            "gridColor": grid,
            "domainColor": quiet,
            "tickColor": quiet,
            "titleFontWeight": "normal",
            "labelFontSize": 11,
            "titleFontSize": 12,
            "tickCount": 6,
        },
        "legend": {
            "orient": "top",
            "direction": "vertical",  # one entry per line fits a phone, and wider fonts than expected
            "title": None,
            "labelColor": ink,
            "labelFontSize": 12,
            "labelLimit": 400,
            "symbolType": "stroke",
            "symbolStrokeWidth": 3,
        },
    }


def window(*arrays: Array, pad: float = 0.02) -> tuple[float, float]:
    """Return the stretch of [0, 1] that holds all numbers, with a margin; 0 and 1 are in it if near."""
    low = min(float(np.min(a)) for a in arrays)
    high = max(float(np.max(a)) for a in arrays)
    reach = high - low
    margin = pad * reach if reach > ONE_POINT else 0.05
    start, stop = max(0.0, low - margin), min(1.0, high + margin)
    return 0.0 if start < MAX_AXIS_GAP * reach else start, 1.0 if 1 - stop < MAX_AXIS_GAP * reach else stop


def points_to_draw(height: Array, points: int = POINTS) -> npt.NDArray[np.intp]:
    """Return which points of a curve to draw: both ends, and the lowest and highest of every stretch.

    >>> points_to_draw(np.array([0.0, 3.0, 1.0, -2.0, 0.5, 0.0]), points=4).tolist()
    [0, 1, 3, 5]
    """
    if len(height) <= points:
        return np.arange(len(height))
    edges = np.linspace(0, len(height), max(2, points // 2), dtype=np.int64)[:-1]
    kept = {0, len(height) - 1}
    for start, stop in zip(edges, np.append(edges[1:], len(height)), strict=True):
        piece = height[start:stop]
        kept.update((int(start + np.argmin(piece)), int(start + np.argmax(piece))))
    return np.array(sorted(kept), dtype=np.intp)


def columns(rows: Iterable[Any], **attributes: str) -> dict[str, list[Any]]:
    """Return attributes of the rows as columns of the names given."""
    rows = list(rows)
    return {name: [getattr(row, attribute) for row in rows] for name, attribute in attributes.items()}


Chart = Any  # an altair.LayerChart; altair is loaded only when a chart is needed
P = ParamSpec("P")


class drawing(Generic[P]):  # noqa: N801 - reads as a decorator
    """A function that returns a specification, as one that returns a chart; pages take `spec` itself."""

    def __init__(self, spec: Callable[P, Spec]) -> None:
        functools.update_wrapper(self, spec)
        self.spec = spec

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Chart:
        return as_altair(self.spec(*args, **kwargs))


def as_charts(specs: Mapping[str, Spec]) -> Mapping[str, Chart]:
    made = {name: as_altair(spec) for name, spec in specs.items()}
    return Catalogue("charts", made, {"chart": lambda chart: str(chart.title.text)})


def as_altair(spec: Spec) -> Chart:
    alt = altair()
    parts = {
        "layer": [alt.Chart.from_dict(layer, validate=False) for layer in spec["layer"]],
        "params": [alt.VariableParameter.from_dict(one, validate=False) for one in spec.get("params", ())],
        "title": alt.TitleParams(**spec["title"]),
    }
    named = {name: item for name, item in spec.items() if name != "datasets"}
    chart = _offline()(**{**named, **parts})
    chart.datasets = spec["datasets"]  # afterwards: Altair would copy and check every row
    return chart


def altair() -> Any:
    """Import Altair, or say how to install it."""
    try:
        import altair
    except ImportError:
        raise MissingDependencyError("charts", "need the package altair", hint=INSTALL) from None
    return altair


@functools.cache
def _offline() -> Any:
    """Return the class of charts that notebooks show as pictures; Altair's own view needs the network."""

    class OfflineChart(altair().LayerChart):  # type: ignore[misc]  # Altair is loaded when a chart is drawn
        """A layered chart with a view that needs no network and survives the export of a notebook."""

        def _repr_mimebundle_(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
            import vl_convert

            return {"image/svg+xml": vl_convert.vegalite_to_svg(self.to_json(validate=False))}

    return OfflineChart


FORMATS = (".svg", ".pdf", ".png")


def without_text(chart: Chart, *, title: bool = False, caption: bool = False) -> Chart:
    """Return the chart without its title, its caption, or both: papers have their own."""
    kept = chart.copy(deep=False)
    words = chart.title.copy()
    words.subtitle = words.subtitle if caption else []
    words.text = words.text if title else ""
    kept.title = words
    return kept


def image_of(chart: Chart, suffix: str) -> bytes:
    """Return the bytes of the chart in the format that a file name's suffix asks for."""
    try:
        import vl_convert
    except ImportError:
        subject, rule = "a chart as a file", "needs the package vl-convert-python"
        raise MissingDependencyError(subject, rule, hint=INSTALL) from None
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
        hint = "for example reliability=figure.svg"
        raise InvalidInputError("--chart", "must be NAME=FILE", f"got {text!r}", hint)
    if Path(path).suffix.lower() not in FORMATS:
        raise InvalidInputError("--chart", f"must name a {', '.join(FORMATS)} file", f"got {path!r}")
    return name, Path(path)
