"""Charts of forecast distributions, of abstention and of horizons."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calibrant.report.charts.canvas import LIGHT, Canvas, Spec, drawing, field, hover

if TYPE_CHECKING:
    from calibrant.abstention import RiskCoverage
    from calibrant.distributions.quantiles import QuantileTable
    from calibrant.distributions.thresholds import HorizonTable, ThresholdTable
    from calibrant.distributions.uniformity import Pit

POINTS = 400
TWO = [LIGHT["model"], LIGHT["second"]]


@drawing
def pit_histogram(found: Pit) -> Spec:
    """Draw the histogram of F(y), with the range that chance explains in each bin."""
    from scipy.stats import binom

    canvas, widths = Canvas(), np.diff(found.edges)
    low, high = (np.asarray(binom.ppf(tail, found.n, widths)) / found.n for tail in (0.025, 0.975))
    left, right = found.edges[:-1], found.edges[1:]
    bars = canvas.on({"from": left, "to": right, "share": found.shares, "zero": np.zeros(len(left))})
    band = canvas.on({"from": left, "to": right, "low": low, "high": high})
    x, y = field("from:Q", title="F(y)", scale={"domain": [0, 1]}), "share:Q"
    layers = [
        bars.mark("rect", color=LIGHT["model"], opacity=0.75, stroke=LIGHT["paper"]).encode(
            x=x, x2="to", y=field(y, title="share of outcomes", axis={"format": "%"}), y2="zero"
        ),
        band.mark("rect", color=LIGHT["band"], opacity=0.6).encode(x=x, x2="to", y="low:Q", y2="high"),
        hover(bars, len(left), "from", {"from": ".3g", "to": ".3g", "share": ".1%"}),
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
    data = canvas.on(
        {
            "level": [one.promised for one in rows],
            "observed": [one.observed for one in rows],
            "low": [one.low for one in rows],
            "high": [one.high for one in rows],
        }
    )
    whole = {"domain": [0, 1]}
    x = field("level:Q", title="level of the quantile", scale=whole, axis={"format": "%"})
    y = field("observed:Q", title="outcomes at or below it", scale=whole, axis={"format": "%"})
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
    places = [one.threshold for one in rows]
    lines = {"predicted": [one.predicted for one in rows], "observed": [one.observed for one in rows]}
    data = canvas.on(
        {
            "threshold": places * 2,
            "share": [*lines["predicted"], *lines["observed"]],
            "line": ["predicted"] * len(places) + ["observed"] * len(places),
        }
    )
    x = field("threshold:Q", title="threshold", scale={"zero": False})
    y = field("share:Q", title="at or below it", scale={"domain": [0, 1]}, axis={"format": "%"})
    colors = field("line:N", scale={"domain": list(lines), "range": TWO})
    tips = ["line:N", field("threshold:Q", format=".4g"), field("share:Q", format=".1%")]
    layers = [
        data.mark("line", strokeWidth=2).encode(x=x, y=y, color=colors),
        data.mark("point", filled=True, size=50).encode(x=x, y=y, color=colors, tooltip=tips),
    ]
    caption = "Mean forecast probability and observed share of outcomes up to each threshold."
    return canvas.finished(layers, "Calibration by threshold", caption)


@drawing
def risk_curve(found: RiskCoverage) -> Spec:
    """Draw promised and realized risk over coverage, with the band of a calibrated model."""
    canvas = Canvas()
    at = np.unique(np.linspace(0, len(found.coverage) - 1, min(len(found.coverage), POINTS)).astype(int))
    cover, promised, realized = found.coverage[at], found.promised[at], found.realized[at]
    half = found.band / cover
    band = canvas.on(
        {"coverage": cover, "low": np.maximum(promised - half, 0), "high": np.minimum(promised + half, 1)}
    )
    names = ["promised", "realized"]
    data = canvas.on(
        {
            "coverage": np.tile(cover, 2),
            "risk": np.concatenate([promised, realized]),
            "line": np.repeat(names, len(at)).tolist(),
        }
    )
    top = float(min(1.0, 1.5 * max(promised.max(), np.max(realized[cover >= 0.05], initial=0.01))))
    x = field("coverage:Q", title="share of records answered", axis={"format": "%"}, scale={"domain": [0, 1]})
    y = field("risk:Q", title="wrong answers", axis={"format": "%"}, scale={"domain": [0, top]})
    layers = [
        band.mark("area", color=LIGHT["band"], opacity=0.6, clip=True).encode(x=x, y="low:Q", y2="high"),
        data.mark("line", strokeWidth=2, clip=True).encode(
            x=x, y=y, color=field("line:N", scale={"domain": names, "range": TWO})
        ),
        hover(data, len(at), "coverage", {"coverage": ".1%", "risk": ".2%"}),
    ]
    caption = f"{found} The realized risk of a calibrated model stays in the gray band everywhere, with 95%."
    return canvas.finished(layers, "Risk and coverage", caption.replace("95%", f"{found.confidence:.0%}"))


@drawing
def horizon_curve(table: HorizonTable) -> Spec:
    """Draw predicted and observed event probabilities over the horizons, with intervals."""
    canvas, rows, names = Canvas(), table.horizons, ["observed", "predicted"]
    places = [one.horizon for one in rows]
    limits = canvas.on({"horizon": places, "low": [r.low for r in rows], "high": [r.high for r in rows]})
    data = canvas.on(
        {
            "horizon": places * 2,
            "probability": [one.observed for one in rows] + [one.predicted for one in rows],
            "line": [name for name in names for _ in rows],
        }
    )
    x = field("horizon:Q", title="horizon")
    y = field("probability:Q", title="probability of the event", axis={"format": "%"})
    color = field("line:N", scale={"domain": names, "range": TWO})
    tips = ["line:N", field("horizon:Q", format=".4g"), field("probability:Q", format=".1%")]
    layers = [
        limits.mark("rule", color=TWO[0], strokeWidth=2).encode(x=x, y="low:Q", y2="high"),
        data.mark("line", strokeWidth=2).encode(x=x, y=y, color=color),
        data.mark("point", filled=True, size=60).encode(x=x, y=y, color=color, tooltip=tips),
    ]
    caption = "Mean predicted and observed probability of the event by each horizon, with 95% intervals."
    return canvas.finished(layers, "Calibration by horizon", caption)
