"""Charts of forecast distributions, of abstention and of horizons."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calibrant.report.charts.canvas import LIGHT, POINTS, Canvas, Spec, columns, drawing, field, hover

if TYPE_CHECKING:
    from calibrant.abstention import RiskCoverage
    from calibrant.distributions.tables import HorizonTable, QuantileTable, ThresholdTable
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
        hover(bars, len(widths), "from", {"from": ".3g", "to": ".3g", "share": ".1%"}),
    ]
    caption = (
        "Calibrated forecasts fill all bins alike; each bin stays in the gray band with probability 95%. A U "
        "means too narrow, a hump too wide, a slope biased."
    )
    return canvas.finished(layers, "Where outcomes fall in their forecasts", caption)


@drawing
def quantile_coverage(table: QuantileTable) -> Spec:
    """Draw observed against nominal probabilities of the quantiles, with exact limits."""
    canvas, rows = Canvas(), table.levels
    data = canvas.on(columns(rows, level="promised", observed="observed", low="low", high="high"))
    x = field("level:Q", title="level of the quantile", scale=WHOLE, axis=PERCENT)
    y = field("observed:Q", title="outcomes at or below it", scale=WHOLE, axis=PERCENT)
    diagonal = canvas.on({"a": [0.0, 1.0]}).mark("line", color=LIGHT["quiet"], strokeDash=[4, 4])
    layers = [
        diagonal.encode(x="a:Q", y="a:Q"),
        data.mark("rule", color=LIGHT["model"], strokeWidth=2).encode(x=x, y="low:Q", y2="high"),
        data.mark("point", color=LIGHT["model"], filled=True, size=60).encode(x=x, y=y),
        hover(data, len(rows), "level", {"level": ".3g", "observed": ".1%", "low": ".1%", "high": ".1%"}),
    ]
    caption = "Share of outcomes at or below each quantile, with exact 95% limits; right on the diagonal."
    return canvas.finished(layers, "Coverage of the quantiles", caption)


@drawing
def threshold_curve(table: ThresholdTable) -> Spec:
    """Draw the mean forecast and the observed distribution function over the thresholds."""
    canvas, rows = Canvas(), table.thresholds
    curves = columns(rows, predicted="predicted", observed="observed")
    base = canvas.lines("threshold", [one.threshold for one in rows], "share", curves).encode(
        x=field("threshold:Q", title="threshold", scale={"zero": False}),
        y=field("share:Q", title="at or below it", scale=WHOLE, axis=PERCENT),
    )
    tips = ["line:N", field("threshold:Q", format=".4g"), field("share:Q", format=".1%")]
    layers = [base.mark("line", strokeWidth=2), base.mark("point", filled=True, size=50).encode(tooltip=tips)]
    caption = "Mean forecast probability and observed share of outcomes up to each threshold."
    return canvas.finished(layers, "Calibration by threshold", caption)


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
        hover(data, len(at), "coverage", {"coverage": ".1%", "risk": ".2%"}),
    ]
    sure = f"{found.confidence:.0%}"
    caption = f"The realized risk of a calibrated model stays in the gray band with probability {sure}."
    return canvas.finished(layers, "Risk and coverage", caption)


@drawing
def horizon_curve(table: HorizonTable) -> Spec:
    """Draw predicted and observed event probabilities over the horizons, with intervals."""
    canvas, rows = Canvas(), table.horizons
    limits = canvas.on(columns(rows, horizon="horizon", low="low", high="high"))
    x = field("horizon:Q", title="horizon")
    curves = columns(rows, observed="observed", predicted="predicted")
    base = canvas.lines("horizon", [one.horizon for one in rows], "probability", curves).encode(
        x=x, y=field("probability:Q", title="probability of the event", axis=PERCENT)
    )
    tips = ["line:N", field("horizon:Q", format=".4g"), field("probability:Q", format=".1%")]
    layers = [
        limits.mark("rule", color=LIGHT["model"], strokeWidth=2).encode(x=x, y="low:Q", y2="high"),
        base.mark("line", strokeWidth=2),
        base.mark("point", filled=True, size=60).encode(tooltip=tips),
    ]
    caption = "Mean predicted and observed probability of the event by each horizon, with 95% intervals."
    return canvas.finished(layers, "Calibration by horizon", caption)
