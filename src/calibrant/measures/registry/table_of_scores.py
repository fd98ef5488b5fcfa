"""The second half of the table: proper scores and recalibration summaries."""

from __future__ import annotations

from calibrant.measures.registry import null, resolution
from calibrant.measures.registry.laws import NORMAL, SPIEGELHALTER
from calibrant.measures.registry.null import Null
from calibrant.measures.registry.row import Measure
from calibrant.measures.regression import (
    calibration_in_the_large,
    calibration_intercept,
    calibration_slope,
    integrated_calibration_index,
)
from calibrant.measures.scores import brier_score, log_loss, miscalibration

_CORP = "Dimitriadis, Gneiting & Jordan 2021, Stable reliability diagrams for probabilistic classifiers"
_ICI = "Austin & Steyerberg 2019, The integrated calibration index (isotonic in place of loess)"
_COX = "Cox 1958, Two further applications of a model for binary regression"

SCORES = (
    Measure(
        "brier",
        brier_score,
        family="scores",
        headline=True,
        meaning="mean squared error of the prediction (calibration and sharpness together)",
        continuous=True,
        sound=True,
        truthful="strict",
        symmetric=True,
        lipschitz=2.0,
        null=Null(null.brier, mean=null.brier_mean, law=SPIEGELHALTER, two_sided=True),
        resolution=resolution.brier,
        cost="O(m)",
        citation="Brier 1950, Verification of forecasts expressed in terms of probability",
    ),
    Measure(
        "brier-mcb",
        miscalibration,
        family="scores",
        headline=True,
        meaning="part of the Brier score that the best monotone recalibration would remove",
        complete=True,
        symmetric=True,
        cost="O(m)",
        citation=_CORP,
    ),
    Measure(
        "log-loss",
        log_loss,
        family="scores",
        meaning="mean negative log likelihood in nats (calibration and sharpness together)",
        sound=True,
        truthful="strict",
        symmetric=True,
        null=Null(null.log_score, mean=null.log_mean, two_sided=True),
        resolution=resolution.log_loss,
        cost="O(m)",
        citation="Good 1952, Rational decisions",
    ),
    Measure(
        "log-mcb",
        miscalibration,
        options={"score": "log"},
        family="scores",
        meaning="part of the log loss that the best monotone recalibration would remove",
        complete=True,
        symmetric=True,
        cost="O(m)",
        citation=_CORP,
    ),
    Measure(
        "in-the-large",
        calibration_in_the_large,
        family="regression",
        headline=True,
        meaning="mean outcome minus mean prediction; positive when predictions are too low",
        continuous=True,
        complete=True,
        signed=True,
        lipschitz=1.0,
        null=Null(null.ends, residuals_only=True, mean=null.zero, law=NORMAL, two_sided=True),
        resolution=resolution.same,
        cost="O(m)",
        citation="Steyerberg 2019, Clinical prediction models, chapter 15",
    ),
    Measure(
        "slope",
        calibration_slope,
        family="regression",
        headline=True,
        meaning="slope of the outcome on the logit of the prediction; 1 is right, below 1 overconfident",
        ideal=1.0,
        signed=True,
        symmetric=True,
        needs_both_outcomes=True,
        cost="O(m) a step",
        citation=_COX,
    ),
    Measure(
        "intercept",
        calibration_intercept,
        family="regression",
        meaning="shift on the logit scale that makes the mean right; positive when predictions are too low",
        signed=True,
        needs_both_outcomes=True,
        cost="O(m) a step",
        citation=_COX,
    ),
    Measure(
        "ici",
        integrated_calibration_index,
        family="regression",
        meaning="mean distance between the prediction and its isotonic recalibration",
        complete=True,
        symmetric=True,
        cost="O(m)",
        citation=_ICI,
    ),
    Measure(
        "e50",
        integrated_calibration_index,
        options={"quantile": 0.5},
        family="regression",
        meaning="median distance between the prediction and its isotonic recalibration",
        complete=True,
        cost="O(m log m)",
        citation=_ICI,
    ),
    Measure(
        "e90",
        integrated_calibration_index,
        options={"quantile": 0.9},
        family="regression",
        meaning="distance between prediction and isotonic recalibration that 90 % of records stay below",
        complete=True,
        cost="O(m log m)",
        citation=_ICI,
    ),
)
