"""What all charts share: a canvas that holds the data once, and size, type and colours."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from calibrant.report.charts.layers import Layer, Spec, field
from calibrant.report.palette import LIGHT
from calibrant.results import Array

WIDTH, HEIGHT = 560, 330
NEAR = 0.1  # of what is shown: an axis that begins so near to 0 begins at 0


class Canvas:
    """Collects the data of one chart, each set once, under the names by which layers call them."""

    def __init__(self) -> None:
        self._datasets: dict[str, list[dict[str, Any]]] = {}

    def on(self, columns: Mapping[str, Iterable[Any]]) -> Layer:
        """Return a layer of these columns, rounded to what a picture can show so that the bytes stay few."""
        name = f"data{len(self._datasets)}"
        lists = [[_short(item) for item in column] for column in columns.values()]
        self._datasets[name] = [dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True)]
        return Layer({"data": {"name": name}})

    def finished(
        self, layers: Sequence[Layer], title: str, caption: str, *, height: int = HEIGHT, wide: bool = False
    ) -> Spec:
        """Stack the layers and set title, caption, size and type; `wide` asks for a whole row of a page."""
        lines = textwrap.wrap(caption, 92)
        return {
            "config": _config(),
            "layer": [layer.spec for layer in layers],
            "datasets": self._datasets,
            "description": caption,
            "height": height,
            "title": {"text": title, "subtitle": lines, "anchor": "start", "frame": "group"},
            "usermeta": {"wide": wide},
            "width": WIDTH,
        }


def _short(item: Any) -> Any:
    if isinstance(item, (float, np.floating)):
        return float(f"{float(item):.6g}")
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
    margin = pad * reach if reach > 1e-9 else 0.05
    start, stop = max(0.0, low - margin), min(1.0, high + margin)
    return 0.0 if start < NEAR * reach else start, 1.0 if 1 - stop < NEAR * reach else stop


def hover(layer: Layer, points: int, across: str, labels: Mapping[str, str]) -> Layer:
    """Return unseen rules over the whole height that show the numbers of the nearest of `points` points."""
    thick = min(60.0, max(5.0, 1.2 * WIDTH / max(1, points)))
    tips = [field(f"{name}:Q", title=name, format=form) for name, form in labels.items()]
    return layer.mark("rule", strokeWidth=thick, opacity=0).encode(x=f"{across}:Q", tooltip=tips)
