"""Forty data sets with known faults, for the sentences of the verdict."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import calibrant as cb


def expit(x):
    """Return the logistic function."""
    return 1 / (1 + np.exp(-x))


def logit(p):
    """Return the log odds."""
    return np.log(p / (1 - p))


def cases() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield names and arguments of evaluate; all drawn from one generator, in this order."""
    rng = np.random.default_rng(0)

    def drawn(truth):
        return (rng.random(len(truth)) < truth) * 1.0

    for n in (300, 3000):
        p = rng.beta(1.5, 3, n)
        bump = 0.25 * np.exp(-(((p - 0.4) / 0.08) ** 2))
        shapes = {
            "calibrated": p,
            "overconfident": expit(0.5 * logit(p)),
            "underconfident": expit(2 * logit(p)),
            "too high": expit(logit(p) - 0.4),
            "too low": expit(logit(p) + 0.4),
            "bump": np.clip(p - bump, 0, 1),
            "dip": np.clip(p + bump, 0, 1),
            "inverted": 1 - p,
            "uninformative": np.full(n, p.mean()),
        }
        for name, truth in shapes.items():
            yield f"{name}, {n}", {"y_true": drawn(truth), "y_prob": p}
    for n in (1, 5, 30):
        p = rng.random(n)
        yield f"tiny, {n}", {"y_true": drawn(p), "y_prob": p}
    p = rng.beta(1, 600, 50_000)
    yield "rare, too high", {"y_true": drawn(0.5 * p), "y_prob": p}
    p = rng.beta(1, 6000, 100_000)
    yield "very rare, too low", {"y_true": drawn(4 * p), "y_prob": p}
    p = rng.beta(1, 60, 5000)
    yield "rare, calibrated", {"y_true": drawn(p), "y_prob": p}
    p = np.round(rng.beta(0.2, 0.3, 3000), 2)
    yield "certain", {"y_true": drawn(np.clip(p, 0.02, 0.98)), "y_prob": p}
    yield "certain and overconfident", {"y_true": drawn(0.2 + 0.6 * p), "y_prob": p}
    yield "one prediction", {"y_true": drawn(np.full(500, 0.4)), "y_prob": np.full(500, 0.3)}
    yield "one outcome", {"y_true": np.zeros(500), "y_prob": rng.random(500)}
    p = rng.random(2000)
    weight = rng.uniform(1, 3, 2000)
    yield "weights", {"y_true": drawn(0.8 * p), "y_prob": p, "sample_weight": weight}
    yield "weights, slope", {"y_true": drawn(0.25 + 0.5 * p), "y_prob": p, "sample_weight": weight}
    yield "fractions", {"y_true": np.clip(0.8 * p + rng.normal(0, 0.05, 2000), 0, 1), "y_prob": p}
    yield from _grouped(rng, drawn)


def _grouped(rng, drawn) -> Iterator[tuple[str, dict[str, Any]]]:
    n = 4000
    p = rng.beta(2, 3, n)
    region, sex = np.array(list("abcd"))[rng.integers(0, 4, n)], np.array(["m", "f"])[rng.integers(0, 2, n)]
    age, groups = rng.integers(18, 90, n), {"region": region, "sex": sex}

    def table(truth):
        return {"y_true": drawn(np.clip(truth, 0, 1)), "y_prob": p, "groups": groups}

    yield "one group", table(p + 0.12 * (region == "b"))
    yield "groups that cancel", table(p + 0.1 * (region == "b") - 0.1 * (region == "c"))
    yield "no group", table(p)
    yield "everyone alike", table(expit(0.5 * logit(p)))
    yield "everyone too high", table(0.8 * p)
    yield "a pair", table(p + 0.25 * ((region == "b") & (sex == "f")))
    yield "a group inverted", table(np.where(region == "a", 1 - p, p))
    masks = {"aged 53 and over": age > 52, "young": age < 30}
    yield "masks", {"y_true": drawn(np.clip(p + 0.12 * (age > 52), 0, 1)), "y_prob": p, "groups": masks}
    sketch = cb.Sketch.from_arrays(drawn(expit(0.5 * logit(p))), p, cells=64)
    yield "sketch", {"y_true": sketch.forecasts()}
    for name, truth in (("sketch, one group", p + 0.12 * (region == "b")), ("sketch, everyone", 0.8 * p)):
        frame = {"y": drawn(np.clip(truth, 0, 1)), "p": p, "region": region}
        made = cb.Sketch.from_frame(frame, outcome="y", prediction="p", by=["region"], cells=256)
        yield name, {"y_true": made}
