"""Reliability diagrams of a model, of several models, and of the map of a repair."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError, reject_name
from calibrant.forecasts import Forecasts
from calibrant.inference.bootstrap import coarse
from calibrant.metrics.convolved import smoothed_reliability
from calibrant.metrics.scores import isotonic_curve
from calibrant.recalibration.result import Recalibration
from calibrant.report.charts.canvas import (
    LIGHT,
    ONE_POINT,
    Canvas,
    Layer,
    Spec,
    drawing,
    field,
    points_to_draw,
    window,
)
from calibrant.results import Array

CURVES = {"isotonic": "observed (isotonic)", "spline": "observed (spline)", "smoothed": "observed (smoothed)"}
BAND, SPLINE_BAND, WHERE = "95% if calibrated", "95% confidence", "predictions"
MIN_RECORDS_NEARBY = 20  # records near a point below which the smoothed curve fades
DOTS = (170, 80, 25)  # areas of dots that remain distinct when they overlap
DIAGONAL = "Predictions are right on the dashed diagonal, too low above it and too high below it. "
RELIABILITY_CAPTION = DIAGONAL + "The gray band holds 95% of such curves if the predictions are right."
SPLINE_CAPTION = DIAGONAL + "The gray band is the 95% confidence interval of the curve."
Frame = tuple[tuple[float, float], tuple[float, float]]  # the stretch shown across, and up
CurveName = Literal["isotonic", "spline", "smoothed"]
ScaleName = Literal["auto", "linear", "logit"]
MIN_LOGIT = 1e-6  # predictions nearer to 0 or 1 are drawn at the end of a logit axis
ROOM = 3.0  # odds beyond the outermost predictions that a logit axis still shows, as a factor
RARE = 0.1  # "auto" takes the logit scale where nine of ten predictions lie below this, or above 1 - this
BAND_DRAWS = 200
MAX_BAND_CELLS = 512
TICKS = (0.00001, 0.0001, 0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999)


@dataclass(frozen=True, slots=True)
class Axis:
    """How probabilities are placed on both axes: as they are, or by their log odds between two ends."""

    logit: bool
    low: float = 0.0
    high: float = 1.0

    @classmethod
    def of(cls, scale: ScaleName, forecasts: Forecasts) -> Axis:
        """Choose the scale, and for log odds the ends: all but the 5% of predictions nearest to 0 or 1."""
        if scale not in get_args(ScaleName):
            raise reject_name("scale", scale, list(get_args(ScaleName)))
        values, reached = forecasts.values, np.cumsum(forecasts.weights)
        at = np.searchsorted(reached, [0.05, 0.1, 0.9, 0.95]).clip(max=forecasts.levels - 1)
        outer_low, lower, upper, outer_high = values[at].tolist()
        if scale == "linear" or (scale == "auto" and not (0 < upper < RARE or 1 > lower > 1 - RARE)):
            return cls(logit=False)
        rare = forecasts.mean_prediction < 0.5
        ends = (outer_low, values[-1]) if rare else (values[0], outer_high)
        low, high = (min(max(float(end), MIN_LOGIT), 1 - MIN_LOGIT) for end in ends)
        return cls(True, low / (low + ROOM * (1 - low)), ROOM * high / (1 - high + ROOM * high))

    def place(self, shares: Array) -> Array:
        if not self.logit:
            return shares
        held = np.clip(shares, self.low, self.high)
        return np.asarray(np.log(held / (1 - held)))

    def window(self, *arrays: Array) -> tuple[float, float]:
        if not self.logit:
            return window(*arrays)
        low, high = self.place(np.array([0.0, 1.0])).tolist()
        return low, high

    @property
    def options(self) -> Spec:
        if not self.logit:
            return {}
        ticks = [float(np.log(t / (1 - t))) for t in TICKS]
        label = "format(1 / (1 + exp(-datum.value)), '.4~%')"
        return {"axis": {"values": ticks, "labelExpr": label, "labelOverlap": True}}


class Line(NamedTuple):
    """A curve to draw; `faint` marks the points that few records support."""

    prediction: Array
    rate: Array
    faint: npt.NDArray[np.bool_]


class Band(NamedTuple):
    """Pointwise limits of a curve at `x`."""

    x: Array
    lower: Array
    upper: Array


def consistency_band(forecasts: Forecasts, *, seed: int) -> Band:
    """Return the 95% band of isotonic curves if calibrated (Dimitriadis, Gneiting & Jordan 2021, sec. 3)."""
    cells = coarse(forecasts, MAX_BAND_CELLS)
    rng = np.random.default_rng(seed)
    with np.errstate(divide="ignore", invalid="ignore"):  # squares of the smallest weights are 0
        # weighted records of a cell are drawn as the binomial of the same mean and variance
        alike = np.nan_to_num(cells.weights**2 / cells.squared_weights, nan=1.0)
    size = np.rint(np.clip(alike, 1, cells.counts)).astype(np.int64)
    x = np.unique(np.interp(np.linspace(0, 1, 101), np.linspace(0, 1, cells.levels), cells.values))
    fits = np.empty((BAND_DRAWS, len(x)))
    for row in fits:
        drawn = cells.with_outcomes(cells.weights * rng.binomial(size, cells.values) / size)
        row[:] = np.interp(x, cells.values, isotonic_curve(drawn))
    return Band(x, *np.quantile(fits, [0.025, 0.975], axis=0))


@drawing
def reliability_diagram(
    forecasts: Forecasts, *, curve: CurveName = "isotonic", scale: ScaleName = "auto", seed: int = 0
) -> Spec:
    """Draw a reliability curve with its band, and where the predictions are."""
    if curve not in get_args(CurveName):
        raise reject_name("curve", curve, list(get_args(CurveName)))
    axis = Axis.of(scale, forecasts)
    if curve == "spline":
        line, band = _spline(forecasts, seed)
    else:
        band = consistency_band(forecasts, seed=seed)
        smooth = curve == "smoothed"
        line = (
            _within(smoothed(forecasts), *window(forecasts.values))
            if smooth
            else corners_of_isotonic(forecasts)
        )
    across = axis.window(forecasts.values)
    up = axis.window(line.rate, band.lower, band.upper, forecasts.values)
    canvas = Canvas()
    placed = Line(axis.place(line.prediction), axis.place(line.rate), line.faint)
    lower, upper = axis.place(band.lower), axis.place(band.upper)
    legend = SPLINE_BAND if curve == "spline" else BAND
    layers = [
        _density(canvas, forecasts, (across, up), axis, legend),
        shaded(canvas, axis.place(band.x), lower, upper, _shades(legend), legend),
        *curves(canvas, {CURVES[curve]: placed}, (across, up), axis),
        _hover(canvas, forecasts, line, axis),
    ]
    caption = SPLINE_CAPTION if curve == "spline" else RELIABILITY_CAPTION
    return canvas.finished(layers, "Reliability diagram", caption, height=310)


def _spline(forecasts: Forecasts, seed: int) -> tuple[Line, Band]:
    """Return a logistic spline and its confidence band, as clinicians draw calibration plots."""
    from calibrant.recalibration.recalibrate import recalibrate

    fitted = recalibrate(forecasts, method="spline", seed=seed)
    places = np.linspace(forecasts.values[0], forecasts.values[-1], 101)
    rates, found = np.asarray(fitted.predict(places)), fitted.band(places)
    return Line(places, rates, np.zeros(len(places), dtype=bool)), Band(places, found.lower, found.upper)


def smoothed(forecasts: Forecasts) -> Line:
    """Return the smoothed curve where there are predictions, at the bandwidth of the convolved error."""
    curve = smoothed_reliability(forecasts)
    low, high = forecasts.values[0] - curve.bandwidth, forecasts.values[-1] + curve.bandwidth
    near = np.isfinite(curve.outcome) & (curve.prediction >= low) & (curve.prediction <= high)
    at = np.flatnonzero(near)
    records = 1 / float(forecasts.squared_weights.sum())
    if len(at) == 0:  # all predictions lie between two points of its grid
        mean, rate = np.array([forecasts.mean_prediction]), np.array([forecasts.base_rate])
        return Line(mean, rate.clip(0.0, 1.0), np.array([records < MIN_RECORDS_NEARBY]))
    at = at[np.unique(np.linspace(0, len(at) - 1, 150).astype(int))]
    near_by = curve.density[at] * curve.bandwidth * np.sqrt(2 * np.pi) * records
    return Line(curve.prediction[at], np.clip(curve.outcome[at], 0.0, 1.0), near_by < MIN_RECORDS_NEARBY)


def corners_of_isotonic(forecasts: Forecasts) -> Line:
    """Return the corners of the isotonic fit: the first and last prediction of every pooled block."""
    fit = isotonic_curve(forecasts)
    change = np.flatnonzero(np.diff(fit) != 0)
    corners = np.unique(np.concatenate(([0], change, change + 1, [len(fit) - 1])))
    corners = corners[points_to_draw(fit[corners])]
    return Line(forecasts.values[corners], fit[corners], np.zeros(len(corners), dtype=bool))


def curves(
    canvas: Canvas, lines: dict[str, Line], frame: Frame, axis: Axis = Axis(logit=False)
) -> list[Layer]:
    """Return the diagonal and the named curves, which differ in color and dashes."""
    names = list(lines)
    colors = [LIGHT[name] for name in ("model", "second", "third")][: len(names)]
    dashes = [[1, 0], [7, 3], [2, 2]][: len(names)]
    across, up = ({"domain": list(stretch), "nice": False, "zero": False} for stretch in frame)
    x = field("prediction:Q", title="predicted", scale=across, **axis.options)
    y = field("rate:Q", title="observed", scale=up, **axis.options)
    low, high = max(frame[0][0], frame[1][0]), min(frame[0][1], frame[1][1])
    diagonal = canvas.on({"prediction": [low, high], "rate": [low, high]})
    points = canvas.on(_pieces(lines))
    upright = {"direction": "horizontal" if sum(map(len, names)) < 30 else "vertical"}
    few = max(len(line.rate) for line in lines.values()) < 25
    return [
        diagonal.mark("line", color=LIGHT["quiet"], strokeDash=[4, 4], strokeWidth=1.2).encode(x=x, y=y),
        points.mark("line", strokeWidth=2.2, point=few).encode(
            x=x,
            y=y,
            color=field("curve:N", scale={"domain": names, "range": colors}, legend=upright),
            strokeDash=field("curve:N", scale={"domain": names, "range": dashes}, legend=upright),
            detail="piece:N",
            opacity=field("opacity:Q", scale=None),
        ),
        *(layer.encode(x=x, y=y) for layer in _dots(canvas, lines, colors)),
    ]


def _dots(canvas: Canvas, lines: dict[str, Line], colors: list[str]) -> list[Layer]:
    """Return a dot for each curve that is one point, which no line shows; later ones fit into earlier."""
    dots = zip(lines.values(), colors, DOTS, strict=False)
    return [
        canvas.on({"prediction": line.prediction[:1], "rate": line.rate[:1]}).mark(
            "point", color=color, filled=True, opacity=1, size=size
        )
        for line, color, size in dots
        if not np.ptp(line.prediction) and not np.ptp(line.rate)
    ]


def _within(line: Line, low: float, high: float) -> Line:
    """Return a curve cut where it leaves the frame; one that ends just short of the frame is extended."""
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


def shaded(
    canvas: Canvas, places: Array, lower: Array, upper: Array, shades: Spec | None = None, name: str = BAND
) -> Layer:
    """Return a band; where all places are one, a thick rule. `shades` puts it into a legend by `name`."""
    columns = {"prediction": places, "lower": lower, "upper": upper}
    data = canvas.on(columns if shades is None else {**columns, "shade": [name] * len(places)})
    mark = data.mark("area", color=LIGHT["band"], opacity=0.6)
    if places[-1] - places[0] <= ONE_POINT:
        mark, shades = data.mark("rule", color=LIGHT["band"], strokeWidth=14, opacity=0.6), None
    mark = mark.encode(x="prediction:Q", y="lower:Q", y2="upper")
    return mark if shades is None else mark.encode(fill=shades)


def _shades(name: str) -> Spec:
    """Return the legend of what is shaded, in squares, at the bottom where it meets no other."""
    legend = {"symbolType": "square", "symbolStrokeWidth": 0, "direction": "vertical", "orient": "bottom"}
    scale = {"domain": [name, WHERE], "range": [LIGHT["band"], LIGHT["density"]]}
    return field("shade:N", scale=scale, legend=legend)


def density(values: Array, weights: Array, low: float, high: float, bins: int = 50) -> tuple[Array, Array]:
    """Return the edges of equal bins over [low, high] and the share of the weight in each."""
    edges = np.linspace(low, high, bins + 1)
    place = np.clip(((values - low) / (high - low) * bins).astype(np.int64), 0, bins - 1)
    return edges, np.bincount(place, weights=weights, minlength=bins).astype(np.float64)


def _density(canvas: Canvas, forecasts: Forecasts, frame: Frame, axis: Axis, name: str) -> Layer:
    """Return the histogram of predictions, scaled to the lowest eighth of the picture."""
    across, (bottom, top) = frame
    edges, share = density(axis.place(forecasts.values), forecasts.weights, *across)
    keep = share > 0
    tall = bottom + (top - bottom) * share / share.max() / 8
    ends = {"from": edges[:-1][keep], "to": edges[1:][keep]}
    data = canvas.on({**ends, "top": tall[keep], "shade": [WHERE] * int(keep.sum())})
    bars = data.mark("rect", opacity=0.75)
    return bars.encode(x="from:Q", x2="to", y="top:Q", y2={"datum": bottom}, fill=_shades(name))


def _hover(canvas: Canvas, forecasts: Forecasts, line: Line, axis: Axis) -> Layer:
    """Show the numbers at points spread evenly over the records."""
    reached = np.cumsum(forecasts.weights)
    at = np.unique(np.searchsorted(reached, np.linspace(0, 1, 120)).clip(0, forecasts.levels - 1))
    values = forecasts.values[at]
    rates = np.interp(values, line.prediction, line.rate)
    data = canvas.on(
        {"place": axis.place(values), "predicted": values, "observed": rates, "share below": reached[at]}
    )
    return data.hover(len(at), "place", {"predicted": ".4f", "observed": ".4f", "share below": ".1%"})


COMPARISON_CAPTION = (
    "The isotonic (CORP) reliability curve of each model. Predictions are right on the dashed diagonal, too "
    "low above it and too high below it."
)


@drawing
def comparison(models: Mapping[str, Forecasts]) -> Spec:
    """Draw the reliability curves of two or three models, by name."""
    if not 2 <= len(models) <= 3:  # as many colors and dash patterns as stay apart on paper
        raise InvalidInputError("models", "must be two or three", f"got {len(models)}")
    lines = {str(name): corners_of_isotonic(forecasts) for name, forecasts in models.items()}
    values = [forecasts.values for forecasts in models.values()]
    frame = window(*values), window(*values, *(line.rate for line in lines.values()))
    canvas = Canvas()
    return canvas.finished(curves(canvas, lines, frame), "Models compared", COMPARISON_CAPTION, height=380)


MAP, BEFORE, AFTER = "map", "observed before", "after"
MAP_CAPTION = (
    "The solid line is what each prediction would become; the gray band has {confidence:.0%} {how}. Dashed: "
    "observed frequencies in records not used for the fit, before and after."
)


@drawing
def recalibration_map(fitted: Recalibration, before: Forecasts, after: Forecasts) -> Spec:
    """Draw the chosen map with its band, and the isotonic curves of held-out records before and after."""
    places = np.linspace(fitted.fit.low, fitted.fit.high, 101)
    band, mapped = fitted.band(places), fitted.predict(places)
    lines = {
        MAP: Line(places, mapped, mapped < 0),  # nowhere faint
        BEFORE: corners_of_isotonic(before),
        AFTER: corners_of_isotonic(after),
    }
    across = window(*(line.prediction for line in lines.values()))
    up = window(*(line.rate for line in lines.values()), band.lower, band.upper)
    canvas = Canvas()
    layers = [shaded(canvas, places, band.lower, band.upper), *curves(canvas, lines, (across, up))]
    caption = MAP_CAPTION.format(confidence=band.confidence, how=band.how.partition(",")[0])
    return canvas.finished(layers, "What recalibration would do", caption, height=380)
