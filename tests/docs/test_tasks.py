"""The tasks that people come with, from their pages alone: every block as printed, in an empty folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
BLOCK = re.compile(r"^```(\{code-cell\}|\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
VERDICTS = ("check", "monitor")  # exit code 1 is an answer there
TASKS = {  # page, and what must have come out of it: files, and words that were printed
    "tutorials/choosing-between-models": (["models.svg"], ["p is better than p_old by Brier score"]),
    "howto/committee": (
        ["audit.html", "repaired.csv"],
        ["Predictions are wrong for 4 of 24 groups", "helps"],
    ),
    "howto/sites-and-seasons": (["report.html", "calibrated.csv"], ["The 4 groups of region", "trend along"]),
    "howto/operations": (
        ["monitor.json", "both.html"],
        ["no alarm (a false alarm, ever, has a chance of at most 0.01)"],
    ),
    "howto/papers": (
        ["reliability.svg", "figure.pdf", "benefit.svg", "calibration.bib"],
        ["with 10 degrees of freedom", "calibration slope", "minus", "p - p_old"],
    ),
    "howto/split": (["map.json", "judged.csv"], ["p_recalibrated"]),
    "howto/gate-in-ci": (["gate.xml"], ["smooth"]),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder, and the program on the path."""
    program = tmp_path / "bin" / "calibrant"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m calibrant "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    work = tmp_path / "work"
    work.mkdir()
    return work


def run(folder, command):
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("page", TASKS)
def test_a_task_is_done_by_its_page_alone(page, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    printed, names = [], {}
    for kind, body in BLOCK.findall((DOCS / f"{page}.md").read_text(encoding="utf-8")):
        if kind in ("python", "{code-cell}"):
            exec(compile(body, page, "exec"), names)  # later blocks use the names of earlier ones
            printed.append(capsys.readouterr().out)
        elif kind == "bash":
            (folder / "watch.sh").write_text(body, encoding="utf-8")
        elif kind == "console":
            for line in re.findall(r"^\$ (.*)$", body, re.MULTILINE):
                done = run(folder, ["sh", "-c", line])
                allowed = (0, 1) if line.split()[1] in VERDICTS else (0,)
                assert done.returncode in allowed, f"{line}\n{done.stderr}"
                printed.append(done.stdout + done.stderr)
    files, words = TASKS[page]
    for name in files:
        assert (folder / name).stat().st_size > 0, name
    for word in words:
        assert any(word in text for text in printed), word


@pytest.mark.slow
def test_the_nightly_script_is_silent_until_there_is_something_to_say(folder):
    page = (DOCS / "howto" / "operations.md").read_text(encoding="utf-8")
    script = next(body for kind, body in BLOCK.findall(page) if kind == "bash")
    (folder / "watch.sh").write_text(script, encoding="utf-8")
    right = "default,p\n" + "".join(f"{k % 2},0.{45 + k % 10}\n" for k in range(100))
    wrong = "default,p\n" + "".join(f"0,0.9{k % 10}\n" for k in range(100))
    for name, text, code in (("a.csv", right, 0), ("b.csv", wrong, 1), ("c.csv", "x\n1\n", 2)):
        (folder / name).write_text(text)
        done = run(folder, ["sh", "watch.sh", name])
        assert done.returncode == code
        assert bool(done.stdout) == (code != 0)
        assert "ALARM" in done.stdout or code != 1
    (folder / "a.csv").write_text(right.replace("0.45", "0.451"))
    assert run(folder, ["sh", "watch.sh", "b.csv"]).stdout.count("--same") == 1
