"""What results say when printed: directions, counts and bounds that a careful reader would not misread."""

from __future__ import annotations

import re

import numpy as np
import pytest

import calibrant as cb

RNG = np.random.default_rng(5)


def drawn(rate, rng=RNG):
    return (rng.random(len(rate)) < rate).astype(float)


def test_predictions_that_point_the_wrong_way_are_not_called_overconfident():
    p = RNG.uniform(0.05, 0.95, 600)
    found = cb.evaluate(drawn(1 - p), p, draws=19, seed=1).verdict
    assert found.sentence.startswith("Predictions point the wrong way: of the ")
    assert found.next_step.startswith("Check which outcome is coded as 1")
    right = cb.evaluate(drawn(0.5 + 0.4 * (p - 0.5)), p, draws=19, seed=1).verdict
    assert right.sentence.startswith("Overconfident: of the ")
    assert right.next_step.startswith("Recalibrate")


def test_a_handful_of_records_is_not_to_be_repaired():
    found = cb.evaluate([1] * 8, [0.2] * 8, draws=99, seed=1).verdict
    assert found.status == "miscalibrated"
    assert found.next_step == "Collect at least 50 records: 8 are too few to fit a repair."


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ((5, 5), r"No group is large enough to test\.$"),
        ((300, 5), r"The one group tested is not wrong beyond chance \(1 too small to test\)\.$"),
        ((300, 300), r"None of the 2 groups is wrong beyond chance\.$"),
    ],
)
def test_groups_are_counted_in_words_that_fit_their_number(sizes, said):
    groups = {"g": np.repeat(["a", "b"], sizes)}
    p = np.full(sum(sizes), 0.5)
    y = np.arange(sum(sizes)) % 2
    assert re.search(said, cb.evaluate(y, p, groups=groups, draws=19, seed=1).verdict.sentence)
    assert "of 0 groups" not in str(cb.audit(y, p, groups=groups, draws=19, seed=1))
    assert "None of 1 " not in str(cb.audit(y, p, groups=groups, draws=19, seed=1))


def test_a_monitor_names_a_certain_prediction_that_was_wrong():
    for p, y in ((0.0, 1.0), (1.0, 0.0)):
        reading = cb.Monitor().update([0.0, 1.0, y], [0.1, 0.9, p])
        assert reading.suspicion.startswith("certainty: something happened that was predicted to be imposs")
        assert "p < 0.001" in str(reading)


def test_a_default_test_says_what_it_saw_or_what_could_go_unseen():
    p = RNG.uniform(0.05, 0.95, 400)
    few = str(cb.calibration_test([0, 1, 1], [0.2, 0.7, 0.6], draws=19, seed=1))
    assert re.search(r"is not rejected .* A common bias of up to 1\.0 could go unseen\.$", few)
    low = str(cb.calibration_test(drawn(p / 2), p / 4, draws=19, seed=1))
    assert "Predictions are too low on the whole (bias z = " in low
    extreme = str(cb.calibration_test(drawn(0.5 + 0.2 * (p - 0.5)), p, draws=19, seed=1))
    assert "Overconfident: predictions are too extreme (slope z = -" in extreme
    sure = str(cb.calibration_test([0, 1, 1], [0.2, 0.7, 0.0], draws=19, seed=1))
    assert "Predictions of exactly 0 or 1 were wrong" in sure


def test_a_comparison_says_that_a_base_rate_tells_no_rows_apart():
    p = RNG.uniform(0.05, 0.95, 300)
    y = drawn(np.full(300, 0.5))
    for measure in ("atb", "brier"):
        text = str(cb.compare(y, p, np.full(300, y.mean()), names=["model", "rate"], measure=measure, seed=1))
        assert "rate tells no rows apart (discrimination 0), like a constant base rate." in text
    useful = str(cb.compare(drawn(p), p, np.full(300, 0.5), names=["model", "rate"], measure="brier", seed=1))
    assert "tells no rows apart" not in useful


def test_draws_too_few_to_show_a_difference_are_not_called_no_difference():
    p = RNG.uniform(0.05, 0.95, 400)
    y = drawn(p)
    models = (p, np.clip(p + 0.3, 0, 1), np.clip(p - 0.3, 0, 1))
    text = str(cb.compare(y, *models, names=["a", "b", "c"], draws=39, seed=1))
    few = re.search(r"^39 resamples are too few to show a difference .*: take (\d+) or more\.", text)
    assert few
    more = str(cb.compare(y, *models, names=["a", "b", "c"], draws=int(few[1]), seed=1))
    assert "too few" not in more


def test_a_decision_report_on_distinct_predictions_says_that_it_is_noise():
    p = RNG.uniform(0.05, 0.95, 400)
    with pytest.warns(cb.LevelSetWarning):
        raw = str(cb.decision_report(drawn(p), p, payoff=0.3))
    assert raw.endswith("gains on other records.")
    assert "e-17" not in raw
    tied = str(cb.decision_report(drawn(p), np.round(p, 1), payoff=0.3))
    assert "noise" not in tied


def test_groups_that_do_not_differ_could_still_differ_by_a_named_factor():
    half = np.full(300, 0.5)
    text = str(cb.compare_groups([0, 1] * 150, half, np.repeat(["a", "b"], 150), draws=99, seed=1))
    assert text.startswith("The 2 groups do not differ by more than chance")
    assert re.search(r"the odds of two groups could still differ by a factor of up to \d\.\d\.", text)
    sure = str(cb.compare_groups([1, 0, 1, 0], [1.0, 0, 1, 0], ["a", "a", "b", "b"], draws=99, seed=1))
    alike = str(cb.compare_groups([0] * 4, [0.5] * 4, ["a", "a", "b", "b"], draws=99, seed=1))
    assert alike.startswith("The 2 groups cannot be compared: every outcome is the same.")
    assert sure.startswith("The 2 groups cannot be compared: every prediction is exactly 0 or 1.")


def test_rare_events_are_not_rounded_away():
    rng = np.random.default_rng(3)
    p = np.full(40_000, 1.65e-4)
    y, groups = drawn(p, rng), {"g": np.repeat(["a", "b"], 20_000)}
    found = cb.evaluate(y, p, groups=groups, draws=19, seed=1)
    assert "mean prediction 0.000165" in str(found)
    assert not re.search(r"[+-]?0\.0 points", str(found.audit.sheet().as_text(200)))


def test_fractions_are_refused_with_a_hint_that_the_function_can_follow():
    p = RNG.uniform(0.2, 0.8, 40)
    y = drawn(p)
    y[0] = 0.5
    with pytest.raises(cb.InvalidInputError, match="leave rows with other outcomes out"):
        cb.distinguish(y, p, {"x": np.arange(40)}, seed=1)
    with pytest.raises(cb.InvalidInputError, match='variant="real"'):
        cb.audit(y, p, groups={"x": np.arange(40) % 2}, seed=1)


def test_fractions_in_a_sketch_promise_no_pvalue_that_is_not_there():
    p = RNG.uniform(0.2, 0.8, 400)
    found = cb.evaluate(cb.Sketch.from_arrays(np.clip(p + 0.01, 0, 1), p, cells=64), draws=19, seed=1)
    assert all(row.pvalue is None for row in found.rows)
    assert "there are no p-values" in str(found)
    assert "still have theirs" not in str(found)


def test_predictions_that_rank_nothing_are_not_called_overconfident():
    y, p = np.tile([1, 0], 12), np.tile([0.02, 0.98], 12)
    y[-3:] = 1 - y[-3:]
    p = np.concatenate([p, np.tile([0.3, 0.7], 60)])
    y = np.concatenate([y, np.tile([0, 1, 1, 0, 0, 1, 0, 1], 15)])
    found = cb.evaluate(y, p, draws=99, seed=1).verdict
    assert found.component == "slope"
    assert found.sentence == (
        "Predictions do not rank the outcomes: of the 132 records rated above 2%, "
        f"{100 * y[p > 0.02].mean():.0f}% had the event; of the others, {100 * y[p <= 0.02].mean():.0f}%."
    )


def test_an_infinite_statistic_is_called_so():
    found = str(cb.calibration_test([0, 1] * 20, [1.0, 0.5] * 20, draws=99, seed=1))
    assert "omnibus statistic infinite" in found
    assert "Also, predictions of exactly 0 or 1 were wrong" in found


def test_dates_are_groups_without_a_time_of_day():
    days = np.array(["2018-10-16", "2018-10-17"], "datetime64[us]").repeat(40)
    p, y = np.full(80, 0.5), np.tile([0, 1], 40)
    compared = cb.compare_groups(y, p, {"day": days}, draws=99, seed=1)
    assert [group.name for group in compared.groups] == ["2018-10-16", "2018-10-17"]
    audited = cb.audit(y, p, groups={"day": days}, draws=19, seed=1)
    assert {group.name for group in audited.groups} == {"everyone", "day = 2018-10-16", "day = 2018-10-17"}


def test_none_of_the_certain_predictions_is_said_to_be_wrong():
    y, p = np.tile([0, 1, 0, 1], 20), np.tile([0.0, 1.0, 0.5, 0.5], 20)
    found = cb.compare_groups(y, p, np.repeat(["a", "b"], 40), draws=99, seed=1)
    assert (found.certain, found.wrong) == (40, 0)
    assert "40 predictions are exactly 0 or 1; none of them was wrong." in str(found)
