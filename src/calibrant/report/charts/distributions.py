"""Charts of forecast distributions, of abstention and of horizons."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calibrant.report.charts.canvas import LIGHT, POINTS, Canvas, Spec, columns, drawing, field

if TYPE_CHECKING:
    from calibrant.abstention import RiskCoverage
    from calibrant.distributions.tables import TableOfTests
    from calibrant.distributions.uniformity import Pit

PERCENT = {"format": "%"}
WHOLE = {"domain": [0, 1]}


@drawing
def pit_histogram(found: Pit) -> Spec:
    """Draw the histogram of F(y), with the range that chance explains in each bin."""
    from scipy.stats import binom

    canvas, widths = Canvas(), np.diff(found.edges)
    low, high = (np.asarray(binom.ppf(tail, found.n, widths)) / found.n for tail in (0.025, 0.975))
    bins = {"from": found.edges[:-1], "to": found.edges[1:]}
    bars = canvas.on({**bins, "share": found.shares, "zero": np.zeros(len(widths))})
    x = field("from:Q", title="F(y)", scale=WHOLE)
    y = field("share:Q", title="share of outcomes", axis=PERCENT)
    band = canvas.on({**bins, "low": low, "high": high}).mark("rect", color=LIGHT["band"], opacity=0.6)
    layers = [
        bars.mark("rect", color=LIGHT["model"], opacity=0.75, stroke=LIGHT["paper"]).encode(
            x=x, x2="to", y=y, y2="zero"
        ),
        band.encode(x=x, x2="to", y="low:Q", y2="high"),
        bars.hover(len(widths), "from", {"from": ".3g", "to": ".3g", "share": ".1%"}),
    ]
    caption = (
        "Calibrated forecasts fill all bins alike; each bin stays in the gray band with probability 95%. A U "
        "means too narrow, a hump too wide, a slope biased."
    )
    return canvas.finished(layers, "Where outcomes fall in their forecasts", caption)


@drawing
def curve_of_tests(table: TableOfTests) -> Spec:
    """Draw predicted and observed shares over levels, thresholds or horizons, with limits where there are."""
    canvas, rows = Canvas(), table.rows()
    place, predicted, title, share = table.CHART
    curves = columns(rows, predicted=predicted, observed="observed")
    base = canvas.lines(place, [getattr(one, place) for one in rows], "share", curves).encode(
        x=field(f"{place}:Q", title=place, scale={"zero": False}),
        y=field("share:Q", title=share, axis=PERCENT),
    )
    dots = base.mark("point", filled=True, size=50).tips({place: ".4g", "share": ".1%"}, "line:N")
    layers = [base.mark("line", strokeWidth=2), dots]
    caption = f"Mean predicted and observed {share} up to each {place}"
    if hasattr(rows[0], "low"):
        limits = canvas.on(columns(rows, **{place: place}, low="low", high="high"))
        rules = limits.mark("rule", color=LIGHT["second"], strokeWidth=2)
        layers.insert(0, rules.encode(x=f"{place}:Q", y="low:Q", y2="high"))
        caption += ", with 95% limits"
    return canvas.finished(layers, title, f"{caption}.")


@drawing
def risk_curve(found: RiskCoverage) -> Spec:
    """Draw promised and realized risk over coverage, with the band of a calibrated model."""
    canvas = Canvas()
    at = np.unique(np.linspace(0, len(found.coverage) - 1, min(len(found.coverage), POINTS)).astype(int))
    cover, promised, realized = found.coverage[at], found.promised[at], found.realized[at]
    low, high = np.clip(promised + np.outer([-1, 1], found.band / cover), 0, 1)
    band = canvas.on({"coverage": cover, "low": low, "high": high}).mark(
        "area", color=LIGHT["band"], opacity=0.6, clip=True
    )
    data = canvas.lines("coverage", cover, "risk", {"promised": promised, "realized": realized})
    top = float(min(1.0, 1.5 * max(promised.max(), np.max(realized[cover >= 0.05], initial=0.01))))
    x = field("coverage:Q", title="share of records answered", axis=PERCENT, scale=WHOLE)
    y = field("risk:Q", title="wrong answers", axis=PERCENT, scale={"domain": [0, top]})
    layers = [
        band.encode(x=x, y="low:Q", y2="high"),
        data.mark("line", strokeWidth=2, clip=True).encode(x=x, y=y),
        data.hover(len(at), "coverage", {"coverage": ".1%", "risk": ".2%"}),
    ]
    sure = f"{found.confidence:.0%}"
    caption = f"The realized risk of a calibrated model stays in the gray band with probability {sure}."
    return canvas.finished(layers, "Risk and coverage", caption)
