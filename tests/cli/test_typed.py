"""A command line typed in the tests' own process prints and returns what a process of its own does."""

from __future__ import annotations

import numpy as np
import pytest
from cli.typed import calibrant, in_a_process

ROWS = ["rows.csv", "-y", "y", "-p", "p", "--seed", 1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("typed")
    p = np.random.default_rng(2).uniform(0.05, 0.95, 600).round(3)
    y = np.random.default_rng(3).random(600) < p**2
    lines = [f"{int(a)},{b},{'xy'[k % 2]}" for k, (a, b) in enumerate(zip(y, p, strict=True))]
    (path / "rows.csv").write_text("\n".join(["y,p,g", *lines]) + "\n")
    (path / "names.csv").write_text("y,p,g\n" + "1,0.9,a\x1b[31mb\n0,0.1,c\u202ed\n" * 30)
    return path


@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        (0, ["evaluate", *ROWS, "--groups", "g"]),
        (0, ["recalibrate", *ROWS, "-m", "platt", "--json"]),
        (1, ["check", *ROWS, "--max", "smooth=0.001"]),
        (2, ["audit", *ROWS, "--groups", "h"]),
        (2, ["evaluate", *ROWS, "--draws"]),
        (3, ["check", *ROWS, "--max", "smooth=0.18"]),
        (0, ["audit", "names.csv", *ROWS[1:], "--groups", "g", "--draws", 0]),
        (0, ["--help"]),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else str(value),
)
def test_it_says_what_a_process_says(folder, code, arguments):
    here, there = calibrant(*arguments, cwd=folder), in_a_process(*arguments, cwd=folder)
    assert there.returncode == code, there.stderr
    assert (here.returncode, here.stdout, here.stderr) == (code, there.stdout, there.stderr)
