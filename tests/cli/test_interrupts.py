"""Signals at random moments: a clean stop, one line, nothing half written."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
import pytest

from calibrant import recalibrate
from calibrant.files import scratch_folder

CODE = "from calibrant.cli.main import main; print('ready', flush=True); main()"
START = "from calibrant_command import main; print(1, flush=True); main()"
VERBS = {
    "sketch": ["-o", "{here}/out/day.sketch"],
    "test": ["--draws", "99999"],
    "audit": ["--covariates", "w", "--draws", "9999"],
    "evaluate": ["--html", "{here}/out/report.html"],
    "recalibrate": ["-o", "{here}/out/map.json", "--method", "auto"],
    "apply": ["-o", "{here}/out/applied.csv"],
    "stream": ["--out", "{here}/out/stream.csv", "--state", "{here}/out/stream.json"],
    "monitor": ["--state", "{here}/out/monitor.json"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    here = tmp_path_factory.mktemp("interrupts")
    rng = np.random.default_rng(2)
    p = rng.random(300_000)
    columns = [(rng.random(len(p)) < p).astype(int), p, rng.random(len(p))]
    np.savetxt(here / "rows.csv", np.column_stack(columns), "%.6g", ",", header="y,p,w", comments="")
    recalibrate([0, 1] * 50, np.linspace(0, 1, 100), method="platt").save(here / "map.json")
    (here / "out").mkdir()
    (here / "scratch").mkdir()
    return here


def stopped(folder, verb, delay, number):
    """Start a verb, send it a signal after a while, and return what it left."""
    extra = [part.format(here=folder) for part in VERBS[verb]]
    columns = ["-p", "p"] if verb == "apply" else ["-y", "y", "-p", "p"]
    before = [str(folder / "map.json")] if verb == "apply" else []
    for earlier in (folder / "out").iterdir():
        earlier.unlink()  # the state of a finished run would refuse its rows, and an alarm would stay on
    started = subprocess.Popen(
        [sys.executable, "-c", CODE, verb, *before, str(folder / "rows.csv"), *columns, *extra],
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


@pytest.mark.parametrize("turn", range(1))  # more of them in test_many_interrupts
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


@pytest.mark.parametrize("delay", [0.02, 0.05, 0.1, 0.2, 0.4])
def test_an_interrupt_while_modules_are_loaded_is_quiet(folder, delay):
    started = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "from calibrant_command import main; print(1, flush=True); main()",
            "measures",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    started.stdout.readline()
    time.sleep(delay)
    started.send_signal(signal.SIGINT)
    _, err = started.communicate(timeout=120)
    assert "Traceback" not in err
    assert started.returncode in (0, 130)


@pytest.mark.slow
@pytest.mark.parametrize("turn", range(25))
@pytest.mark.parametrize("verb", VERBS)
def test_many_interrupts(folder, verb, turn):
    test_an_interrupt_is_one_line_and_exit_code_130(folder, verb, turn + 100)


@pytest.mark.parametrize("verb", ["sketch", "evaluate"])
def test_a_kill_leaves_no_half_file_and_its_scratch_goes_with_the_next_run(folder, verb, monkeypatch):
    delay = random.Random(verb).uniform(0.5, 3)
    stopped(folder, verb, delay, signal.SIGKILL)
    for name in os.listdir(folder / "out"):
        assert name.startswith(".") or (folder / "out" / name).stat().st_size > 1000
    for leftover in (folder / "scratch").iterdir():
        os.utime(leftover, (0, 0))
    monkeypatch.setattr(tempfile, "tempdir", str(folder / "scratch"))
    with scratch_folder() as mine:
        assert list((folder / "scratch").iterdir()) == [mine]
