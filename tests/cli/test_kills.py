"""kill -9 at any moment: repeating the run that was killed gives the same files as never being killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

KILLS = Path(__file__).with_name("kills.py")
PARTS = 3
COLUMNS = ["-y", "y", "-p", "p"]

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and kill")


def write_parts(folder):
    """Write three files of new records, and three that grow: each holds the records before it too."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    rows = ["y,p,day,g"]
    for part in range(PARTS):
        fresh = []
        for t in range(250):
            p = round(float(rng.uniform(0.05, 0.95)), 4)
            fresh.append(f"{int(rng.random() < p**2)},{p},{part * 100 + t // 5},{rng.choice(['a', 'b'])}")
        (folder / f"{part}.csv").write_text("\n".join([rows[0], *fresh, ""]))
        rows += fresh
        (folder / f"grown{part}.csv").write_text("\n".join([*rows, ""]))


PLANS = {
    "stream": {
        "parts": [
            ["stream", f"{part}.csv", *COLUMNS, "--by", "g", "--batch-by", "day", "--state", "s.json",
             "-o", f"out{part}.csv", "--json"] for part in range(PARTS)
        ],
        "outputs": ["s.json", *(f"out{part}.csv" for part in range(PARTS))],
        "always_repeat": False,
    },
    "monitor": {
        "parts": [["monitor", f"{part}.csv", *COLUMNS, "--by", "g", "--group", "a", "--group", "b",
                   "--state", "s.json", "--json"] for part in range(PARTS)],
        "outputs": ["s.json"],
        "always_repeat": False,
    },
    "monitor --grown": {
        "parts": [
            ["monitor", f"grown{part}.csv", *COLUMNS, "--state", "s.json", "--grown", "--json"]
            for part in range(PARTS)
        ],
        "outputs": ["s.json", "shown.json"],
        "always_repeat": True,
    },
}  # fmt: skip


def after_kills(tmp_path, name, runs):
    write_parts(tmp_path / "start")
    plan = {**PLANS[name], "runs": runs, "seed": 1}
    command = [sys.executable, "-W", "ignore", str(KILLS), str(tmp_path), json.dumps(plan)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def hold(found, name):
    assert found["different"] == 0
    assert found["leftovers"] == 0, "what a killed run left half written is removed by the next"
    assert found["codes"] == ([0, 0, 0] if name == "stream" else [1, 1, 1])


@pytest.mark.parametrize("name", PLANS)
def test_killed_runs_are_repeated(tmp_path, name):
    found = after_kills(tmp_path, name, 2)
    hold(found, name)
    assert found["kills"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANS)
def test_killed_runs_at_many_moments(tmp_path, name):
    found = after_kills(tmp_path, name, 30)
    hold(found, name)
    assert found["kills"] > 30, "of 90"
