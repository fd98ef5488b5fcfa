"""Risk and coverage, and the threshold with a guarantee."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import beyond

import calibrant as cb
from calibrant.abstention import _starts, choose_threshold, risk_coverage
from calibrant.metrics.null_laws import simulated_extremes

CONFIDENCES = st.sampled_from([0.0, 0.2, 0.5, 0.5000001, 0.9, 1.0])
ROWS = st.lists(st.tuples(st.integers(0, 1), CONFIDENCES), min_size=1, max_size=6)


@given(ROWS)
def test_curve_equals_its_definition(rows: list[tuple[int, float]]) -> None:
    y, p = zip(*rows, strict=True)
    found = risk_coverage(y, p, draws=9)
    assert found.threshold.tolist() == sorted(set(p), reverse=True)
    for place, least in enumerate(found.threshold):
        expected = beyond.risk_at(y, p, least)
        seen = (found.coverage[place], found.promised[place], found.realized[place])
        assert seen == pytest.approx(expected, abs=1e-12)
    assert found.aurc == pytest.approx(beyond.area(y, p), abs=1e-12)
    assert found.excess_aurc >= -1e-12
    gaps = found.coverage * (found.realized - found.promised)
    assert found.overconfidence == pytest.approx(max(0, gaps.max()), abs=1e-12)
    assert found.underconfidence == pytest.approx(max(0, -gaps.min()), abs=1e-12)


def test_suffix_sums_not_prefix_sums() -> None:
    found = risk_coverage([1, 0], [0.5, 0.7], draws=9)  # residuals .5, -.7: suffix sums -.7, -.2
    assert (2 * found.overconfidence, 2 * found.underconfidence) == pytest.approx((0.7, 0.0))


def test_pvalues_are_exact() -> None:
    rng, hits = np.random.default_rng(1), np.zeros(2)
    p = rng.choice([0.55, 0.7, 0.8, 0.95], size=60)
    for k in range(400):
        found = risk_coverage(rng.random(60) < p, p, draws=39, seed=k)
        hits += np.array([found.overconfidence_pvalue, found.underconfidence_pvalue]) <= 0.05
    assert np.all(hits <= 33)  # 20 expected, standard deviation 4.4


def test_overconfident_model_is_found() -> None:
    rng = np.random.default_rng(0)
    p = rng.uniform(0.5, 1, 2000)
    found = risk_coverage(rng.random(2000) < p - 0.1 * (p > 0.8), p)
    assert found.overconfidence_pvalue <= 0.01
    assert "More errors than promised" in str(found)
    assert "sentence" in found.to_dict()
    assert "<table>" in found._repr_html_()


def test_59_records_without_an_error() -> None:
    enough = choose_threshold([1] * 59, [0.9] * 59, risk=0.05)
    assert (enough.threshold, enough.coverage, enough.risk) == (0.0, 1.0, 0.0)
    short = choose_threshold([1] * 58, [0.9] * 58, risk=0.05)
    assert (short.threshold, short.coverage, short.risk, short.more_labels) == (None, 0.0, None, 1)
    assert "1 more labeled record" in str(short)


@given(
    st.lists(st.tuples(st.sampled_from([1, 1, 1, 1, 0]), CONFIDENCES), min_size=1, max_size=60),
    st.sampled_from([0.2, 0.4, 0.5]),
    st.sampled_from([0.5, 0.8, 0.9]),
)
def test_threshold_equals_the_slow_search(rows: list[tuple[int, float]], risk: float, sure: float) -> None:
    y, p = zip(*rows, strict=True)
    found = choose_threshold(y, p, risk=risk, confidence=sure)
    assert found.threshold == beyond.threshold(y, p, risk, sure)
    if found.threshold is not None:
        above = np.array(p) > found.threshold
        assert found.coverage == above.mean()
        assert found.risk == pytest.approx(1 - np.array(y)[above].mean())


def test_more_records_keep_what_fewer_had() -> None:
    """A hundred right answers, then every other one: the 236th record used to cost the threshold."""
    y, p = np.ones(2000), np.linspace(1, 0.5, 2000)
    y[100::2] = 0
    for n in (235, 236, 287, 288, 300, 575, 576, 2000):
        found = choose_threshold(y[:n], p[:n], risk=0.05)
        assert found.answered in (100, 102), n
        zero = np.append(p[: n - 1], 0.0)  # of which the last can never be answered
        assert choose_threshold(y[:n], zero, risk=0.05).answered == found.answered


@pytest.mark.parametrize(("risk", "sure"), [(0.05, 0.95), (0.1, 0.9), (0.01, 0.99), (0.3, 0.5)])
def test_every_start_can_pass(risk: float, sure: float) -> None:
    for n in np.unique(np.geomspace(1, 1e5, 300).astype(int)).tolist():
        counts, shares = _starts(n, risk, sure)
        assert sum(shares) == pytest.approx(1 - sure if counts else 0)
        assert counts == sorted(set(counts))
        assert all(count <= n for count in counts)
        for count, share in zip(counts, shares, strict=True):
            assert (1 - risk) ** count <= share * (1 + 1e-9)
        expected = beyond.starts(n, risk, sure)
        assert counts == [count for count, _ in expected]
        assert shares == pytest.approx([share for _, share in expected])


def test_few_thresholds_are_lost_to_more_records() -> None:
    """What the 235 most confident of 400 records support, all 400 support too, but for marginal ones."""
    rng, had, lost = np.random.default_rng(4), 0, 0
    for _ in range(300):
        p = np.sort(rng.random(400))[::-1]
        y = rng.random(400) >= CURVES["steep"](p)
        if choose_threshold(y[:235], p[:235], risk=0.05).threshold is not None:
            had += 1
            lost += choose_threshold(y, p, risk=0.05).threshold is None
    assert had >= 200
    assert lost <= 0.1 * had


def _true_risk(rate: object, threshold: float, top: float = 1.0) -> float:
    grid = np.linspace(threshold, top, 20_001)
    return float(np.mean(rate(grid)))  # type: ignore[operator]


CURVES = {
    "linear": lambda u: 0.3 * (1 - u),
    "steep": lambda u: 0.5 * (1 - u) ** 3 + 0.002,
    "just above": lambda u: np.full_like(u, 0.0505),
    "low": lambda u: 0.02 + 0.1 * (1 - u),
}


def broken_share(name: str, n: int, data_sets: int, *, ties: int | None, seed: int = 0) -> float:
    """Return in how many data sets the true risk above the chosen threshold exceeds the target."""
    rng, rate, broken = np.random.default_rng(seed), CURVES[name], 0
    for _ in range(data_sets):
        u = rng.random(n)
        if ties is not None:
            u = np.ceil(u * ties) / ties  # confidence is rounded up to a few values
        right = rng.random(n) >= rate(u)
        found = choose_threshold(right, u, risk=0.05)
        if found.threshold is None:
            continue
        if ties is None:
            risk = _true_risk(rate, found.threshold)
        else:
            values = np.arange(1, ties + 1) / ties
            risk = float(rate(values[values > found.threshold + 1e-12]).mean())
        broken += risk > 0.05
    return broken / data_sets


@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize("ties", [None, 20])
def test_guarantee_holds_in_a_few_data_sets(name: str, ties: int | None) -> None:
    assert broken_share(name, 300, 150, ties=ties) <= 0.05 + 3 * 0.018


@pytest.mark.slow
@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize("ties", [None, 5, 20])
@pytest.mark.parametrize("n", [300, 2000])
def test_guarantee_holds_in_2000_data_sets(name: str, ties: int | None, n: int) -> None:
    assert broken_share(name, n, 2000, ties=ties) <= 0.05 + 2 * 0.0049


def test_forecasts_of_games(shared_data: Path) -> None:
    """Chosen on every other game, a threshold holds on the rest."""
    import pandas as pd

    games = pd.read_parquet(shared_data / "fivethirtyeight_games.parquet")
    games = games[games["y"] != 0.5]  # ties of the game
    sure = np.maximum(games["p"], 1 - games["p"]).to_numpy()
    right = ((games["p"] >= 0.5) == (games["y"] == 1)).to_numpy()
    found = risk_coverage(right, sure, draws=99)
    seen = (found.coverage[-1], found.promised[-1], found.realized[-1])
    assert seen == pytest.approx((1, np.mean(1 - sure), np.mean(~right)), abs=1e-12)
    odd = np.arange(len(games)) % 2 == 1
    for risk in (0.2, 0.3):
        chosen = choose_threshold(right[~odd], sure[~odd], risk=risk)
        assert chosen.threshold is not None
        assert np.mean(~right[odd & (sure > chosen.threshold)]) <= risk
    assert choose_threshold(right[~odd], sure[~odd], risk=0.1).threshold is None


def test_more_labels_are_few_when_few_are_missing() -> None:
    y = np.r_[np.ones(97), np.zeros(3)]
    found = choose_threshold(y, np.full(100, 0.9), risk=0.05)
    assert found.threshold is None
    assert 50 <= (found.more_labels or 0) <= 1000
    hopeless = choose_threshold(1 - y, np.full(100, 0.9), risk=0.05)
    assert hopeless.more_labels is None
    assert "would not help" in str(hopeless)


def test_refusals_name_the_argument() -> None:
    with pytest.raises(cb.InvalidInputError, match="clusters"):
        choose_threshold([1, 0], [0.5, 0.6], risk=0.1, clusters=[1, 1])  # type: ignore[arg-type]
    with pytest.raises(cb.InvalidInputError, match="risk"):
        choose_threshold([1, 0], [0.5, 0.6], risk=0)
    with pytest.raises(cb.InvalidInputError, match="must be 0 or 1"):
        risk_coverage([0.5, 1], [0.5, 0.6])
    with pytest.raises(cb.InvalidInputError, match="row 1"):
        risk_coverage([0, 1], [0.5, 1.6])


def test_censored_answers_are_refused() -> None:
    """Their weights would be lost: the records that are left promise too much."""
    y, p = cb.censored([1, 2, 3, 4], [1, 0, 1, 0], 3.5), [0.9, 0.8, 0.7, 0.6]
    with pytest.raises(cb.InvalidInputError, match="y_true must be known for every answer"):
        risk_coverage(y, p)
    with pytest.raises(cb.InvalidInputError, match="got 1 censored record"):
        choose_threshold(y, p, risk=0.1)
    assert risk_coverage(cb.censored([1, 2, 3, 4], [1, 0, 1, 0], 1.5), p, draws=9).n == 4


def test_frames_and_missing_rows() -> None:
    frame = {"right": [1, 0, None, 1], "sure": [0.9, 0.4, 0.5, 0.8]}
    found = risk_coverage(frame, outcome="right", prediction="sure", missing="drop", draws=9)
    assert (found.n, found.dropped) == (3, 1)
    with pytest.raises(cb.InvalidInputError, match="'right'"):
        choose_threshold(frame, outcome="right", prediction="sure", risk=0.1)


@pytest.mark.parametrize("n", [1, 50, 80_000])  # the last is simulated in parts
def test_simulated_extremes_are_those_of_whole_rows(n):
    p = np.sort(np.round(np.random.default_rng(n).random(n), 4))[::-1]
    ends = np.flatnonzero(np.append(p[1:] != p[:-1], True))
    found = simulated_extremes(p, ends, 3, 5)
    rows = 3 if n < 2**17 // 3 else 1
    whole = []
    for generator in map(np.random.default_rng, np.random.SeedSequence(5).spawn(3 // rows)):
        whole += list(np.cumsum((generator.random((rows, n)) < p) - p, axis=1)[:, ends])
    assert found.tolist() == [[max(0.0, sums.max()), max(0.0, -sums.min())] for sums in whole]


def test_more_labels_are_named_only_where_they_would_help():
    assert choose_threshold([1] * 10, [0.9] * 10, risk=0.05).more_labels == 49
    assert choose_threshold([0, 1] * 20, np.linspace(0.1, 0.9, 40), risk=0.05).more_labels is None
    assert choose_threshold([0], [0.0], risk=0.05).more_labels is None
