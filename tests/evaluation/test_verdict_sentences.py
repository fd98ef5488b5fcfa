"""The verdict in two sentences: what a reader sees for forty data sets with known faults."""

from __future__ import annotations

import pytest

import calibrant as cb
from calibrant.evaluation.wording import MAX_NUMBERS, MAX_WORDS, numbers_in, words_in
from evaluation.verdict_cases import cases

SENTENCES = {
    "calibrated, 300": (
        "No miscalibration found in 300 records; an error below about 8.1 points would not show.",
        "",
    ),
    "overconfident, 300": (
        "Overconfident: of the 145 records rated below 30% (18% on average), 37% had the event.",
        "",
    ),
    "underconfident, 300": (
        "Underconfident: of the 145 records rated below 30% (18% on average), 6% had the event.",
        "",
    ),
    "too high, 300": (
        "Predictions are too high: 33% predicted, 26% observed in 300 records.",
        "",
    ),
    "too low, 300": (
        "Predictions are too low: 33% predicted, 41% observed in 300 records.",
        "",
    ),
    "bump, 300": (
        "Predictions between 27% and 66% are too high: 42% predicted, 27% observed in 162 records.",
        "",
    ),
    "dip, 300": (
        "Predictions between 30% and 59% are too low: 43% predicted, 61% observed in 126 records.",
        "",
    ),
    "inverted, 300": (
        "Predictions point the wrong way: of the 155 records rated above 30%, 54% had the event; "
        "of the others, 77%.",
        "",
    ),
    "uninformative, 300": (
        "Predictions do not rank the outcomes: of the 155 records rated above 30%, 35.5% had the event; "
        "of the others, 36.6%.",
        "",
    ),
    "calibrated, 3000": (
        "No miscalibration found in 3,000 records; an error below about 2.7 points would not show.",
        "",
    ),
    "overconfident, 3000": (
        "Overconfident: of the 1,415 records rated below 30% (17% on average), 31% had the event.",
        "",
    ),
    "underconfident, 3000": (
        "Underconfident: of the 1,415 records rated below 30% (17% on average), 5% had the event.",
        "",
    ),
    "too high, 3000": (
        "Predictions are too high: 34% predicted, 27% observed in 3,000 records.",
        "",
    ),
    "too low, 3000": (
        "Predictions are too low: 34% predicted, 42% observed in 3,000 records.",
        "",
    ),
    "bump, 3000": (
        "Predictions between 23% and 67% are too high: 41% predicted, 30% observed in 1,765 records.",
        "",
    ),
    "dip, 3000": (
        "Predictions are too low: 34% predicted, 39% observed in 3,000 records.",
        "",
    ),
    "inverted, 3000": (
        "Predictions point the wrong way: of the 1,585 records rated above 30%, 52% had the event; "
        "of the others, 84%.",
        "",
    ),
    "uninformative, 3000": (
        "Overconfident: of the 875 records rated below 20% (12% on average), 31% had the event.",
        "",
    ),
    "tiny, 1": (
        "Too little data: only 1 record.",
        "",
    ),
    "tiny, 5": (
        "Too little data: only 5 records.",
        "",
    ),
    "tiny, 30": (
        "Too little data: with 30 records, an error below about 24 points would not show.",
        "",
    ),
    "rare, too high": (
        "Predictions are too high: 0.166% predicted, 0.072% observed in 50,000 records.",
        "",
    ),
    "very rare, too low": (
        "Predictions are too low: 17 events predicted, 73 observed in 100,000 records.",
        "",
    ),
    "rare, calibrated": (
        "No miscalibration found in 5,000 records; an error below about 0.66 points would not show.",
        "",
    ),
    "certain": (
        "Certain but wrong: 12 of 678 rated 0% had the event, 7 of 242 rated 100% did not.",
        "",
    ),
    "certain and overconfident": (
        "Overconfident: of the 1,239 records rated below 10% (2% on average), 21% had the event.",
        "Predictions of exactly 0 or 1 were wrong.",
    ),
    "one prediction": (
        "Predictions are too low: 30% predicted, 42% observed in 500 records.",
        "",
    ),
    "one outcome": (
        "Predictions are too high: 50% predicted, 0% observed in 500 records.",
        "",
    ),
    "weights": (
        "Predictions are too high: 50% predicted, 38% observed in 2,000 records.",
        "",
    ),
    "weights, slope": (
        "Overconfident: of the 377 records rated below 20% (10% on average), 31% had the event by weight.",
        "",
    ),
    "fractions": (
        "Predictions are too high: 50% predicted, 40% observed in 2,000 records.",
        "",
    ),
    "one group": (
        "Predictions are too low: 40.2% predicted, 43.1% observed in 4,000 records.",
        "Worst for b (region): 41% predicted, 52% observed (977 records).",
    ),
    "groups that cancel": (
        "Calibrated overall (40.2% predicted, 39.9% observed), but not for every group.",
        "Worst for b (region): 41% predicted, 51% observed (977 records).",
    ),
    "no group": (
        "No miscalibration found in 4,000 records; an error below about 2.3 points would not show.",
        "None of the 14 groups is wrong beyond chance.",
    ),
    "everyone alike": (
        "Overconfident: of the 2,113 records rated below 40% (24% on average), 35% had the event.",
        "None of the 14 groups stands out.",
    ),
    "everyone too high": (
        "Predictions are too high: 40% predicted, 32% observed in 4,000 records.",
        "None of the 14 groups stands out.",
    ),
    "a pair": (
        "Predictions are too low: 40.2% predicted, 43.3% observed in 4,000 records.",
        "Worst for b (region) and f (sex): 40% predicted, 66% observed (455 records).",
    ),
    "a group inverted": (
        "Overconfident: of the 2,113 records rated below 40% (24% on average), 38% had the event.",
        "Worst for a (region): 40% predicted, 61% observed.",
    ),
    "masks": (
        "Predictions are too low: 40% predicted, 47% observed in 4,000 records.",
        "Worst for aged 53 and over: 40% predicted, 52% observed.",
    ),
    "sketch": (
        "Overconfident: of the 2,162 records rated below 40% (25% on average), 35% had the event.",
        "",
    ),
    "sketch, one group": (
        "Predictions are too low: 40.2% predicted, 44.4% observed in 4,000 records.",
        "Worst for b (region): 41% predicted, 54% observed (977 records).",
    ),
    "sketch, everyone": (
        "Predictions are too high: 40% predicted, 33% observed in 4,000 records.",
        "None of the 4 groups stands out.",
    ),
}


@pytest.fixture(scope="module")
def verdicts():
    return {name: cb.evaluate(**given, draws=99).verdict for name, given in cases()}


@pytest.mark.parametrize("name", SENTENCES)
def test_the_sentences(verdicts, name):
    found = verdicts[name]
    assert (found.what, found.whom) == SENTENCES[name]
    assert words_in(found.sentence) <= MAX_WORDS
    assert numbers_in(found.sentence) <= MAX_NUMBERS
    assert found.next_step.endswith(".")
    assert "--" not in found.next_step


def test_every_case_has_a_sentence(verdicts):
    assert list(verdicts) == list(SENTENCES)


def test_the_demo_names_the_planted_fault():
    loans = cb.load_demo()
    found = cb.evaluate(loans, outcome="default", prediction="p", groups=["employment", "region"], draws=99)
    assert found.verdict.sentence == (
        "Overconfident: of the 3,470 records rated above 30% (44% on average), 38% had the event. "
        "Worst for self-employed (employment): 17.7% predicted, 20.5% observed."
    )
    assert found.verdict.group_columns == ("employment",)
    assert found.verdict.next_step == "Recalibrate by employment, on records the model was not trained on."


def test_a_column_without_a_role_is_not_blamed():
    loans = cb.load_demo()
    found = cb.evaluate(loans, outcome="default", prediction="p", groups=["region"], draws=99)
    assert found.verdict.whom == "None of the 4 groups stands out."
    assert found.verdict.group_columns == ()


def test_means_are_those_of_everyone():
    """The verdict's means and the row of the table describe the same records, exact 0s and 1s included."""
    p = [0.0] * 50 + [1.0] * 50 + [0.6] * 400
    y = [0] * 50 + [1] * 50 + [1] * 160 + [0] * 240
    found = cb.evaluate(y, p, draws=99)
    assert found.verdict.what == "Predictions are too high: 58% predicted, 42% observed in 500 records."
    assert found.facts.base_rate - found.facts.mean_prediction == pytest.approx(found["in-the-large"].value)
