"""Promises about distributions, censored times and abstention, simulated; and the numbers of peers.

Size of the PIT and quantile tests, size, bias and coverage under censoring, how often `choose_threshold`
breaks its guarantee, and the largest difference from scoringrules, scores, model-diagnostics and lifelines.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from scipy.stats import norm, poisson

import calibrant as cb
from benchmarks.harness import Report, peer
from calibrant import distributions as cd

RISKS = {
    "linear": lambda u: 0.3 * (1 - u),
    "steep": lambda u: 0.5 * (1 - u) ** 3 + 0.002,
    "just above": lambda u: np.full_like(u, 0.0505),
    "low": lambda u: 0.02 + 0.1 * (1 - u),
    "tiny": lambda u: 0.005 + 0.1 * (1 - u) ** 2,
}


def main(data_sets: int = 2000, censored_sets: int = 400) -> None:
    """Run all simulations and comparisons."""
    report = Report("beyond")
    for what, difference in peers().items():
        report.figure(f"largest difference from {what}", difference, "", at_most=1e-9)
    for kind in ("cdf", "members", "rounded members", "quantiles", "counts"):
        for n in (10, 200):
            for test, size in sizes(kind, n, data_sets).items():
                report.figure(f"size of {test}, {kind}, n = {n}", float(size), "of calibrated", at_most=0.065)
    for n in (200, 1000):
        for what, share in verdicts(n, censored_sets).items():
            report.figure(f"false alarms, {what}, n = {n}", float(share), "of calibrated", at_most=0.085)
    for name, n, ties in itertools.product(RISKS, (300, 2000), (None, 5, 20)):
        share, coverage = broken(name, n, data_sets, ties)
        what = f"choose_threshold, risk {name}, n = {n}, ties {ties}"
        report.figure(f"{what}: promise broken", share, "of data sets", at_most=0.06)
        report.figure(f"{what}: coverage", coverage, "of records")
    for kind, n, rate in itertools.product(("plain", "strata", "competing risks"), (300, 1000), (0.3, 0.8)):
        for what, value in survival(n, rate, censored_sets, kind).items():
            report.figure(f"{kind}, censoring rate {rate}, n = {n}: {what}", value, "")
    report.save()


def sizes(kind: str, n: int, data_sets: int) -> dict[str, float]:
    """Return how often calibrated forecasts of a kind are rejected at the 5% level."""
    rng, hits = np.random.default_rng(n), np.zeros(4)
    for k in range(data_sets):
        mu = rng.normal(size=n)
        y: Any = mu + rng.normal(size=n)
        q, expected, levels, forecast = mu + norm.ppf(0.9), None, None, norm(mu, 1)
        if kind == "members":
            forecast = mu[:, None] + rng.normal(size=(n, 9))
        elif kind == "rounded members":
            forecast, y = np.round(mu[:, None] + rng.normal(size=(n, 9))), np.round(y)
        elif kind == "quantiles":
            levels = [0.1, 0.5, 0.9]
            forecast = mu[:, None] + norm.ppf(levels)
        elif kind == "counts":
            y, forecast, q = rng.poisson(np.exp(mu)), poisson(np.exp(mu)), poisson.ppf(0.9, np.exp(mu))
            expected = poisson.cdf(q, np.exp(mu))[:, None]
        found = cd.pit(y, forecast, levels=levels, draws=99, seed=k)
        hits[:3] += [p <= 0.05 for p in found.pvalues.values()]
        table = cd.quantile_table(y, q[:, None], [0.9], expected=expected, draws=99, seed=k)
        if "members" in kind:
            table = cd.evaluate(y, forecast, at=[0], draws=99, seed=k).quantiles
        hits[3] += np.mean([one.pvalue <= 0.05 for one in table.levels])
    return dict(zip(("kuiper", "ks", "cramer_von_mises", "quantile"), hits / data_sets, strict=True))


def verdicts(n: int, data_sets: int) -> dict[str, float]:
    """Return how often calibrated forecasts get another verdict than "fine", or one row of a table is off."""
    rng, hits, codes = np.random.default_rng(n), np.zeros(4), np.arange(n) // 5
    for k in range(data_sets):
        width = np.exp(0.3 * rng.normal(size=n))
        y, reach = width * rng.normal(size=n), norm.ppf(0.95) * width
        hits[0] += cd.interval_coverage(y, -reach, reach, coverage=0.9, draws=99, seed=k).status != "fine"
        mu, shared = rng.normal(size=(2, n))[:, codes]  # rows of a cluster share their forecast as well
        y = mu + np.sqrt(0.4) * shared + np.sqrt(0.6) * rng.normal(size=n)
        found = cd.evaluate(y, norm(mu, 1), at=[-1, 0, 1], clusters=codes, draws=99, seed=k)
        hits[1:] += [found.status != "fine", bool(found.quantiles.wrong), bool(found.thresholds.wrong)]
    names = ("interval", "PIT, clusters of 5", "quantiles, clusters of 5", "thresholds, clusters of 5")
    return dict(zip(names, hits / data_sets, strict=True))


def broken(name: str, n: int, data_sets: int, ties: int | None) -> tuple[float, float]:
    """Return how often the true risk exceeds a promised 5%, and the mean coverage."""
    rng, rate, count, covered = np.random.default_rng(n), RISKS[name], 0, 0.0
    for _ in range(data_sets):
        u = rng.random(n) if ties is None else rng.integers(1, ties + 1, n) / ties
        found = cb.choose_threshold(rng.random(n) >= rate(u), u, risk=0.05)
        if found.threshold is None:
            continue
        values = np.linspace(found.threshold, 1, 5001) if ties is None else np.arange(1, ties + 1) / ties
        above = values[values > found.threshold + 1e-12]
        count, covered = count + (float(rate(above).mean()) > 0.05), covered + found.coverage
    return count / data_sets, covered / data_sets


def survival(n: int, rate: float, data_sets: int, kind: str = "plain") -> dict[str, float]:
    """Return size of tests, bias and coverage of intervals under censoring, and what dropping rows does.

    In "strata" high predictions are censored more than twice as fast as low ones; in "competing risks" there
    is another cause with half of the median hazard.
    """
    rows = []
    for k in range(data_sets):
        rng = np.random.default_rng(k)
        hazard = 0.5 * np.exp(0.8 * rng.normal(size=n))
        other = np.full(n, 0.25 if kind == "competing risks" else 0.0)
        strata = hazard > 0.5 if kind == "strata" else np.zeros(n, dtype=bool)
        event = rng.exponential(1 / (hazard + other))
        cause = 1 if kind == "plain" else np.where(rng.random(n) < hazard / (hazard + other), 1, 2)
        faster = np.where(strata, 1.4, 0.6) if kind == "strata" else 1.0
        end = rng.exponential(1 / (rate * faster), size=n)
        p = hazard / (hazard + other) * (1 - np.exp(-hazard - other))
        seen = np.minimum(event, end), np.where(event <= end, cause, 0)
        y = cb.censored(*seen, 1.0, strata=strata if kind == "strata" else None)
        wrong = 1 / (1 + np.exp(-np.log(p / (1 - p)) - 0.4))
        limits = cb.confidence_interval(y, wrong, measure="in-the-large", draws=199, seed=k)
        truth, kept = float(np.mean(p - wrong)), y.weight > 0
        joint = cb.censored(*seen, 1.0)
        rows.append(
            (
                cb.calibration_test(y, p, measure="kuiper", draws=199, seed=k).pvalue <= 0.05,
                cb.calibration_test(y, p, draws=199, seed=k).pvalue <= 0.05,
                limits.lower <= truth <= limits.upper,
                limits.value - truth,
                float(np.mean((y.outcome - p)[kept])),
                float(np.average(joint.outcome - p, weights=joint.weight)),
                y.censored / n,
            )
        )
    names = ("size_kuiper", "size_omnibus", "coverage", "bias", "bias_if_dropped")
    return dict(zip((*names, "bias_without_strata", "censored"), np.mean(rows, axis=0).tolist(), strict=True))


def peers() -> dict[str, float]:
    """Return the largest difference from other programs, on random numbers."""
    rng = np.random.default_rng(0)
    y, members, mu = rng.normal(size=200), rng.normal(size=(200, 11)), rng.normal(size=200)
    levels = np.array([0.1, 0.25, 0.5, 0.9])
    quantiles = mu[:, None] + norm.ppf(levels)
    found: dict[str, float] = {}

    def note(name: str, ours: Any, theirs: Any) -> None:
        found[name] = float(np.max(np.abs(np.asarray(ours) - np.asarray(theirs))))

    ensemble = cd.evaluate(y, members, draws=9)
    table = cd.quantile_table(y, quantiles, levels, draws=9)
    interval = cd.interval_coverage(y, quantiles[:, 0], quantiles[:, 3], coverage=0.8, draws=9)
    if (sr := peer("scoringrules")) is not None:
        note(
            "scoringrules crps_ensemble", ensemble.crps, sr.crps_ensemble(y, members, estimator="nrg").mean()
        )
        fair = sr.crps_ensemble(y, members, estimator="fair").mean()
        note("scoringrules crps_ensemble, fair", ensemble.fair_crps, fair)
        exact = cd.evaluate(y, norm(mu, 1.3), draws=9).crps
        note("scoringrules crps_normal", exact, sr.crps_normal(y, mu, 1.3).mean())
        ours = cd.evaluate(y, quantiles, levels=levels, draws=9).crps
        note("scoringrules crps_quantile", ours, sr.crps_quantile(y, quantiles, levels).mean())
        scores = [sr.quantile_score(y, quantiles[:, k], levels[k]).mean() for k in range(4)]
        note("scoringrules quantile_score", [one.score for one in table.levels], scores)
        theirs = sr.interval_score(y, quantiles[:, 0], quantiles[:, 3], 0.2).mean()
        note("scoringrules interval_score", interval.coverage.score, theirs)
    if peer("scores") is not None:
        import xarray as xr
        from scores.continuous import quantile_score
        from scores.probability import crps_for_ensemble

        obs, fcst = xr.DataArray(y, dims="t"), xr.DataArray(members, dims=("t", "m"))
        note(
            "scores crps_for_ensemble", ensemble.crps, float(crps_for_ensemble(fcst, obs, "m", method="ecdf"))
        )
        parts = [
            float(quantile_score(xr.DataArray(quantiles[:, k], dims="t"), obs, levels[k])) for k in range(4)
        ]
        note("scores quantile_score", [one.score for one in table.levels], parts)
    if peer("model_diagnostics") is not None:
        from model_diagnostics.calibration import identification_function
        from model_diagnostics.scoring import PinballLoss

        losses = [PinballLoss(level=lv)(y, quantiles[:, k]) for k, lv in enumerate(levels)]
        note("model-diagnostics PinballLoss", [one.score for one in table.levels], losses)
        means = [
            float(np.mean(identification_function(y, quantiles[:, k], functional="quantile", level=lv)))
            for k, lv in enumerate(levels)
        ]
        note("model-diagnostics quantile bias", [one.observed - one.level for one in table.levels], means)
    if peer("lifelines") is not None:
        from lifelines import AalenJohansenFitter, KaplanMeierFitter

        time, event = rng.exponential(size=300).round(2) + 0.01, rng.integers(0, 3, 300)
        alone = time + rng.permutation(300) * 1e-7  # lifelines breaks ties at random
        fitter, horizons = AalenJohansenFitter(calculate_variance=False), (0.3, 0.7, 1.5)
        rows = fitter.fit(alone, event, event_of_interest=1).cumulative_density_
        theirs = [float(rows[rows.index <= h].iloc[-1, 0]) for h in horizons]
        note("lifelines AalenJohansen", [cb.censored(alone, event, h).event_rate for h in horizons], theirs)
        alive = KaplanMeierFitter().fit(time, event == 1)
        ours = [1 - cb.censored(time, event == 1, h).event_rate for h in (0.3, 0.7, 1.5)]
        note("lifelines KaplanMeier", ours, [float(alive.predict(h)) for h in (0.3, 0.7, 1.5)])
    return found


if __name__ == "__main__":
    main()
