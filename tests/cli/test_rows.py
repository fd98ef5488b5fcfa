"""Rows of a file: lists of columns with blanks, and columns in the wrong place."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from calibrant.cli.main import calibrant
from calibrant.errors import InvalidInputError


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    rng = np.random.default_rng(7)
    p = rng.random(120).round(2)
    frame = pd.DataFrame({"y": (rng.random(120) < p).astype(int), "p": p, "q": 1 - p})
    frame["a"], frame["b"] = rng.choice(["u", "v"], 120), rng.choice(["s", "t"], 120)
    file = tmp_path_factory.mktemp("rows") / "rows.csv"
    frame.to_csv(file, index=False)
    return str(file)


def run(*arguments):
    return CliRunner().invoke(calibrant, arguments)


@pytest.mark.parametrize("command", ["evaluate", "audit"])
def test_blanks_after_commas_are_no_part_of_a_name(command, path):
    found = [
        json.loads(
            run(command, path, "-y", "y", "-p", "p", "--groups", names, "--seed", "1", "--json").output
        )
        for names in ("a,b", "a, b")
    ]
    assert found[0] == found[1]
    assert run(command, path, "-y", "y", "-p", "p", "--groups", "a,,b").exception


@pytest.mark.parametrize("command", ["evaluate", "test", "compare"])
def test_columns_in_the_wrong_place_are_refused(command, path):
    more = ["-p", "y"] if command == "compare" else []
    again = run(command, path, "-y", "p", "-p", "p", *more).exception
    assert isinstance(again, InvalidInputError)
    assert "must be different columns; got 'p' for both" in str(again)
    exchanged = run(
        command, path, "-y", "p", "-p", "y", *(["-p", "q"] if command == "compare" else [])
    ).exception
    assert isinstance(exchanged, InvalidInputError)
    assert "must not be swapped; got fractions in column 'p'" in str(exchanged)


@pytest.mark.parametrize("variant", ["plain", "real"])
def test_audit_refuses_swapped_columns(variant, path):
    more = ["--groups", "a", "--variant", variant]
    assert "must not be swapped" in str(run("audit", path, "-y", "p", "-p", "y", *more).exception)


def test_sketch_refuses_swapped_columns_and_writes_nothing(path, tmp_path):
    target = tmp_path / "x.sketch"
    assert "must not be swapped" in str(run("sketch", path, "-y", "p", "-p", "y", "-o", target).exception)
    assert not target.exists()
    assert run("sketch", path, "-y", "y", "-p", "p", "-o", target).exit_code == 0


@pytest.mark.parametrize("command", ["evaluate", "audit"])
def test_numbers_and_groups_are_read_in_one_go(command, path, monkeypatch):
    from calibrant.io import session

    connections, connect = [], session.connect
    monkeypatch.setattr(
        session, "connect", lambda *given, **how: connections.append(1) or connect(*given, **how)
    )
    assert run(command, path, "-y", "y", "-p", "p", "--groups", "a,b", "--seed", "1").exit_code == 0
    assert len(connections) == 1
