"""Bands of maps, bins of histograms, and rows dropped together with their columns."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, logit

import calibrant as cb
from calibrant.fits.calibration_curve import fit_calibration_curve
from calibrant.fits.levels import levels_of_sorted
from calibrant.recalibration.recalibrate import recalibrate


def records(n=400, seed=0, slope=1.5):
    rng = np.random.default_rng(seed)
    truth = rng.uniform(0.05, 0.95, n)
    return (rng.random(n) < truth).astype(float), expit(slope * logit(truth))


def test_the_band_contains_the_map_and_the_limits_of_the_true_curve():
    y, p = records()
    fitted = recalibrate(y, p, method="platt", seed=3)
    at = np.array([0.1, 0.5, 0.9])
    band = fitted.band(at, confidence=0.9)
    order = np.argsort(p)
    lower, upper = fit_calibration_curve(levels_of_sorted(p[order], y[order], np.ones(400))).limits(at, 0.9)
    own = fitted.predict(at)
    assert band.lower == pytest.approx(np.minimum(lower, own), abs=1e-6)
    assert band.upper == pytest.approx(np.maximum(upper, own), abs=1e-6)
    assert "true calibration curve" in band.how
    assert band.to_dict()["confidence"] == 0.9


@pytest.mark.parametrize("method", ["platt", "identity"])
def test_the_band_covers_the_true_curve_whatever_map_was_chosen(method):
    at = np.array([0.1, 0.5, 0.9])
    truth, hits = expit(logit(at) / 1.5), 0
    for seed in range(60):
        band = recalibrate(*records(seed=seed), method=method).band(at)
        hits += np.count_nonzero((band.lower <= truth) & (truth <= band.upper))
    assert hits / 180 >= 0.9


def test_the_band_of_a_map_for_another_base_rate_moves_with_it():
    y, p = records()
    at = np.array([0.3, 0.6])
    plain = recalibrate(y, p, method="shift").band(at)
    base = float(y.mean())
    same = recalibrate(y, p, method="shift", prevalence=base).band(at)
    higher = recalibrate(y, p, method="shift", prevalence=min(0.95, base + 0.2)).band(at)
    assert same.lower == pytest.approx(plain.lower, abs=1e-9)
    assert np.all(higher.lower > plain.lower)


def test_weights_and_clusters_widen_the_band():
    y, p = records(600)
    at = np.array([0.4, 0.6])

    def width(**more):
        band = recalibrate(np.repeat(y, 2), np.repeat(p, 2), method="platt", **more).band(at)
        return band.upper - band.lower

    assert np.all(width(clusters=np.repeat(np.arange(600), 2)) > 1.2 * width())
    assert np.all(width(sample_weight=np.tile([1.0, 30.0], 600)) > 1.1 * width())


@pytest.mark.parametrize("counted", [False, True], ids=["rows", "sketch"])
def test_the_band_knows_that_the_rate_of_outcomes_is_uncertain(counted):
    """Folds with equal shares of outcomes would hide it: the band of a shift covered in 78% of samples."""
    hits = 0
    for seed in range(120):
        rng = np.random.default_rng(seed)
        p = rng.uniform(0.05, 0.95, 500).round(2)
        y = (rng.random(500) < expit(logit(p) - 0.5)).astype(float)
        data = (cb.Sketch.from_arrays(y, p),) if counted else (y, p)
        band = recalibrate(*data, method="shift", seed=seed).band([0.5])
        hits += band.lower[0] <= expit(-0.5) <= band.upper[0]
    assert hits >= 106


def test_the_band_covers_the_true_curve_of_rounded_scores():
    """With a rounded 0 at a logit of -9 the limits held the true rate in 12 to 50% of these samples."""
    at = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
    rng = np.random.default_rng(3)
    many = expit(rng.normal(0, 1.5, 400_000))
    shown, rates = many.round(1), expit(logit(many) + 0.5)
    truth = np.array([rates[shown == level].mean() for level in at])
    hits = np.zeros(5)
    for _ in range(60):
        rows = rng.choice(len(many), 5_000, replace=False)
        y = (rng.random(5_000) < rates[rows]).astype(float)
        band = recalibrate(y, shown[rows], method="platt").band(at)
        hits += (band.lower <= truth) & (truth <= band.upper)
    assert np.all(hits >= 51)  # 95% is 57


def test_a_band_needs_the_records(tmp_path):
    y, p = records(60)
    recalibrate(y, p, method="shift", seed=0).save(tmp_path / "map.json")
    with pytest.raises(cb.InvalidInputError, match="records were not kept"):
        cb.load_recalibration(tmp_path / "map.json").band([0.5])
    with pytest.raises(cb.InvalidInputError, match="confidence must lie strictly between 0 and 1"):
        recalibrate(y, p, method="shift", seed=0).band([0.5], confidence=1.0)


def test_bins_of_a_histogram_hold_its_rates_and_limits():
    y, p = records(300)
    fitted = recalibrate(y, p, method="histogram", bins=4, seed=0)
    bins = fitted.bins
    assert len(bins.rates) == len(bins.edges) + 1 == 4
    middles = np.concatenate(([0.0], (bins.edges[1:] + bins.edges[:-1]) / 2, [1.0]))
    assert fitted.predict(middles) == pytest.approx(bins.rates)
    assert np.all((bins.lower <= bins.rates) & (bins.rates <= bins.upper))
    assert "all 4 bins are within" in fitted.guarantee
    assert recalibrate(y, p, method="platt").bins is None


def test_rows_with_missing_values_are_dropped_with_the_columns_beside_them():
    y, p = records(200)
    region, patient = np.array(["a", "b"] * 100), np.arange(200) // 2
    holes = p.copy()
    holes[[3, 50]] = np.nan
    kept = ~np.isnan(holes)
    options = {"method": "hierarchical", "seed": 0}
    dropped = recalibrate(
        y, holes, covariates={"region": region}, clusters=patient, missing="drop", **options
    )
    by_hand = recalibrate(
        y[kept], p[kept], covariates={"region": region[kept]}, clusters=patient[kept], **options
    )
    assert dropped.fit == by_hand.fit
    assert np.array_equal(dropped.predict(p, {"region": region}), by_hand.predict(p, {"region": region}))
    with pytest.raises(cb.InvalidInputError):
        recalibrate(y, holes, covariates={"region": region}, **options)


def test_the_assessment_measures_u_calibration_before_and_after():
    y, p = records(2_000)
    change = recalibrate(y, 0.5 + 0.5 * p, method="platt", seed=0).assessment.changes["u_calibration"]
    assert change.before > 0.02 > 0.01 > change.after
    assert change.gain == pytest.approx(change.before - change.after)
