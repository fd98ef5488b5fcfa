"""`calibrant audit`, run as a user runs it."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from cli.typed import calibrant
from people import people
from read_files import read_categories

from calibrant import audit


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    y, p, frame = people(21, 1200)
    y = np.where((frame["sex"] == "F") & (frame["age"] > 60), 1, y)
    frame = frame.assign(y=y, p=p, w=np.where(frame["sex"] == "F", 2.0, 1.0))
    path = tmp_path_factory.mktemp("audit")
    frame.to_csv(path / "people.csv", index=False)
    frame.assign(region=frame["region"].astype("category")).to_parquet(path / "people.parquet", index=False)
    return path


@pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
def test_json_is_what_the_library_says(folder, name):
    names = ["age", "income", "sex", "region"]
    arguments = ["--covariates", ",".join(names), "--subpopulations", 40, "--seed", 5, "--weight", "w"]
    done = calibrant("audit", folder / name, "-y", "y", "-p", "p", *arguments, "--json", "--top", 3)
    assert done.returncode == 0, done.stderr
    frame = pd.read_parquet(folder / "people.parquet")
    expected = audit(
        frame["y"], frame["p"], sample_weight=frame["w"], covariates=frame[names], subpopulations=40, seed=5
    )
    assert json.loads(done.stdout) == json.loads(json.dumps(expected.to_dict(3)))
    assert done.stderr == ""


def test_text_names_the_worst_group_the_seed_and_what_was_left_out(folder):
    done = calibrant("audit", folder / "people.csv", "-y", "y", "-p", "p", "--groups", "sex,region")
    assert done.returncode == 0, done.stderr
    assert "sex = F" in done.stdout
    assert "seed" in done.stdout
    assert "Not tested" in " ".join(done.stdout.split())
    assert done.stdout.startswith("Wrong beyond chance for ")
    assert "\nWorst for F (sex): " in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100


def test_text_says_how_many_groups_it_leaves_out(folder):
    words = ["audit", folder / "people.csv", "-y", "y", "-p", "p", "--groups", "sex,region", "--draws", 9]
    assert " more groups; --top " in calibrant(*words, "--top", 2).stdout
    assert "shows all" not in calibrant(*words, "--top", 1000).stdout


def test_limit_and_variant_are_those_of_the_library(folder):
    arguments = ["--groups", "sex,region", "--limit", 3, "--variant", "proportional", "--seed", 1, "--json"]
    done = calibrant("audit", folder / "people.csv", "-y", "y", "-p", "p", *arguments)
    assert done.returncode == 0, done.stderr
    frame = pd.read_parquet(folder / "people.parquet")
    groups = frame[["sex", "region"]]
    expected = audit(frame["y"], frame["p"], groups=groups, limit=3, variant="proportional", seed=1)
    assert json.loads(done.stdout) == json.loads(json.dumps(expected.to_dict(10)))


def test_search_is_confirmed_on_other_rows(folder):
    arguments = ["--covariates", "age,sex", "--subpopulations", 20, "--search", "--json"]
    done = calibrant("audit", folder / "people.csv", "-y", "y", "-p", "p", *arguments)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["search"]
    assert found["searched"] + found["confirming"] == 1200
    assert "sex = F" in found["findings"][0]["rule"]


def test_text_says_how_many_rows_were_dropped_and_what_the_search_left_out(folder):
    frame = pd.read_parquet(folder / "people.parquet")
    frame.loc[:6, "p"] = np.nan
    frame.to_csv(folder / "gaps.csv", index=False)
    arguments = ["--covariates", "age,sex", "--subpopulations", 20, "--search", "--missing", "drop"]
    done = calibrant("audit", folder / "gaps.csv", "-y", "y", "-p", "p", *arguments)
    assert done.returncode == 0, done.stderr
    assert "1,193 rows (7 with missing values dropped)" in done.stdout
    assert "10 rules confirmed on 597 others" in done.stdout
    assert "Not tested there: " in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give --covariates or --groups"),
        (["--groups", "sexx"], "did you mean 'sex'"),
        (["--groups", "sex,,age"], "empty name"),
        (["--groups", "sex", "--search"], "--search needs --covariates"),
        (["--groups", "sex", "--top", "-1"], "'--top': -1 is not in the range x>=0"),
        (["--covariates", "age", "--nominal", "agee"], "did you mean 'age'"),
        (["--covariates", "age", "--draws", "-3"], "Invalid value for '--draws'"),
    ],
)
def test_bad_usage_is_exit_code_two_and_one_message(folder, arguments, message):
    done = calibrant("audit", folder / "people.csv", "-y", "y", "-p", "p", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_columns_of_every_type_come_through(tmp_path):
    frame = pd.DataFrame(
        {
            "whole": [1, 2, None],
            "date": pd.to_datetime(["2020-01-01", None, "2021-05-06"]),
            "flag": [True, None, False],
            "text": ["a", None, "b"],
        }
    )
    frame["flag"] = frame["flag"].astype("boolean")
    frame.to_parquet(tmp_path / "types.parquet")
    found = read_categories(tmp_path / "types.parquet", list(frame))
    assert np.isnan(found["whole"][2])
    assert np.isnat(found["date"][1])
    assert found["flag"].tolist() == [True, None, False]
    assert found["text"].tolist() == ["a", None, "b"]


def test_rules_that_an_audit_wrote_are_repaired(tmp_path):
    rng = np.random.default_rng(0)
    g, age, p = rng.choice(["x", "y"], 1500), rng.integers(18, 80, 1500), rng.beta(2, 3, 1500).round(3)
    off = np.where((g == "x") & (age >= 50), 0.3, 0.0)
    y = (rng.random(1500) < np.minimum(p + off, 1)).astype(int)
    file = tmp_path / "rows.csv"
    pd.DataFrame({"y": y, "p": p, "g": g, "age": age}).to_csv(file, index=False)
    rules, fitted = tmp_path / "rules.json", tmp_path / "map.json"
    columns = [file, "-y", "y", "-p", "p", "--seed", 1]
    done = calibrant("audit", *columns, "--covariates", "g,age", "--draws", 99, "--rules", rules)
    assert done.returncode == 0, done.stderr
    done = calibrant("recalibrate", *columns, "--rules", rules, "--method", "patch", "-o", fitted)
    assert done.returncode == 0, done.stderr
    assert "For whom, on held-out records" in done.stdout
    assert json.loads(fitted.read_text())["map"]["groups"]
    for arguments, words in (
        (["--rules", rules], "patch"),
        (["--rules", fitted, "-m", "patch"], "must be a file of rules"),
        (["--rules", tmp_path / "nowhere", "-m", "patch"], "nowhere"),
        (["--rules", "/dev/zero", "-m", "patch"], "folder, device or pipe"),
    ):
        failed = calibrant("recalibrate", *columns, *arguments)
        assert failed.returncode == 2
        assert words in failed.stderr


def test_too_few_outcomes_above_their_predictions_are_too_little_data(tmp_path):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"p": rng.uniform(0.5, 2, 60), "g": rng.choice(["a", "b"], 60)})
    frame.assign(y=np.where(np.arange(60) < 3, 20.0, 0.0)).to_csv(tmp_path / "rows.csv", index=False)
    columns = ("-y", "y", "-p", "p", "--groups", "g", "--variant", "real")
    done = calibrant("audit", tmp_path / "rows.csv", *columns)
    assert done.returncode == 3, done.stderr
    assert done.stdout.startswith(
        "Too little data to say: records must include at least 5 with an outcome above"
    )


@pytest.mark.parametrize(
    ("command", "cells", "words"),
    [
        ("audit", "0.5,0.2", ("column 'y' must be 0 or 1; got 0.5 in row 0", "--variant real")),
        ("audit", "1,-0.2", ("column 'p' must lie in [0, 1]; got -0.2 in row 0",)),
        ("distinguish", "0.5,0.2", ("column 'y' must be 0 or 1; got 0.5 in row 0",)),
    ],
)
def test_errors_name_the_columns_and_the_option(tmp_path, command, cells, words):
    path = tmp_path / "rows.csv"
    path.write_text(f"y,p,g\n{cells},a\n0,0.3,b\n")
    groups = ("--groups", "g") if command == "audit" else ("--covariates", "g")
    done = calibrant(command, path, "-y", "y", "-p", "p", *groups)
    assert done.returncode == 2
    for text in words:
        assert text in done.stderr
