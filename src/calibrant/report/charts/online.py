"""Charts of streams: certificate and bound, raw against calibrated, the experts' weights, evidence."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from calibrant.errors import InvalidInputError
from calibrant.online.base import Run
from calibrant.online.calibrator import NAMES
from calibrant.online.monitor import Monitor
from calibrant.report.charts.canvas import CURVES, LIGHT, POINTS, Canvas, Spec, drawing, field
from calibrant.results import Array

COLORS = [LIGHT[name] for name in ("density", "model", "third", "second", "mark")]


def moments(rows: int) -> npt.NDArray[np.int64]:
    """Return the rows to draw: some hundreds, evenly spread, the last among them."""
    return np.unique(np.linspace(0, rows - 1, min(rows, POINTS)).round().astype(np.int64))


@drawing
def certificate_over_time(run: Run) -> Spec:
    """Draw the certificate of a run, per round, and what it could not exceed."""
    if run.certificate is None or not len(run):
        raise InvalidInputError("run", "must hold a certificate", "got none")
    canvas, at = Canvas(), moments(len(run))
    rounds = run.rounds[at].astype(float)
    lines = {"certificate": run.certificate[at] / rounds}
    if run.bound is not None:
        lines["bound"] = run.bound[at] / rounds
    colors = {"domain": list(lines), "range": CURVES[: len(lines)]}
    largest = {"type": "log", "domainMax": 1, "nice": False}  # beyond 1 a bound says nothing
    y = field("value:Q", title="distance to calibration at most", scale=largest)
    x, layers = field("round:Q", title="outcomes learned"), []
    for name, values in lines.items():
        data = canvas.on({"round": rounds, "value": values, "line": [name] * len(at)})
        dash = [1, 0] if name == "certificate" else [6, 4]
        drawn = data.mark("line", strokeWidth=2, strokeDash=dash, clip=True)
        layers.append(drawn.encode(x=x, y=y, color=field("line:N", scale=colors)))
        layers.append(data.hover(len(at), "round", {"round": ",.0f", "value": ".4f"}))
    caption = (
        "After each outcome the forecasts so far are provably no further from calibrated than the "
        "certificate, and the certificate can never exceed the bound, whatever the outcomes are."
    )
    return canvas.finished(layers, "Certificate and bound", caption)


@drawing
def gain_over_time(outcomes: Array, raw: Array, run: Run) -> Spec:
    """Draw by how much the total Brier score of the raw predictions exceeds that of the calibrated ones."""
    canvas, at = Canvas(), moments(len(run))
    gains = np.cumsum((outcomes - raw) ** 2 - (outcomes - run.predictions) ** 2)
    data = canvas.on({"round": run.rounds[at], "gain": gains[at]})
    line = data.mark("line", color=LIGHT["model"], strokeWidth=2).encode(
        x=field("round:Q", title="outcomes learned"), y=field("gain:Q", title="total Brier score saved")
    )
    caption = (
        "The Brier score of the raw predictions minus that of the calibrated ones, added up. Where the line "
        "climbs, calibrating helps; where the raw predictions are right it stays level."
    )
    layers = [canvas.zero_line(), line, data.hover(len(at), "round", {"round": ",.0f", "gain": "+.3f"})]
    return canvas.finished(layers, "Raw against calibrated", caption)


@drawing
def expert_weights(run: Run) -> Spec:
    """Draw the weight of each expert over time, one above the other."""
    if run.weights is None or not len(run):
        raise InvalidInputError("run", "must hold weights", "got none", "use OnlineCalibrator.run")
    canvas, at = Canvas(), moments(len(run))
    data = canvas.on(
        {
            "round": np.repeat(run.rounds[at], len(NAMES)),
            "weight": _means(run.weights, at).ravel(),
            "expert": list(NAMES) * len(at),
        }
    )
    area = (
        data.mark("area", opacity=0.85)
        .encode(
            x=field("round:Q", title="outcomes learned"),
            y=field("weight:Q", title="weight", stack="normalize", axis={"format": ".0%"}),
            color=field(
                "expert:N",
                scale={"domain": list(NAMES), "range": COLORS},
                legend={"symbolType": "square", "symbolStrokeWidth": 0, "symbolOpacity": 1, "columns": 2},
            ),
        )
        .tips({"weight": ".1%", "round": ","}, "expert:N")
    )
    caption = (
        "How much each expert counts in the mixture, on average over a few records and all segments. The raw "
        "predictions start with half; weight moves to the one with the smaller Brier score so far."
    )
    return canvas.finished([area], "Weights of the experts", caption, height=240)


def _means(weights: Array, at: npt.NDArray[np.int64]) -> Array:
    """Return the mean weights of the stretches of rows that end at these."""
    starts = np.concatenate([[0], at[:-1] + 1])
    sums = np.add.reduceat(weights, starts, axis=0)
    return np.asarray(sums / np.diff(starts, append=len(weights))[:, None])


@drawing
def evidence_over_time(outcomes: Array, predictions: Array, *, alpha: float = 0.05) -> Spec:
    """Draw what a Monitor would have said along these records: evidence, alarm and onset."""
    canvas, monitor = Canvas(), Monitor(alpha=alpha)
    ends = (moments(len(outcomes)) + 1).tolist()
    readings = [
        monitor.update(outcomes[begin:end], predictions[begin:end]) for begin, end in pairwise([0, *ends])
    ]
    logs = [reading.log_evalue / math.log(10) for reading in readings]
    data = canvas.on({"record": ends, "evidence": logs})
    bar = canvas.on({"bar": [-math.log10(alpha)], "label": [f"alarm: 1 / {alpha:g}"]})
    layers = [
        data.mark("line", color=LIGHT["model"], strokeWidth=2).encode(
            x=field("record:Q", title="records"), y=field("evidence:Q", title="evidence, powers of ten")
        ),
        bar.mark("rule", color=LIGHT["second"], strokeDash=[6, 4]).encode(y="bar:Q"),
        data.hover(len(ends), "record", {"record": ",.0f", "evidence": ".2f"}),
    ]
    last, said = readings[-1], "There was no alarm."
    if last.alarm:
        said = f"Alarm at record {last.alarm_at:,}; strongest evidence for: {last.suspicion}."
        marks = canvas.on({"at": [last.alarm_at, last.onset], "what": ["alarm", "trouble began"]})
        layers.append(marks.mark("rule", color=LIGHT["third"], strokeWidth=2).encode(x="at:Q"))
        for line, what in enumerate(("alarm", "trouble began")):  # each on a line: they may be close
            label = marks.where(f"datum.what == '{what}'")
            words = label.mark("text", color=LIGHT["ink"], align="left", dx=4, baseline="top")
            layers.append(words.encode(x="at:Q", y={"value": 4 + 14 * line}, text="what:N"))
    caption = (
        "Money won by betting against calibration. If predictions are calibrated, it ever reaches the dashed "
        f"line with probability {alpha:g} at most, however often you look. {said}"
    )
    return canvas.finished(layers, "Evidence against calibration", caption, height=240)
