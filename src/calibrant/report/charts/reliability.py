"""Reliability diagram: how often it happened, against how often it was said to happen."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.evaluation.bands import consistency_band
from calibrant.evaluation.coarse import POINTS, density, points_to_draw
from calibrant.forecasts import Forecasts
from calibrant.measures.scores import isotonic_curve
from calibrant.measures.smoothed_curve import smoothed_reliability
from calibrant.report.charts.layers import Layer, Spec, field
from calibrant.report.charts.notebook import drawing
from calibrant.report.charts.style import ONE_POINT, Canvas, hover, window
from calibrant.report.palette import LIGHT
from calibrant.results import Array

SMOOTHED, ISOTONIC = "smoothed", "isotonic fit (CORP)"
BAND, WHERE = "95% if calibrated", "predictions"
FEW = 20  # records near a point below which the smoothed curve fades
DOTS = (170, 80, 25)  # areas of dots that can be told apart when they lie on each other
TITLE = "Reliability diagram"
CAPTION = (
    "If the predictions were right, the curve would follow the dashed diagonal. Above it, predictions are "
    "too low; below it, too high. The grey band is where, at each prediction, 95% of the isotonic curves of "
    "a calibrated forecaster lie. The shape at the bottom shows where the predictions are; the smoothed "
    "curve fades where they are few."
)
Frame = tuple[tuple[float, float], tuple[float, float]]  # the stretch shown across, and up


class Line(NamedTuple):
    """A curve to draw; `faint` marks the points that few records support."""

    prediction: Array
    rate: Array
    faint: npt.NDArray[np.bool_]


@drawing
def reliability_diagram(forecasts: Forecasts, *, seed: int = 0) -> Spec:
    """Draw the smoothed and the isotonic (CORP) curve, the band of the latter, and the density."""
    band = consistency_band(forecasts, seed=seed)
    fit = isotonic_curve(forecasts)
    across = window(forecasts.values)
    smooth = _within(smoothed(forecasts), *across)
    frame = across, window(fit, band.lower, band.upper, forecasts.values, smooth.rate)
    canvas = Canvas(*frame)
    layers = [
        _density(canvas, forecasts, frame),
        shaded(canvas, band.x, band.lower, band.upper, _shades()),
        *curves(canvas, {SMOOTHED: smooth, ISOTONIC: steps(forecasts, fit)}, frame),
        _hover(canvas, forecasts, fit),
    ]
    return canvas.finished(layers, TITLE, CAPTION, height=380)


def smoothed(forecasts: Forecasts) -> Line:
    """Return the smoothed curve where there are predictions, at the bandwidth of the convolved error."""
    curve = smoothed_reliability(forecasts)
    low, high = forecasts.values[0] - curve.bandwidth, forecasts.values[-1] + curve.bandwidth
    near = np.isfinite(curve.outcome) & (curve.prediction >= low) & (curve.prediction <= high)
    at = np.flatnonzero(near)
    records = 1 / float(forecasts.squared_weights.sum())
    if len(at) == 0:  # all predictions lie between two points of its grid
        mean, rate = np.array([forecasts.mean_prediction]), np.array([forecasts.base_rate])
        return Line(mean, rate.clip(0.0, 1.0), np.array([records < FEW]))
    at = at[np.unique(np.linspace(0, len(at) - 1, 150).astype(int))]
    near_by = curve.density[at] * curve.bandwidth * np.sqrt(2 * np.pi) * records
    return Line(curve.prediction[at], np.clip(curve.outcome[at], 0.0, 1.0), near_by < FEW)


def steps(forecasts: Forecasts, fit: Array, points: int = POINTS) -> Line:
    """Return the corners of the isotonic fit: the first and last prediction of every pooled block."""
    change = np.flatnonzero(np.diff(fit) != 0)
    corners = np.unique(np.concatenate(([0], change, change + 1, [len(fit) - 1])))
    corners = corners[points_to_draw(fit[corners], points)]
    return Line(forecasts.values[corners], fit[corners], np.zeros(len(corners), dtype=bool))


def curves(canvas: Canvas, lines: dict[str, Line], frame: Frame) -> list[Layer]:
    """Return the diagonal and the named curves, told apart by colour and by dashes."""
    names = list(lines)
    colours = [LIGHT[name] for name in ("model", "second", "third")][: len(names)]
    dashes = [[1, 0], [7, 3], [2, 2]][: len(names)]
    across, up = ({"domain": list(stretch), "nice": False, "zero": False} for stretch in frame)
    x = field("prediction:Q", title="prediction", scale=across)
    y = field("rate:Q", title="how often it happened", scale=up)
    low, high = max(frame[0][0], frame[1][0]), min(frame[0][1], frame[1][1])
    diagonal = canvas.on({"prediction": [low, high], "rate": [low, high]})
    points = canvas.on(_pieces(lines))
    upright = {"direction": "vertical"}
    few = max(len(line.rate) for line in lines.values()) < 25
    return [
        diagonal.mark("line", color=LIGHT["quiet"], strokeDash=[4, 4], strokeWidth=1.2).encode(x=x, y=y),
        points.mark("line", strokeWidth=2.2, point=few).encode(
            x=x,
            y=y,
            color=field("curve:N", scale={"domain": names, "range": colours}, legend=upright),
            strokeDash=field("curve:N", scale={"domain": names, "range": dashes}, legend=upright),
            detail="piece:N",
            opacity=field("opacity:Q", scale=None),
        ),
        *(layer.encode(x=x, y=y) for layer in _dots(canvas, lines, colours)),
    ]


def _dots(canvas: Canvas, lines: dict[str, Line], colours: list[str]) -> list[Layer]:
    """Return a dot for each curve that is one point, which no line shows; later ones fit into earlier."""
    dots = zip(lines.values(), colours, DOTS, strict=False)
    return [
        canvas.on({"prediction": line.prediction[:1], "rate": line.rate[:1]}).mark(
            "point", color=colour, filled=True, opacity=1, size=size
        )
        for line, colour, size in dots
        if not np.ptp(line.prediction) and not np.ptp(line.rate)
    ]


def _within(line: Line, low: float, high: float) -> Line:
    """Return a curve cut where it leaves the frame, which may lie between two of its points.

    A curve that ends short of the frame, by less than its bandwidth, goes on as it ends.
    """
    first, last = line.prediction[0], line.prediction[-1]
    start, stop = np.clip((low, high), first, last) if first <= high and last >= low else (low, high)
    inside = (line.prediction > start) & (line.prediction < stop)
    at = np.concatenate(([start], line.prediction[inside], [stop]))
    near = np.searchsorted(line.prediction, at).clip(max=len(line.rate) - 1)
    return Line(at, np.interp(at, line.prediction, line.rate), line.faint[near])


def _pieces(lines: dict[str, Line]) -> dict[str, list[Any]]:
    """Return the points of all curves, each cut into pieces that are faint or not and share their ends."""
    columns: dict[str, list[Any]] = {key: [] for key in ("prediction", "rate", "curve", "piece", "opacity")}
    for name, line in lines.items():
        cuts = [0, *(np.flatnonzero(np.diff(line.faint)) + 1).tolist(), len(line.rate)]
        for k, (start, stop) in enumerate(pairwise(cuts)):
            piece = slice(max(0, start - 1), stop)  # from the last point of the piece before
            count = len(line.rate[piece])
            columns["prediction"] += line.prediction[piece].tolist()
            columns["rate"] += line.rate[piece].tolist()
            columns["curve"] += [name] * count
            columns["piece"] += [k] * count
            columns["opacity"] += [0.3 if line.faint[start] else 1.0] * count
    return columns


def shaded(canvas: Canvas, places: Array, lower: Array, upper: Array, shades: Spec | None = None) -> Layer:
    """Return a band; where all places are one, a thick rule. `shades` puts it into a legend."""
    columns = {"prediction": places, "lower": lower, "upper": upper}
    data = canvas.on(columns if shades is None else {**columns, "shade": [BAND] * len(places)})
    mark = data.mark("area", color=LIGHT["band"], opacity=0.6)
    if places[-1] - places[0] <= ONE_POINT:
        mark, shades = data.mark("rule", color=LIGHT["band"], strokeWidth=14, opacity=0.6), None
    mark = mark.encode(x="prediction:Q", y="lower:Q", y2="upper")
    return mark if shades is None else mark.encode(fill=shades)


def _shades() -> Spec:
    """Return the legend of what is shaded, in squares; at the bottom it meets no other, in any font."""
    legend = {"symbolType": "square", "symbolStrokeWidth": 0, "direction": "vertical", "orient": "bottom"}
    scale = {"domain": [BAND, WHERE], "range": [LIGHT["band"], LIGHT["density"]]}
    return field("shade:N", scale=scale, legend=legend)


def _density(canvas: Canvas, forecasts: Forecasts, frame: Frame) -> Layer:
    """Return the histogram of predictions, scaled to the lowest eighth of the picture."""
    across, (bottom, top) = frame
    edges, share = density(forecasts, *across)
    keep = share > 0
    tall = bottom + (top - bottom) * share / share.max() / 8
    ends = {"from": edges[:-1][keep], "to": edges[1:][keep]}
    data = canvas.on({**ends, "top": tall[keep], "shade": [WHERE] * int(keep.sum())})
    bars = data.mark("rect", opacity=0.75)
    return bars.encode(x="from:Q", x2="to", y="top:Q", y2={"datum": bottom}, fill=_shades())


def _hover(canvas: Canvas, forecasts: Forecasts, fit: Array) -> Layer:
    """Show the numbers at points spread evenly over the records."""
    reached = np.cumsum(forecasts.weights)
    at = np.unique(np.searchsorted(reached, np.linspace(0, 1, 120)).clip(0, forecasts.levels - 1))
    data = canvas.on({"prediction": forecasts.values[at], "rate": fit[at], "below": reached[at]})
    return hover(data, len(at), "prediction", {"prediction": ".4f", "rate": ".4f", "below": ".1%"})
