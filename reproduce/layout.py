"""What the files share: Markdown tables, small figures, and where real data may lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FIGURES = ROOT / "docs" / "reproduced"
DATA = ROOT.parent / "shared" / "data"  # real forecasts next to the repo; parts that need them skip without
COLOURS = ["#1f77b4", "#d1495b", "#2a9d8f", "#8d6a9f", "#555555"]


def table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Lay out a Markdown table; numbers to six digits."""
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *([_cell(item) for item in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cell(item: Any) -> str:
    return f"{item:.6g}" if isinstance(item, float) else str(item)


def lines_figure(
    name: str,
    lines: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    *,
    x: str,
    y: str,
    bands: Mapping[str, tuple[Sequence[float], Sequence[float], Sequence[float]]] | None = None,
) -> str:
    """Draw curves on logarithmic axes into docs/reproduced/NAME.svg and return the Markdown that shows it."""
    import altair as alt
    import vl_convert

    points = [
        {"x": a, "y": float(f"{b:.6g}"), "curve": curve}  # rounded: the last digits depend on the machine
        for curve, (xs, ys) in lines.items()
        for a, b in zip(xs, ys, strict=True)
    ]
    color = alt.Color(
        "curve:N", title=None, scale=alt.Scale(domain=list(lines), range=COLOURS[: len(lines)]), sort=None
    )
    axes = {
        "x": alt.X("x:Q", title=x, scale=alt.Scale(type="log", nice=False)),
        "y": alt.Y("y:Q", title=y, scale=alt.Scale(type="log", nice=False)),
    }
    chart: Any = alt.Chart(alt.Data(values=points)).mark_line(point=True).encode(color=color, **axes)
    if bands:
        spread = [
            {"x": a, "low": float(f"{b:.6g}"), "high": float(f"{c:.6g}"), "curve": curve}
            for curve, (xs, lows, highs) in bands.items()
            for a, b, c in zip(xs, lows, highs, strict=True)
        ]
        area = alt.Chart(alt.Data(values=spread)).mark_area(opacity=0.2)
        chart = area.encode(x="x:Q", y="low:Q", y2="high:Q", color=color) + chart
    spec = chart.properties(width=420, height=260).to_dict()
    FIGURES.mkdir(exist_ok=True)
    (FIGURES / f"{name}.svg").write_text(vl_convert.vegalite_to_svg(spec), encoding="utf-8")
    return f"![{y} against {x}](reproduced/{name}.svg)"
