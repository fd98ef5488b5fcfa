"""`calibrant check`: exit codes 0, 1, 2 and 3, and what continuous integration reads."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from cli.typed import calibrant


def check(*arguments, cwd=None, **environment):
    return calibrant("check", *arguments, cwd=cwd, **{"GITHUB_ACTIONS": "", **environment})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    rng = np.random.default_rng(11)
    path = tmp_path_factory.mktemp("gate")
    for name, n in (("many", 4_000), ("few", 60)):
        p = rng.uniform(0.05, 0.7, n)
        kind = rng.choice(["a", "b"], n)
        y = rng.random(n) < p + 0.2 * (kind == "b")
        frame = pd.DataFrame({"y": y.astype(int), "p": p, "kind": kind})
        frame.to_csv(path / f"{name}.csv", index=False)
    return path


COLUMNS = ("-y", "y", "-p", "p", "--seed", 1)


def test_kept_limits_are_exit_code_0(folder):
    done = check(folder / "many.csv", *COLUMNS, "--max", "smooth=0.2", "--max", "in-the-large=0.2")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("pass") == 3  # two limits, and both together


def test_a_broken_limit_is_exit_code_1(folder):
    done = check(folder / "many.csv", *COLUMNS, "--max", "smooth=0.02", "--max", "kuiper=0.5", "--json")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert found["outcome"] == "fail"
    assert [f["outcome"] for f in found["findings"]] == ["fail", "pass"]
    broken = found["findings"][0]
    assert broken["limit"] == 0.02 < broken["low"] <= broken["value"] <= broken["high"]


def test_too_little_data_is_exit_code_3(folder):
    done = check(folder / "few.csv", *COLUMNS, "--max", "smooth=0.05")
    assert done.returncode == 3
    assert "too little data" in done.stdout


def test_confidence_0_compares_the_plain_values(folder):
    assert check(folder / "few.csv", *COLUMNS, "--max", "smooth=0.5", "--confidence", 0).returncode == 0
    assert check(folder / "few.csv", *COLUMNS, "--max", "smooth=0.0001", "--confidence", 0).returncode == 1


def test_a_bad_group_breaks_the_limit_on_z(folder):
    groups = ("--groups", "kind", "--max-group-z")
    assert check(folder / "many.csv", *COLUMNS, *groups, 4).returncode == 1
    done = check(folder / "many.csv", *COLUMNS, *groups, 1000)
    assert done.returncode == 0
    assert "worst group" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "check needs a limit"),
        (("--max", "smoth=0.1"), "did you mean 'smooth'"),
        (("--max", "smooth"), "must be a number"),
        (("--max", "smooth=abc"), "must be a number"),
        (("--max", "smooth=-1"), "must not be negative"),
        (("--max-group-z", "4"), "needs --groups"),
        (("--max", "smooth=1", "--config", "absent.toml"), "got no such file"),
        (("--max", "smooth=1", "--groups", "nothing", "--max-group-z", "1"), "must be one of y, p, kind"),
        (("--max", "smooth=1", "--confidence", "2"), "confidence"),
    ],
)
def test_bad_usage_is_exit_code_2_and_one_message(folder, arguments, message):
    done = check(folder / "few.csv", *COLUMNS, *arguments, cwd=folder)
    assert done.returncode == 2, done.stdout
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_limits_come_from_pyproject_and_the_command_line_wins(folder, tmp_path):
    table = '[tool.calibrant.check]\noutcome = "y"\nprediction = "p"\nseed = 1\ngroups = ["kind"]\n'
    (tmp_path / "pyproject.toml").write_text(
        table + "max-group-z = 1000\nmax = { smooth = 0.02, ks = 0.9 }\n"
    )
    done = check(folder / "many.csv", "--json", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert [f["name"] for f in json.loads(done.stdout)["findings"]] == ["smooth", "ks", "group-z"]
    assert check(folder / "many.csv", "--max", "smooth=0.2", cwd=tmp_path).returncode == 0
    (tmp_path / "pyproject.toml").write_text("[tool.calibrant.check]\nmaximum = 3\n")
    done = check(folder / "many.csv", cwd=tmp_path)
    assert done.returncode == 2
    assert "'maximum'" in done.stderr


def test_junit_and_github_say_the_same(folder, tmp_path):
    target = tmp_path / "junit.xml"
    limits = ("--max", "smooth=0.02", "--max", "kuiper=0.5")
    done = check(folder / "many.csv", *COLUMNS, *limits, "--junit", target, GITHUB_ACTIONS="true")
    suite = ElementTree.parse(target).getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "1", "0")
    assert len(suite.findall("testcase/failure")) == 1
    assert done.stderr.count("::error title=calibrant check::smooth") == 1
    files = (folder / "many.csv", folder / "few.csv")
    both = check(*files, *COLUMNS, "--max", "smooth=0.0001", "--confidence", 0, "--github")
    for file in files:
        assert f"::error title=calibrant check::{file}: smooth" in both.stderr


def test_a_sketch_can_be_checked_and_its_resolution_counts(folder, tmp_path):
    import calibrant as cb

    frame = pd.read_csv(folder / "many.csv")
    path = tmp_path / "many.sketch"
    cb.Sketch.from_frame(frame, outcome="y", prediction="p", cells=64).save(path)
    done = check(path, "--max", "smooth=0.5", "--max", "kuiper=0.02", "--seed", 1, "--json")
    assert done.returncode == 1, done.stderr
    kept, broken = json.loads(done.stdout)["findings"]
    assert kept["outcome"] == "pass"
    assert broken["outcome"] == "fail"
    exact = cb.smooth_calibration_error(frame.y, frame.p)
    assert kept["low"] <= exact <= kept["high"]
    done = check(path, "--max", "smooth=0.5", "--groups", "kind", "--max-group-z", 4)
    assert done.returncode == 2


def test_the_groups_of_a_sketch_can_be_limited(folder, tmp_path):
    import calibrant as cb

    frame = pd.read_csv(folder / "many.csv")
    path = tmp_path / "many.sketch"
    cb.Sketch.from_frame(frame, outcome="y", prediction="p", by="kind").save(path)
    assert check(path, "--max-group-z", 4, "--seed", 1).returncode == 1
    assert check(path, "--max-group-z", 1000, "--groups", "kind", "--seed", 1).returncode == 0
    done = check(path, "--max-group-z", 4, "--groups", "colour")
    assert done.returncode == 2
    assert "the sketch was made by" in done.stderr


def test_a_measure_that_a_sketch_cannot_bound_is_bad_usage(folder, tmp_path):
    import calibrant as cb

    frame = pd.read_csv(folder / "many.csv")
    path = tmp_path / "many.sketch"
    cb.Sketch.from_frame(frame, outcome="y", prediction="p", cells=16).save(path)
    done = check(path, "--max", "brier-mcb=0.1")
    assert done.returncode == 2, done.stdout


def test_several_files_are_judged_one_by_one_and_the_worst_decides(folder):
    done = check(folder / "many.csv", folder / "few.csv", *COLUMNS, "--max", "smooth=0.2", "--json")
    found = json.loads(done.stdout)
    assert [part["n"] for part in found["files"]] == [4000, 60]
    assert (found["schema"], found["schema_version"]) == ("calibrant-check", 2)
    assert found["files"][0]["outcome"] == "pass"
    assert done.returncode == {"pass": 0, "unclear": 3}[found["files"][1]["outcome"]]


def test_few_records_decide_nothing_and_how_few_can_be_set(tmp_path):
    path = tmp_path / "one.csv"
    path.write_text("y,p\n1,0.5\n")
    done = check(path, *COLUMNS, "--max", "smooth=0.6")
    assert done.returncode == 3
    assert "too few" in done.stdout
    assert check(path, *COLUMNS, "--max", "smooth=0.6", "--min-records", 1).returncode == 3
    assert check(path, *COLUMNS, "--max", "smooth=0.6", "--confidence", 0).returncode == 0


def test_no_events_are_no_certainty(tmp_path):
    path = tmp_path / "rare.csv"
    path.write_text("y,p\n" + "0,0.01\n" * 100)
    assert check(path, *COLUMNS, "--max", "smooth=0.005").returncode == 3


def test_a_signed_measure_prints_its_value_and_its_distance(folder):
    done = check(folder / "many.csv", *COLUMNS, "--max", "slope=0.001", "--json")
    finding = json.loads(done.stdout)["findings"][0]
    assert finding["distance"] == pytest.approx(abs(finding["value"] - 1))
    assert "from 1" in finding["reason"]
