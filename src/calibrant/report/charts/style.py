"""What all charts share: a canvas that holds the data once, and size, type and colours."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from calibrant.errors import MissingDependencyError, sentence
from calibrant.report.palette import LIGHT
from calibrant.results import Array

Chart = Any  # an altair.LayerChart; altair is loaded only when a chart is drawn
WIDTH, HEIGHT = 560, 330
NEAR = 0.1  # of what is shown: an axis that begins so near to 0 begins at 0


def altair() -> Any:
    """Import Altair, or say how to install it."""
    try:
        import altair
    except ImportError:
        hint = "pip install 'calibrant[report]'"
        raise MissingDependencyError(sentence("charts", "need the package altair", hint=hint)) from None
    return altair


class Canvas:
    """Collects the data of one chart under fixed names, so that Altair never copies nor hashes it."""

    def __init__(self) -> None:
        self._datasets: dict[str, list[dict[str, Any]]] = {}

    def on(self, columns: Mapping[str, Iterable[Any]]) -> Chart:
        """Return a chart of these columns, rounded to what a picture can show so that the bytes stay few."""
        name = f"data{len(self._datasets)}"
        lists = [[_short(item) for item in column] for column in columns.values()]
        self._datasets[name] = [dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True)]
        alt = altair()
        return alt.Chart(alt.NamedData(name))

    def finished(
        self, layers: Sequence[Any], title: str, caption: str, *, height: int = HEIGHT, wide: bool = False
    ) -> Chart:
        """Stack the layers and set title, caption, size and type; `wide` asks for a whole row of a page."""
        alt = altair()
        chart = _offline()(layer=list(layers)).properties(
            title=alt.TitleParams(title, subtitle=textwrap.wrap(caption, 92), anchor="start", frame="group"),
            width=WIDTH,
            height=height,
            description=caption,
            config=_config(),
            usermeta={"wide": wide},
        )
        chart.datasets = self._datasets
        return chart


@cache
def _offline() -> Any:
    """Return the class of charts that notebooks show as pictures; Altair's own view needs the network."""

    class OfflineChart(altair().LayerChart):  # type: ignore[misc]  # Altair is loaded when a chart is drawn
        """A layered chart with a view that needs no network and survives the export of a notebook."""

        def _repr_mimebundle_(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
            import vl_convert

            return {"image/svg+xml": vl_convert.vegalite_to_svg(self.to_json(validate=False))}

    return OfflineChart


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


def hover(chart: Chart, points: int, across: str, labels: Mapping[str, str]) -> Chart:
    """Return unseen rules over the whole height that show the numbers of the nearest of `points` points."""
    alt = altair()
    thick = min(60.0, max(5.0, 1.2 * WIDTH / max(1, points)))
    tips = [alt.Tooltip(f"{name}:Q", title=name, format=form) for name, form in labels.items()]
    return chart.mark_rule(strokeWidth=thick, opacity=0).encode(x=f"{across}:Q", tooltip=tips)
