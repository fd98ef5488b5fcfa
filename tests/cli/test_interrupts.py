"""Signals at random moments: a clean stop, one line, nothing half written."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time

import interrupts
import numpy as np
import pytest

from calibrant import recalibrate
from calibrant.files import scratch_folder

CODE = "from calibrant.cli.main import main; print('ready', flush=True); main()"
COMMANDS = {
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


def stopped(folder, command, delay, number):
    """Start a command, send it a signal after a while, and return what it left."""
    extra = [part.format(here=folder) for part in COMMANDS[command]]
    columns = ["-p", "p"] if command == "apply" else ["-y", "y", "-p", "p"]
    before = [str(folder / "map.json")] if command == "apply" else []
    for earlier in (folder / "out").iterdir():
        earlier.unlink()  # the state of a finished run would refuse its rows, and an alarm would stay on
    started = subprocess.Popen(
        [sys.executable, "-c", CODE, command, *before, str(folder / "rows.csv"), *columns, *extra],
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
@pytest.mark.parametrize("command", COMMANDS)
def test_an_interrupt_is_one_line_and_exit_code_130(folder, command, turn):
    delay = random.Random(f"{command}{turn}").uniform(0.05, 2.5)
    code, err = stopped(folder, command, delay, signal.SIGINT)
    if code == 0:
        return  # it was done before
    assert code == 130, err
    assert err.endswith("calibrant: stopped\n")
    assert "Traceback" not in err
    assert "rethrown" not in err
    assert [name for name in os.listdir(folder / "out") if name.endswith(".part")] == []
    assert os.listdir(folder / "scratch") == []


@pytest.mark.parametrize("number", interrupts.EXPECTED)
@pytest.mark.parametrize("delay", [0, 0.05, 0.2, 0.4])
def test_a_signal_while_modules_are_loaded_is_quiet(tmp_path, delay, number):
    assert interrupts.interrupt(tmp_path, "measures", number, delay) in ("stopped", "done")


@pytest.mark.slow
def test_signals_in_the_first_second():
    assert set(interrupts.count(20, seed=1)) <= {"stopped", "done"}


@pytest.mark.skipif(sys.platform != "linux", reason="limits virtual memory")
@pytest.mark.parametrize("kilobytes", [100_000, 600_000])
def test_too_little_virtual_memory_is_refused_at_once(folder, kilobytes):
    import resource

    limit = kilobytes * 1024
    ended = subprocess.run(
        [sys.executable, "-c", interrupts.START, "evaluate", "rows.csv", "-y", "y", "-p", "p"],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=folder,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )
    assert ended.returncode == 2
    assert ended.stderr.startswith("calibrant: the limit on virtual memory must be at least 1500000 KiB")


@pytest.mark.slow
@pytest.mark.parametrize("turn", range(25))
@pytest.mark.parametrize("command", COMMANDS)
def test_many_interrupts(folder, command, turn):
    test_an_interrupt_is_one_line_and_exit_code_130(folder, command, turn + 100)


@pytest.mark.parametrize("command", ["sketch", "evaluate"])
def test_a_kill_leaves_no_half_file_and_its_scratch_goes_with_the_next_run(folder, command, monkeypatch):
    delay = random.Random(command).uniform(0.5, 3)
    stopped(folder, command, delay, signal.SIGKILL)
    for name in os.listdir(folder / "out"):
        assert name.startswith(".") or (folder / "out" / name).stat().st_size > 1000
    for leftover in (folder / "scratch").iterdir():
        os.utime(leftover, (0, 0))
    monkeypatch.setattr(tempfile, "tempdir", str(folder / "scratch"))
    with scratch_folder() as mine:
        assert list((folder / "scratch").iterdir()) == [mine]
