"""What all charts share: a canvas that holds the data once, and size, type and colours."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from calibrant.report.charts.layers import Layer, Spec, field
from calibrant.report.palette import LIGHT
from calibrant.results import Array

WIDTH, HEIGHT = 560, 330
NEAR = 0.1  # of what is shown: an axis that begins so near to 0 begins at 0
ONE_POINT = 1e-9  # numbers that lie this close together are shown as one
DIGITS = 6  # of numbers: what a picture can show, so that the bytes stay few


class Canvas:
    """Collects the data of one chart, each set once, under the names by which layers call them.

    Numbers are rounded to what a picture can show: less where all on an axis begin with the same digits.
    """

    def __init__(self, *axes: tuple[float, float]) -> None:
        self._datasets: dict[str, list[dict[str, Any]]] = {}
        self._digits = DIGITS + max((_common_digits(*axis) for axis in axes), default=0)

    def on(self, columns: Mapping[str, Iterable[Any]]) -> Layer:
        """Return a layer of these columns."""
        name = f"data{len(self._datasets)}"
        lists = [[_short(item, self._digits) for item in column] for column in columns.values()]
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


def _common_digits(low: float, high: float) -> int:
    """Return how many leading digits the numbers between two have in common.

    >>> _common_digits(0.0, 1.0), _common_digits(0.123, 0.125), _common_digits(0.5, 0.5)
    (0, 1, 0)
    """
    return 0 if high <= low else max(0, math.floor(math.log10(high / (high - low))))


def _short(item: Any, digits: int) -> Any:
    if isinstance(item, (float, np.floating)):
        return float(f"{float(item):.{digits}g}")
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
    return 0.0 if start < NEAR * reach else start, 1.0 if 1 - stop < NEAR * reach else stop


def hover(layer: Layer, points: int, across: str, labels: Mapping[str, str]) -> Layer:
    """Return unseen rules over the whole height that show the numbers of the nearest of `points` points."""
    thick = min(60.0, max(5.0, 1.2 * WIDTH / max(1, points)))
    tips = [field(f"{name}:Q", title=name, format=form) for name, form in labels.items()]
    return layer.mark("rule", strokeWidth=thick, opacity=0).encode(x=f"{across}:Q", tooltip=tips)
