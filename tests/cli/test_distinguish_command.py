"""`calibrant distinguish` as a user types it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cli.typed import calibrant

from calibrant import distinguish

pytest.importorskip("lightgbm")


def run(*arguments: object):
    return calibrant("distinguish", *arguments)


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    rng = np.random.default_rng(0)
    a, b = rng.choice(["x", "y"], 1500), rng.integers(0, 2, 1500)
    p = np.round(rng.uniform(0.2, 0.8, 1500), 3)
    y = rng.random(1500) < p + 0.2 * np.where((a == "x") == (b == 1), 1, -1)
    path = tmp_path_factory.mktemp("distinguish") / "rows.csv"
    pd.DataFrame({"y": y.astype(int), "p": p, "a": a, "b": b}).to_csv(path, index=False)
    return path


def test_json_is_what_the_library_says(file):
    done = run(file, "-y", "y", "-p", "p", "--covariates", "a,b", "--seed", 3, "--draws", 99, "--json")
    assert done.returncode == 0, done.stderr
    rows = pd.read_csv(file)
    expected = distinguish(rows["y"], rows["p"], rows[["a", "b"]], seed=3, draws=99)
    assert json.loads(done.stdout) == json.loads(json.dumps(expected.to_dict()))


def test_text_names_what_carried_it_and_the_seed(file):
    done = run(file, "-y", "y", "-p", "p", "--covariates", "a,b", "--seed", 3, "--draws", 99)
    assert done.returncode == 0, done.stderr
    for words in ("advantage", "seed 3", "carried by", "a = ", " and b = ", "mean residual", "≤ 0.02"):
        assert words in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-y", "y", "-p", "p"], "Missing option '--covariates'"),
        (["-y", "y", "-p", "p", "--covariates", "nowhere"], "nowhere"),
        (["-y", "y", "-p", "p", "--covariates", "a", "--draws", "0"], "draws must be"),
        (["-y", "a", "-p", "p", "--covariates", "b"], "a"),
    ],
)
def test_bad_usage_is_exit_code_two_and_one_message(file, arguments, message):
    done = run(file, *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_recalibrate_says_for_whom(file, tmp_path):
    columns = [file, "-y", "y", "-p", "p", "--covariates", "a,b"]
    done = calibrant(
        "recalibrate", *columns, "--method", "hierarchical", "--seed", 1, "-o", tmp_path / "map.json"
    )
    assert done.returncode == 0, done.stderr
    assert "For whom, on held-out records" in done.stdout
    assert re.search(r"and everyone: p (=|≤|<) [0-9.]+ before, (p )?(=|≤|<) [0-9.]+ after", done.stdout)
    assert re.search(r"\) → .*  open\n", done.stdout)  # additive shifts cannot repair this pattern
    assert json.loads((tmp_path / "map.json").read_text())["map"]["form"] == "hierarchical"


def test_the_page_is_written_whole_and_never_over_the_rows(file, tmp_path):
    pytest.importorskip("jinja2")
    target = tmp_path / "page.html"
    columns = ["-y", "y", "-p", "p", "--covariates", "a,b", "--seed", 3, "--draws", 19]
    done = run(file, *columns, "--html", target)
    assert done.returncode == 0, done.stderr
    assert "What gave them away?" in target.read_text(encoding="utf-8")
    assert run(file, *columns, "--html", file).returncode == 2
