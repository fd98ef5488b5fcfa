"""calibrant test, compare and plan, as a user runs them."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import calibrant as cb
from calibrant.cli.main import calibrant


def run(*arguments):
    return CliRunner().invoke(calibrant, [str(a) for a in arguments])


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
    assert "not truthful" in words.output


def test_plan(file):
    found = run("plan", "--distance", 0.1, "--seed", 1, "--draws", 99, "--json")
    assert found.exit_code == 0, found.output
    assert 50 < json.loads(found.stdout)["n"] < 1000
    shaped = run("plan", file, "-p", "p", "--records", 500, "--draws", 99)
    assert "500 records detect" in shaped.stdout


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
