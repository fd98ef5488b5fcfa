"""`calibrant truthful`: each form of the call, and what it refuses."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from calibrant.cli.main import calibrant
from calibrant.errors import CalibrantError


def run(*arguments):
    return CliRunner().invoke(calibrant, ["truthful", *arguments], catch_exceptions=True)


def test_one_measure_at_one_truth():
    found = run("--measure", "smooth", "--truth", ".25,.75")
    assert found.exit_code == 0
    assert "gains at least 0.046875" in found.output


def test_the_worst_truth():
    found = run("--measure", "level-set", "--n", "1", "--json")
    gap = json.loads(found.output)["gaps"][0]
    assert gap["truth"] == [0.25]
    assert gap["gap"] == pytest.approx(0.125)


def test_several_measures_make_a_table():
    found = run("-m", "level-set", "-m", "atb", "-m", "brier")
    assert "decomposition" in found.output
    assert "lower bound" in found.output


def test_sequential():
    assert "0.25 after 0" in run("-m", "atb", "--truth", ".5,.5", "--sequential").output


def test_a_file_of_predictions(tmp_path):
    file = tmp_path / "forecasts.csv"
    file.write_text("p\n" + "\n".join(f"{k / 100}" for k in range(5, 96)) + "\n")
    found = run(str(file), "-p", "p", "-m", "level-set", "-m", "brier", "--draws", "99", "--seed", "1")
    assert found.exit_code == 0
    assert "Rank by brier or log-loss" in found.output
    whole = json.loads(run(str(file), "-p", "p", "--draws", "20", "--seed", "1", "--json").output)
    assert whole["best"]["level-set"] == "mean"
    file.write_text("p\n0.5\n\n0.25\nNA\n")
    dropped = run(str(file), "-p", "p", "--missing", "drop", "--draws", "5")
    assert dropped.exit_code == 0, dropped.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "either --measure or --all"),
        (("-m", "level-set", "--all"), "either --measure or --all"),
        (("-m", "level-set", "--truth", ".2", "--n", "2"), "must not be given together"),
        (("-m", "level-set", "--n", "2", "--sequential"), "needs --truth"),
        (("file.csv", "-m", "level-set"), "must be given together"),
        (("file.csv", "-p", "p", "--truth", ".5"), "must not be given with FILE"),
        (("-m", "slope"), "not defined"),
    ],
)
def test_refusals(arguments, words):
    found = run(*arguments)
    assert isinstance(found.exception, CalibrantError)
    assert words in str(found.exception)


def test_a_truth_that_is_not_numbers_is_refused():
    found = run("-m", "level-set", "--truth", "a,b")
    assert found.exit_code == 2
    assert "numbers with commas" in found.output
