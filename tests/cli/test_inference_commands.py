"""calibrant test, compare and plan, as a user runs them."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import calibrant as cb
from calibrant.cli.main import calibrant, run_command
from calibrant.errors import InvalidInputError, UnreadableFileError


def run(*arguments):
    return CliRunner().invoke(calibrant, [str(a) for a in arguments])


def unwrapped(text):
    return " ".join(text.split())


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    rng = np.random.default_rng(7)
    p = rng.random(500).round(3)
    frame = pd.DataFrame(
        {"y": (rng.random(500) < p).astype(int), "p": p, "q": np.clip(p + 0.2, 0, 1), "w": rng.random(500)}
    )
    path = tmp_path_factory.mktemp("files") / "good.csv"
    frame.to_csv(path, index=False)
    return path


def test_test(file):
    found = run("test", file, "-y", "y", "-p", "q", "--seed", 1, "--json", "--interval", "--draws", 99)
    assert found.exit_code == 0, found.output
    data = json.loads(found.stdout)
    assert not any(key.startswith("_") for key in data["test"])
    assert data["test"]["pvalue"] == 0.01
    assert data["test"]["seed"] == 1
    assert data["test"]["method"] == "exact"
    assert data["interval"]["lower"] <= data["interval"]["value"]
    frame = pd.read_csv(file)
    assert data["test"]["measure"] == "omnibus"
    assert data["interval"]["value"] == pytest.approx(cb.kuiper_error(frame.y, frame.q))


def test_test_in_words_and_with_limits(file):
    found = run(
        "test",
        file,
        "-y",
        "y",
        "-p",
        "p",
        "-w",
        "w",
        "-m",
        "hosmer-lemeshow",
        "--accept",
        0.01,
        "--reject",
        0.5,
    )
    assert found.exit_code == 0, found.output
    assert "hosmer-lemeshow" in found.stdout
    assert "verdict" in found.stdout
    assert "seed" in found.stdout


def test_compare(file):
    found = run("compare", file, "-y", "y", "-p", "p", "-p", "q", "--seed", 2, "--draws", 99, "--json")
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout)["best"] == "p"
    words = run("compare", file, "-y", "y", "-p", "p", "-p", "q", "--draws", 19, "-m", "kuiper", "-w", "w")
    assert "seed" in words.stdout
    assert "not truthful" in unwrapped(words.output)


def test_plan(file):
    found = run("plan", "--distance", 0.1, "--seed", 1, "--draws", 99, "--json")
    assert found.exit_code == 0, found.output
    assert 50 < json.loads(found.stdout)["n"] < 1000
    shaped = run("plan", file, "-p", "p", "--records", 500, "--draws", 99)
    assert "500 records detect" in shaped.stdout


def test_plan_shows_the_records_for_precise_estimates_first(file):
    shown = run("plan", file, "-p", "p", "--distance", 0.1, "--draws", 99).stdout
    assert max(map(len, shown.splitlines())) <= 100
    shown = " ".join(shown.split())
    assert 0 <= shown.find("intervals of a validation") < shown.find("detect a distance")
    alone = json.loads(run("plan", "--base-rate", 0.1, "--c-statistic", 0.75, "--json").stdout)
    assert alone["records"] == {"o/e": 3469, "slope": 5820, "c-statistic": 1008}
    both = json.loads(run("plan", file, "-p", "p", "-n", 500, "--draws", 99, "--json").stdout)
    assert both["n"] == 500
    assert set(both["validation"]["widths_at_records"]) == {"o/e", "slope", "c-statistic"}


@pytest.mark.parametrize(
    "arguments",
    [
        ["plan"],
        ["plan", "--distance", 0.1, "--records", 5],
        ["plan", "-p", "p", "--records", 5],
        ["test", "FILE", "-y", "y", "-p", "p", "--accept", 0.1],
        ["test", "FILE", "-y", "y", "-p", "p", "-m", "nope"],
        ["compare", "FILE", "-y", "y", "-p", "p"],
    ],
)
def test_misuse_raises_only_errors_with_a_message(file, arguments):
    found = run(*(file if a == "FILE" else a for a in arguments))
    assert isinstance(found.exception, cb.CalibrantError)


@pytest.fixture
def holes(tmp_path):
    """Rows 200, 201 and 202 lack a prediction, the other prediction and the outcome."""
    rows = "".join(f"{i % 2},0.{i % 9 + 1},0.5\n" for i in range(200))
    path = tmp_path / "holes.csv"
    path.write_text("y,p,q\n" + rows + "1,,0.3\n0,0.3,\n,0.3,0.4\n")
    return path


def test_dropped_rows_are_counted(holes):
    common = ["--missing", "drop", "--draws", 99, "--seed", 1]
    tested = ["test", holes, "-y", "y", "-p", "p", *common]
    assert json.loads(run(*tested, "--json").stdout)["test"]["dropped"] == 2
    assert "dropped" in run(*tested).stdout
    compared = ["compare", holes, "-y", "y", "-p", "p", "-p", "q", *common]
    assert json.loads(run(*compared, "--json").stdout)["dropped"] == 3
    assert "200 rows (3 with missing values dropped)" in unwrapped(run(*compared).stdout)
    planned = ["plan", holes, "-p", "p", "-n", 500, *common]
    assert json.loads(run(*planned, "--json").stdout)["dropped"] == 1
    assert "1 row without a prediction dropped" in run(*planned).stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["test", "-y", "y", "-p", "p"], "column 'y' must not be missing; got nan in row 202 (1 row)"),
        (["compare", "-y", "y", "-p", "q", "-p", "p"], "column 'y' must not be missing; got nan in row 202"),
        (["plan", "-p", "p", "-n", 500], "column 'p' must not be missing; got nan in row 200 (1 row)"),
    ],
)
def test_missing_rows_are_named_by_column_with_a_hint_that_can_be_typed(
    holes, arguments, message, monkeypatch, capsys
):
    monkeypatch.setattr("sys.argv", ["calibrant", arguments[0], str(holes), *map(str, arguments[1:])])
    assert run_command() == 2
    printed = capsys.readouterr().err
    assert message in printed
    assert "Hint: pass --missing drop to leave such rows out" in printed


def test_compare_refuses_more_models_than_one_chart_can_draw_before_it_measures(tmp_path, file):
    models = [part for name in ("p", "q", "w", "y") for part in ("-p", name)]
    found = run("compare", file, "-y", "y", *models, "--chart", f"reliability={tmp_path / 'models.svg'}")
    with pytest.raises(InvalidInputError, match=r"--chart reliability draws two or three columns .*; got 4"):
        raise found.exception
    assert found.stdout == ""


def test_compare_names_the_column_at_fault(tmp_path, file):
    path = tmp_path / "high.csv"
    path.write_text("y,p,q\n1,0.5,0.5\n0,0.2,1.5\n")
    with pytest.raises(InvalidInputError, match=r"column 'q' must lie in \[0, 1\]; got 1.5 in row 1"):
        raise run("compare", path, "-y", "y", "-p", "p", "-p", "q").exception
    with pytest.raises(InvalidInputError, match="different column each time; got 'p' 2 times"):
        raise run("compare", file, "-y", "y", "-p", "p", "-p", "p").exception


def test_net_benefit_and_charts_of_models(file, tmp_path):
    chart, other = tmp_path / "benefit.svg", tmp_path / "reliability.svg"
    common = ["compare", file, "-y", "y", "-p", "p", "--net-benefit", "0.2,0.5", "--seed", 1, "--draws", 99]
    alone = run(*common)
    assert "p has the largest net benefit at " in alone.stdout
    assert "resamples" not in alone.stdout
    reported = json.loads(run(*common, "--json").stdout)
    assert unwrapped(alone.stdout).startswith(unwrapped(reported["sentence"]))
    assert reported["net_benefit"]["sentence"] == reported["sentence"]
    both = [*common, "-p", "q", "--chart", f"net-benefit={chart}", "--chart", f"reliability={other}"]
    found = json.loads(run(*both, "--chart-text", "title", "--json").stdout)
    assert found["net_benefit"]["thresholds"] == [0.2, 0.5]
    assert ">Net benefit<" in chart.read_text()
    assert "<svg" in other.read_text()
    assert run(*common[:-4], "--net-benefit", "a,b").exit_code == 2
    with pytest.raises(cb.UnknownNameError, match="--chart must be one of reliability, net-benefit"):
        raise run(*common, "--chart", f"x={chart}").exception


def test_a_trend_needs_dates_that_sort_by_time(tmp_path):
    path = tmp_path / "days.csv"
    days = np.repeat(["30.01.2024", "31.01.2024", "01.02.2024"], 40)
    pd.DataFrame({"y": [0, 1] * 60, "p": 0.5, "day": days}).to_csv(path, index=False)
    groups = ["compare", path, "-y", "y", "-p", "p", "--groups", "day", "--draws", 19, "--seed", 1]
    assert run(*groups).exit_code == 0
    with pytest.raises(
        InvalidInputError, match=r"column 'day' must hold dates that sort by time; got 30.01.2024"
    ):
        raise run(*groups, "--ordered").exception


def test_no_table_of_pairs_where_there_are_too_many_groups_for_pairs(tmp_path):
    rng = np.random.default_rng(3)
    p = rng.random(400)
    frame = pd.DataFrame({"y": (rng.random(400) < p).astype(int), "p": p, "day": np.arange(400) // 5})
    path = tmp_path / "days.csv"
    frame.to_csv(path, index=False)
    found = run("compare", path, "-y", "y", "-p", "p", "--groups", "day", "--draws", 19, "--seed", 1)
    assert found.exit_code == 0, found.output
    assert "odds ratio" not in found.stdout


def test_groups_of_one_model_are_compared_with_a_trend_where_they_have_an_order(tmp_path):
    path = tmp_path / "games.csv"
    rows = [(k % 3 == 0, 0.3, 2019 + k // 60, "abcd"[k // 60]) for k in range(240)]
    path.write_text("y,p,year,site\n" + "".join(f"{int(y)},{p},{year},{s}\n" for y, p, year, s in rows))
    common = ["compare", path, "-y", "y", "-p", "p", "--seed", 1, "--draws", 99]
    by_year = json.loads(run(*common, "--groups", "year", "--json").stdout)
    assert [group["name"] for group in by_year["groups"]] == ["2019", "2020", "2021", "2022"]
    assert by_year["trend"]["pvalue"] > 0.5
    assert json.loads(run(*common, "--groups", "site", "--json").stdout)["trend"] is None
    assert json.loads(run(*common, "--groups", "site", "--ordered", "--json").stdout)["trend"] is not None
    text = unwrapped(run(*common, "--groups", "year").stdout)
    assert text.startswith("The 4 groups of year do not differ by more than chance (p = ")
    assert "No trend along year from 2019 to 2022 beyond chance" in text
    with pytest.raises(InvalidInputError, match="--groups compares one column of predictions; got 2"):
        raise run("compare", path, "-y", "y", "-p", "p", "-p", "year", "--groups", "site").exception


@pytest.mark.parametrize("odd", ["1,0.4", "1,0.4,0.3,9"])
def test_a_ragged_row_is_named(tmp_path, odd):
    path = tmp_path / "ragged.csv"
    path.write_text("y,p,q\n" + "1,0.2,0.3\n" * 50 + odd + "\n")
    found = run("test", path, "-y", "y", "-p", "p")
    with pytest.raises(UnreadableFileError, match=r"cells in line 52 and 3 in the header"):
        raise found.exception
    assert isinstance(run("test", path, "-y", "y", "-p", "nope").exception, cb.CalibrantError)


@pytest.mark.parametrize(
    "command",
    [["test", "-p", "q"], ["compare", "-p", "p", "-p", "q"], ["compare", "-p", "q", "--groups", "half"]],
)
def test_json_has_the_sentence_that_is_printed(file, tmp_path, command):
    halves = tmp_path / "halves.csv"
    pd.read_csv(file).assign(half=["a", "b"] * 250).to_csv(halves, index=False)
    name, *rest = command
    typed = [name, halves, "-y", "y", *rest, "--seed", 1, "--draws", 99]
    data = json.loads(run(*typed, "--json").stdout)
    sentence = data.get("test", data)["sentence"]
    assert unwrapped(run(*typed).stdout).startswith(unwrapped(sentence))


def test_sentences_fit_the_page(tmp_path):
    """Piped into a file or a mail, no line of a comparison is longer than 100 characters."""
    runner, path = CliRunner(), tmp_path / "loans.csv"
    pd.DataFrame(cb.load_demo(600, seed=1)).to_csv(path, index=False)
    for columns in (["-p", "p", "-p", "p_old"], ["-p", "p", "--groups", "region"]):
        done = runner.invoke(calibrant, ["compare", str(path), "-y", "default", *columns, "--draws", "99"])
        prose = done.stdout.split("\n\n")[0].split("\n")
        assert done.exit_code == 0
        assert len(prose) > 1
        assert max(map(len, prose)) <= 100


def test_groups_within_another_column_in_one_command(tmp_path):
    rng = np.random.default_rng(1)
    n, p = 600, np.round(np.random.default_rng(2).uniform(0.2, 0.8, 600), 2)
    league, season = rng.choice(["a", "b"], n), rng.integers(2020, 2023, n)
    y = (rng.random(n) < p - 0.15 * (season - 2020) * (league == "b")).astype(int)
    path, chart = tmp_path / "games.csv", tmp_path / "seasons.svg"
    pd.DataFrame({"y": y, "p": p, "league": league, "season": season}).to_csv(path, index=False)
    common = ["compare", path, "-y", "y", "-p", "p", "--groups", "season", "--within", "league"]
    found = run(*common, "--chart", f"groups-in-order={chart}")
    text = unwrapped(found.stdout)
    assert "there is a trend along season beyond chance in 1 of 2: b (p" in text
    assert text.index("league records groups") < text.index("season records predicted")
    drawn = chart.read_text()
    assert "trend beyond chance" in drawn
    assert drawn.count('aria-roledescription="point"') == 6
    library = cb.compare_groups(y, p, {"season": season}, within={"league": league})
    assert json.loads(run(*common, "--json").stdout) == library.to_dict()
    with pytest.raises(InvalidInputError, match="--within needs --groups"):
        raise run("compare", path, "-y", "y", "-p", "p", "-p", "season", "--within", "league").exception
