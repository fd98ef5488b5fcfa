"""The chart of a monitor: evidence against calibration over time."""

from __future__ import annotations

import math

import numpy as np

from calibrant.online.monitor import Monitor
from calibrant.online.reading import Reading
from calibrant.report.charts.layers import Spec, field
from calibrant.report.charts.notebook import drawing
from calibrant.report.charts.online import moments
from calibrant.report.charts.style import Canvas, hover
from calibrant.report.palette import LIGHT
from calibrant.results import Array


@drawing
def evidence_over_time(outcomes: Array, predictions: Array, *, alpha: float = 0.05) -> Spec:
    """Draw what a Monitor would have said along these records: evidence, alarm and onset."""
    canvas = Canvas()
    ends, readings = readings_over_time(outcomes, predictions, alpha)
    logs = np.array([reading.log_evalue for reading in readings]) / math.log(10)
    data = canvas.on({"record": ends, "evidence": logs})
    bar = canvas.on({"bar": [-math.log10(alpha)], "label": [f"alarm: 1 / {alpha:g}"]})
    layers = [
        data.mark("line", color=LIGHT["model"], strokeWidth=2).encode(
            x=field("record:Q", title="records"), y=field("evidence:Q", title="evidence, powers of ten")
        ),
        bar.mark("rule", color=LIGHT["second"], strokeDash=[6, 4]).encode(y="bar:Q"),
        hover(data, len(ends), "record", {"record": ",.0f", "evidence": ".2f"}),
    ]
    last = readings[-1]
    if last.alarm:
        marks = canvas.on({"at": [last.alarm_at, last.onset], "what": ["alarm", "trouble began"]})
        layers.append(marks.mark("rule", color=LIGHT["third"], strokeWidth=2).encode(x="at:Q"))
        for line, what in enumerate(("alarm", "trouble began")):  # each on a line: they may be close
            label = marks.where(f"datum.what == '{what}'")
            words = label.mark("text", color=LIGHT["ink"], align="left", dx=4, baseline="top")
            layers.append(words.encode(x="at:Q", y={"value": 4 + 14 * line}, text="what:N"))
    caption = (
        "Money won by betting against calibration. Calibrated predictions let it ever reach the dashed line "
        f"with probability {alpha:g} at most, however often one looks. " + _said(last)
    )
    return canvas.finished(layers, "Evidence against calibration", caption, height=240)


def readings_over_time(outcomes: Array, predictions: Array, alpha: float) -> tuple[list[int], list[Reading]]:
    """Return what a monitor says after each of some hundred stretches of records."""
    monitor, readings = Monitor(alpha=alpha), []
    ends = (moments(len(outcomes)) + 1).tolist()
    for begin, end in zip([0, *ends[:-1]], ends, strict=True):
        readings.append(monitor.update(outcomes[begin:end], predictions[begin:end]))
    return ends, readings


def _said(reading: Reading) -> str:
    if not reading.alarm:
        return "There was no alarm."
    return f"Alarm at record {reading.alarm_at:,}; what pays most to bet on: {reading.suspicion}."
