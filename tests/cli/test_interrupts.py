"""Signals at random moments: a clean stop, one line, nothing half written."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

CODE = "from calibrant.cli.main import main; print('ready', flush=True); main()"
VERBS = {
    "sketch": ["-o", "{here}/out/day.sketch"],
    "test": ["--draws", "99999"],
    "audit": ["--covariates", "w", "--draws", "9999"],
    "evaluate": ["--html", "{here}/out/report.html"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    here = tmp_path_factory.mktemp("interrupts")
    rng = np.random.default_rng(2)
    p = rng.random(300_000)
    columns = [(rng.random(len(p)) < p).astype(int), p, rng.random(len(p))]
    np.savetxt(here / "rows.csv", np.column_stack(columns), "%.6g", ",", header="y,p,w", comments="")
    (here / "out").mkdir()
    (here / "scratch").mkdir()
    return here


def stopped(folder, verb, delay, number):
    """Start a verb, send it a signal after a while, and return what it left."""
    extra = [part.format(here=folder) for part in VERBS[verb]]
    started = subprocess.Popen(
        [sys.executable, "-c", CODE, verb, str(folder / "rows.csv"), "-y", "y", "-p", "p", *extra],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(folder / "scratch")},
    )
    started.stdout.readline()
    time.sleep(delay)
    started.send_signal(number)
    _, err = started.communicate(timeout=120)
    return started.returncode, err


@pytest.mark.parametrize("turn", range(2))
@pytest.mark.parametrize("verb", VERBS)
def test_an_interrupt_is_one_line_and_exit_code_130(folder, verb, turn):
    delay = random.Random(f"{verb}{turn}").uniform(0.05, 2.5)
    code, err = stopped(folder, verb, delay, signal.SIGINT)
    if code == 0:
        return  # it was done before
    assert code == 130, err
    assert err.endswith("calibrant: stopped\n")
    assert "Traceback" not in err
    assert "rethrown" not in err
    assert [name for name in os.listdir(folder / "out") if name.endswith(".part")] == []
    assert os.listdir(folder / "scratch") == []


@pytest.mark.slow
@pytest.mark.parametrize("turn", range(25))
@pytest.mark.parametrize("verb", VERBS)
def test_many_interrupts(folder, verb, turn):
    test_an_interrupt_is_one_line_and_exit_code_130(folder, verb, turn + 100)


@pytest.mark.parametrize("verb", ["sketch", "evaluate"])
def test_a_kill_leaves_no_half_file(folder, verb):
    delay = random.Random(verb).uniform(0.5, 3)
    stopped(folder, verb, delay, signal.SIGKILL)
    for name in os.listdir(folder / "out"):
        assert name.startswith(".") or (folder / "out" / name).stat().st_size > 1000
    for leftover in os.listdir(folder / "scratch"):
        for part in (folder / "scratch" / leftover).iterdir():
            part.unlink()
        (folder / "scratch" / leftover).rmdir()
