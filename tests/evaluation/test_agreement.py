"""One quantity has one value, one interval and one p-value wherever an evaluation shows it."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import calibrant as cb
from calibrant.evaluation.gate import judge
from calibrant.evaluation.repair_preview import group_differences
from calibrant.evaluation.report import page
from calibrant.formatting import format_value, limits_text, percent_pair
from calibrant.groups.audit_result import group_table
from evaluation.test_verdicts import KINDS, drawn


def check_agreement(found):
    """Compare the verdict, tables, JSON, page and groups of one evaluation."""
    data, printed = found.to_dict(), repr(found)
    rows = {row["name"]: row for row in data["measures"]}
    facts, verdict = data["facts"], data["verdict"]
    assert data == found.to_dict()
    if (smooth := rows.get("smooth")) is not None:
        assert (verdict["size"], verdict["noise"]) == (smooth["value"], smooth["by_chance"])
    if (kuiper := rows.get("kuiper")) is not None and kuiper["details"]:
        where = kuiper["details"]
        assert verdict["direction"] == where["predictions"]
        assert (verdict["start"], verdict["stop"]) == (where["start"], where["stop"])
    whole = facts["base_rate"] - facts["mean_prediction"]
    if (large := rows.get("in-the-large")) is not None:
        assert large["value"] == pytest.approx(whole, abs=1e-12)
    for row in found.rows:
        shown = rows[row.about.name]
        assert (shown["value"], shown["low"], shown["high"]) == (row.value, row.low, row.high)
        assert shown["pvalue"] == row.pvalue
        if row.low is not None and row.value is not None:
            assert row.low <= row.value <= row.high, row.about.name
    for row in data["distances"]["related"]:
        if row["name"] in rows:
            assert row["value"] == rows[row["name"]]["value"]
    _check_first_table(found, printed)
    _check_groups(found, rows, facts, printed)
    assert (
        len(re.findall(r"\d[\d,]*(?:\.\d+)?", found.verdict.sentence)) <= 6
        or "Not tested" in found.verdict.what
    )
    assert len(found.verdict.sentence.split()) <= 45 or "Not tested" in found.verdict.what


def _check_first_table(found, printed):
    lines = {line.split()[0]: line for line in printed.splitlines() if line.strip()}
    for name, label in (("binned", "ECE"), ("smooth", "smooth"), ("brier", "Brier"), ("slope", "slope")):
        row = next((row for row in found.rows if row.about.name == name), None)
        if row is None or row.value is None or label not in lines:
            continue
        shown = row if row.inner is None or row.inner.low is None else row.inner
        cells = lines[label].split()
        assert cells[1] == format_value(shown.value)
        if shown.low is not None:
            assert shown.low <= shown.value <= shown.high
            assert limits_text(shown.low, shown.high) in " ".join(cells)
        assert not re.search(r"\d[eE][-+]?\d", lines[label])


def _check_groups(found, rows, facts, printed):
    audit = found.audit
    if audit is None:
        return
    everyone = audit.everyone
    assert everyone.size == facts["records"]
    assert everyone.mean_prediction == pytest.approx(facts["mean_prediction"], abs=1e-12)
    assert everyone.mean_outcome == pytest.approx(facts["base_rate"], abs=1e-12)
    if "kuiper" in rows and audit.statistic == "kuiper" and found.forecasts.cells is None:
        assert everyone.kuiper == pytest.approx(rows["kuiper"]["value"], abs=1e-12)
        assert (everyone.start, everyone.stop) == (found.verdict.start, found.verdict.stop)
        assert everyone.predictions == found.verdict.direction
    if "in-the-large" in rows and rows["in-the-large"]["low"] is not None:
        assert everyone.limits == pytest.approx([rows["in-the-large"][end] for end in ("low", "high")])
    by_name = {group["name"]: group for group in audit.to_dict()["groups"]}
    for group in audit.groups:
        shown = by_name[group.name]
        assert (shown["mean_prediction"], shown["mean_outcome"]) == (
            group.mean_prediction,
            group.mean_outcome,
        )
        assert shown["pvalue"] == group.pvalue
        low, high = group.limits
        assert (shown["low"], shown["high"]) == ((None, None) if np.isnan(low) else (low, high))
        assert np.isnan(low) or low <= group.difference <= high
    own = audit.beyond_overall()
    assert found.verdict.worst_group == (str(own[0].rule) if own else None)
    if own:
        assert own[0].error == max(group.error for group in own)
        assert f"Worst for {own[0].who}"[:60] in found.verdict.whom
        assert own[0].worst_texts()[-1].rstrip(".") in audit.verdict
        if own[0].in_the_mean and "predicted" in found.verdict.whom:
            first, second = percent_pair(own[0].mean_prediction, own[0].mean_outcome)
            assert f"{first} predicted, {second} observed" in found.verdict.whom
    for line in group_table(audit.by_error()[:2]).lines:
        assert line[0].text in printed


def check_page(found, html):
    """Compare the numbers in a page with those of the evaluation."""
    texts = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', html, flags=re.DOTALL)
    numbers = [json.loads(text) for text in texts]
    data = json.loads(json.dumps(found.to_dict()))
    assert any(
        one == data or (isinstance(one, dict) and one.get("measures") == data["measures"]) for one in numbers
    )
    flat = re.sub(r"<[^>]+>", " ", html)
    for row in found.rows:
        if row.about.name in ("binned", "smooth", "brier", "slope") and row.value is not None:
            shown = row if row.inner is None or row.inner.low is None else row.inner
            assert format_value(shown.value) in flat


@pytest.mark.parametrize("kind", KINDS)
def test_every_place_shows_the_same_numbers(kind):
    check_agreement(cb.evaluate(**drawn(kind, 3), seed=3, draws=99, confidence=0.95))


@pytest.mark.parametrize("kind", ["groups", "certain", "grouped sketch"])
def test_the_page_shows_the_same_numbers(kind):
    found = cb.evaluate(**drawn(kind, 4), seed=4, draws=99)
    check_page(found, page(found))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("clustered", [False, True])
def test_an_audit_a_comparison_and_an_evaluation_agree_about_groups(weighted, clustered):
    rng = np.random.default_rng(7)
    n = 1200
    p, region = rng.beta(2, 3, n), np.array(["a", "b", "c"])[rng.integers(0, 3, n)]
    y = (rng.random(n) < np.clip(p + 0.15 * (region == "b"), 0, 1)).astype(int)
    more = {"sample_weight": rng.uniform(1, 3, n)} if weighted else {}
    more |= {"clusters": np.arange(n) // 4} if clustered else {}
    evaluated = cb.evaluate(y, p, groups={"region": region}, draws=99, **more)
    audited = cb.audit(y, p, groups={"region": region}, draws=99, **more)
    compared = cb.compare_groups(y, p, {"region": region}, draws=99, **more)
    check_agreement(evaluated)
    fuller = cb.compare_groups(y, p, {"region": region}, **more)
    assert group_differences(evaluated)[0].pvalue == pytest.approx(fuller.pvalue, abs=1e-12)
    alone = {group.name: group for group in audited.groups}
    for group in evaluated.audit.groups:
        assert group.pvalue == alone[group.name].pvalue
        assert group.beyond == alone[group.name].beyond
        if group.rule.conditions:
            assert group.limits == alone[group.name].limits
    for level in compared.groups:
        group = alone[f"region = {level.name}"]
        assert (level.n, level.predicted, level.happened) == (
            group.size, pytest.approx(group.mean_prediction), pytest.approx(group.mean_outcome)
        )  # fmt: skip
        assert (level.lower, level.upper) == pytest.approx(group.limits, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["support2_survival", "toplabel_resnet110_cifar100"])
def test_real_data_show_the_same_numbers(name, shared_data):
    duckdb = pytest.importorskip("duckdb")
    columns = {
        "support2_survival": ("alive6m", "surv6m", ["sex", "dzgroup"]),
        "toplabel_resnet110_cifar100": ("correct", "confidence", ["pred_label"]),
    }
    outcome, prediction, groups = columns[name]
    table = duckdb.sql(f"select * from '{shared_data / name}.parquet' where {prediction} is not null").df()
    table = table.dropna(subset=[outcome])
    found = cb.evaluate(table, outcome=outcome, prediction=prediction, groups=groups)
    check_agreement(found)
    check_page(found, page(found))


@pytest.mark.parametrize(("seed", "measure"), [(5, "kuiper"), (121, "smooth")])
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
def test_intervals_of_any_confidence_are_those_of_confidence_interval(seed, measure, confidence):
    rng = np.random.default_rng(seed)  # a p-value of 0.011 with 999 draws, 0.0098 or less with 9,990
    p = np.round(rng.random(300), 1).clip(0.05, 0.95)
    y = (rng.random(300) < p + 0.055 * (1 - p)).astype(float)
    row = cb.evaluate(y, p, measures=[measure], confidence=confidence)[measure]
    alone = cb.confidence_interval(y, p, measure=measure, confidence=confidence)
    assert (row.low, row.high) == (alone.lower, alone.upper)


def test_limits_judge_the_interval_that_is_printed_for_rows():
    """The rounding of the convolved error, 3e-7, was added to its interval."""
    rng = np.random.default_rng(0)
    p = rng.random(400)
    y = (rng.random(400) < p**1.3).astype(float)
    row = cb.evaluate(y, p, measures=["convolved"], draws=49)["convolved"]
    found = judge(cb.Forecasts(y, p), {"convolved": 0.5}, confidence=0.95, draws=49, seed=0)[0]
    assert (found.value, found.low, found.high) == (row.value, row.low, row.high)
