"""What a report on answers adds, such as those of language models: spikes of confidence, when to abstain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.abstention import AbstentionThreshold, RiskCoverage, choose_threshold, risk_coverage
from calibrant.forecasts import Forecasts
from calibrant.formatting import pluralize
from calibrant.inference.null import record_outcomes
from calibrant.report.charts.canvas import LIGHT, Canvas, Spec, columns, drawing, field
from calibrant.report.charts.distributions import risk_curve
from calibrant.report.rendering import Section
from calibrant.results import Result, Table, TableCell, number_cell

RISKS = (0.01, 0.05, 0.1, 0.2)  # error rates for which a threshold is looked for
MIN_SPIKE = 0.03  # share of the answers that makes one confidence a spike
BINS = 20


@dataclass(frozen=True, slots=True, repr=False)
class Spike(Result):
    """A confidence that many answers share, and how many of these are right."""

    confidence: float
    answers: int
    share: float
    right: float


def spikes(forecasts: Forecasts) -> tuple[Spike, ...]:
    """Return the confidences that at least 3% of the answers (and two of them) share, the highest first."""
    share = forecasts.counts / forecasts.n
    found = np.flatnonzero((share >= MIN_SPIKE) & (forecasts.counts > 1))[::-1]
    values, counts = forecasts.values, forecasts.counts
    right = forecasts.outcomes * forecasts.n / counts
    return tuple(Spike(float(values[k]), int(counts[k]), float(share[k]), float(right[k])) for k in found)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Answers(Result):
    """How confidences are spread, and above which one answers can be trusted (not if `clustered`)."""

    HIDDEN: ClassVar = ("clustered",)
    DERIVED: ClassVar = ("sentence",)

    spikes: tuple[Spike, ...]
    risk_coverage: RiskCoverage
    thresholds: tuple[AbstentionThreshold, ...]
    clustered: bool

    @classmethod
    def of(cls, forecasts: Forecasts, clustered: bool = False, seed: int | None = 0) -> Answers | None:
        """Gather what the forecasts say; None for weighted, fractional or sketched ones."""
        if not forecasts.binary or forecasts.cells is not None or forecasts.record_weights is not None:
            return None
        y, p = record_outcomes(forecasts), np.repeat(forecasts.values, forecasts.counts)
        promised = () if clustered else tuple(choose_threshold(y, p, risk=risk) for risk in RISKS)
        return cls(spikes(forecasts), risk_coverage(y, p, seed=seed), promised, clustered)

    def __str__(self) -> str:
        if self.clustered:
            return (
                "No threshold is promised: that needs independent answers, and some of these belong together "
                "(the same question or cluster). Keep one record per cluster for a promise."
            )
        found = [one for one in self.thresholds if one.threshold is not None]
        useful = next((one for one in found if one.coverage < 1), found[0] if found else self.thresholds[1])
        return str(useful)

    def table(self) -> Table:
        """Return the thresholds by the error rate that they promise."""
        lines = []
        for one in self.thresholds:
            above = "no threshold" if one.threshold is None else f"{one.threshold:.3f}"
            target = number_cell(one.target, f"{100 * one.target:.0f}%")
            shares = _percent_cell(one.coverage), _percent_cell(one.risk)
            lines.append((target, number_cell(one.threshold, above), *shares))
        return Table(("at most wrong", "answer above", "answered", "wrong here"), tuple(lines))

    def spike_table(self) -> Table:
        """Return the confidences that many answers share."""
        lines = []
        for one in self.spikes:
            confidence = number_cell(one.confidence, f"{100 * one.confidence:.4g}%")
            shares = _percent_cell(one.share), _percent_cell(one.right)
            lines.append((confidence, number_cell(one.answers, f"{one.answers:,}"), *shares))
        return Table(("confidence", "answers", "share", "right"), tuple(lines))

    def sections(self) -> list[Section]:
        """Return the sections of the report, which come before all others."""
        note = "Each promise holds with 95% confidence if its error rate is chosen before the data are seen."
        sheets, notes = ((self.table(),), (note,)) if self.thresholds else ((), ())
        texts = str(self), str(self.risk_coverage)
        abstain = Section("abstain", "When to abstain", texts, ("risk",), sheets, notes, half=True)
        count = pluralize(len(self.spikes), "confidence is", "confidences are")
        text = f"{count} shared by 3% of the answers or more."
        if not self.spikes:
            text = "No confidence is shared by 3% of the answers."
        tables = (self.spike_table(),) if self.spikes else ()
        title = "How sure the answers are"
        return [abstain, Section("spread", title, (text,), ("confidences",), tables, half=True)]

    def specifications(self, forecasts: Forecasts) -> dict[str, Spec]:
        return {
            "risk": risk_curve.spec(self.risk_coverage),
            "confidences": confidence_histogram.spec(forecasts),
        }


def _percent_cell(share: float | None) -> TableCell:
    return number_cell(share, "" if share is None else f"{100 * share:.1f}%")


@drawing
def confidence_histogram(forecasts: Forecasts) -> Spec:
    """Draw how often each confidence occurs: bins of 5 points, and the values that many answers share."""
    canvas, found = Canvas(), spikes(forecasts)
    alone = ~np.isin(forecasts.values, [one.confidence for one in found])
    place = np.minimum((forecasts.values * BINS).astype(int), BINS - 1)
    share = np.bincount(place[alone], weights=forecasts.counts[alone], minlength=BINS) / forecasts.n
    events = np.bincount(place[alone], weights=forecasts.outcomes[alone], minlength=BINS)
    left = np.arange(BINS) / BINS
    right = np.divide(events, share, out=np.zeros(BINS), where=share > 0)
    bins = {"from": left, "to": left + 1 / BINS, "zero": np.zeros(BINS)}
    bars = canvas.on({**bins, "share": share, "right": right})
    x = field("from:Q", title="confidence", scale={"domain": [0, 1.02]}, axis={"format": "%"})
    y = field("share:Q", title="share of the answers", axis={"format": "%"})
    bars = bars.mark("rect", color=LIGHT["model"], opacity=0.6, stroke=LIGHT["paper"])
    tips = dict.fromkeys(("from", "to", "share", "right"), ".1%")
    layers = [bars.encode(x=x, x2="to", y=y, y2="zero").tips(tips)]
    if found:
        names, labeled = dict.fromkeys(found, ""), list[float]()
        for one in sorted(found, key=lambda one: -one.share):  # labels closer than 5 points would overlap
            if all(abs(one.confidence - other) >= 0.05 for other in labeled):
                labeled.append(one.confidence)
                names[one] = f"{100 * one.confidence:.3g}%"
        known = columns(found, confidence="confidence", share="share", right="right")
        data = canvas.on({**known, "zero": [0.0] * len(found), "name": names.values()})
        lines = data.mark("rule", color=LIGHT["second"], strokeWidth=5)
        words = data.mark("text", dy=-8, color=LIGHT["ink"], fontSize=11)
        tips = dict.fromkeys(("confidence", "share", "right"), ".1%")
        layers += [
            lines.encode(x="confidence:Q", y="share:Q", y2="zero").tips(tips),
            words.encode(x="confidence:Q", y="share:Q", text="name:N"),
        ]
    caption = (
        "Shaded: all answers in bins of 5 points, without the values that 3% of the answers or more share; "
        "these are the lines."
    )
    return canvas.finished(layers, "How often each confidence occurs", caption)
