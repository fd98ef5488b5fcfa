"""Censored times: weights, refusals, and that everything takes them as outcomes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from oracles import beyond

import calibrant as cb
from calibrant.censoring import censored
from calibrant.forecasts import Forecasts
from calibrant.inference.bootstrap import Resampler, resampled_values
from calibrant.inference.null import Drawing
from calibrant.inference.paired_rows import complete_rows
from calibrant.metrics.lookup import find_measure

RECORDS = st.lists(
    st.tuples(st.sampled_from([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 7.0]), st.integers(0, 2)),
    min_size=1,
    max_size=12,
)


def test_known_weights() -> None:
    y = censored([1, 2, 3, 4], [1, 0, 1, 0], 3.5)
    assert y.weight.tolist() == [1.0, 0.0, 1.5, 1.5]
    assert y.outcome[[0, 2, 3]].tolist() == [1, 1, 0]


@given(RECORDS, st.sampled_from([0.25, 0.5, 1.0, 1.75, 3.0, 7.0]))
def test_weights_and_event_rate_equal_their_definitions(
    rows: list[tuple[float, int]], horizon: float
) -> None:
    time, event = zip(*rows, strict=True)
    last = max(time)
    censored_last = all(e == 0 for t, e in rows if t == last)
    if horizon > last and censored_last:
        with pytest.raises(cb.InvalidInputError, match="horizon must lie within the follow-up"):
            censored(time, event, horizon)
        return
    assume(horizon <= last or all(e > 0 for t, e in rows if t == last))
    found = censored(time, event, horizon)
    assert found.weight.tolist() == pytest.approx(beyond.censoring_weights(time, event, horizon), abs=1e-12)
    assert found.weight.sum() == pytest.approx(len(rows), abs=1e-9)
    assert found.event_rate == pytest.approx(beyond.aalen_johansen(time, event, horizon), abs=1e-12)


@given(RECORDS, st.data())
def test_resampled_rows_are_weighted_as_if_repeated(
    rows: list[tuple[float, int]], data: st.DataObject
) -> None:
    time, event = (np.array(column) for column in zip(*rows, strict=True))
    try:
        found = censored(time, event, 1.0)
    except cb.InvalidInputError:
        return
    counts = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(rows), max_size=len(rows))))
    assume(counts.any())
    t, e = np.repeat(time, counts), np.repeat(event, counts)
    expected = np.zeros(len(rows))
    np.add.at(expected, np.repeat(np.arange(len(rows)), counts), beyond_weights(t, e))
    assert found.reweighted(counts) == pytest.approx(expected, abs=1e-12)


def beyond_weights(time: np.ndarray, event: np.ndarray) -> list[float]:
    return beyond.censoring_weights(time.tolist(), event.tolist(), 1.0)


def test_strata_have_their_own_censoring() -> None:
    time, event = np.array([1, 2, 3, 4.0]), np.array([1, 0, 1, 0])
    both = censored(np.r_[time, time], np.r_[event, [1, 1, 1, 1]], 3.5, strata=list("aaaabbbb"))
    assert both.weight.tolist() == [1.0, 0.0, 1.5, 1.5, 1.0, 1.0, 1.0, 1.0]


def test_nothing_censored_is_the_plain_outcome_bit_for_bit() -> None:
    rng = np.random.default_rng(3)
    p = rng.random(500)
    time = np.where(rng.random(500) < p, rng.random(500), 1 + rng.random(500))
    event = rng.integers(0, 2, 500) * (time > 1) + (time <= 1)
    y = censored(time, event, 1.0)
    assert (y.weight == 1).all()
    plain = time <= 1
    assert cb.smooth_calibration_error(y, p) == cb.smooth_calibration_error(plain, p)
    a, b = (cb.calibration_test(one, p, seed=1, draws=99) for one in (y, plain))
    assert a == b
    intervals = [cb.confidence_interval(one, p, seed=1, draws=99) for one in (y, plain)]
    assert intervals[0] == intervals[1]
    evaluations = [cb.evaluate(one, p, seed=1, draws=19).to_dict() for one in (y, plain)]
    assert evaluations[0] == evaluations[1]


def test_refusals_name_the_argument() -> None:
    with pytest.raises(cb.InvalidInputError, match="event must be 0 for censored"):
        censored([1, 2], [1, 0.5], 1)
    with pytest.raises(cb.InvalidInputError, match="time must be finite and not negative"):
        censored([1, -2], [1, 0], 1)
    with pytest.raises(cb.InvalidInputError, match=r"time must not be missing.*row 1"):
        censored([1, None], [1, 0], 1)
    with pytest.raises(cb.InvalidInputError, match="time and event must have the same length"):
        censored([1, 2, 3], [1, 0], 1)
    with pytest.raises(cb.InvalidInputError, match="horizon"):
        censored([1, 2], [1, 0], 0)
    with pytest.raises(cb.InvalidInputError, match="strata"):
        censored([1, 2], [1, 0], 1, strata=["a", None])


def test_missing_rows_are_dropped_and_counted() -> None:
    y = censored([1, 2, np.nan, 4], [1, 1, 1, 0], 3, missing="drop")
    assert cb.Forecasts(y, [0.5, 0.4, 0.3, 0.2], missing="drop").dropped == 1
    assert y.censored == 0
    assert "None of 4" in str(y)


def survival(n: int, censoring: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return times, events and the true probabilities of the event by 1; everything is exponential."""
    rng = np.random.default_rng(seed)
    rate = 0.5 * np.exp(0.8 * rng.normal(size=n))
    event, end = rng.exponential(1 / rate), rng.exponential(1 / censoring, size=n)
    return np.minimum(event, end), (event <= end).astype(int), 1 - np.exp(-rate)


def test_everything_takes_censored_outcomes() -> None:
    time, event, p = survival(300, 0.5)
    y = censored(time, event, 1.0)
    plain = {"sample_weight": y.weight}
    assert cb.smooth_calibration_error(y, p) == cb.smooth_calibration_error(y.outcome, p, **plain)
    assert cb.Forecasts(y, p).base_rate == pytest.approx(y.event_rate)
    groups = {"old": p > 0.4}
    found = cb.audit(y, p, groups=groups, draws=0, seed=0).worst.gap
    assert found == cb.audit(y.outcome, p, groups=groups, draws=0, seed=0, **plain).worst.gap
    assert cb.compare(y, {"a": p, "b": p**2}, draws=9).n == np.count_nonzero(y.weight)
    assert cb.evaluate(y, p, draws=19, groups=groups).forecasts.censoring is y
    assert cb.recalibrate(y, p, method="platt").predict(p).shape == p.shape
    assert cb.net_benefits(y, {"a": p}, thresholds=[0.3]).n == np.count_nonzero(y.weight)


def test_intervals_estimate_the_censoring_again() -> None:
    time, event, p = survival(400, 0.8)
    y = censored(time, event, 1.0)
    refitted = cb.confidence_interval(y, p, measure="in-the-large", draws=199, seed=0)
    fixed = cb.confidence_interval(
        y.outcome, p, sample_weight=y.weight, measure="in-the-large", draws=199, seed=0
    )
    assert refitted.value == fixed.value
    assert refitted.upper - refitted.lower < fixed.upper - fixed.lower  # an estimated G adds information


def test_comparisons_estimate_the_censoring_again() -> None:
    time, event, p = survival(300, 0.8)
    y, models = censored(time, event, 1.0), {"a": p, "b": p**1.3}
    how = {"measure": "brier", "draws": 199, "seed": 0}
    refitted, fixed = (
        cb.compare(y, models, **how),
        cb.compare(y.outcome, models, sample_weight=y.weight, **how),
    )
    assert refitted.values == fixed.values
    assert refitted.differences[0].lower != fixed.differences[0].lower
    in_pairs = cb.compare(y, models, clusters=np.arange(300) // 2, **how)
    assert in_pairs.differences[0].lower < in_pairs.differences[0].upper
    twice = cb.compare(y, models, sample_weight=np.full(300, 2.0), **how)  # scale does not matter
    assert twice.differences[0].lower == pytest.approx(refitted.differences[0].lower, rel=1e-12)
    whole = censored(np.where(event == 1, time, 2.0), event, 1.0)  # nothing is censored before the horizon
    plain = cb.compare(whole.outcome, models, **how).differences[0]
    assert cb.compare(whole, models, **how).differences[0] == plain


def test_each_resample_of_a_comparison_has_the_weights_of_its_own_rows() -> None:
    time, event, p = survival(40, 0.8)
    y = censored(time, event, 1.0)
    rows = complete_rows(y, {"a": p, "b": p**2}, None, "error", None).in_order()
    time, event = rows.censored.censoring.time, rows.censored.censoring.event  # in the order of the draws
    times, weight = rows.draw(np.random.default_rng(3), 5)
    picked = np.random.default_rng(3).integers(0, 40, size=(5, 40))
    for k, chosen in enumerate(picked):  # the same resample, written out and weighted from scratch
        again = censored(time[chosen], event[chosen], 1.0)
        for j, row in enumerate(rows.censored.places):
            assert times[k, j] == np.count_nonzero(chosen == row)
            if times[k, j]:
                expected = again.weight[chosen == row][0] / y.largest_weight  # in units of the largest
                assert weight[k, j] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("ties", [False, True])
def test_the_order_of_rows_does_not_matter_to_resamples(ties: bool) -> None:
    rng = np.random.default_rng(0)
    columns = {
        "time": rng.exponential(1, 80),
        "event": (rng.random(80) < 0.7).astype(int) + (rng.random(80) < 0.2),
        "strata": rng.choice(["x", "y", "z"], 80),
        "p": rng.random(80),
        "q": rng.random(80),
        "weight": rng.integers(1, 3, 80).astype(float),
        "pair": np.array([f"pair {k // 2}" if k > 3 else None for k in range(80)]),
    }
    if ties:
        columns["time"] = np.ceil(5 * columns["time"]) / 5
        columns |= {name: np.clip(np.round(columns[name], 1), 0.1, 0.9) for name in ("p", "q")}

    def resampled(order: np.ndarray) -> list[tuple[float, ...]]:
        time, event, strata, p, q, weight, pair = (column[order] for column in columns.values())
        p = np.where(p == p[np.argmin(order)], np.nan, p)  # the same predictions are missing in any order
        y, how = censored(time, event, 1.0, strata=strata), {"missing": "drop", "draws": 39, "seed": 3}
        found = [
            cb.confidence_interval(y, p, measure=measure, sample_weight=given, **how)
            for measure, given in (("kuiper", None), ("brier", weight), ("slope", None), ("e50", weight))
        ]
        found += [
            cb.compare(y, p, q, measure=measure, clusters=clusters, **how).differences[0]
            for measure, clusters in (("brier", None), ("smooth", None), ("brier", pair), ("atb", pair))
        ]
        return [(one.lower, one.upper, getattr(one, "pvalue", 0.0)) for one in found]

    forward = resampled(np.arange(80))
    for order in (np.arange(80)[::-1], rng.permutation(80)):
        for found, expected in zip(resampled(order), forward, strict=True):
            assert found == expected


@pytest.mark.parametrize("measure", ["e50", "e90", "ici", "kuiper", "brier", "c-statistic"])
@pytest.mark.filterwarnings("error")
def test_resamples_of_censored_rows_alone_have_no_value(measure: str) -> None:
    y = censored([0.5, 0.1, 0.4], [1, 2, 0], 1.0)
    found = cb.confidence_interval(y, [0.9, 0.2, 0.9], measure=measure, draws=199)
    assert found.lower <= found.value <= found.upper
    rows = Forecasts(y, [0.9, 0.2, 0.9])
    drawn = resampled_values(find_measure(measure), Resampler(rows), Drawing.checked(199, 0))
    picked = Resampler(rows).draw(np.random.default_rng(1), 400)
    empty = np.isnan(picked.weights).all(axis=1)
    assert 0 < np.count_nonzero(empty) < 50  # 1 in 27
    assert np.all(picked.counts[empty] == 0)
    assert np.all(picked.counts[~empty].sum(axis=1) > 0)
    assert 0 < np.count_nonzero(np.isnan(drawn)) < len(drawn)


def compared(censoring: float, data_sets: int) -> float:
    """Return how often intervals hold the true difference of two Brier scores."""
    _, _, many = survival(200_000, censoring, seed=10**6)
    truth = float(np.mean((many - 0.8 * many) ** 2))
    held = 0
    for k in range(data_sets):
        time, event, p = survival(400, censoring, seed=k)
        y = censored(time, event, 1.0)
        found = cb.compare(y, {"b": 0.8 * p, "a": p}, measure="brier", draws=199, seed=k).differences[0]
        held += found.lower <= truth <= found.upper
    return held / data_sets


@pytest.mark.slow
@pytest.mark.parametrize("censoring", [0.3, 0.8])
def test_coverage_of_comparisons(censoring: float) -> None:
    assert compared(censoring, 200) >= 0.89  # 95% of 200 falls below this once in 5,000 times


def coverage(n: int, censoring: float, data_sets: int) -> tuple[float, float]:
    """Return how often intervals hold the true mean difference, and the mean error of the estimate."""
    held, errors = 0, []
    for k in range(data_sets):
        time, event, p = survival(n, censoring, seed=k)
        wrong = 1 / (1 + np.exp(-np.log(p / (1 - p)) - 0.4))
        y, truth = censored(time, event, 1.0), float(np.mean(p - wrong))
        found = cb.confidence_interval(y, wrong, measure="in-the-large", draws=199, seed=k)
        held += found.lower <= truth <= found.upper
        errors.append(found.value - truth)
    return held / data_sets, float(np.mean(errors))


def test_coverage_in_a_few_data_sets() -> None:
    held, bias = coverage(300, 0.8, 60)
    assert held >= 0.85
    assert abs(bias) <= 0.012


@pytest.mark.slow
@pytest.mark.parametrize(("n", "censoring"), [(300, 0.3), (300, 0.8), (1000, 0.3), (1000, 0.8)])
def test_coverage_bias_and_size_in_400_data_sets(n: int, censoring: float) -> None:
    held, bias = coverage(n, censoring, 400)
    assert held >= 0.92
    assert abs(bias) <= 0.005
    tests = (cb.calibration_test(censored(t, e, 1.0), p, measure="kuiper", draws=199).pvalue for t, e, p in
             (survival(n, censoring, seed=k) for k in range(400)))  # fmt: skip
    assert np.mean([p <= 0.05 for p in tests]) <= 0.085


def test_support_study(shared_data: Path) -> None:
    import pandas as pd

    frame = pd.read_parquet(shared_data / "support2_survival.parquet").dropna(subset=["surv6m"])
    y = censored(frame["d.time"], frame["death"], 180)
    assert y.censored == 0  # no patient was lost in the first half year
    plain = (frame["d.time"] <= 180) & (frame["death"] == 1)
    assert cb.smooth_calibration_error(y, 1 - frame["surv6m"]) == cb.smooth_calibration_error(
        plain, 1 - frame["surv6m"]
    )
    later = censored(frame["d.time"], frame["death"], 1000)
    assert later.censored > 1000
    assert later.event_rate == pytest.approx(
        beyond.aalen_johansen(frame["d.time"].tolist()[:400], frame["death"].tolist()[:400], 1000), abs=0.06
    )
    with pytest.raises(cb.InvalidInputError, match="within the follow-up"):
        censored(frame["d.time"], frame["death"], 3000)


def test_support_study_by_horizon_stratum_and_group(shared_data: Path) -> None:
    import pandas as pd

    frame = pd.read_parquet(shared_data / "support2_survival.parquet").dropna(subset=["surv2m", "surv6m"])
    rows = {60: 1 - frame["surv2m"], 180: 1 - frame["surv6m"]}
    found = cb.distributions.horizon_table(frame["d.time"], frame["death"], rows, draws=39)
    for one, lived in zip(found.horizons, ("alive2m", "alive6m"), strict=True):
        assert one.observed == pytest.approx(1 - frame[lived].mean(), abs=0.003)
        assert one.low < one.observed < one.high < one.predicted
        assert (one.censored, one.effective) == (0, len(frame))
    later = censored(frame["d.time"], frame["death"], 1000, strata=frame["dzgroup"])
    parts = [
        (len(part), beyond.aalen_johansen(part["d.time"].tolist(), part["death"].tolist(), 1000))
        for _, part in frame.groupby("dzgroup")
    ]
    expected = sum(size * rate for size, rate in parts) / len(frame)
    assert later.event_rate == pytest.approx(expected, abs=1e-12)
    audited = cb.audit(later, rows[180], groups={"sex": frame["sex"]}, draws=39)
    assert {str(group.rule) for group in audited.significant()} >= {"sex = male", "sex = female"}
    repaired = cb.recalibrate(later, rows[180], method="platt").predict(rows[180])
    assert np.mean(repaired) == pytest.approx(later.event_rate, abs=0.002)


def test_without_censoring_the_words_say_so():
    assert str(cb.censored([1, 2, 3], [1, 0, 1], 1.0)).startswith("None of 3 records was censored before 1")
    assert str(cb.censored([1, 0.5, 3], [1, 0, 1], 1.0)).startswith("1 of 3 records were censored before 1")
