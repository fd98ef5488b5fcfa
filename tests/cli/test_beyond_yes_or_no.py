"""calibrant distributions and abstain, and --time, --event, --horizon on the other commands."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from cli.typed import calibrant

import calibrant as cb
from calibrant.evaluation.distributions import evaluate_distributions

CENSORED = ["rows.csv", "--time", "t", "--event", "e", "--horizon", 1, "-p", "p"]
MEMBERS = ",".join(f"m{k}" for k in range(9))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    rng, n = np.random.default_rng(0), 500
    rate = 0.5 * np.exp(0.8 * rng.normal(size=n))
    event, end = rng.exponential(1 / rate), rng.exponential(2, size=n)
    y = rng.normal(size=n)
    columns = {
        "t": np.minimum(event, end), "e": (event <= end).astype(int), "p": 1 - np.exp(-rate),
        "p2": 1 - np.exp(-2 * rate), "g": rng.choice(["a", "b"], n), "y": y, "lo": -1.64, "hi": 1.64,
        "right": (rng.random(n) < 0.99).astype(int), "sure": rng.uniform(0.95, 1, n),
        "c0": 0.5, "c1": 0.84, **{f"m{k}": rng.normal(0, 0.6, n) for k in range(9)},
    }  # fmt: skip
    path = tmp_path_factory.mktemp("beyond")
    pd.DataFrame(columns).to_csv(path / "rows.csv", index=False)
    return path


def test_every_command_takes_censored_times(folder):
    frame = pd.read_csv(folder / "rows.csv")
    y = cb.censored(frame.t, frame.e, 1)
    shown = calibrant("evaluate", *CENSORED, "--json", "--draws", 19, cwd=folder)
    assert shown.returncode == 0
    assert "censored before 1" in shown.stderr
    assert json.loads(shown.stdout)["facts"]["base_rate"] == pytest.approx(y.event_rate)
    tested = json.loads(calibrant("test", *CENSORED, "--json", "--seed", 1, cwd=folder).stdout)["test"]
    assert tested["pvalue"] == cb.calibration_test(y, frame.p, seed=1).pvalue
    for command, *more in (
        ("check", "--max", "smooth=0.3"),
        ("audit", "--groups", "g", "--draws", 19),
        ("compare", "-p", "p2", "--draws", 19),
        ("recalibrate", "-m", "platt"),
    ):
        assert calibrant(command, *CENSORED, *more, cwd=folder).returncode == 0, command


def test_the_next_step_names_the_columns_of_censored_times(folder):
    shown = calibrant("evaluate", *CENSORED[:-1], "p2", "--draws", 19, cwd=folder).stdout
    step = next(line for line in shown.splitlines() if line.startswith("Next: "))
    assert step == ("Next: calibrant recalibrate rows.csv --time t --event e --horizon 1 -p p2 -o map.json")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--time", "t"], "--time needs --event"),
        (["--event", "e", "-y", "right"], "--event needs --time"),
        (["--time", "t", "--event", "e", "--horizon", 1, "-y", "right"], "--time excludes --outcome"),
        (["--time", "t", "--event", "e", "--horizon", 900], "horizon must lie within the follow-up"),
        (["--time", "t", "--event", "p", "--horizon", 1], "column 'p' must be 0 for censored"),
        (["--time", "y", "--event", "e", "--horizon", 1], "column 'y' must be finite and not negative"),
        ([], "Missing option '--outcome' / '-y'"),
    ],
)
def test_censored_times_are_refused_in_words(folder, arguments, said):
    for command, *more in (("evaluate",), ("compare", "-p", "p2")):
        result = calibrant(command, "rows.csv", "-p", "p", *more, *arguments, cwd=folder)
        assert result.returncode == 2
        assert said in result.stderr


def test_ensembles(folder):
    arguments = ["rows.csv", "-y", "y", "--members", MEMBERS, "--groups", "g", "--html", "page.html"]
    result = calibrant("distributions", *arguments, "--chart", "pit=pit.svg", cwd=folder)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("Too narrow")
    assert "Too narrow" in (folder / "page.html").read_text()
    assert (folder / "pit.svg").read_text().startswith("<svg")


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        (["-y", "y", "--quantiles", "hi=.95,lo=.05"], "pit"),
        (["-y", "y", "--cdf", "c0=0,c1=1"], "thresholds"),
        (["-y", "y", "--lower", "lo", "--upper", "hi", "--coverage", 0.9], "coverage"),
        (["--time", "t", "--event", "e", "--cdf", "p=1,p2=2", "--chart", "horizons=h.svg"], "horizons"),
    ],
)
def test_the_other_forms(folder, arguments, key):
    result = calibrant("distributions", "rows.csv", *arguments, "--json", "--draws", 99, cwd=folder)
    assert result.returncode == 0, result.stderr
    assert key in json.loads(result.stdout)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-y", "y"], "needs one of --members"),
        (["-y", "y", "--lower", "lo", "--upper", "hi"], "need --coverage"),
        (["-y", "y", "--quantiles", "lo=.05,hi"], "NAME=NUMBER"),
        (["-y", "y", "--quantiles", "lo=.95,hi=.05"], "ascending quantiles"),
        (["--members", MEMBERS], "Missing option '--outcome'"),
        (["--time", "t", "--cdf", "p=1"], "--time needs --event"),
        (["--time", "t", "--event", "e", "--cdf", "p=1", "--at", "3"], "--at excludes --time"),
        (["--time", "t", "--event", "e", "--cdf", "p=1,y=2"], "column 'y' must lie in [0, 1]"),
        (["-y", "y", "--lower", "lo", "--upper", "hi", "--groups", "g"], "--groups needs --members"),
        (["-y", "y", "--members", MEMBERS, "--coverage", 0.9], "--coverage needs --lower and --upper"),
        (["-y", "y", "--members", MEMBERS, "--strata", "g"], "--strata needs --time"),
        (["-y", "y", "--lower", "hi", "--upper", "lo", "--coverage", 0.9], "'lo' must not be less than"),
        (["-y", "y", "--cdf", "c0=1,c1=1"], "must have different numbers; got 1 for c0 and c1"),
        (["--time", "t", "--event", "e", "--cdf", "p=1,p2=1.0"], "got 1 for p and p2"),
        (["--time", "t", "--event", "e", "--cdf", "p=1", "--clusters", "g"], "--clusters excludes --time"),
        (["-y", "y", "--cdf", "c0=0,t=1"], "columns 'c0', 't' must lie in [0, 1]"),
    ],
)
def test_distributions_are_refused_in_words(folder, arguments, said):
    result = calibrant("distributions", "rows.csv", *arguments, cwd=folder)
    assert result.returncode == 2
    assert said in result.stderr


def test_abstain(folder):
    arguments = ["rows.csv", "-y", "right", "-p", "sure"]
    result = calibrant("abstain", *arguments, "--risk", 0.05, "--chart", "risk=r.svg", cwd=folder)
    assert result.returncode == 0
    assert "The true error rate is at most 5.0%" in result.stdout
    none = calibrant("abstain", *arguments, "--risk", 0.001, "--json", cwd=folder)
    assert none.returncode == 3
    assert json.loads(none.stdout)["threshold"] is None


def test_distributions_with_clusters(folder):
    rows = pd.read_csv(folder / "rows.csv").assign(storm=np.arange(500) // 5)
    rows.to_csv(folder / "storms.csv", index=False)
    how = ["-y", "y", "--members", MEMBERS, "--draws", 199, "--json"]
    found = calibrant("distributions", "storms.csv", *how, "--clusters", "storm", cwd=folder)
    assert found.returncode == 0, found.stderr
    members = rows[[f"m{k}" for k in range(9)]]
    expected = evaluate_distributions(rows.y, members, clusters=rows.storm, draws=199)
    shown = [one["pvalue"] for one in json.loads(found.stdout)["thresholds"]["thresholds"]]
    assert shown == pytest.approx([one.pvalue for one in expected.thresholds.thresholds])
    alone = calibrant("distributions", "storms.csv", *how, cwd=folder)
    assert json.loads(alone.stdout)["thresholds"] != json.loads(found.stdout)["thresholds"]
