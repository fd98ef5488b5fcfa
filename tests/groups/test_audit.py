"""The audit as a user meets it: groups in, words and p-values out."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from people import people, planted

import calibrant
from calibrant import audit
from calibrant.errors import CalibrantError
from calibrant.groups.subpopulations import Partition


def test_a_planted_group_is_found_and_named_among_all_combinations():
    hits = 0
    for seed in range(10):
        y, p, frame, bad = planted(seed)
        assert 0.015 < bad.mean() < 0.025
        found = audit(y, p, groups=frame[["sex", "region"]], seed=seed)
        worst = found.worst
        hits += worst.rule == "sex = F and region = R7" and worst.pvalue <= 0.05
        assert worst.predictions == "too low"
    assert hits >= 9


def test_groups_that_are_right_are_not_accused_beside_one_that_is_wrong():
    accused = 0
    for seed in range(10):
        y, p, frame, bad = planted(seed + 50)
        found = audit(
            y,
            p,
            groups={"bad": bad, **{f"r{k}": (frame.index % 30 == k) & ~bad for k in range(30)}},
            seed=seed,
        )
        accused += any(group.name.startswith("r") for group in found.significant())
    assert accused <= 3


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("how", ["covariates", "groups"])
def test_row_order_changes_nothing_at_all(ties, how):
    y, p, frame = people(1, 1500)
    p = np.round(p, 1) if ties else p
    options = {"subpopulations": 150, "seed": 3} if how == "covariates" else {"seed": 3}
    given = frame if how == "covariates" else frame[["sex", "region"]]
    weight = np.random.default_rng(0).choice([1.0, 2.0, 0.3], len(y))
    first = audit(y, p, sample_weight=weight, **{how: given}, **options)
    shuffled = np.random.default_rng(9).permutation(len(y))
    again = audit(
        y[shuffled], p[shuffled], sample_weight=weight[shuffled], **{how: given.iloc[shuffled]}, **options
    )
    assert first.to_dict() == again.to_dict()


def test_the_seed_is_recorded_and_repeats_the_audit():
    y, p, frame = people(2, 800)
    first = audit(y, p, covariates=frame, subpopulations=60)
    again = audit(y, p, covariates=frame, subpopulations=60, seed=first.seed)
    assert first.to_dict() == again.to_dict()


def test_missing_values_are_a_category_with_its_name():
    y, p, frame = people(3)
    rules = {group.rule: group.size for group in audit(y, p, groups=frame[["region", "sex"]], draws=0).groups}
    assert rules["region is missing"] == frame["region"].isna().sum()
    assert rules["region is missing and sex = F"] == (frame["region"].isna() & (frame["sex"] == "F")).sum()


def test_what_was_not_tested_is_counted():
    y, p, frame = people(4, 500)
    masks = {
        "old": (frame["age"] > 60).to_numpy(),
        "old again": (frame["age"] > 60).to_numpy(),
        "nobody": np.zeros(500, bool),
        "three": np.arange(500) < 3,
        "young": (frame["age"] < 30).to_numpy(),
        "women": (frame["sex"] == "F").to_numpy(),
    }
    found = audit(y, p, groups=masks, limit=2, draws=9, seed=1)
    assert (found.not_tested.too_small, found.not_tested.duplicates, found.not_tested.over_limit) == (2, 1, 1)
    assert {group.name for group in found.groups} == {"everyone", "old", "young"}
    assert "2 too small, 1 with the same members as another, 1 over the limit" in str(found)


def test_combinations_over_the_limit_are_counted_and_not_looked_at(monkeypatch):
    rng = np.random.default_rng(14)
    p = rng.random(400)
    columns = {f"c{k}": np.arange(400) // 3**k % 3 for k in range(5)}
    built = []
    by = Partition.by
    monkeypatch.setattr(Partition, "by", lambda chosen: built.append(chosen) or by(chosen))
    found = audit(rng.random(400) < p, p, groups=columns, depth=5, limit=8, draws=0)
    assert found.tested == 9
    assert (found.not_tested.too_small, found.not_tested.duplicates) == (0, 0)
    assert found.not_tested.over_limit == 4**5 - 1 - 8
    assert len(built) < 31
    everything = audit(rng.random(400) < p, p, groups=columns, depth=5, draws=0, min_size=1)
    assert everything.not_tested.over_limit == 0


def test_a_mask_may_be_called_everyone():
    y, p, _ = people(12, 500)
    found = audit(y, p, groups={"everyone": p > 0.5, "all": p >= 0}, draws=9, seed=1)
    assert sorted(group.size for group in found.groups) == [np.count_nonzero(p > 0.5), 500]
    assert found.everyone.size == 500
    assert f"Kuiper of everyone: {found.everyone.kuiper:.6g}" in str(found)


def test_rows_of_weight_zero_are_left_out_and_not_counted():
    y, p, _ = people(13, 300)
    weight = np.where(np.arange(300) < 100, 0.0, 2.0)
    found = audit(y, p, groups={"low": p < 0.3}, sample_weight=weight, draws=9, seed=1)
    assert (found.n, found.dropped, found.everyone.size) == (200, 0, 200)
    assert (
        found.to_dict() == audit(y[100:], p[100:], groups={"low": p[100:] < 0.3}, draws=9, seed=1).to_dict()
    )


def test_groups_that_leave_no_doubt_can_be_left_out():
    rng = np.random.default_rng(0)
    p = np.concatenate([np.full(500, 1e-3), rng.random(500)])
    masks = {"certain": p == 1e-3, "some": p > 0.5}
    found = audit(rng.random(1000) < p, p, groups=masks, min_variance=5, draws=9, seed=0)
    assert [group.name for group in found.groups if group.name != "everyone"] == ["some"]
    assert found.not_tested.too_small == 1
    with pytest.raises(CalibrantError, match="min_variance must be a finite number of at least 0; got nan"):
        audit(rng.random(1000) < p, p, groups=masks, min_variance=np.nan)


def test_groups_and_covariates_together_share_one_null():
    y, p, frame = people(5, 1000)
    both = audit(y, p, groups={"men": frame["sex"] == "M"}, covariates=frame, subpopulations=50, seed=1)
    alone = audit(y, p, covariates=frame, subpopulations=50, seed=1)
    assert "men" in [group.name for group in both.groups]
    assert both.tested in (alone.tested, alone.tested + 1)
    assert both.pvalue >= alone.pvalue or both.metric > alone.metric


@pytest.mark.parametrize(
    ("convert", "kind"),
    [
        (lambda frame: frame, pd.DataFrame),
        (pl.from_pandas, pl.DataFrame),
        (pa.Table.from_pandas, pa.Table),
        (lambda frame: pl.from_pandas(frame).lazy(), pa.Table),
        (lambda frame: {name: frame[name].tolist() for name in frame}, pd.DataFrame),
    ],
)
def test_every_frame_gives_the_same_audit_and_its_own_kind_of_table(convert, kind):
    y, p, frame = people(6, 600)
    frame["region"] = frame["region"].astype(object).where(frame["region"].notna(), None)
    expected = audit(y, p, covariates=frame, subpopulations=40, seed=1)
    found = audit(y, p, covariates=convert(frame), subpopulations=40, seed=1)
    assert found.to_dict() == expected.to_dict()
    assert isinstance(found.table, kind)
    assert len(found.table) == found.tested


def test_result_for_charts_and_for_json():
    y, p, frame = people(7)
    found = audit(y, p, groups=frame[["sex", "region"]], seed=1)
    assert json.loads(json.dumps(found.to_dict(top=3)))["groups"][0]["rule"] == found.worst.rule
    with pytest.raises(CalibrantError, match="top must be a whole number of at least 0; got -1"):
        found.to_dict(top=-1)
    curve = found.curves[0]
    assert curve.rule == found.worst.rule
    assert np.ptp(curve.cumulative) == pytest.approx(found.worst.kuiper, abs=1e-12)
    assert curve.share[-1] == pytest.approx(1)
    assert len(curve.share) <= 520
    z = [group.z for group in found.groups]
    assert z == sorted(z, reverse=True)
    assert found.metric == pytest.approx(found.ratio * found.sigma)
    assert found.metric == max(group.metric for group in found.groups)
    assert repr(found).startswith("Audit(M = ")


def test_p_values_do_not_decrease_down_the_ranking_and_need_draws():
    y, p, frame = people(8)
    pvalues = [group.pvalue for group in audit(y, p, groups=frame[["region"]], seed=2).groups]
    assert pvalues == sorted(pvalues)
    silent = audit(y, p, groups=frame[["region"]], draws=0)
    assert silent.pvalue is None
    assert np.isnan(silent.table["pvalue"]).all()
    assert silent.significant() == ()


def test_integer_weights_are_repeated_rows():
    y, p, frame = people(9, 300)
    times = np.random.default_rng(1).integers(0, 4, 300)
    masks = {"F": (frame["sex"] == "F").to_numpy(), "old": (frame["age"] > 60).to_numpy()}
    weighted = audit(y, p, groups=masks, sample_weight=times, draws=0)
    again = {name: np.repeat(mask, times) for name, mask in masks.items()}
    repeated = audit(np.repeat(y, times), np.repeat(p, times), groups=again, draws=0)
    left = {group.name: group.kuiper for group in weighted.groups}
    assert left == pytest.approx({group.name: group.kuiper for group in repeated.groups})


def test_dropped_rows_are_counted_and_others_keep_their_groups():
    y, p, frame = people(10, 400)
    gaps = p.copy()
    gaps[::7] = np.nan
    found = audit(y, gaps, groups=frame[["sex"]], missing="drop", seed=1)
    kept = ~np.isnan(gaps)
    expected = audit(y[kept], p[kept], groups=frame[["sex"]][kept], seed=1)
    assert found.dropped == (~kept).sum()
    assert f"of {kept.sum()} rows ({(~kept).sum()} with missing values dropped), 2 groups" in str(found)
    assert f"of {kept.sum()} rows, 2 groups" in str(expected)
    assert found.groups == expected.groups


@pytest.mark.parametrize("variant", ["proportional", "proportional-shifted", "low-prevalence", "real"])
def test_variants_keep_their_level_on_calibrated_data(variant):
    alarms = 0
    for seed in range(20):
        y, p, frame = people(100 + seed, 300)
        alarms += (
            audit(y, p, groups=frame[["sex", "region"]], variant=variant, draws=39, seed=seed).pvalue <= 0.05
        )
    assert alarms <= 5


@pytest.mark.parametrize("how", ["masks", "columns"])
@pytest.mark.parametrize(
    "variant", ["plain", "proportional", "proportional-shifted", "low-prevalence", "real"]
)
def test_means_and_shares_are_by_the_weights_of_the_records_in_every_variant(variant, how):
    y, p, frame = people(15, 300)
    w = np.random.default_rng(2).random(300)
    women = (frame["sex"] == "F").to_numpy()
    groups = {"sex = F": women} if how == "masks" else frame[["sex"]]
    found = audit(y, p, groups=groups, sample_weight=w, variant=variant, draws=0)
    group = next(group for group in found.groups if group.rule == "sex = F")
    for one, inside in ((found.everyone, np.ones(300, bool)), (group, women)):
        assert one.share == pytest.approx(w[inside].sum() / w.sum())
        assert one.mean_prediction == pytest.approx(np.average(p[inside], weights=w[inside]))
        assert one.mean_outcome == pytest.approx(np.average(y[inside], weights=w[inside]))


def test_real_responses_far_outside_the_unit_interval():
    rng = np.random.default_rng(0)
    s = rng.normal(100, 20, 3000)
    bad = rng.random(3000) < 0.1
    r = s + rng.normal(0, 5, 3000) + 3 * bad
    found = audit(
        r, s, groups={"bad": bad, "other": rng.random(3000) < 0.5}, variant="real", draws=99, seed=1
    )
    assert found.worst.name == "bad"
    assert found.worst.pvalue <= 0.05
    assert found.worst.sigma == pytest.approx(5 / np.sqrt(bad.sum()), rel=0.2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "groups or covariates must be given"),
        ({"groups": {"a": np.ones(3, bool)}}, "mask 'a' and y_prob must have the same length; got 3 and 4"),
        (
            {"covariates": {"a": [1, 2, 3]}},
            "covariates 'a' and y_prob must have the same length; got 3 and 4",
        ),
        ({"covariates": 3}, "covariates must be columns; got int"),
        ({"groups": {"a": np.ones(4, bool)}, "draws": -1}, "draws must be a whole number of at least 0"),
        ({"groups": {"a": np.ones(4, bool)}, "min_size": 0}, "min_size must be a whole number of at least 1"),
        ({"groups": {"a": np.ones(4, bool)}, "variant": "reel"}, "did you mean 'real'"),
        ({"groups": {"a": np.ones(4, bool)}, "rho": -1}, "rho must be a finite number of at least 0"),
        ({"groups": {"a": np.ones((4, 1), bool)}}, "mask 'a' must be one-dimensional"),
        ({"covariates": {}}, "covariates must have a column"),
    ],
)
def test_bad_input_is_refused_in_words(options, message):
    with pytest.raises(CalibrantError, match=message.replace("(", r"\(")):
        audit([0, 1, 1, 0], [0.2, 0.4, 0.6, 0.8], **options)


@pytest.mark.parametrize(
    ("y", "p", "message"),
    [
        ([0, 0.5], [0.1, 0.2], 'y_true must be 0 or 1; got 0.5 in row 1 .* variant="real"'),
        ([0, 1], [0.1, 1.7], "y_prob must lie in"),
        ([0, 1], [0.1, np.nan], 'y_prob must not be missing; .*missing="drop"'),
        ([0, 1, 1], [0.1, 0.2], "must have the same length"),
    ],
)
def test_bad_columns_are_refused_in_words(y, p, message):
    with pytest.raises(CalibrantError, match=message):
        audit(y, p, groups={"all": np.ones(len(p), bool)})


def test_progress_is_told():
    y, p, frame = people(11, 500)
    seen: list[tuple[int, int]] = []
    audit(y, p, covariates=frame, subpopulations=30, draws=9, progress=lambda *step: seen.append(step))
    assert seen[-1] == (31, 31)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_it_is_public():
    assert calibrant.audit is audit


def test_calibrated_ties_seldom_alarm_where_variances_come_from_neighbours():
    """Ordered by a hash of the outcome, ties once hid the differences of eq. (6): 19 of 20 alarms."""
    alarms = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        y, group = rng.integers(0, 2, 400), rng.integers(0, 2, 400)
        found = audit(y, np.full(400, 0.5), groups={"g": group}, variant="real", draws=39, seed=seed)
        assert found.sigma == pytest.approx(0.025, rel=0.02)  # that of fair coins
        alarms += found.pvalue <= 0.05
    assert alarms <= 4  # 1 expected


@pytest.mark.parametrize("seed", range(5))
def test_neither_row_order_nor_the_outcome_decides_between_ties(seed):
    """Tied rows may change places, and all outcomes may be reflected: sigma stays what it was."""
    rng = np.random.default_rng(seed)
    s = rng.integers(1, 4, 120) / 4
    r, group, w = s + rng.normal(size=120).round(1), rng.integers(0, 3, 120), rng.integers(1, 4, 120)

    def sigmas(rows, response):
        found = audit(
            response[rows], s[rows], groups={"g": group[rows]}, sample_weight=w[rows], variant="real", draws=0
        )
        return {str(one.rule): (one.size, one.kuiper / one.z if one.z else 0.0) for one in found.groups}

    straight = sigmas(np.arange(120), r)
    assert sigmas(rng.permutation(120), r) == straight
    reflected = sigmas(np.arange(120), 2 * s - r)
    for rule, (size, sigma) in straight.items():
        assert reflected[rule] == (size, pytest.approx(sigma, rel=1e-9))


@pytest.mark.parametrize("variant", ["proportional", "proportional-shifted"])
def test_rho_of_zero_weighs_by_one_over_the_prediction(variant):
    rng = np.random.default_rng(5)
    p, g = rng.uniform(0.01, 1, 300), {"g": rng.integers(0, 4, 300)}
    y = (rng.random(300) < p**1.5).astype(int)
    found = audit(y, p, groups=g, variant=variant, rho=0, draws=19, seed=1)
    plain = audit(y, p, groups=g, sample_weight=1 / p, draws=19, seed=1)
    assert found.metric == pytest.approx(plain.metric, rel=1e-12)
    assert [one.z for one in found.groups] == pytest.approx([one.z for one in plain.groups], rel=1e-12)
    p[[7, 9]] = 0.0
    with pytest.raises(calibrant.InvalidInputError, match=r"above 0 with rho=0.*row 7 \(2 rows\)"):
        audit(y, p, groups=g, variant=variant, rho=0)
    with pytest.raises(calibrant.InvalidInputError, match="rho=0"):
        calibrant.search_groups(y, p, g, variant=variant, rho=0)
    assert audit(y, p, groups=g, rho=0, draws=0).metric > 0  # the plain metric has no weights to divide by


def test_tiny_and_huge_terms_are_not_taken_for_rounding():
    """The guard for 0 / 0 goes by what was subtracted: these once returned 0."""
    y, p, group = np.array([0, 1] * 50), np.tile([0.0, 1e-13, 0.5, 0.7], 25), np.arange(100) % 3
    tiny = audit(y, p, groups={"g": group}, variant="proportional", rho=1e-13, draws=19, seed=1)
    assert tiny.metric > 0
    rng = np.random.default_rng(0)
    r, s = rng.normal(size=100), rng.normal(size=100)
    r[7] = 1e14
    huge = audit(r, s, groups={"g": group}, variant="real", draws=19, seed=1)
    others = {str(one.rule): one.z for one in huge.groups}
    assert all(z > 0 for z in others.values())


def test_equal_fractions_leave_nothing_to_expect_and_no_warning():
    found = audit([0.25] * 4, [0.001] * 4, groups={"g": list("aabb")}, variant="real", draws=19, seed=3)
    assert found.everyone.expected == 0.0
